"""Metrics of informers and of a client's requests, served from a `prometheus_client` registry.

What concerns informers is read from `SharedInformer.status()` when somebody scrapes, so they pay nothing in between and
need no thread; requests are counted as they end. `prometheus_client` is imported when one of the classes is made.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

    from informers.status import InformerStatus
    from informers.transport import RequestTrace

__all__ = ["PrometheusMetricsProvider", "RequestMetrics"]

_Labels = tuple[str, ...]

# A float64 holds 15 digits exactly; client-go shows as many of a version.
_VERSION_DIGITS = 15
_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES = (64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0)


class RequestMetrics:
    """Counts a client's requests: ``Client.from_kubeconfig(on_request=RequestMetrics(registry))``.

    Under client-go's names: `rest_client_requests_total` by `code` (``<error>`` where no answer came), `method` and
    `host`; `rest_client_request_duration_seconds`, `rest_client_request_size_bytes` and
    `rest_client_response_size_bytes` by `verb` and `host`. Attempts are counted, so a repeated request counts twice;
    of a watch, its opening.

    :param registry: where to register; None makes a registry of its own. It is the attribute `registry`.
    :param then: is called with each trace too, so that requests can also be logged.
    """

    def __init__(
        self, registry: CollectorRegistry | None = None, *, then: Callable[[RequestTrace], None] | None = None
    ) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self.registry = CollectorRegistry() if registry is None else registry
        self._then = then
        self._requests = Counter(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ["code", "method", "host"],
            registry=self.registry,
        )
        self._seconds, self._sent, self._received = (
            Histogram(f"rest_client_{name}", text, ["verb", "host"], buckets=buckets, registry=self.registry)
            for name, text, buckets in (
                ("request_duration_seconds", "Request latency in seconds.", _SECONDS),
                ("request_size_bytes", "Request size in bytes.", _BYTES),
                ("response_size_bytes", "Response size in bytes.", _BYTES),
            )
        )

    def __call__(self, trace: RequestTrace) -> None:
        """Count one attempt; called by the client."""
        host = urlsplit(trace.url).netloc
        code = "<error>" if trace.status is None else str(trace.status)
        self._requests.labels(code, trace.method, host).inc()
        self._seconds.labels(trace.verb, host).observe(trace.seconds)
        self._sent.labels(trace.verb, host).observe(trace.sent_bytes)
        self._received.labels(trace.verb, host).observe(trace.received_bytes)
        if self._then is not None:
            self._then(trace)


class PrometheusMetricsProvider:
    """Reports to a `prometheus_client` registry. Give it to informers or to their factory as `metrics`.

    By `name` (of the informer): `informer_synced`, `informer_objects`, `informer_queued_items`,
    `informer_store_resource_version` (its last 15 digits), `informer_lag_seconds` (see `ReflectorStatus.lag`; after the
    first list), `informer_time_travel_total`, `informer_unreadable_total`,
    `informer_index_errors_total` (also by `index`); `reflector_lists_total`, `reflector_watches_total`,
    `reflector_events_total`, `reflector_failures_total`; by `name` and `handler`: `informer_handler_pending`,
    `informer_handler_delivered_total`, `informer_handler_coalesced_total`, `informer_handler_failed_total`.
    The numbers of informers of one name are added up (versions and lags: the highest). An informer that is
    gone is not shown.

    :param registry: where to register; None makes a registry of its own. It is the attribute `registry`.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        from prometheus_client import CollectorRegistry

        self.registry = CollectorRegistry() if registry is None else registry
        self._lock = threading.Lock()
        self._informers: list[Callable[[], Callable[[], InformerStatus] | None]] = []
        self.registry.register(self)

    def informer(self, status: Callable[[], InformerStatus]) -> None:
        """Report an informer from now on; its method is held weakly."""
        with self._lock:
            self._informers.append(weakref.WeakMethod(status))

    def collect(self) -> Iterator[Metric]:
        """What a scrape shows; called by the registry."""
        table = _Table()
        for status in self._statuses():
            _fill(table, status)
        yield from table.families()

    def _statuses(self) -> list[InformerStatus]:
        with self._lock:
            methods = [(reference, reference()) for reference in self._informers]
            self._informers = [reference for reference, method in methods if method is not None]
        return [method() for _, method in methods if method is not None]


def _fill(table: _Table, status: InformerStatus) -> None:
    name = (status.name,)
    table.gauge("informer_synced", "Whether the informer's cache is filled.", name, status.synced)
    table.gauge("informer_objects", "Objects in the cache.", name, status.objects)
    table.gauge("informer_queued_items", "Objects with changes that are not in the cache yet.", name, status.queued)
    if status.lag is not None:
        text = "Seconds since the source last showed that the cache has all there is."
        table.highest("informer_lag_seconds", text, name, status.lag)
    table.count("informer_time_travel", "Events older than the cache, which were dropped.", name, status.time_travel)
    table.count("informer_unreadable", "Items and events that were no objects.", name, status.unreadable)
    for index, errors in status.index_errors.items():
        table.count("informer_index_errors", "Failures of an index function.", (status.name, index), errors, "index")
    for source in status.sources:
        version = source.resource_version[-_VERSION_DIGITS:]
        if version.isdecimal():
            text = "The version up to which changes were received, its last 15 digits."
            table.highest("informer_store_resource_version", text, name, int(version))
        table.count("reflector_lists", "List requests, one a page.", name, source.lists)
        table.count("reflector_watches", "Watch requests.", name, source.watches)
        table.count("reflector_events", "Events received from watches.", name, source.events)
        table.count("reflector_failures", "Requests and streams that failed.", name, source.failures)
    for handler in status.handlers:
        labels = (status.name, handler.name)
        table.gauge("informer_handler_pending", "Events that wait for a handler.", labels, handler.pending, "handler")
        for what, text, value in (
            ("delivered", "Events delivered to a handler.", handler.delivered),
            ("coalesced", "Events merged with others because a handler was slow.", handler.coalesced),
            ("failed", "Calls of a handler that raised.", handler.failed),
        ):
            table.count(f"informer_handler_{what}", text, labels, value, "handler")


class _Table:
    """Values by metric and labels, where those of equal labels become one."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str, str, str], dict[_Labels, float]] = {}

    def gauge(self, name: str, text: str, labels: _Labels, value: float, label: str = "") -> None:
        """Add to a gauge. `label` is the second label's name where there are two."""
        self._add(("gauge", name, text, label), labels, value)

    def count(self, name: str, text: str, labels: _Labels, value: float, label: str = "") -> None:
        """Add to a counter."""
        self._add(("counter", name, text, label), labels, value)

    def highest(self, name: str, text: str, labels: _Labels, value: float) -> None:
        """Raise a gauge."""
        present = self._values.setdefault(("gauge", name, text, ""), {})
        present[labels] = max(value, present.get(labels, 0))

    def _add(self, family: tuple[str, str, str, str], labels: _Labels, value: float) -> None:
        present = self._values.setdefault(family, {})
        present[labels] = present.get(labels, 0) + value

    def families(self) -> Iterator[Metric]:
        """The metrics as the registry takes them."""
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        for (kind, name, text, label), values in self._values.items():
            labels = ["name", label] if label else ["name"]
            family: GaugeMetricFamily | CounterMetricFamily
            if kind == "gauge":
                family = GaugeMetricFamily(name, text, labels=labels)
            else:
                family = CounterMetricFamily(name, text, labels=labels)
            for label_values, value in values.items():
                family.add_metric(label_values, value)
            yield family
