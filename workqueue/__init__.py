"""Work queues for controllers: deduplicating, delaying, rate limiting and prioritised. Needs the standard library only.

`WorkQueue` is what controllers use; `workqueue.core` holds its rules as a pure state machine, `workqueue.testing` a
fake clock. `workqueue.metrics` reports to Prometheus if asked to.
"""

from __future__ import annotations

from workqueue.clock import Clock, MonotonicClock
from workqueue.core import Statistics
from workqueue.errors import NotProcessing, ShutDown, Timeout, UnknownItem, WorkQueueError
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

__all__ = [
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
    "UnknownItem",
    "UsageAware",
    "WithMaxWaitRateLimiter",
    "WorkQueue",
    "WorkQueueError",
    "default_controller_rate_limiter",
    "default_item_based_rate_limiter",
    "parallelize",
]
