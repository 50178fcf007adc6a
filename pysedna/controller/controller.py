"""A controller: listens to kinds, queues keys, and runs the reconcile on its workers.

The shell around the pure parts: `sources` says what an event asks for, `result.decide` what an outcome means. A
manager makes controllers and runs them; the queue guarantees that one key is never reconciled by two workers at
once.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from informers import Event, InformersError, ObjectKey, Registration, SharedInformer
from pysedna.controller.context import Context, Gate
from pysedna.controller.errors import NotLeading, TemporaryError, TerminalError
from pysedna.controller.metrics import ControllerMetrics
from pysedna.controller.result import Decision, Requeue, Result, Verdict, decide
from pysedna.controller.sources import Watch, priority, requests
from workqueue import Clock, ShutDown, Statistics, WorkQueue

if TYPE_CHECKING:
    from informers import Client

_log = logging.getLogger(__name__)


class Reconciler(Protocol):
    """A reconcile as an object."""

    def reconcile(self, key: ObjectKey, context: Context, /) -> Result | None: ...


Reconcile = Callable[[ObjectKey, Context], Result | None] | Reconciler


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """A controller at one moment. `runs` and `failures` count since it was made; `last_error` is that of the
    latest failure.
    """

    name: str
    workers: int
    active: int
    runs: int
    failures: int
    last_error: str
    queue: Statistics


class Controller:
    """Made by `Manager.controller`, run by the manager. `name` labels logs, metrics and threads.

    `gate` raises `NotLeading` when no reconcile may begin or go on.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        sources: Sequence[tuple[Watch, SharedInformer]],
        *,
        client: Client,
        queue: WorkQueue[ObjectKey],
        clock: Clock,
        gate: Gate,
        metrics: ControllerMetrics,
        workers: int = 1,
        timeout: float | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"a controller needs at least one worker: {workers}")
        if timeout is not None and timeout <= 0:
            raise ValueError(f"timeout must be more than 0 seconds, or None: {timeout}")
        self.name = name
        self.queue = queue
        method = getattr(reconcile, "reconcile", reconcile)
        self._reconcile = cast(Callable[[ObjectKey, Context], Result | None], method)
        self._sources = list(sources)
        self._client = client
        self._clock = clock
        self._gate = gate
        self._metrics = metrics
        self._workers = workers
        self._timeout = timeout
        self._lock = threading.Lock()
        self._active = self._runs = self._failures = 0
        self._last_error = ""
        self._fatal: BaseException | None = None
        metrics.register(name, workers)

    def enqueue(self, key: ObjectKey, *, after: float = 0.0, priority: int | None = None) -> None:
        """Ask for a reconcile of `key`, `after` seconds from now, for reasons of one's own. From any thread; never
        blocks.
        """
        self.queue.add_after(key, after, priority=priority)

    def status(self) -> ControllerStatus:
        """How it stands now."""
        with self._lock:
            return ControllerStatus(
                self.name,
                self._workers,
                self._active,
                self._runs,
                self._failures,
                self._last_error,
                self.queue.statistics(),
            )

    def run(self, stop: threading.Event) -> None:
        """Listen and work until `stop`; returns when running reconciles have finished. Once only.

        The workers begin when every handler has seen the first objects of its cache, so the first reconcile finds
        all of them queued and all caches filled.
        """
        registrations: list[Registration] = []
        workers: list[threading.Thread] = []
        try:
            for watch, informer in self._sources:
                registrations.append(informer.add_event_handler(on_event=self._handler(watch)))
            while not all(registration.has_synced() for registration in registrations):
                if stop.wait(0.01):
                    return
            workers = [self._worker(number, stop) for number in range(self._workers)]
            while not stop.wait(0.25):
                if self._fatal is not None:
                    raise self._fatal
        finally:
            for registration in registrations:
                registration.remove()
            self.queue.shut_down()
            for worker in workers:
                worker.join()

    def _handler(self, watch: Watch) -> Callable[[Event], None]:
        def on_event(event: Event) -> None:
            for key in requests(watch, event):
                self.queue.add(key, priority=priority(event))

        return on_event

    def _worker(self, number: int, stop: threading.Event) -> threading.Thread:
        # A daemon: a reconcile that hangs is reported by the manager and must not keep the process from ending.
        thread = threading.Thread(target=self._work, args=(stop,), name=f"{self.name}-worker-{number}", daemon=True)
        thread.start()
        return thread

    def _work(self, stop: threading.Event) -> None:
        while True:
            try:
                key = self.queue.get()
            except ShutDown:
                return
            try:
                if not stop.is_set():  # a queue that shuts down still hands out what was ready
                    self._run_once(key, stop)
            except BaseException as error:  # noqa: BLE001 - not an Exception: the controller ends, and says why
                self._fatal = error
                return
            finally:
                self.queue.done(key)

    def _run_once(self, key: ObjectKey, stop: threading.Event) -> None:
        try:
            self._gate()
        except NotLeading as error:
            self._carry_out(key, decide(error))
            return
        context = self._context(key, stop)
        with self._lock:
            self._active += 1
        self._metrics.started(self.name)
        began = self._clock.now()
        decision = Decision(Verdict.ABANDONED)
        try:
            outcome = self._call(key, context)
            decision = decide(outcome)
        finally:
            took = self._clock.now() - began
            overrun = decision.overrun or (self._timeout is not None and took > self._timeout)
            self._metrics.finished(self.name, decision, took, overrun=overrun)
            with self._lock:
                self._active -= 1
                self._runs += 1
        if overrun:
            context.log.warning(
                "%s: reconcile of %s took %.3f s, more than its %s s", self.name, key, took, self._timeout
            )
        if isinstance(outcome, Exception):
            self._report(key, context, outcome, decision)
        self._carry_out(key, decision)

    def _context(self, key: ObjectKey, stop: threading.Event) -> Context:
        reconcile_id = str(uuid.uuid4())
        extra = {"controller": self.name, "key": str(key), "reconcile_id": reconcile_id}
        return Context(
            client=self._client,
            stop=stop,
            clock=self._clock,
            gate=self._gate,
            deadline=None if self._timeout is None else self._clock.now() + self._timeout,
            priority=self.queue.priority(key),
            reconcile_id=reconcile_id,
            log=logging.LoggerAdapter(_log, extra),
        )

    def _call(self, key: ObjectKey, context: Context) -> Result | Exception | None:
        try:
            result: object = self._reconcile(key, context)
        except Exception as error:  # noqa: BLE001 - any failure of a reconcile is an outcome: counted, logged, retried
            return error
        if result is None or isinstance(result, Result):
            return result
        return TypeError(f"a reconcile returns a Result or None, not {type(result).__name__}")

    def _report(self, key: ObjectKey, context: Context, error: Exception, decision: Decision) -> None:
        if decision.verdict is Verdict.ABANDONED:
            context.log.info("%s: reconcile of %s was cut short: %s", self.name, key, error)
            return
        with self._lock:
            self._failures += 1
            self._last_error = f"{type(error).__name__}: {error}"
        expected = isinstance(error, InformersError | TemporaryError | TerminalError) or decision.overrun
        what = "failed for good" if decision.terminal else "failed, will be retried"
        context.log.error(
            "%s: reconcile of %s %s: %s: %s",
            self.name,
            key,
            what,
            type(error).__name__,
            error,
            exc_info=None if expected else error,
        )

    def _carry_out(self, key: ObjectKey, decision: Decision) -> None:
        if decision.forget:
            self.queue.forget(key)
        if decision.requeue is Requeue.RATE_LIMITED:
            self.queue.add_rate_limited(key)
        elif decision.requeue is Requeue.AFTER:
            self.queue.add_after(key, decision.delay, priority=decision.priority)
