"""Errors of this package.

WorkQueueError
├── ShutDown         nothing is left to hand out, and nothing will come (get, get_batch)
├── Timeout          nothing came in time (also the builtin TimeoutError)
├── NotProcessing    `done` for an item that was not handed out (also ValueError)
├── UnhashableItem   an item that cannot be one (also TypeError)
└── UnknownItem      the item is neither queued nor in process (also KeyError)
"""

from __future__ import annotations

__all__ = ["NotProcessing", "ShutDown", "Timeout", "UnhashableItem", "UnknownItem", "WorkQueueError"]


class WorkQueueError(Exception):
    """Base of all errors of this package."""


class ShutDown(WorkQueueError):
    """The queue was shut down and everything that was ready has been handed out."""


class Timeout(WorkQueueError, TimeoutError):
    """No item became ready in time. Asking again can help."""


class _ItemError(WorkQueueError):
    """An error about one item, which is its attribute `item`; `queue` is the name of the queue."""

    _problem = "is wrong"

    def __init__(self, item: object, queue: str = "") -> None:
        super().__init__(item, queue)
        self.item = item
        self.queue = queue

    def __str__(self) -> str:  # composed here, since a queue raises with its lock held, and `repr` is foreign code
        where = f" in work queue {self.queue!r}" if self.queue else ""
        return f"{self.item!r} {self._problem}{where}"


class NotProcessing(_ItemError, ValueError):
    """`done` was called for an item that is not in process: called twice, or for something never handed out."""

    _problem = "is not in process"


class UnhashableItem(_ItemError, TypeError):
    """What was added is not hashable, so no two of it could be told to be one."""

    _problem = "is not hashable, which an item must be,"


class UnknownItem(_ItemError, KeyError):
    """The item is neither queued nor in process."""

    _problem = "is neither queued nor in process"
