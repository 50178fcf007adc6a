"""`WorkQueue`: the blocking, thread-safe queue, a thin layer around `workqueue.core.QueueState`.

There is no helper thread: a thread that waits in `get` also keeps the time for the first delayed item. At most one of
the waiting threads needs to do so; which deadline is covered is `_timer_at`, and whoever leaves `get` passes the duty
on.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from workqueue.core import Entry
from workqueue.errors import ShutDown, Timeout
from workqueue.shell import QueueShell, checked_limit, deadline

__all__ = ["WorkQueue"]

T = TypeVar("T", bound=Hashable)


class WorkQueue(QueueShell[T]):
    """A queue of work to do: deduplicating, delaying, rate limiting, with priorities. Thread-safe.

    An item is any hashable; equal items are one. It is in the queue at most once and never handed out to two threads at
    once: each `get` must be followed by `done`, and what is added in between is handed out once more after that.
    Higher priorities go first, and within one priority whoever became ready first. Of `AGEING_INTERVAL` (8) hand-outs
    at most one goes to the item that has been ready longest, if that is more than `max_priority_age` seconds, so that
    nothing starves.

    No method calls foreign code with the queue's lock held (but the items' own `__hash__` and `__eq__`, and the
    clock). No method may be called from a signal handler or a finalizer.

    :param name: for error messages, and the label of the metrics
    :param rate_limiter: what `add_rate_limited` asks; by default exponential per item, 5 ms .. 1000 s
    :param metrics: where a queue with a name reports to; None costs nothing
    :param max_priority_age: seconds; None means strictly by priority
    """

    def _make_rooms(self) -> None:
        self._available = threading.Condition(self._lock)
        self._drained = threading.Condition(self._lock)
        self._told = 0  # how many getters were told to look and have not come yet

    def get(self, timeout: float | None = None) -> T:
        """Hand out the next item; `done` must follow. Blocks until there is one.

        :param timeout: seconds; None waits without limit, 0 or less does not wait
        :raises ShutDown: the queue was shut down and nothing is ready, even if an item in process has a re-run pending:
            that is for the worker that calls `done`
        :raises Timeout: nothing became ready in time
        """
        self._acquire()
        try:
            now = self._now()
            entry = self._core.take(now) or self._wait(now, timeout)
        finally:
            self._release()
        if self._metrics is not None:
            self._observe_queueing(self._metrics, entry)
        return entry.item

    def get_batch(self, limit: int, timeout: float | None = None) -> list[T]:
        """Hand out up to `limit` items in the order of `get`. Blocks for the first one like `get`, never for more."""
        limit = checked_limit(limit)
        with self._lock:
            now = self._now()
            entries = self._core.take_batch(limit, now)
            if not entries:
                first = self._wait(now, timeout)
                entries = [first, *self._core.take_batch(limit - 1, first.started_at)]
        if self._metrics is not None:
            for entry in entries:
                self._observe_queueing(self._metrics, entry)
        return [entry.item for entry in entries]

    @contextmanager
    def _process(self, timeout: float | None) -> Iterator[T]:
        item = self.get(timeout)
        try:
            yield item
        finally:
            self.done(item)

    def processing(self, timeout: float | None = None) -> AbstractContextManager[T]:
        """`get` on entry, which gives the item, and `done` on exit, however the block ends."""
        return self._process(timeout)

    def _wait(self, now: float, timeout: float | None) -> Entry[T]:
        """Wait for an entry, with the lock held."""
        until = deadline(now, timeout)
        try:
            while True:
                if self._core.shutting_down:
                    raise ShutDown(f"work queue {self.name!r} is shut down")
                if now >= until:
                    raise Timeout(f"nothing became ready in work queue {self.name!r} in {timeout} seconds")
                self._sleep(now, until)
                now = self._now()
                # Also after a time-out: a notification may have come at the same moment, and must not be lost.
                entry = self._core.take(now)
                if entry is not None:
                    return entry
        finally:
            self._pass_on(self._told)

    def _sleep(self, now: float, until: float) -> None:
        due = self._core.next_due()
        keeps_time = due < self._timer_at
        if keeps_time:
            self._timer_at = due
            until = min(due, until)
        self._getters += 1
        try:
            self._clock.wait(self._available, None if until == math.inf else until - now)
        finally:
            # Who was told cannot be known, since a clock may wake getters too. So the first to come counts as told:
            # then there are never fewer on their way than `_told`, and what they find too much they pass on.
            if self._told:
                self._told -= 1
            else:
                self._getters -= 1
            if keeps_time and self._timer_at == due:
                self._timer_at = math.inf

    def shut_down_with_drain(self, timeout: float | None = None) -> bool:
        """Like `shut_down`, then wait until everything that is ready or in process, re-runs too, is done.

        The workers must go on with `get` and `done`. True when all is done, False if `timeout` seconds passed before or
        `shut_down` was called meanwhile.
        """
        with self._lock:
            now = self._now()
            until = deadline(now, timeout)
            self._close()
            shut_downs = self._shut_downs
            while not self._core.idle:
                if self._shut_downs != shut_downs or now >= until:
                    return False
                self._clock.wait(self._drained, None if until == math.inf else until - now)
                now = self._now()
            return True

    def _wake_getter(self) -> None:
        self._getters -= 1
        self._told += 1
        self._available.notify()

    def _wake_getters(self) -> None:
        self._available.notify_all()

    def _wake_drainers(self) -> None:
        self._drained.notify_all()
