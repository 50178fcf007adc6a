"""The numbers of controllers and managers under controller-runtime's names; the only module here that knows
prometheus_client.

Everything lands in the registry it is given, so two managers in one process do not mix. A manager makes one
registry for itself unless it is given one.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

from pysedna.controller.result import Decision, Verdict

__all__ = ["CollectorRegistry", "ControllerMetrics", "EventMetrics", "exposition"]

_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
_PREFIX = "controller_runtime"


class ControllerMetrics:
    """The series of all controllers of one manager; each is told apart by the label `controller`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        label = ["controller"]
        self._total = Counter(
            f"{_PREFIX}_reconcile", "Reconciliations by result", ["controller", "result"], registry=registry
        )
        self._errors = Counter(f"{_PREFIX}_reconcile_errors", "Reconciliations that failed", label, registry=registry)
        self._terminal = Counter(
            f"{_PREFIX}_terminal_reconcile_errors", "Failures that are not retried", label, registry=registry
        )
        self._panics = Counter(
            f"{_PREFIX}_reconcile_panics", "Failures that are errors of the program", label, registry=registry
        )
        self._timeouts = Counter(
            f"{_PREFIX}_reconcile_timeouts", "Reconciliations that outlived their timeout", label, registry=registry
        )
        self._seconds = Histogram(
            f"{_PREFIX}_reconcile_time_seconds",
            "Time a reconciliation took",
            label,
            registry=registry,
            buckets=_SECONDS,
        )
        self._workers = Gauge(
            f"{_PREFIX}_max_concurrent_reconciles", "Workers of the controller", label, registry=registry
        )
        self._active = Gauge(f"{_PREFIX}_active_workers", "Workers in a reconciliation", label, registry=registry)

    def register(self, controller: str, workers: int) -> None:
        """Show the controller's series, at zero, before anything happened."""
        self._workers.labels(controller).set(workers)
        self._active.labels(controller).set(0)
        for counter in (self._errors, self._terminal, self._panics, self._timeouts):
            counter.labels(controller)
        self._seconds.labels(controller)
        for verdict in Verdict:
            if verdict is not Verdict.ABANDONED:
                self._total.labels(controller, verdict.value)

    def started(self, controller: str) -> None:
        """A worker began a run."""
        self._active.labels(controller).inc()

    def finished(self, controller: str, decision: Decision, seconds: float, *, overrun: bool) -> None:
        """A run ended. `overrun`: it took longer than its timeout."""
        self._active.labels(controller).dec()
        self._seconds.labels(controller).observe(seconds)
        if overrun:
            self._timeouts.labels(controller).inc()
        if decision.verdict is Verdict.ABANDONED:
            return
        self._total.labels(controller, decision.verdict.value).inc()
        if decision.verdict is Verdict.ERROR:
            self._errors.labels(controller).inc()
        if decision.terminal:
            self._terminal.labels(controller).inc()
        if decision.panic:
            self._panics.labels(controller).inc()


class EventMetrics:
    """What became of the events that were recorded."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = Counter(
            "pysedna_events",
            "Events by what became of them; held_back: said often enough, dropped: too many waited",
            ["result"],
            registry=registry,
        )

    def count(self, result: str) -> None:
        """One more event ended as `result`."""
        self._total.labels(result).inc()


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """The registry as text and its content type, in the format that the `Accept` header prefers."""
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
