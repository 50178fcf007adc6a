"""Work queues for controllers: deduplicating, delaying, rate limiting and prioritised. Needs the standard library only.

`WorkQueue` is what controllers use, `AsyncWorkQueue` the same for asyncio; `workqueue.core` holds the rules of both as
a pure state machine, `workqueue.testing` a fake clock and the proof of the rules. `workqueue.metrics` reports to
Prometheus if asked to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workqueue.clock import Clock, MonotonicClock
from workqueue.core import Statistics
from workqueue.errors import NotProcessing, ShutDown, Timeout, UnhashableItem, UnknownItem, WorkQueueError
from workqueue.parallelize import parallelize
from workqueue.queue import WorkQueue
from workqueue.rate_limiters import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    UsageAware,
    WithMaxWaitRateLimiter,
    default_controller_rate_limiter,
    default_item_based_rate_limiter,
)

if TYPE_CHECKING:
    from workqueue.aio import AsyncWorkQueue

__all__ = [
    "AsyncWorkQueue",
    "BucketRateLimiter",
    "Clock",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "MaxOfRateLimiter",
    "MonotonicClock",
    "NotProcessing",
    "RateLimiter",
    "ShutDown",
    "Statistics",
    "Timeout",
    "UnhashableItem",
    "UnknownItem",
    "UsageAware",
    "WithMaxWaitRateLimiter",
    "WorkQueue",
    "WorkQueueError",
    "default_controller_rate_limiter",
    "default_item_based_rate_limiter",
    "parallelize",
]


def __getattr__(name: str) -> object:
    """Import `AsyncWorkQueue` when it is first asked for: most users never need asyncio, and it is slow to import."""
    if name == "AsyncWorkQueue":
        from workqueue.aio import AsyncWorkQueue

        return AsyncWorkQueue
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
