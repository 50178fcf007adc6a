"""Events about objects, written by a thread of their own.

`EventRecorder.event` puts an occurrence into a bounded queue and never blocks; `EventBroadcaster` takes them out,
lets the correlator decide (`pysedna.controller.events`) and writes to the API. A full queue drops events, counted
and logged: an event is a hint to people, never something a controller relies on.
"""

from __future__ import annotations

import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from informers import ObjectKey
from informers.errors import AlreadyExistsError, ForbiddenError, InformersError, NotFoundError
from pysedna.controller.events import Correlator, Occurrence, Write, involved_object
from pysedna.controller.metrics import EventMetrics
from pysedna.controller.ownership import rfc3339

if TYPE_CHECKING:
    from informers import Client

_log = logging.getLogger(__name__)
QUEUE_SIZE = 1000
TRIES = 12
RETRY_SECONDS = 10.0
TYPES = ("Normal", "Warning")


class EventRecorder:
    """Records events of one component. Thread-safe.

    `submit` takes each occurrence; it must not block. A manager hands out recorders that submit to its broadcaster.
    """

    def __init__(self, component: str, submit: Callable[[Occurrence], None]) -> None:
        self.component = component
        self._submit = submit

    def event(self, obj: Mapping[str, Any], type: str, reason: str, message: str) -> None:
        """Say that something happened to `obj` (an `informers.Object` or a dict with apiVersion, kind and
        metadata). Never blocks.

        `type` is "Normal" or "Warning", `reason` one word in CamelCase for machines, `message` a sentence for
        people. Raises ValueError for another type or an object without kind and name.
        """
        if type not in TYPES:
            raise ValueError(f"an event is {' or '.join(TYPES)}, not {type!r}")
        self._submit(Occurrence(self.component, involved_object(obj), type, reason, message))


class EventBroadcaster:
    """Writes what recorders submit. `start` once, `stop` once."""

    def __init__(
        self,
        client: Client,
        *,
        metrics: EventMetrics | None = None,
        size: int = QUEUE_SIZE,
        rng: random.Random | None = None,
    ) -> None:
        self._events = client.resource("v1", "Event")
        self._metrics = metrics
        self._queue: queue.Queue[Occurrence | None] = queue.Queue(size)
        self._correlator = Correlator()
        self._rng = rng if rng is not None else random.Random()
        self._stopping = threading.Event()
        self._flush_until = 0.0
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def submit(self, what: Occurrence) -> None:
        """Queue an occurrence, or drop it (counted, logged) when the queue is full or the broadcaster stops."""
        if self._stopping.is_set():
            self._drop(what, "the recorder has stopped")
            return
        try:
            self._queue.put_nowait(what)
        except queue.Full:
            self._drop(what, "too many are waiting")

    def start(self) -> None:
        """Begin to write what was submitted, also before."""
        self._thread.start()

    def stop(self, timeout: float) -> bool:
        """Write what is queued for at most `timeout` seconds, then end. False when something was left."""
        self._flush_until = time.monotonic() + timeout
        self._stopping.set()
        try:
            self._queue.put_nowait(None)  # wakes the thread; a full queue needs no waking
        except queue.Full:
            _log.debug("the event queue is full at the stop")
        if self._thread.ident is not None:
            self._thread.join(timeout + 0.5)
        return self._queue.empty() and not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            if self._stopping.is_set() and (self._queue.empty() or time.monotonic() >= self._flush_until):
                return
            what = self._queue.get()
            if what is None:
                continue
            try:
                self._handle(what)
            except Exception:  # noqa: BLE001 - one bad event must not end all later ones
                _log.exception("could not record an event")
                self._count("failed")

    def _handle(self, what: Occurrence) -> None:
        stamp = rfc3339(time.time())
        write = self._correlator.correlate(what, now=time.monotonic(), stamp=stamp, suffix=f"{time.time_ns():x}")
        if write is None:
            self._count("held_back")
            return
        for attempt in range(TRIES):
            try:
                self._count(self._write(write))
                return
            except InformersError as error:
                if not getattr(error, "retriable", False) or self._give_up(attempt):
                    self._report(write, error)
                    return

    def _write(self, write: Write) -> str:
        timeout = None
        if self._stopping.is_set():
            timeout = max(0.1, min(RETRY_SECONDS, self._flush_until - time.monotonic()))
        if write.patch is not None:
            try:
                self._events.patch(ObjectKey(write.namespace, write.name), write.patch, timeout=timeout)
                return "patched"
            except NotFoundError:
                _log.debug("event %s expired, written afresh", write.name)
        try:
            self._events.create(write.body, timeout=timeout)
        except AlreadyExistsError:
            _log.debug("event %s had arrived although its answer had not", write.name)
        return "created"

    def _give_up(self, attempt: int) -> bool:
        # The first wait is cut at random, so that many clients of a server that was down do not come back at once.
        share = self._rng.random() if attempt == 0 else 1.0
        return attempt + 1 >= TRIES or self._stopping.wait(RETRY_SECONDS * share)

    def _report(self, write: Write, error: InformersError) -> None:
        self._count("failed")
        # A namespace that is being deleted takes no new events; nothing is wrong then.
        ending = isinstance(error, ForbiddenError) and error.has_cause("NamespaceTerminating")
        level = logging.DEBUG if ending else logging.WARNING
        _log.log(level, "event %s/%s was not written: %s", write.namespace, write.name, error)

    def _drop(self, what: Occurrence, why: str) -> None:
        self._count("dropped")
        _log.warning("event dropped, %s: %s %s %s", why, dict(what.involved).get("name"), what.reason, what.message)

    def _count(self, result: str) -> None:
        if self._metrics is not None:
            self._metrics.count(result)
