"""The manager: starts and stops everything in the right order.

Order of start: HTTP, event writer, caches (until they are filled), what runs without leadership, election, what
needs leadership. It stops in the order of `runnables.STOP`: the election last, so that nobody else leads while
workers finish. See `Manager.run`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from informers import Object, ObjectKey, SharedInformer, SharedInformerFactory, SyncError
from informers.metrics import PrometheusMetricsProvider as InformerMetrics
from leaderelection.metrics import PrometheusMetricsProvider as ElectionMetrics
from pysedna.controller.controller import Controller, Reconcile
from pysedna.controller.election import Campaign, LeaderElection
from pysedna.controller.errors import (
    Cancelled,
    ControllerError,
    DuplicateName,
    LeadershipLost,
    ManagerStopped,
    RunnableFailed,
    ShutdownTimeout,
)
from pysedna.controller.health import Check, HealthServer
from pysedna.controller.metrics import CollectorRegistry, ControllerMetrics, EventMetrics
from pysedna.controller.ownership import owners
from pysedna.controller.predicates import Predicate
from pysedna.controller.recorder import EventBroadcaster, EventRecorder
from pysedna.controller.runnables import START, STOP, Runnable, RunnableGroup, Stage
from pysedna.controller.signals import on_signals
from pysedna.controller.sources import Watch, own_key
from workqueue import Clock, MonotonicClock, RateLimiter, WorkQueue
from workqueue.metrics import PrometheusMetricsProvider as QueueMetrics

if TYPE_CHECKING:
    from informers import Client

_log = logging.getLogger(__name__)
_POLL = 0.05
_FLUSH_SECONDS = 5.0


class _Stop(Exception):
    """A stop was asked for."""


class Manager:
    """Runs controllers and other runnables over one client and one set of caches.

    `name` labels logs and threads. `namespaces`: what the caches hold (None: all). `leader_election`: without it
    the manager acts at once. `http`: where /healthz, /readyz and /metrics are served; port 0 takes a free one,
    None serves nothing. `graceful_timeout`: seconds that running work is given at the stop; 0 does not wait, a
    negative number waits for ever. `registry`: where the metrics go, by default one of this manager's own; two managers
    cannot share one.

    Everything may be added before `run` or while it runs. The client stays the caller's: it is not closed.
    """

    def __init__(
        self,
        client: Client,
        *,
        name: str,
        namespaces: Sequence[str] | None = None,
        leader_election: LeaderElection | None = None,
        http: str | None = "127.0.0.1:0",
        graceful_timeout: float = 30.0,
        registry: CollectorRegistry | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.client = client
        self.name = name
        self.registry = registry if registry is not None else CollectorRegistry()
        self.informers = SharedInformerFactory(
            client, namespace=namespaces, metrics=InformerMetrics(registry=self.registry)
        )
        self._clock = clock if clock is not None else MonotonicClock()
        self._graceful_timeout = graceful_timeout
        self._inbox: SimpleQueue[str | BaseException] = SimpleQueue()
        self._lock = threading.Lock()
        self._controllers: dict[str, Controller] = {}
        self._begun = self._caches_started = False
        self._abandoned = threading.Event()
        self._others = RunnableGroup(f"{name}-others", self._failed)
        self._leaders = RunnableGroup(f"{name}-leaders", self._failed)
        self._campaign: Campaign | None = None
        if leader_election is not None:
            self._campaign = Campaign(
                leader_election,
                client,
                self._leaders,
                name=name,
                on_failure=self._inbox.put,
                metrics=ElectionMetrics(registry=self.registry),
            )
        self._metrics = ControllerMetrics(self.registry)
        self._queue_metrics = QueueMetrics(registry=self.registry)
        self._events = EventBroadcaster(client, metrics=EventMetrics(self.registry))
        self._checks: dict[str, dict[str, Check]] = {
            "healthz": {"ping": _ping},
            "readyz": {"caches": self._check_caches},
        }
        if self._campaign is not None:
            self._checks["healthz"]["leader-election"] = self._campaign.check
        self._http = HealthServer(http, self._checks, self.registry) if http is not None else None

    @property
    def http_address(self) -> str | None:
        """`host:port` of the health endpoints while they are served, else None."""
        return self._http.address if self._http is not None else None

    def controller(
        self,
        name: str,
        kind: tuple[str, str],
        reconcile: Reconcile,
        *,
        owns: Sequence[tuple[str, str]] = (),
        watches: Sequence[Watch] = (),
        predicates: Sequence[Predicate] = (),
        workers: int = 1,
        timeout: float | None = None,
        rate_limiter: RateLimiter[ObjectKey] | None = None,
    ) -> Controller:
        """Add a controller of the objects of `kind`, given as (api_version, kind).

        `reconcile(key, context)` is called for one key at a time per worker, never twice at once for one key.
        `owns`: kinds whose objects lead to the owner that is their controller, if it is of this kind. `watches`:
        other kinds with a mapping of their own. `predicates`: filter the events of `kind` itself. `timeout`:
        seconds a run may take; cooperative, see `Context`. Its workers begin when the caches are filled and the
        election is won. Raises DuplicateName, ManagerStopped.
        """
        sources = [Watch(kind, own_key, predicates), *(self._owned(child, kind) for child in owns), *watches]
        if self._leaders.stop.is_set():
            raise ManagerStopped(f"cannot add controller {name}: manager {self.name} is stopping")
        with self._lock:
            if name in self._controllers:
                raise DuplicateName(f"manager {self.name} has a controller {name} already")
            controller = Controller(
                name,
                reconcile,
                [(w, self.informers.informer(*w.kind, metadata_only=w.metadata_only)) for w in sources],
                client=self.client,
                queue=WorkQueue(name, rate_limiter=rate_limiter, clock=self._clock, metrics=self._queue_metrics),
                clock=self._clock,
                gate=self._gate,
                metrics=self._metrics,
                workers=workers,
                timeout=timeout,
            )
            self._controllers[name] = controller
            if self._caches_started:
                self.informers.start()
        self._leaders.add(controller)
        return controller

    def recorder(self, component: str) -> EventRecorder:
        """A recorder of events in the name of `component`. What it records is written while the manager runs."""
        return EventRecorder(component, self._events.submit)

    def add(self, runnable: Runnable, *, needs_leadership: bool = True) -> None:
        """Add something to run: `runnable.run(stop)` is called on a thread of its own and blocks until `stop` is set.

        If it raises, the manager stops. Raises ManagerStopped when the manager stops or has stopped.
        """
        (self._leaders if needs_leadership else self._others).add(runnable)

    def add_health_check(self, name: str, check: Check) -> None:
        """Let /healthz ask `check` too; it raises to say no. Called on an HTTP thread; must not block for long."""
        self._checks["healthz"] = {**self._checks["healthz"], name: check}

    def add_ready_check(self, name: str, check: Check) -> None:
        """Let /readyz ask `check` too; otherwise like `add_health_check`."""
        self._checks["readyz"] = {**self._checks["readyz"], name: check}

    def is_leader(self) -> bool:
        """Whether this manager leads now; without an election, always."""
        return self._campaign is None or self._campaign.is_leader()

    def run(self, stop: threading.Event | None = None) -> None:
        """Start everything, run until `stop` is set (or SIGTERM or SIGINT comes, in the main thread), stop
        everything. Once only.

        Blocks. An API server that cannot be reached keeps it waiting for its caches: logged with the reason, and
        /readyz says no. Raises, after everything was told to stop: RunnableFailed when a runnable raised,
        LeadershipLost when the lease was lost (nothing was waited for), ShutdownTimeout when something still ran
        after `graceful_timeout`, AddressUnavailable. After LeadershipLost and ShutdownTimeout code of this manager
        may still run: end the process.
        """
        with self._lock:
            if self._begun:
                raise ManagerStopped(f"manager {self.name} has been run already")
            self._begun = True
        failure: BaseException | None = None
        with on_signals(self._inbox.put):
            try:
                for stage in START:
                    self._start(stage, stop)
                _log.info("manager %s is running", self.name)
                while True:
                    self._pause(stop, 0.1)
            except _Stop:
                _log.info("manager %s is stopping", self.name)
            except BaseException as error:  # noqa: BLE001 - raised again below, when everything has stopped
                failure = error
            stuck = self._shut_down(wait=not isinstance(failure, LeadershipLost))
        if failure is not None:
            if stuck:
                failure.add_note(f"still running: {', '.join(stuck)}")
            raise failure
        if stuck:
            raise ShutdownTimeout(stuck, self._graceful_timeout)
        _log.info("manager %s has stopped", self.name)

    # Starting

    def _start(self, stage: Stage, stop: threading.Event | None) -> None:
        self._pause(stop, 0.0)
        if stage is Stage.HTTP and self._http is not None:
            self._http.start()
        elif stage is Stage.EVENTS:
            self._events.start()
        elif stage is Stage.CACHES:
            with self._lock:
                self._caches_started = True
                self.informers.start()
            self._wait_for_caches(stop)
        elif stage is Stage.OTHERS:
            self._others.start()
        elif stage is Stage.ELECTION and self._campaign is not None:
            self._campaign.start()
        elif stage is Stage.LEADERS and self._campaign is None:
            self._leaders.start()

    def _wait_for_caches(self, stop: threading.Event | None) -> None:
        next_word = time.monotonic() + 1.0
        while True:
            try:
                self.informers.wait_for_sync(timeout=_POLL)
                return
            except SyncError:
                self._pause(stop, 0.0)
                if time.monotonic() >= next_word and (text := _not_filled(self.informers.informers())):
                    _log.warning("manager %s waits for its caches: %s", self.name, text)
                    next_word = time.monotonic() + 10.0

    def _check_caches(self) -> None:
        if not self._caches_started:
            raise ControllerError("the caches have not been started")
        if text := _not_filled(self.informers.informers()):
            raise ControllerError(text)
        # What was filled once and cannot be kept up to date is no ground to act on.
        informers = [informer.status() for informer in self.informers.informers()]
        failures = [f"{informer.name}: {informer.last_error}" for informer in informers if informer.last_error]
        if failures:
            raise ControllerError("; ".join(failures))

    def _pause(self, stop: threading.Event | None, seconds: float) -> None:
        """Wait; raises _Stop when a stop was asked for, or the failure that ends the manager."""
        try:
            message = self._inbox.get(block=seconds > 0, timeout=seconds or None)
        except Empty:
            if stop is not None and stop.is_set():
                raise _Stop from None
            return
        if isinstance(message, BaseException):
            raise message
        _log.info("manager %s received %s", self.name, message)
        raise _Stop

    # Stopping

    def _shut_down(self, *, wait: bool) -> list[str]:
        seconds = self._graceful_timeout if wait else 0.0
        deadline = None if seconds < 0 else time.monotonic() + seconds
        if self._campaign is not None:
            self._campaign.close()
        stuck: list[str] = []
        for stage in STOP:
            stuck += self._stop(stage, deadline, wait=wait)
        return stuck

    def _stop(self, stage: Stage, deadline: float | None, *, wait: bool) -> list[str]:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if stage is Stage.OTHERS:
            return _end(self._others, left)
        if stage is Stage.LEADERS:
            stuck = _end(self._leaders, left)
            if stuck:
                self._abandoned.set()
            return stuck
        # These end within a second of their own accord, so they are given a little time whatever is left.
        short = 2.0 if wait else 0.0
        if stage is Stage.CACHES:
            self.informers.stop(short)
        elif stage is Stage.HTTP and self._http is not None:
            self._http.stop()
        elif stage is Stage.ELECTION and self._campaign is not None:
            self._campaign.cancel(None if left is None and wait else (left or 0.0) + short)
        elif stage is Stage.EVENTS:
            self._events.stop(min(_FLUSH_SECONDS, _FLUSH_SECONDS if left is None else max(left, 0.5)) if wait else 0.0)
        return []

    def _gate(self) -> None:
        if self._campaign is not None:
            self._campaign.guard()
        if self._abandoned.is_set():
            raise Cancelled("the manager has stopped without waiting any longer")

    def _failed(self, name: str, error: BaseException) -> None:
        failure = RunnableFailed(name, error)
        failure.__cause__ = error
        self._inbox.put(failure)

    def _owned(self, child: tuple[str, str], owner: tuple[str, str]) -> Watch:
        """The watch of a child kind. Whether the owner lives in namespaces is known when its cache has been filled."""
        resource = self.client.resource(*owner)
        cluster_scoped: list[bool] = []

        def to_owners(obj: Object) -> Iterable[ObjectKey]:
            if not cluster_scoped:
                cluster_scoped.append(not resource.info().namespaced)
            return owners(owner, cluster_scoped=cluster_scoped[0])(obj)

        return Watch(child, to_owners)


def _end(group: RunnableGroup, timeout: float | None) -> list[str]:
    group.begin_stop()
    return group.join(timeout)


def _not_filled(informers: Iterable[SharedInformer]) -> str:
    """Which caches are not filled, and why; those that wait for the same reason together."""
    reasons: dict[str, list[str]] = {}
    for informer in informers:
        status = informer.status()
        if not status.synced:
            reasons.setdefault(status.last_error or f"still {status.state}", []).append(informer.name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())


def _ping() -> None:
    """The process answers: that is all that the default check says."""
