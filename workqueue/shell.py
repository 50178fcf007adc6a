"""What `WorkQueue` and `AsyncWorkQueue` have in common: all that never waits.

It is the thin layer around `workqueue.core.QueueState`: one lock, the clock, the rate limiter and the metrics. What
waits, and how it is woken, is left to the two queues. They keep to one protocol: who waits in `get` is counted in
`_getters` until it is told to look, and whoever changes the state tells them with the lock held.
"""

from __future__ import annotations

import logging
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable
from operator import index
from typing import Generic, TypeVar

from workqueue.clock import Clock, MonotonicClock, checked_timeout
from workqueue.core import Entry, QueueState, Statistics, require_hashable
from workqueue.metrics import MetricsProvider, QueueMetrics
from workqueue.rate_limiters import ItemExponentialFailureRateLimiter, RateLimiter, UsageAware

__all__ = ["QueueShell", "checked_limit", "deadline"]

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Hashable)


class QueueShell(ABC, Generic[T]):
    """A work queue but for `get` and its kin. Every method here may be called from any thread and never waits.

    No method calls foreign code with the queue's lock held (but the items' own `__hash__` and `__eq__`, and the
    clock). No method may be called from a signal handler or a finalizer. `WorkQueue` explains the arguments.
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
        # What every item goes through does not say `with self._lock`, which takes twice as long as these two.
        self._acquire = self._lock.acquire
        self._release = self._lock.release
        self._getters = 0  # how many wait in get and have not been told to look
        self._timer_at = math.inf  # the earliest due time that one of them wakes up for
        self._shut_downs = 0
        self._make_rooms()
        if isinstance(self._limiter, UsageAware):
            self._limiter.watch_usage(self._in_use)
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
        self._acquire()
        try:
            if self._core.add(item, priority, self._now()) and self._getters:
                self._wake_getter()
        finally:
            self._release()

    def add_after(self, item: T, delay: float, *, priority: int | None = None) -> None:
        """Make `item` ready in `delay` seconds; at once if that is 0 or less. Otherwise like `add`.

        The earliest due time counts, so a later one than the item has already only raises its priority.
        """
        with self._lock:
            if self._core.add_after(item, delay, priority, self._now()) and self._getters:
                self._wake_getter()

    def add_rate_limited(self, item: T, *, priority: int | None = None) -> None:
        """Make `item` ready when the rate limiter says so, counting one more failure of it. Otherwise like `add`."""
        require_hashable(item, self.name)
        delay = 0.0 if self.shutting_down else self._limiter.when(item)
        self.add_after(item, delay, priority=priority)

    def cancel(self, item: T) -> bool:
        """Drop the item's waiting or ready entry or its pending re-run. True if there was one.

        It does not touch a run in process, nor what the rate limiter remembers.
        """
        with self._lock:
            found = self._core.cancel(item, self._now())
            self._tell_drainers()
            return found

    def done(self, item: T) -> None:
        """End the processing of an item that `get` handed out; makes it ready if it was added meanwhile.

        :raises NotProcessing: it is not in process
        """
        self._acquire()
        try:
            now = self._now()
            entry, again = self._core.done(item, now)
            if again:
                if self._getters:
                    self._wake_getter()
            elif self._core.shutting_down:
                self._tell_drainers()
        finally:
            self._release()
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

        May be called again; that ends a `shut_down_with_drain` that waits.
        """
        with self._lock:
            self._shut_downs += 1
            self._close()
            self._wake_drainers()

    def _close(self) -> None:
        self._core.shut_down(self._now())
        self._wake_getters()

    def _pass_on(self, coming: int = 0) -> None:
        """Who leaves `get` tells another one of what it was there for: a second ready item, or the time-keeping.

        `coming` are on their way already, each for one item.
        """
        if self._getters and (self._core.ready_count() > coming or self._core.next_due() < self._timer_at):
            self._wake_getter()

    def _tell_drainers(self) -> None:
        if self._core.shutting_down and self._core.idle:
            self._wake_drainers()

    # -- waking whoever waits, with the lock held ----------------------------------------------------------------------

    @abstractmethod
    def _make_rooms(self) -> None:
        """Make what is waited on, once."""

    @abstractmethod
    def _wake_getter(self) -> None:
        """Tell one of the `_getters` to look. There is at least one."""

    @abstractmethod
    def _wake_getters(self) -> None:
        """Tell all of them."""

    @abstractmethod
    def _wake_drainers(self) -> None:
        """Tell all that wait in `shut_down_with_drain` to look."""

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

    def _in_use(self, item: object) -> bool:
        with self._lock:
            return self._core.knows(item)  # type: ignore[arg-type]  # any hashable may be asked for


def deadline(now: float, timeout: float | None) -> float:
    """When a wait that starts `now` ends. Raises ValueError if `timeout` is NaN."""
    return math.inf if timeout is None else now + checked_timeout(timeout)


def checked_limit(limit: int) -> int:
    """Give `limit` as an int. Raises ValueError below 1, TypeError if it is no integer."""
    limit = index(limit)
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit!r}")
    return limit
