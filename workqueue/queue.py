"""`WorkQueue`: the threads' shell around `workqueue.core.QueueState`.

One lock guards the state. There is no helper thread: a thread that waits in `get` also keeps the time for the first
delayed item. At most one of the waiting threads needs to do so; which deadline is covered is `_timer_at`, and whoever
leaves `get` passes the duty on.
"""

from __future__ import annotations

import logging
import math
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Generic, TypeVar

from workqueue.clock import Clock, MonotonicClock, checked_timeout
from workqueue.core import Entry, QueueState, Statistics
from workqueue.errors import ShutDown, Timeout
from workqueue.metrics import MetricsProvider, QueueMetrics
from workqueue.rate_limiters import ItemExponentialFailureRateLimiter, RateLimiter, UsageAware

__all__ = ["WorkQueue"]

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Hashable)


class WorkQueue(Generic[T]):
    """A queue of work to do: deduplicating, delaying, rate limiting, with priorities. Thread-safe.

    An item is any hashable; equal items are one. It is in the queue at most once and never handed out to two threads at
    once: each `get` must be followed by `done`, and what is added in between is handed out once more after that.
    Higher priorities go first, and within one priority whoever became ready first. Of `AGEING_INTERVAL` (8) hand-outs
    at most one goes to the item that has been ready longest, if that is more than `max_priority_age` seconds, so that
    nothing starves.

    No method calls foreign code with the queue's lock held (but the items' own `__hash__` and `__eq__`). No method may
    be called from a signal handler or a finalizer.

    :param name: for error messages, and the label of the metrics
    :param rate_limiter: what `add_rate_limited` asks; by default exponential per item, 5 ms .. 1000 s
    :param metrics: where a queue with a name reports to; None costs nothing
    :param max_priority_age: seconds; None means strictly by priority
    """

    def __init__(
        self,
        name: str = "",
        *,
        rate_limiter: RateLimiter[T] | None = None,
        clock: Clock | None = None,
        metrics: MetricsProvider | None = None,
        max_priority_age: float | None = 30.0,
    ) -> None:
        self.name = name
        self._clock: Clock = MonotonicClock() if clock is None else clock
        self._now = self._clock.now
        self._core: QueueState[T] = QueueState(max_priority_age=max_priority_age, name=name)
        if rate_limiter is None:
            rate_limiter = ItemExponentialFailureRateLimiter(0.005, 1000.0, clock=self._clock)
        self._limiter: RateLimiter[T] = rate_limiter
        self._lock = threading.Lock()
        self._available = threading.Condition(self._lock)
        self._drained = threading.Condition(self._lock)
        self._getters = 0  # threads waiting in get
        self._timer_at = math.inf  # the earliest due time that one of them wakes up for
        self._shut_downs = 0
        if isinstance(self._limiter, UsageAware):
            self._limiter.watch_usage(_weakly(self))
        self._metrics: QueueMetrics | None = None
        if metrics is not None and name:
            self._metrics = metrics.queue(name, self.statistics)

    # -- adding ------------------------------------------------------------------------------------------------------

    def add(self, item: T, *, priority: int | None = None) -> None:
        """Make `item` ready, if it is not in the queue already. Never blocks; ignored and counted after shutdown.

        An item that waits becomes ready now; one in process is handed out once more after `done`. The higher of the old
        and the new priority counts; a rise puts the item at the end of its new class.

        :param priority: an int; None means that of the item while it is in process (of its run), else 0
        """
        with self._lock:
            if self._core.add(item, priority, self._now()) and self._getters:
                self._available.notify()

    def add_after(self, item: T, delay: float, *, priority: int | None = None) -> None:
        """Make `item` ready in `delay` seconds; at once if that is 0 or less. Otherwise like `add`.

        The earliest due time counts, so a later one than the item has already only raises its priority.
        """
        with self._lock:
            if self._core.add_after(item, delay, priority, self._now()) and self._getters:
                self._available.notify()

    def add_rate_limited(self, item: T, *, priority: int | None = None) -> None:
        """Make `item` ready when the rate limiter says so, counting one more failure of it. Otherwise like `add`."""
        delay = 0.0 if self.shutting_down else self._limiter.when(item)
        self.add_after(item, delay, priority=priority)

    def cancel(self, item: T) -> bool:
        """Drop the item's waiting or ready entry or its pending re-run. True if there was one.

        It does not touch a run in process, nor what the rate limiter remembers.
        """
        with self._lock:
            found = self._core.cancel(item)
            self._tell_drainers()
            return found

    # -- handing out -------------------------------------------------------------------------------------------------

    def get(self, timeout: float | None = None) -> T:
        """Hand out the next item; `done` must follow. Blocks until there is one.

        :param timeout: seconds; None waits without limit, 0 or less does not wait
        :raises ShutDown: the queue was shut down and nothing is ready, even if an item in process has a re-run pending:
            that is for the worker that calls `done`
        :raises Timeout: nothing became ready in time
        """
        with self._lock:
            now = self._now()
            entry = self._core.take(now) or self._wait(now, timeout)
        if self._metrics is not None:
            self._observe_queueing(self._metrics, entry)
        return entry.item

    def get_batch(self, limit: int, timeout: float | None = None) -> list[T]:
        """Hand out up to `limit` items in the order of `get`. Blocks for the first one like `get`, never for more."""
        if not limit >= 1:
            raise ValueError(f"limit must be at least 1, not {limit!r}")
        with self._lock:
            now = self._now()
            entries = [self._core.take(now) or self._wait(now, timeout)]
            now = entries[0].started_at
            while len(entries) < limit and (entry := self._core.take(now)) is not None:
                entries.append(entry)
        if self._metrics is not None:
            for entry in entries:
                self._observe_queueing(self._metrics, entry)
        return [entry.item for entry in entries]

    def done(self, item: T) -> None:
        """End the processing of an item that `get` handed out; makes it ready if it was added meanwhile.

        :raises NotProcessing: it is not in process
        """
        with self._lock:
            now = self._now()
            entry, again = self._core.done(item, now)
            if again:
                if self._getters:
                    self._available.notify()
            elif self._core.shutting_down:
                self._tell_drainers()
        if self._metrics is not None:
            try:
                self._metrics.observe_work_duration(now - entry.started_at)
            except Exception:  # noqa: BLE001 - see below
                _log.exception("work queue %s: the metrics failed", self.name)

    def _observe_queueing(self, metrics: QueueMetrics, entry: Entry[T]) -> None:
        try:
            metrics.observe_queue_duration(entry.started_at - entry.queued_at)
        except Exception:  # noqa: BLE001 - foreign code; the item is in process, and must get to its worker
            _log.exception("work queue %s: the metrics failed", self.name)

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
        deadline = _deadline(now, timeout)
        self._getters += 1
        try:
            while True:
                if self._core.shutting_down:
                    raise ShutDown(f"work queue {self.name!r} is shut down")
                if now >= deadline:
                    raise Timeout(f"nothing became ready in work queue {self.name!r} in {timeout} seconds")
                self._sleep(now, deadline)
                now = self._now()
                # Also after a time-out: a notification may have come at the same moment, and must not be lost.
                entry = self._core.take(now)
                if entry is not None:
                    return entry
        finally:
            self._getters -= 1
            # Another getter takes over what this one was there for: a second ready item, or the time-keeping.
            if self._getters and (self._core.ready_count() or self._core.next_due() < self._timer_at):
                self._available.notify()

    def _sleep(self, now: float, deadline: float) -> None:
        due = self._core.next_due()
        keeps_time = due < self._timer_at
        if keeps_time:
            self._timer_at = due
            until = min(due, deadline)
        else:
            until = deadline
        try:
            self._clock.wait(self._available, None if until == math.inf else until - now)
        finally:
            if keeps_time and self._timer_at == due:
                self._timer_at = math.inf

    # -- retries -----------------------------------------------------------------------------------------------------

    def forget(self, item: T) -> None:
        """Tell the rate limiter that the item succeeded (or will not be retried)."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """How many failures of the item the rate limiter remembers."""
        return self._limiter.num_requeues(item)

    # -- the end -----------------------------------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Accept nothing any more and drop what waits; what is ready is still handed out. Never blocks.

        May be called again; that ends a `shut_down_with_drain` in another thread.
        """
        with self._lock:
            self._shut_downs += 1
            self._close()
            self._drained.notify_all()

    def shut_down_with_drain(self, timeout: float | None = None) -> bool:
        """Like `shut_down`, then wait until everything that is ready or in process, re-runs too, is done.

        The workers must go on with `get` and `done`. True when all is done, False if `timeout` seconds passed before or
        `shut_down` was called meanwhile.
        """
        with self._lock:
            now = self._now()
            deadline = _deadline(now, timeout)
            self._close()
            shut_downs = self._shut_downs
            while not self._core.idle:
                if self._shut_downs != shut_downs or now >= deadline:
                    return False
                self._clock.wait(self._drained, None if deadline == math.inf else deadline - now)
                now = self._now()
            return True

    def _close(self) -> None:
        self._core.shut_down(self._now())
        self._available.notify_all()

    def _tell_drainers(self) -> None:
        if self._core.shutting_down and self._core.idle:
            self._drained.notify_all()

    # -- asking ------------------------------------------------------------------------------------------------------

    @property
    def shutting_down(self) -> bool:
        """True once `shut_down` or `shut_down_with_drain` was called."""
        return self._core.shutting_down

    def __len__(self) -> int:
        """How many items are ready; not those that wait, are in process or have a re-run pending."""
        with self._lock:
            self._core.promote(self._now())
            return self._core.ready_count()

    def priority(self, item: T) -> int:
        """The priority of an item in process (of its run) or else queued.

        :raises UnknownItem: it is neither
        """
        with self._lock:
            return self._core.priority(item)

    def statistics(self) -> Statistics:
        """A snapshot of the queue's counts and ages."""
        with self._lock:
            return self._core.statistics(self._now())

    def _in_use(self, item: T) -> bool:
        with self._lock:
            return self._core.knows(item)


def _deadline(now: float, timeout: float | None) -> float:
    return math.inf if timeout is None else now + checked_timeout(timeout)


def _weakly(queue: WorkQueue[T]) -> Callable[[object], bool]:
    """Whether an item is in use by the queue, without keeping the queue alive."""
    reference = weakref.ref(queue)

    def in_use(item: object) -> bool:
        alive = reference()
        return alive is not None and alive._in_use(item)  # type: ignore[arg-type]  # any hashable may be asked for

    return in_use
