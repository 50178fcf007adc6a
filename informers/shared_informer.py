"""A shared informer: one cache of one kind, kept equal to the server, and any number of handlers that are told.

Reflector -> DeltaFIFO -> Indexer -> handlers. Reflector threads fill the queue, one thread drains it in batches: it
brings the cache up to date first and then hands the events to every handler's own thread. Joining late is the same as
having been there: the lock that a batch holds is the lock under which a new handler is shown the whole cache.
"""

from __future__ import annotations

import logging
import random as random_module
import threading
from collections.abc import Callable, Mapping, Sequence

from informers.delta_fifo import DeltaFIFO, Deltas, Transform
from informers.errors import FIFOClosed, InformerStopped, SyncError, SyncTimeout, Timeout
from informers.event import Event, EventType, Reason, apply_batch
from informers.foreign import described
from informers.handlers import (
    FOR_OTHER_HANDLERS,
    EventHandler,
    Filter,
    OnAdd,
    OnDelete,
    OnEvent,
    OnUpdate,
    Registration,
    in_handler,
)
from informers.indexer import NAMESPACE_INDEX, Indexer, IndexerView, IndexFunction, namespace_index
from informers.key import ObjectKey, as_key
from informers.lister import Lister
from informers.news import News
from informers.object import Object
from informers.pending import Batch
from informers.protocol import ProtocolConfig
from informers.reflector import Reflector
from informers.sink import QueueSink
from informers.source import ListWatch
from informers.status import InformerStatus, MetricsProvider
from informers.sync import SAY_AGAIN
from informers.version import is_number, is_older
from workqueue.clock import Clock, MonotonicClock

__all__ = ["SharedInformer"]

_log = logging.getLogger(__name__)

_MIN_RESYNC = 1.0


class SharedInformer:
    """Cache and event source for one kind. Thread-safe; runs once: after `stop` it cannot be started again.

    `source` is a `ListWatch`, or several by namespace that fill one cache. `resync` is the default period, in seconds,
    after which handlers are shown every object again (0: never). `indexers` are index functions by name; "namespace"
    is always there; they run under the lock of the cache and must be quick. `transform` is applied to each object
    before it is cached; it must be cheap and keep the key.
    `name` is for messages, threads and `metrics`. `protocol` has the knobs of list and watch, `request_timeout` bounds
    one list page (longer while it comes, see `ResourceListWatch`) or the opening of a watch. `clock` and `random`
    (numbers from [0, 1)) are for tests.
    """

    def __init__(
        self,
        source: ListWatch | Mapping[str, ListWatch],
        *,
        resync: float = 0.0,
        indexers: Mapping[str, IndexFunction] | None = None,
        transform: Transform | None = None,
        name: str = "",
        metrics: MetricsProvider | None = None,
        protocol: ProtocolConfig | None = None,
        request_timeout: float = 60.0,
        clock: Clock | None = None,
        random: Callable[[], float] | None = None,
    ) -> None:
        config = protocol or ProtocolConfig()
        by_namespace: Mapping[str, ListWatch] | None = source if isinstance(source, Mapping) else None
        sources: dict[str | None, ListWatch] = {**by_namespace} if by_namespace is not None else {None: source}  # type: ignore[dict-item]
        if not sources:
            raise ValueError("an informer needs at least one source")
        self.name = name or ", ".join(_describe(each) for each in sources.values())
        self._clock: Clock = clock or MonotonicClock()
        self._random = random or random_module.Random().random
        self._resync = _checked_resync(resync)
        self._indexer = Indexer(
            {NAMESPACE_INDEX: namespace_index, **(indexers or {})}, on_index_error=self._index_failed
        )
        self._fifo = DeltaFIFO(
            self._indexer,
            transform=transform,
            on_poison=self._poisoned,
            namespaces=by_namespace or (),
            clock=self._clock,
        )
        self._sinks = {namespace: QueueSink(self._fifo, namespace) for namespace in sources}
        self._reflectors = {
            namespace: Reflector(
                each,
                self._sinks[namespace],
                page_size=config.page_size,
                prefer_stale=config.prefer_stale,
                protocol=config,
                request_timeout=request_timeout,
                clock=self._clock,
                random=self._random,
                on_change=lambda namespace=namespace: self._source_changed(namespace),  # type: ignore[misc]
            )
            for namespace, each in sources.items()
        }
        self.lister = Lister(self._indexer, self.name)
        self.indexer = IndexerView(self._indexer)
        # Held while a batch changes the cache and is handed over, and while a handler joins. Inside the queue's lock.
        # Re-entrant, because index functions run under it and may ask for the status.
        self._lock = threading.RLock()
        self._registrations: list[Registration] = []
        self._removed: list[Registration] = []
        self._synced = False
        self._running = False
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._news = News(self._clock)
        self._time_travel = 0
        self._unreadable = 0
        self._last_unreadable = ""
        self._internal_errors = 0
        self._index_errors: dict[str, int] = {}
        self._last_index_error = ""
        if metrics is not None:
            metrics.informer(self.status)

    # ---- handlers

    def add_event_handler(
        self,
        *,
        on_add: OnAdd | None = None,
        on_update: OnUpdate | None = None,
        on_delete: OnDelete | None = None,
        on_event: OnEvent | None = None,
        filter: Filter | None = None,
        resync: float | None = None,
        max_pending: int | None = 1024,
    ) -> Registration:
        """Register a handler; its functions run on a thread of its own, one at a time, in order per object.

        At any time: a handler that joins late is first shown what the cache holds, as adds with `is_initial`, and then
        everything after, without a gap. `filter` limits it to objects that pass: entering is an add, leaving a delete.
        `resync` None takes the informer's period; a period under a second is raised to one. Past `max_pending` waiting
        events those of one object are merged (None: never). Exceptions are logged and counted in `statistics()`.
        Does not block. Raises ValueError without any function, `InformerStopped` after `stop`.
        """
        handler = EventHandler(on_add, on_update, on_delete, on_event, filter)
        if not handler.name:
            raise ValueError("a handler needs at least one of on_add, on_update, on_delete and on_event")
        registration = Registration(
            handler,
            name=f"{handler.name} of {self.name}",
            resync=self._resync if resync is None else _checked_resync(resync),
            max_pending=max_pending,
            clock=self._clock,
            on_remove=self._forget_handler,
        )
        with self._lock:
            if self._stopped:
                raise InformerStopped(f"informer of {self.name} was stopped; no handler can be added")
            present = [Event(EventType.ADD, None, obj, Reason.INITIAL) for obj in self._indexer.list()]
            registration.offer(Batch(present))
            if self._synced:
                registration.mark_synced()
            self._registrations.append(registration)
            if self._running:
                registration.start()
            self._schedule_resync(registration)
        if registration.resync:
            self._fifo.interrupt()  # the draining thread waits for the next resync, which may be this one
        return registration

    def _forget_handler(self, registration: Registration) -> None:
        with self._lock:
            if registration in self._registrations:
                self._registrations.remove(registration)
                # It may be in a call still, which `stop` waits for like any other.
                self._removed = [*filter(Registration.is_alive, self._removed), registration]

    # ---- life

    def start(self) -> None:
        """Start the threads; does not wait for anything. Again: no effect. Raises `InformerStopped` after `stop`."""
        with self._lock:
            if self._stopped:
                raise InformerStopped(f"informer of {self.name} was stopped and cannot be started again")
            if self._running:
                return
            self._running = True
            for registration in self._registrations:
                registration.start()
                self._schedule_resync(registration)
            self._thread = threading.Thread(target=self._drain, name=f"informer {self.name}", daemon=True)
            self._thread.start()
            for reflector in self._reflectors.values():
                reflector.start()

    def run(self, stop: threading.Event) -> None:
        """Start, block until `stop` is set (or `stop()` called from elsewhere), and stop."""
        if not stop.is_set():  # else nothing is asked of anybody
            self.start()
        while not stop.wait(0.2) and not self._stopped:
            pass
        self.stop()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop everything and wait for the threads; False if one had not ended after `timeout` seconds.

        What handlers had pending is dropped. The cache stays readable. A thread ends within a second unless a handler,
        or a source that cannot be interrupted, holds it up; those are named in `status().unfinished`. Idempotent;
        may be called from a handler, which is then not waited for, and others for a second at most, since they may be
        waiting for this one.
        """
        self.end()
        clock = MonotonicClock()  # joining is real waiting, whatever clock the informer runs on
        deadline = None if timeout is None else clock.now() + timeout

        def left() -> float | None:
            return None if deadline is None else max(0.0, deadline - clock.now())

        for reflector in self._reflectors.values():
            reflector.join(left())
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(left())
        if in_handler():
            soon = clock.now() + FOR_OTHER_HANDLERS
            deadline = soon if deadline is None else min(deadline, soon)
        for registration in self._all_registrations():
            registration.join(left())
        return not self._unfinished()

    def end(self) -> None:
        """Ask all threads to end without waiting for them; `stop` does, and waits."""
        with self._lock:
            self._stopped = True
            registrations = [*self._registrations]
        for reflector in self._reflectors.values():
            reflector.end()
        self._fifo.close()
        for registration in registrations:
            registration.end("the informer was stopped")
        self._news.tell()

    # ---- waiting

    def has_synced(self) -> bool:
        """Whether the first list is in the cache and handed to the handlers; see also `Registration.has_synced`."""
        return self._synced

    def wait_for_sync(self, timeout: float | None = None, *, fail_fast: bool = False) -> None:
        """Wait for `has_synced`.

        Waits for as long as it may, whatever the source answers, since that may change; the reason is logged every ten
        seconds. Then raises `SyncTimeout` (a `SyncError` and TimeoutError) that says what fails, and since when. With
        `fail_fast` raises `SyncError` as soon as the source answers what only a person can change (401, 403, 404),
        or a namespace was given for a kind that has none.
        """

        clock = self._clock
        deadline = None if timeout is None else clock.now() + timeout

        def done() -> bool:
            failure = self._permanent_failure() if fail_fast and not self._synced else None
            if failure:
                raise SyncError(f"{self.name} cannot sync: {failure}", failure)
            return self._synced

        while True:
            left = None if deadline is None else max(0.0, deadline - clock.now())
            try:
                self._wait(done, SAY_AGAIN if left is None else min(left, SAY_AGAIN), "sync")
                return
            except InformerStopped as error:
                raise SyncError(f"{self.name} did not sync: the informer was stopped") from error
            except Timeout:
                reason = self._sync_reason()
                if left is not None and left <= SAY_AGAIN:
                    raise SyncTimeout(f"{self.name} did not sync in {timeout:g} s: {reason}", reason) from None
                _log.warning("%s has not synced yet: %s", self.name, reason)

    def wait_for(self, obj: Object, timeout: float | None = None) -> None:
        """Wait until the cache reflects `obj`, as a write returned it (read your writes).

        That is when the cache holds the object of that uid at its version or a later one, or has seen everything up to
        a later version (the object may have been deleted since, or may not match the informer's selectors). Versions
        that are not numbers are only compared for equality. Raises `Timeout`, and `InformerStopped`.
        """
        key, uid, version = obj.key, obj.uid, obj.resource_version
        sink = self._sink_of(key)

        def seen() -> bool:
            cached = self._indexer.get(key)
            if cached is not None and cached.uid == uid and _reached(cached.resource_version, version):
                return True
            # The order matters: everything up to this version was queued before the queue was seen empty.
            passed = sink.version
            return _reached(passed, version) and not len(self._fifo)

        self._wait(seen, timeout, f"{key} at version {version}")

    def wait_for_deletion(self, key: ObjectKey | str, uid: str, timeout: float | None = None) -> None:
        """Wait until the cache does not hold the object of that uid (another one under its name does not count).

        An object that the cache has not seen yet counts as deleted. Raises `Timeout`, and `InformerStopped`.
        """
        key = as_key(key)

        def gone() -> bool:
            cached = self._indexer.get(key)
            return cached is None or cached.uid != uid

        self._wait(gone, timeout, f"the deletion of {key}")

    def _wait(self, done: Callable[[], bool], timeout: float | None, what: str) -> None:
        def done_or_stopped() -> bool:
            if done():
                return True
            if self._stopped:
                raise InformerStopped(f"informer of {self.name} was stopped while waiting for {what}")
            return False

        try:
            self._news.wait(done_or_stopped, timeout)
        except Timeout:
            raise Timeout(f"{self.name}: waited {timeout:g} s for {what}: {self._sync_reason()}") from None

    def _sink_of(self, key: ObjectKey) -> QueueSink:
        sink = self._sinks.get(None) or self._sinks.get(key.namespace)
        if sink is None:
            watched = ", ".join(str(namespace) for namespace in self._sinks)
            raise ValueError(f"{key} is outside the namespaces of this informer ({watched})")
        return sink

    def _permanent_failure(self) -> str:
        # What was listed once is about to be in the cache, whatever its watch is refused for.
        failures = [reflector.failure for reflector in self._reflectors.values() if not reflector.listed]
        return "; ".join(failure.message for failure in failures if failure is not None and failure.kind.is_permanent)

    def _sync_reason(self) -> str:
        if not self._running:
            return "the informer was not started"
        reasons = [
            reflector.trouble or f"{reflector.name} is {reflector.state}"
            for reflector in self._reflectors.values()
            if reflector.trouble or not reflector.listed
        ]
        return "; ".join(dict.fromkeys(reasons)) or "nothing is known to be wrong"

    # ---- state

    def status(self) -> InformerStatus:
        """The present state; cheap, from any thread."""
        with self._lock:
            registrations = [*self._registrations]
        sources = tuple(reflector.status() for reflector in self._reflectors.values())
        failures = [reflector.failure for reflector in self._reflectors.values()]
        lags = [source.lag for source in sources if source.lag is not None]
        unreadable = [self._last_unreadable, *(source.last_unreadable for source in sources)]
        return InformerStatus(
            name=self.name,
            state=self._state([source.state for source in sources]),
            synced=self._synced,
            objects=len(self._indexer),
            queued=len(self._fifo),
            last_error="; ".join(failure.message for failure in failures if failure is not None),
            lag=max(lags) if len(lags) == len(sources) else None,
            time_travel=self._time_travel,
            unreadable=self._unreadable + sum(source.unreadable for source in sources),
            last_unreadable="; ".join(filter(None, unreadable)),
            internal_errors=self._internal_errors,
            index_errors=dict(self._index_errors),
            last_index_error=self._last_index_error,
            sources=sources,
            handlers=tuple(registration.statistics() for registration in registrations),
            unfinished=tuple(self._unfinished()) if self._stopped else (),
        )

    def _state(self, states: Sequence[str]) -> str:
        if self._stopped:
            return "stopped"
        order = ("new", "gone", "waiting", "listing", "streaming", "watching")
        return min(states, key=lambda state: order.index(state) if state in order else len(order))

    def _all_registrations(self) -> list[Registration]:
        with self._lock:
            return [*self._registrations, *self._removed]

    def _unfinished(self) -> list[str]:
        threads = [self._thread] if self._thread is not None else []
        for reflector in self._reflectors.values():
            threads.extend(reflector.threads)
        for registration in self._all_registrations():
            threads.extend(registration.threads)
        return [thread.name for thread in threads if thread.is_alive() and thread is not threading.current_thread()]

    # ---- called from the reflectors' threads

    def _source_changed(self, namespace: str | None) -> None:
        # Called when everything up to the reflector's version has been queued, bookmarks included.
        self._sinks[namespace].version = self._reflectors[namespace].resource_version
        self._check_synced()
        self._news.tell()

    def _poisoned(self, key: ObjectKey, error: BaseException) -> None:
        self._unreadable += 1
        self._last_unreadable = f"{key}: the transform failed: {described(error)}"
        _log.error("%s: the transform failed on %s", self.name, key, exc_info=error)

    def _index_failed(self, name: str, key: ObjectKey, error: BaseException) -> None:
        if name not in self._index_errors:  # a function that fails once fails often: say it once, count the rest
            _log.error("%s: index function %r failed on %s", self.name, name, key, exc_info=error)
        self._index_errors[name] = self._index_errors.get(name, 0) + 1
        self._last_index_error = f"{name} on {key}: {described(error)}"

    # ---- the draining thread

    def _drain(self) -> None:
        while True:
            try:
                self._fifo.pop_batch(self._process, timeout=self._until_resync())
            except Timeout:
                pass
            except FIFOClosed:
                return
            except BaseException:  # noqa: BLE001 - the last net: this thread must not die silently
                self._internal_errors += 1
                _log.exception("%s: internal error while applying changes", self.name)
            self._check_synced()
            self._news.tell()
            self._resync_due()

    def _process(self, batch: Sequence[Deltas], is_initial: bool) -> None:
        events: list[Event] = []
        with self._lock:
            changes, dropped = apply_batch(batch, self._indexer.get, is_initial=is_initial, events=events)
            self._time_travel += dropped
            self._indexer.apply(changes)
            if events:
                handed = Batch(events)
                for registration in self._registrations:
                    registration.offer(handed)

    def _check_synced(self) -> None:
        if self._synced or not self._fifo.has_synced():
            return
        with self._lock:
            if not self._synced:
                self._synced = True
                for registration in self._registrations:
                    registration.mark_synced()

    # ---- resync

    def _schedule_resync(self, registration: Registration) -> None:
        if registration.resync:
            jitter = 0.9 + 0.2 * self._random()  # so that informers started together do not resync together
            registration.next_resync = self._clock.now() + registration.resync * jitter

    def _until_resync(self) -> float | None:
        with self._lock:
            moments = [each.next_resync for each in self._registrations if each.next_resync is not None]
        return max(0.0, min(moments) - self._clock.now()) if moments else None

    def _resync_due(self) -> None:
        now = self._clock.now()
        with self._lock:
            due = [each for each in self._registrations if each.next_resync is not None and each.next_resync <= now]
            if not due:
                return
            shown = Batch([Event(EventType.UPDATE, obj, obj, Reason.RESYNC) for obj in self._indexer.list()])
            for registration in due:
                registration.offer(shown)
                self._schedule_resync(registration)


def _describe(source: ListWatch) -> str:
    return str(getattr(source, "description", "")) or type(source).__name__


def _checked_resync(resync: float) -> float:
    if resync < 0:
        raise ValueError(f"resync must not be negative: {resync}")
    return max(resync, _MIN_RESYNC) if resync else 0.0


def _reached(version: str, target: str) -> bool:
    if version == target:
        return True
    return is_number(version) and is_number(target) and not is_older(version, target)
