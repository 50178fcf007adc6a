"""Metrics of work queues: client-go's seven names, served from a `prometheus_client` registry.

A queue only reports durations, one call each; counts and gauges are read from its `statistics()` when somebody
scrapes, so they cost nothing in between and need no thread. `prometheus_client` is imported when a
`PrometheusMetricsProvider` is made.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from workqueue.core import Statistics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

__all__ = ["MetricsProvider", "PrometheusMetricsProvider", "QueueMetrics"]

_BUCKETS = tuple(10.0**exponent for exponent in range(-8, 4))


class QueueMetrics(Protocol):
    """Where one queue reports durations. Called by any thread, without the queue's lock."""

    def observe_queue_duration(self, seconds: float) -> None:
        """An item was handed out that long after it was asked for or, if that is later, due."""

    def observe_work_duration(self, seconds: float) -> None:
        """An item was done that long after it was handed out."""


class MetricsProvider(Protocol):
    """What a `WorkQueue` with a name registers with when it is created."""

    def queue(self, name: str, statistics: Callable[[], Statistics]) -> QueueMetrics:
        """Start reporting the queue `name`. `statistics` is the queue's method: keep it weakly or not for long."""


class PrometheusMetricsProvider:
    """Reports to a `prometheus_client` registry, under the names and the label `name` that client-go uses:

    `workqueue_depth`, `workqueue_adds_total`, `workqueue_queue_duration_seconds`, `workqueue_work_duration_seconds`,
    `workqueue_unfinished_work_seconds`, `workqueue_longest_running_processor_seconds`, `workqueue_retries_total`.

    The depth counts ready and pending items. Queues of one name are reported as one: their numbers are added up. A
    queue that is gone keeps its counters (as of the last scrape) and loses its gauges.

    It is a collector: `registry.unregister(provider)` takes all of it away.

    :param registry: where to register; None makes a registry of its own. It is the attribute `registry`.
    :raises ValueError: one of the names is registered there already
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        from prometheus_client import CollectorRegistry, Histogram

        self.registry = CollectorRegistry() if registry is None else registry
        self._lock = threading.Lock()
        self._sources: dict[str, _Source] = {}
        self._queue_duration = Histogram(
            "workqueue_queue_duration_seconds",
            "Seconds from when an item was asked for, or due, until it was handed out.",
            ["name"],
            buckets=_BUCKETS,
            registry=None,
        )
        self._work_duration = Histogram(
            "workqueue_work_duration_seconds",
            "Seconds from when an item was handed out until it was done.",
            ["name"],
            buckets=_BUCKETS,
            registry=None,
        )
        # One collector of all seven names: they come and go together.
        self.registry.register(self)

    def queue(self, name: str, statistics: Callable[[], Statistics]) -> QueueMetrics:
        """See `MetricsProvider.queue`."""
        with self._lock:
            self._sources.setdefault(name, _Source()).add(statistics)
        return _QueueDurations(self._queue_duration.labels(name).observe, self._work_duration.labels(name).observe)

    def describe(self) -> Iterator[Metric]:
        """The names that `collect` gives; called by the registry, which refuses a second owner of any of them."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """What a scrape shows; called by the registry."""
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        depth = GaugeMetricFamily("workqueue_depth", "Items ready or with a re-run pending.", labels=["name"])
        adds = CounterMetricFamily("workqueue_adds", "Times an item became ready or pending.", labels=["name"])
        retries = CounterMetricFamily("workqueue_retries", "Delayed and rate limited adds.", labels=["name"])
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds",
            "Sum of the seconds that the items in process have been in process.",
            labels=["name"],
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds",
            "Seconds that the item longest in process has been in process.",
            labels=["name"],
        )
        with self._lock:
            for name, source in self._sources.items():
                total_adds, total_retries, snapshots = source.read()
                depth.add_metric([name], sum(one.ready + one.pending for one in snapshots))
                adds.add_metric([name], total_adds)
                retries.add_metric([name], total_retries)
                unfinished.add_metric([name], sum(one.unfinished_seconds for one in snapshots))
                longest.add_metric([name], max((one.longest_processing for one in snapshots), default=0.0))
        yield from (depth, adds, retries, unfinished, longest)
        yield from self._queue_duration.collect()
        yield from self._work_duration.collect()


class _QueueDurations:
    def __init__(self, queue_duration: Callable[[float], None], work_duration: Callable[[float], None]) -> None:
        self.observe_queue_duration = queue_duration
        self.observe_work_duration = work_duration


class _Source:
    """All queues of one name, held weakly, and what the counters of the gone ones had reached."""

    def __init__(self) -> None:
        self._adds = 0
        self._retries = 0
        self._queues: list[tuple[Callable[[], Callable[[], Statistics] | None], list[int]]] = []

    def add(self, statistics: Callable[[], Statistics]) -> None:
        is_method = hasattr(statistics, "__self__")
        reference = weakref.WeakMethod(statistics) if is_method else lambda: statistics
        self._forget_the_gone()
        self._queues.append((reference, [0, 0]))

    def read(self) -> tuple[int, int, list[Statistics]]:
        """The counters of all queues there ever were, and a snapshot of each that is alive."""
        self._forget_the_gone()
        snapshots = []
        for reference, seen in self._queues:
            statistics = reference()
            if statistics is not None:
                snapshot = statistics()
                seen[:] = snapshot.adds, snapshot.retries
                snapshots.append(snapshot)
        adds = self._adds + sum(adds for _, (adds, _) in self._queues)
        retries = self._retries + sum(retries for _, (_, retries) in self._queues)
        return adds, retries, snapshots

    def _forget_the_gone(self) -> None:
        for queue in list(self._queues):
            reference, seen = queue
            if reference() is None:
                self._adds += seen[0]
                self._retries += seen[1]
                self._queues.remove(queue)
