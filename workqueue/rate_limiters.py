"""How long a retry waits: the rate limiters of client-go, without its overflows and with bounded memory.

A limiter answers `when(item)`: the seconds until the item may run again, counting the call as one more failure, until
`forget(item)` says that the item succeeded. All limiters here may be used from any thread.

A limiter that remembers items drops those that have been idle for twice its longest delay, unless somebody still uses
them: a `WorkQueue` tells its limiter which items are queued or in process (`UsageAware`).
"""

from __future__ import annotations

import math
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar, runtime_checkable

from workqueue.clock import Clock, MonotonicClock

__all__ = [
    "BucketRateLimiter",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "MaxOfRateLimiter",
    "RateLimiter",
    "UsageAware",
    "WithMaxWaitRateLimiter",
    "default_controller_rate_limiter",
    "default_item_based_rate_limiter",
]

T = TypeVar("T", bound=Hashable)
T_contra = TypeVar("T_contra", contravariant=True)


class RateLimiter(Protocol[T_contra]):
    """What a `WorkQueue` asks. It is called without the queue's lock held, from whichever thread uses the queue."""

    def when(self, item: T_contra, /) -> float:
        """Seconds until `item` may run again, at least 0. Each call counts as one failure."""

    def forget(self, item: T_contra, /) -> None:
        """The item succeeded or is gone: start anew with it. Unknown items are fine."""

    def num_requeues(self, item: T_contra, /) -> int:
        """How often `when` was called for the item since it was last forgotten."""


@runtime_checkable
class UsageAware(Protocol):
    """A limiter that wants to know which items are in use before it drops what it remembers of them."""

    def watch_usage(self, in_use: Callable[[object], bool]) -> None:
        """Ask `in_use(item)` before an idle item is dropped. Called once by each queue that uses the limiter.

        It is a method of the queue: keep it weakly, or the queue lives as long as the limiter.
        """


class _Failures(Generic[T]):
    """Failure counts per item, in the order of last use; the idle ones are dropped a few at a time. Thread-safe."""

    def __init__(self, idle_after: float, clock: Clock | None) -> None:
        self._idle_after = idle_after
        self._clock = MonotonicClock() if clock is None else clock
        self._lock = threading.Lock()
        self._items: OrderedDict[T, tuple[int, float]] = OrderedDict()
        self._users: list[Callable[[], Callable[[object], bool] | None]] = []  # weak references to methods

    def add(self, item: T) -> int:
        """Count a failure; gives the count before it."""
        now = self._clock.now()
        with self._lock:
            count = self._items.pop(item, (0, now))[0]
            self._items[item] = (count + 1, now)
        # Two for each one that comes: so the idle ones melt away however many there are.
        self._drop_idle(now)
        self._drop_idle(now)
        return count

    def forget(self, item: T) -> None:
        with self._lock:
            self._items.pop(item, None)

    def count(self, item: T) -> int:
        with self._lock:
            return self._items.get(item, (0, 0.0))[0]

    def watch_usage(self, in_use: Callable[[object], bool]) -> None:
        reference = weakref.WeakMethod(in_use) if hasattr(in_use, "__self__") else lambda: in_use
        with self._lock:
            self._users = [user for user in self._users if user() is not None]
            self._users.append(reference)

    def _drop_idle(self, now: float) -> None:
        with self._lock:
            if not self._items:
                return
            oldest = next(iter(self._items))
            if now - self._items[oldest][1] <= self._idle_after:
                return
            users = list(self._users)
        # Without the lock: a queue takes its own one to answer.
        used = any(in_use(oldest) for user in users if (in_use := user()) is not None)
        with self._lock:
            count, last_used = self._items.get(oldest, (0, now))
            if now - last_used <= self._idle_after:
                return  # forgotten or used again meanwhile
            del self._items[oldest]
            if used:
                self._items[oldest] = (count, now)

    def __len__(self) -> int:
        return len(self._items)


class ItemExponentialFailureRateLimiter(Generic[T]):
    """Waits `base_delay` after the first failure of an item, twice as long after each further one, up to `max_delay`.

    :param base_delay: seconds, at least 0
    :param max_delay: seconds, finite
    :param clock: what idleness is measured with
    """

    def __init__(self, base_delay: float, max_delay: float, *, clock: Clock | None = None) -> None:
        _check_delay("base_delay", base_delay)
        _check_delay("max_delay", max_delay)
        self._base = float(base_delay)
        self._max = float(max_delay)
        # With this many doublings the base is still below 2**1024, with one more it is certainly above max_delay.
        self._doublings = max(math.frexp(self._max)[1] - math.frexp(self._base)[1], 0)
        self._failures: _Failures[T] = _Failures(2 * self._max, clock)

    def when(self, item: T, /) -> float:
        """See `RateLimiter.when`."""
        count = self._failures.add(item)
        if self._base == 0.0:
            return 0.0
        if count > self._doublings:
            return self._max
        return min(math.ldexp(self._base, count), self._max)

    def forget(self, item: T, /) -> None:
        """See `RateLimiter.forget`."""
        self._failures.forget(item)

    def num_requeues(self, item: T, /) -> int:
        """See `RateLimiter.num_requeues`."""
        return self._failures.count(item)

    def watch_usage(self, in_use: Callable[[object], bool]) -> None:
        """See `UsageAware.watch_usage`."""
        self._failures.watch_usage(in_use)

    def __len__(self) -> int:
        """How many items are remembered."""
        return len(self._failures)


class ItemFastSlowRateLimiter(Generic[T]):
    """Waits `fast_delay` after each of the first `max_fast_attempts` failures of an item, then `slow_delay`.

    :param clock: what idleness is measured with
    """

    def __init__(
        self, fast_delay: float, slow_delay: float, max_fast_attempts: int, *, clock: Clock | None = None
    ) -> None:
        _check_delay("fast_delay", fast_delay)
        _check_delay("slow_delay", slow_delay)
        self._fast = float(fast_delay)
        self._slow = float(slow_delay)
        self._max_fast_attempts = max_fast_attempts
        self._failures: _Failures[T] = _Failures(2 * max(self._fast, self._slow), clock)

    def when(self, item: T, /) -> float:
        """See `RateLimiter.when`."""
        return self._fast if self._failures.add(item) < self._max_fast_attempts else self._slow

    def forget(self, item: T, /) -> None:
        """See `RateLimiter.forget`."""
        self._failures.forget(item)

    def num_requeues(self, item: T, /) -> int:
        """See `RateLimiter.num_requeues`."""
        return self._failures.count(item)

    def watch_usage(self, in_use: Callable[[object], bool]) -> None:
        """See `UsageAware.watch_usage`."""
        self._failures.watch_usage(in_use)

    def __len__(self) -> int:
        """How many items are remembered."""
        return len(self._failures)


class BucketRateLimiter:
    """A token bucket shared by all items: `qps` tokens a second, at most `burst` saved up. Remembers no item.

    Each `when` takes one token, in advance if there is none, and gives the seconds until that token is there.
    """

    def __init__(self, qps: float, burst: int, *, clock: Clock | None = None) -> None:
        if not 0 < qps < math.inf:
            raise ValueError(f"qps must be above 0 and finite, not {qps!r}")
        if not burst >= 1:
            raise ValueError(f"burst must be at least 1, not {burst!r}")
        self._interval = 1.0 / qps
        self._burst = burst
        self._clock = MonotonicClock() if clock is None else clock
        self._lock = threading.Lock()
        self._since = self._clock.now()
        self._tokens = float(burst)  # at `_since`; below 0: taken in advance

    def when(self, item: object, /) -> float:
        """See `RateLimiter.when`."""
        with self._lock:
            now = self._clock.now()
            self._tokens = min(self._tokens + (now - self._since) / self._interval, self._burst) - 1.0
            self._since = now
            # A rounding error is not a delay.
            return -self._tokens * self._interval if self._tokens < -1e-9 else 0.0

    def forget(self, item: object, /) -> None:
        """Nothing to forget."""

    def num_requeues(self, item: object, /) -> int:
        """Always 0."""
        return 0


class MaxOfRateLimiter(Generic[T]):
    """Asks all its limiters and waits as long as the most careful one says."""

    def __init__(self, *limiters: RateLimiter[T]) -> None:
        if not limiters:
            raise ValueError("at least one limiter is needed")
        self._limiters = limiters

    def when(self, item: T, /) -> float:
        """The longest delay of all; each limiter counts the failure."""
        return max([limiter.when(item) for limiter in self._limiters])

    def forget(self, item: T, /) -> None:
        """Forget the item in all limiters."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: T, /) -> int:
        """The highest count of all."""
        return max([limiter.num_requeues(item) for limiter in self._limiters])

    def watch_usage(self, in_use: Callable[[object], bool]) -> None:
        """See `UsageAware.watch_usage`."""
        for limiter in self._limiters:
            if isinstance(limiter, UsageAware):
                limiter.watch_usage(in_use)


class WithMaxWaitRateLimiter(Generic[T]):
    """Another limiter whose delays are cut at `max_delay` seconds."""

    def __init__(self, limiter: RateLimiter[T], max_delay: float) -> None:
        _check_delay("max_delay", max_delay)
        self._limiter = limiter
        self._max = float(max_delay)

    def when(self, item: T, /) -> float:
        """See `RateLimiter.when`."""
        return min(self._limiter.when(item), self._max)

    def forget(self, item: T, /) -> None:
        """See `RateLimiter.forget`."""
        self._limiter.forget(item)

    def num_requeues(self, item: T, /) -> int:
        """See `RateLimiter.num_requeues`."""
        return self._limiter.num_requeues(item)

    def watch_usage(self, in_use: Callable[[object], bool]) -> None:
        """See `UsageAware.watch_usage`."""
        if isinstance(self._limiter, UsageAware):
            self._limiter.watch_usage(in_use)


def default_controller_rate_limiter(*, clock: Clock | None = None) -> RateLimiter[Hashable]:
    """client-go's default: per item exponential 5 ms .. 1000 s, and 10 a second with bursts of 100 over all items."""
    per_item: ItemExponentialFailureRateLimiter[Hashable]
    per_item = ItemExponentialFailureRateLimiter(0.005, 1000.0, clock=clock)
    return MaxOfRateLimiter[Hashable](per_item, BucketRateLimiter(10.0, 100, clock=clock))


def default_item_based_rate_limiter(*, clock: Clock | None = None) -> RateLimiter[Hashable]:
    """Per item exponential 1 ms .. 1000 s."""
    return ItemExponentialFailureRateLimiter(0.001, 1000.0, clock=clock)


def _check_delay(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be at least 0 and finite, not {value!r}")
