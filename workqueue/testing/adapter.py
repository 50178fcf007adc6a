"""What the kit needs of a queue under test: `QueueAdapter`, which translates, and `Capabilities`, what the queue can.

The adapter's answers are plain values, since every queue has errors of its own: a queue that raises is translated, not
imitated. `workqueue.testing.adapters` has those of this package's queues.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

__all__ = ["Call", "Capabilities", "QueueAdapter", "check_adapter"]

T_co = TypeVar("T_co", covariant=True)


class Call(Protocol[T_co]):
    """A call that goes on in another thread or task."""

    def finished(self, timeout: float) -> bool:
        """Whether it has returned; waits for that up to `timeout` real seconds."""

    def result(self) -> T_co:
        """What the finished call gave. Raises what it raised."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a queue can do. What it cannot is neither called nor expected."""

    order: bool = True
    """It hands out in the order of the rules. Without, any ready item may be the next one."""
    priorities: bool = True
    """Items have priorities (`priority`). Without, each add has the priority None."""
    delays: bool = True
    """`add_after`."""
    rate_limits: bool = True
    """`add_rate_limited`, `forget` and `num_requeues`."""
    cancel: bool = True
    """`cancel`."""
    batches: bool = True
    """`get` and `start_get` can hand out more than one. Without, the limit is always 1."""
    misuse: bool = True
    """`done` of an item that is not in process is refused. Without, nobody tries."""
    blocking: bool = True
    """`start_get`."""
    drain: bool = True
    """`start_drain`."""


class QueueAdapter(ABC):
    """One new queue for one example, and how it is used. Items are small ints.

    `add`, `get`, `done` and `shut_down` are needed always, the others if `Capabilities` says that the queue can do it.
    All are called from one thread, the test's own; none may block but for a moment.

    The rules are those of `WorkQueue`. Its order, in short: the highest priority first, among equals whoever became
    ready first; delayed items become ready when they are due.
    """

    @abstractmethod
    def add(self, item: int, priority: int | None) -> None:
        """Ask for `item`. After shutdown that is ignored."""

    @abstractmethod
    def get(self, limit: int) -> list[int] | None:
        """Hand out up to `limit` items without waiting: [] if nothing is ready, None if besides it was shut down."""

    @abstractmethod
    def done(self, item: int) -> bool:
        """End the processing of `item`. False if the queue refused, for the item is not in process."""

    @abstractmethod
    def shut_down(self) -> None:
        """Accept nothing any more and drop what waits. What is ready is still handed out."""

    def add_after(self, item: int, delay: float, priority: int | None) -> None:
        """Ask for `item` in `delay` seconds, at once if that is 0 or less."""
        raise _lacks(self, "add_after")

    def add_rate_limited(self, item: int, priority: int | None) -> None:
        """Ask for `item` when the rate limiter says so."""
        raise _lacks(self, "add_rate_limited")

    def forget(self, item: int) -> None:
        """Tell the rate limiter that `item` succeeded."""
        raise _lacks(self, "forget")

    def num_requeues(self, item: int) -> int:
        """How many failures of `item` the rate limiter remembers."""
        raise _lacks(self, "num_requeues")

    def priority(self, item: int) -> int | None:
        """The priority of `item` in process or else queued; None if it is neither."""
        raise _lacks(self, "priority")

    def cancel(self, item: int) -> bool:
        """Drop the item's waiting or ready entry or its pending re-run. True if there was one."""
        raise _lacks(self, "cancel")

    def advance(self, seconds: float) -> None:
        """Let that much time pass on the queue's clock. Needed with delays, rate limits or ageing."""
        raise _lacks(self, "advance")

    def start_get(self, limit: int, timeout: float | None) -> Call[list[int] | None]:
        """Start a `get` that waits. Returns when it does, or is finished.

        Its result is that of `get`, [] after `timeout` seconds on the queue's clock. With a limit above 1 it waits for
        the first item, never for more.
        """
        raise _lacks(self, "start_get")

    def start_drain(self, timeout: float | None) -> Call[bool]:
        """Shut down and start to wait until all that is ready or in process is done. Returns when it waits.

        The result is False if `timeout` seconds passed on the queue's clock before, or `shut_down` was called.
        """
        raise _lacks(self, "start_drain")

    def numbers(self) -> Mapping[str, float]:
        """What the queue tells about itself, as many as it has of `QueueModel.numbers`, under the same names.

        By default nothing, and nothing is compared.
        """
        return {}

    def close(self) -> None:  # noqa: B027 - most have nothing to free
        """The example is over; no call is going on any more unless it failed. Frees what the adapter holds."""


_NEEDED_BY = {
    "priorities": ("priority",),
    "delays": ("add_after",),
    "rate_limits": ("add_rate_limited", "forget", "num_requeues"),
    "cancel": ("cancel",),
    "blocking": ("start_get",),
    "drain": ("start_drain",),
}


def check_adapter(adapter: QueueAdapter, capabilities: Capabilities, *, timed: bool) -> None:
    """Raise TypeError if a method is missing that a capability needs, `advance` if the queue is `timed`."""
    needed = [(name, what) for what, names in _NEEDED_BY.items() if getattr(capabilities, what) for name in names]
    if timed:
        needed.append(("advance", "delays, rate_limits and ageing"))
    for name, what in needed:
        if _is_inherited(adapter, name):
            raise TypeError(f"{type(adapter).__name__} has no {name}(): write it, or switch off {what}")


def _is_inherited(adapter: QueueAdapter, name: str) -> bool:
    inherited: Callable[..., object] = getattr(QueueAdapter, name)
    return getattr(type(adapter), name, inherited) is inherited


def _lacks(adapter: QueueAdapter, name: str) -> TypeError:
    return TypeError(f"{type(adapter).__name__} has no {name}()")
