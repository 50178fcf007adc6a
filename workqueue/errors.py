"""Errors of this package.

WorkQueueError
├── ShutDown         nothing is left to hand out, and nothing will come (get, get_batch)
├── Timeout          nothing came in time (also the builtin TimeoutError)
├── NotProcessing    `done` for an item that was not handed out (also ValueError)
└── UnknownItem      the item is neither queued nor in process (also KeyError)
"""

from __future__ import annotations

__all__ = ["NotProcessing", "ShutDown", "Timeout", "UnknownItem", "WorkQueueError"]


class WorkQueueError(Exception):
    """Base of all errors of this package."""


class ShutDown(WorkQueueError):
    """The queue was shut down and everything that was ready has been handed out."""


class Timeout(WorkQueueError, TimeoutError):
    """No item became ready in time. Asking again can help."""


class _ItemError(WorkQueueError):
    """An error about one item, which is its attribute `item`."""

    _problem = "is wrong"

    def __init__(self, item: object, queue: str = "") -> None:
        where = f" in work queue {queue!r}" if queue else ""
        super().__init__(f"{item!r} {self._problem}{where}")
        self.item = item
        self.queue = queue

    def __str__(self) -> str:  # KeyError would show the message quoted
        return str(self.args[0])


class NotProcessing(_ItemError, ValueError):
    """`done` was called for an item that is not in process: called twice, or for something never handed out."""

    _problem = "is not in process"


class UnknownItem(_ItemError, KeyError):
    """The item is neither queued nor in process."""

    _problem = "is neither queued nor in process"
