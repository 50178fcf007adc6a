"""`WorkLog` and `check_log`: prove from a log that a queue which many used at once kept its rules.

Each thread or task works through a `Writer` of its own, which notes every call with the time before and after it.
`check_log` compares these intervals. When a call took effect within its interval nobody knows, so it refuses only what
cannot have happened in any order: a right queue always passes, and a wrong one hardly among very many calls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from enum import Enum
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from workqueue.rate_limiters import RateLimiter, UsageAware
from workqueue.shell import QueueShell

if TYPE_CHECKING:
    from workqueue.aio import AsyncWorkQueue
    from workqueue.queue import WorkQueue

__all__ = ["AsyncWriter", "Event", "Kind", "WorkLog", "Writer"]

T = TypeVar("T", bound=Hashable)


class Kind(Enum):
    """What was called."""

    ADD = "add"
    RETRY = "add_after or add_rate_limited"
    GET = "get"
    DONE = "done"
    CANCEL = "cancel"
    SHUT_DOWN = "shut_down"
    DRAIN = "shut_down_with_drain"


class Event(NamedTuple):
    """One call that came back. GET: it handed out the item; CANCEL: it dropped an entry; DRAIN: it gave True."""

    kind: Kind
    item: int
    """0 for SHUT_DOWN and DRAIN."""
    start: float
    """Seconds on the log's clock, just before the call."""
    end: float
    """Just after it."""
    delay: float = 0.0
    """Of RETRY: seconds."""


class WorkLog:
    """The notes of all writers about one queue. They are complete once the writers' threads and tasks have ended.

    :param now: the clock that the queue goes by; the real one by default
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.delays = threading.local()
        self._notes: list[list[Event]] = []

    def notes(self) -> list[Event]:
        """A new list to append to, for one thread or task; its events are part of `events`."""
        notes: list[Event] = []
        self._notes.append(notes)
        return notes

    def events(self) -> list[Event]:
        """All events in the order of their starts."""
        return sorted((event for notes in self._notes for event in notes), key=lambda event: event.start)

    def noting(self, limiter: RateLimiter[int]) -> RateLimiter[int]:
        """`limiter`, with each answer noted for the writer on whose thread it was given. Needed for retries."""
        return _Noting(limiter, self.delays)

    def writer(self, queue: WorkQueue[int]) -> Writer:
        """A writer for one more thread."""
        return Writer(self, queue)

    def async_writer(self, queue: AsyncWorkQueue[int]) -> AsyncWriter:
        """A writer for one more task, or for a thread that does not wait."""
        return AsyncWriter(self, queue)


class _Noting(Generic[T]):
    def __init__(self, limiter: RateLimiter[T], delays: threading.local) -> None:
        self._limiter = limiter
        self._delays = delays

    def when(self, item: T, /) -> float:
        delay = self._delays.last = self._limiter.when(item)
        return delay

    def forget(self, item: T, /) -> None:
        self._limiter.forget(item)

    def num_requeues(self, item: T, /) -> int:
        return self._limiter.num_requeues(item)

    def watch_usage(self, in_use: Callable[[object], bool]) -> None:
        if isinstance(self._limiter, UsageAware):
            self._limiter.watch_usage(in_use)


class _Common:
    """The calls that do not wait. They do what the queue's do, and note it."""

    def __init__(self, log: WorkLog, queue: QueueShell[int]) -> None:
        self._queue = queue
        self._delays = log.delays
        self._now = log.now
        self._note = log.notes().append

    def add(self, item: int, *, priority: int | None = None) -> None:
        """See `WorkQueue.add`."""
        start = self._now()
        self._queue.add(item, priority=priority)
        self._note(Event(Kind.ADD, item, start, self._now()))

    def add_after(self, item: int, delay: float, *, priority: int | None = None) -> None:
        """See `WorkQueue.add_after`."""
        start = self._now()
        self._queue.add_after(item, delay, priority=priority)
        self._note(Event(Kind.RETRY, item, start, self._now(), delay))

    def add_rate_limited(self, item: int, *, priority: int | None = None) -> None:
        """See `WorkQueue.add_rate_limited`. The queue's limiter must be one of `WorkLog.noting`."""
        self._delays.last = 0.0
        start = self._now()
        self._queue.add_rate_limited(item, priority=priority)
        self._note(Event(Kind.RETRY, item, start, self._now(), self._delays.last))

    def forget(self, item: int) -> None:
        """See `WorkQueue.forget`."""
        self._queue.forget(item)

    def cancel(self, item: int) -> bool:
        """See `WorkQueue.cancel`."""
        start = self._now()
        found = self._queue.cancel(item)
        if found:
            self._note(Event(Kind.CANCEL, item, start, self._now()))
        return found

    def done(self, item: int) -> None:
        """See `WorkQueue.done`."""
        start = self._now()
        self._queue.done(item)
        self._note(Event(Kind.DONE, item, start, self._now()))

    def shut_down(self) -> None:
        """See `WorkQueue.shut_down`."""
        start = self._now()
        self._queue.shut_down()
        self._note(Event(Kind.SHUT_DOWN, 0, start, self._now()))

    def _note_drain(self, start: float, drained: bool) -> bool:
        self._note(Event(Kind.DRAIN if drained else Kind.SHUT_DOWN, 0, start, self._now()))
        return drained


class Writer(_Common):
    """A `WorkQueue` for one thread, with notes."""

    def __init__(self, log: WorkLog, queue: WorkQueue[int]) -> None:
        super().__init__(log, queue)
        self._waits = queue

    def get(self, timeout: float | None = None) -> int:
        """See `WorkQueue.get`."""
        start = self._now()
        item = self._waits.get(timeout)
        self._note(Event(Kind.GET, item, start, self._now()))
        return item

    def shut_down_with_drain(self, timeout: float | None = None) -> bool:
        """See `WorkQueue.shut_down_with_drain`."""
        start = self._now()
        return self._note_drain(start, self._waits.shut_down_with_drain(timeout))


class AsyncWriter(_Common):
    """An `AsyncWorkQueue` for one task or thread, with notes."""

    def __init__(self, log: WorkLog, queue: AsyncWorkQueue[int]) -> None:
        super().__init__(log, queue)
        self._waits = queue

    async def get(self, timeout: float | None = None) -> int:
        """See `AsyncWorkQueue.get`."""
        start = self._now()
        item = await self._waits.get(timeout)
        self._note(Event(Kind.GET, item, start, self._now()))
        return item

    async def shut_down_with_drain(self, timeout: float | None = None) -> bool:
        """See `AsyncWorkQueue.shut_down_with_drain`."""
        start = self._now()
        return self._note_drain(start, await self._waits.shut_down_with_drain(timeout))
