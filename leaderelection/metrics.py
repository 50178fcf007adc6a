"""Metrics of electors: client-go's two names, served from a `prometheus_client` registry.

`prometheus_client` is imported when a `PrometheusMetricsProvider` is made, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["ElectorMetrics", "MetricsProvider", "PrometheusMetricsProvider"]


class ElectorMetrics(Protocol):
    """Where one elector reports to. Called by any of its threads."""

    def leading(self, leads: bool) -> None:
        """Whether it leads; called at each change, and once at the beginning."""

    def slow_path(self) -> None:
        """A leader had to read the lock in order to renew it."""


class MetricsProvider(Protocol):
    """What an elector registers with when it is created."""

    def elector(self, name: str) -> ElectorMetrics:
        """Begin to report the elector `name`."""


class PrometheusMetricsProvider:
    """Reports `leader_election_master_status` (1: leads) and `leader_election_slowpath_total` with the label `name`.

    :param registry: where to register; None makes a registry of its own. It is the attribute `registry`.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge

        self.registry = CollectorRegistry() if registry is None else registry
        self._status = Gauge(
            "leader_election_master_status",
            "1 if this process leads, 0 if it does not.",
            ["name"],
            registry=self.registry,
        )
        self._slow_path = Counter(
            "leader_election_slowpath",
            "Renewals for which the lock had to be read first.",
            ["name"],
            registry=self.registry,
        )

    def elector(self, name: str) -> ElectorMetrics:
        """See `MetricsProvider.elector`."""
        status, slow_path = self._status.labels(name), self._slow_path.labels(name)

        class Metrics:
            def leading(self, leads: bool) -> None:
                status.set(1 if leads else 0)

            def slow_path(self) -> None:
                slow_path.inc()

        return Metrics()
