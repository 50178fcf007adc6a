"""`WorkQueueAdapter`, for `queue_machine`: it shows how an adapter is written, and serves queues made of a `WorkQueue`.

```python
machine = queue_machine(lambda: WorkQueueAdapter(MyQueue), max_priority_age=6.0)
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from workqueue.errors import NotProcessing, ShutDown, Timeout, UnknownItem
from workqueue.metrics import PrometheusMetricsProvider
from workqueue.queue import WorkQueue
from workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from workqueue.testing.adapter import QueueAdapter
from workqueue.testing.clock import FakeClock
from workqueue.testing.waiting import ThreadCall, WatchedClock

__all__ = ["CommonAdapter", "WorkQueueAdapter"]

NAME = "machine"
METRICS = (
    "workqueue_depth",
    "workqueue_adds_total",
    "workqueue_retries_total",
    "workqueue_queue_duration_seconds_count",
    "workqueue_queue_duration_seconds_sum",
    "workqueue_work_duration_seconds_count",
    "workqueue_work_duration_seconds_sum",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
)


class CommonAdapter(QueueAdapter):
    """What `WorkQueue` and `AsyncWorkQueue` answer in the same way, and the settings that both get."""

    queue: Any

    def __init__(self, make: Callable[..., Any], clock: FakeClock, max_priority_age: float | None) -> None:
        self.clock = clock
        self._provider = PrometheusMetricsProvider()
        self.queue = make(
            NAME,
            clock=clock,
            metrics=self._provider,
            max_priority_age=max_priority_age,
            rate_limiter=ItemExponentialFailureRateLimiter(1.0, 1000.0, clock=clock),
        )

    def add(self, item: int, priority: int | None) -> None:
        self.queue.add(item, priority=priority)

    def add_after(self, item: int, delay: float, priority: int | None) -> None:
        self.queue.add_after(item, delay, priority=priority)

    def add_rate_limited(self, item: int, priority: int | None) -> None:
        self.queue.add_rate_limited(item, priority=priority)

    def forget(self, item: int) -> None:
        self.queue.forget(item)

    def num_requeues(self, item: int) -> int:
        count: int = self.queue.num_requeues(item)
        return count

    def priority(self, item: int) -> int | None:
        try:
            priority: int = self.queue.priority(item)
        except UnknownItem:
            return None
        return priority

    def cancel(self, item: int) -> bool:
        cancelled: bool = self.queue.cancel(item)
        return cancelled

    def done(self, item: int) -> bool:
        try:
            self.queue.done(item)
        except NotProcessing:
            return False
        return True

    def shut_down(self) -> None:
        self.queue.shut_down()

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def numbers(self) -> Mapping[str, float]:
        """The length, the statistics and all metrics."""
        scraped = (sample for metric in self._provider.registry.collect() for sample in metric.samples)
        metrics = {sample.name: sample.value for sample in scraped if sample.name in METRICS}
        return {**asdict(self.queue.statistics()), "ready": len(self.queue), **metrics}


class WorkQueueAdapter(CommonAdapter):
    """A `WorkQueue`, or what `make` makes when it is called as the class is.

    Calls that wait do so on threads of their own, which `close` has end.
    """

    queue: WorkQueue[int]

    def __init__(
        self, make: Callable[..., WorkQueue[int]] = WorkQueue, *, max_priority_age: float | None = 6.0
    ) -> None:
        clock = WatchedClock()
        super().__init__(make, clock, max_priority_age)
        self.clock: WatchedClock = clock

    def get(self, limit: int) -> list[int] | None:
        return self._get(limit, 0.0)

    def _get(self, limit: int, timeout: float | None) -> list[int] | None:
        try:
            return [self.queue.get(timeout)] if limit == 1 else self.queue.get_batch(limit, timeout)
        except Timeout:
            return []
        except ShutDown:
            return None

    def start_get(self, limit: int, timeout: float | None) -> ThreadCall[list[int] | None]:
        return ThreadCall(self.clock, lambda: self._get(limit, timeout))

    def start_drain(self, timeout: float | None) -> ThreadCall[bool]:
        return ThreadCall(self.clock, lambda: self.queue.shut_down_with_drain(timeout))

    def close(self) -> None:
        self.queue.shut_down()
