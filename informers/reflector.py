"""The thread that keeps a sink equal to what a server holds: it asks, as `informers.protocol` says, and hands over.

Two threads belong to a reflector: one asks and reads the stream, one (the keeper) closes a stream that shows no sign of
life and runs resyncs. Both end when it is stopped; a read that blocks is ended by closing the stream.
"""

from __future__ import annotations

import logging
import random as random_module
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from informers.delta_fifo import Delta, DeltaType
from informers.failure import Failure
from informers.journal import Journal
from informers.key import ObjectKey
from informers.object import Object
from informers.protocol import AskList, AskWatch, Forget, Protocol, ProtocolConfig, Verdict, Wait
from informers.sink import EVENT_TYPES, Sink, runs
from informers.source import ListWatch, StreamedLists, WatchEvent, WatchStream
from informers.status import ReflectorStatus
from workqueue.clock import Clock, MonotonicClock

__all__ = ["Reflector", "Sink"]

_log = logging.getLogger(__name__)

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Reflector:
    """Keeps `sink` equal to `source`. Lists, watches, and does so again as long as it runs; see `informers.protocol`.

    `resync` > 0 calls `sink.resync()` about that often (a tenth of jitter). `protocol` has the finer knobs;
    `page_size` and `prefer_stale` given here win. `request_timeout` is the time that one list page, or the opening
    of a watch, may take (a source over HTTP gives a page more while it comes). `on_change` is called, from the asking
    thread, after each step that failed, filled the sink, or moved the version by a bookmark; everything up to
    `resource_version` is then in the sink.
    """

    def __init__(
        self,
        source: ListWatch,
        sink: Sink,
        *,
        page_size: int = 500,
        resync: float = 0.0,
        prefer_stale: bool = False,
        protocol: ProtocolConfig | None = None,
        request_timeout: float = 60.0,
        clock: Clock | None = None,
        random: Callable[[], float] | None = None,
        name: str = "",
        on_change: Callable[[], None] | None = None,
    ) -> None:
        if resync < 0:
            raise ValueError(f"resync must not be negative: {resync}")
        config = replace(protocol or ProtocolConfig(), page_size=page_size, prefer_stale=prefer_stale)
        self._random = random or random_module.Random().random
        for_one_reader = getattr(source, "for_one_reader", None)
        self._source: ListWatch = source if for_one_reader is None else for_one_reader()
        self._streamed_lists: StreamedLists = getattr(source, "streamed_lists", None) or StreamedLists()
        self._sink = sink
        self._resync = resync
        self._request_timeout = request_timeout
        self._clock: Clock = clock or MonotonicClock()
        self._protocol = Protocol(config, self._random)
        self._may_stream = config.watch_list
        self.name = name or str(getattr(source, "description", "")) or type(source).__name__
        self._on_change = on_change
        self._collected: dict[ObjectKey, Object] = {}
        self._kept: set[ObjectKey] = set()
        # Guards what the two threads and `stop` share; everything else is the asking thread's.
        self._condition = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._stopped = False
        self._stream: WatchStream | None = None
        self._overdue = False
        self._waiting = False
        self._journal = Journal(self.name, _log)

    # ---- life

    def start(self) -> None:
        """Start the threads; again: no effect. Raises RuntimeError after `stop`."""
        with self._condition:
            if self._stopped:
                raise RuntimeError(f"reflector of {self.name} was stopped")
            if self._threads:
                return
            self._threads = [
                threading.Thread(target=self._run, name=f"reflector {self.name}", daemon=True),
                threading.Thread(target=self._keep, name=f"reflector keeper {self.name}", daemon=True),
            ]
            for thread in self._threads:
                thread.start()

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set, or until `stop()` is called from elsewhere; blocks the calling thread."""
        if not stop.is_set():  # else nothing is asked of anybody
            self.start()
        while not stop.wait(0.2) and not self._stopped:
            pass
        self.stop()

    def stop(self, timeout: float | None = None) -> bool:
        """End the threads and wait for them; False if one is still inside a request after `timeout` seconds."""
        self.end()
        return self.join(timeout)

    def end(self) -> None:
        """Ask the threads to end, without waiting for them."""
        with self._condition:
            self._stopped = True
            stream = self._stream
            self._condition.notify_all()
        if stream is not None:
            stream.close()
        interrupt = getattr(self._source, "interrupt", None)
        if interrupt is not None:
            interrupt()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the threads to end, together at most `timeout` seconds; True if they have."""
        clock = MonotonicClock()  # joining is real waiting, whatever clock the protocol runs on
        deadline = None if timeout is None else clock.now() + timeout
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(None if deadline is None else max(0.0, deadline - clock.now()))
        return not any(thread.is_alive() and thread is not threading.current_thread() for thread in self._threads)

    # ---- state

    @property
    def resource_version(self) -> str:
        """The version of the last answer handed to the sink."""
        return self._protocol.version

    @property
    def failure(self) -> Failure | None:
        """What the last request failed with; None while all is well."""
        return self._protocol.failure

    @property
    def trouble(self) -> str:
        """What the last request failed with, and for how long requests have failed; "" while all is well."""
        failure, since = self._protocol.failure, self._journal.failing_since
        if failure is None or since is None:
            return "" if failure is None else failure.message
        seconds = self._clock.now() - since
        return f"{failure.message} (for {seconds:.0f} s)" if seconds >= 1.0 else failure.message

    @property
    def listed(self) -> bool:
        """Whether the sink was filled at least once."""
        return self._protocol.snapshots > 0

    @property
    def threads(self) -> tuple[threading.Thread, ...]:
        """The threads of this reflector, once it was started."""
        return tuple(self._threads)

    def status(self) -> ReflectorStatus:
        """The present state; cheap, from any thread."""
        now, protocol = self._clock.now(), self._protocol
        journal = self._journal
        with self._condition:
            counts = dict(journal.counts)
            counts["unreadable"], last_unreadable = journal.unreadable_with(self._stream)

        def age(moment: float | None) -> float | None:
            return None if moment is None else max(0.0, now - moment)

        return ReflectorStatus(
            source=self.name,
            state=self.state,
            resource_version=protocol.version,
            listed=protocol.snapshots > 0,
            last_error=journal.last_error,
            last_error_age=age(journal.last_error_at),
            last_list_age=age(journal.last_list_at),
            last_event_age=age(journal.last_event_at),
            connected_age=age(protocol.opened_at),
            lag=age(protocol.current_at),
            last_unreadable=last_unreadable,
            snapshots=protocol.snapshots,
            list_bytes=journal.list_bytes,
            watch_list=protocol.watch_list,
            **counts,
        )

    @property
    def state(self) -> str:
        """See `ReflectorStatus.state`."""
        if self._stopped:
            return "stopped"
        if not self._threads:
            return "new"
        if self._protocol.gone:
            return "gone"
        return "waiting" if self._waiting else self._protocol.phase.value

    # ---- the asking thread

    def _run(self) -> None:
        while not self._stopped:
            before = self._protocol.failure
            try:
                self._step()
            except BaseException as error:  # noqa: BLE001 - the last net: a reflector must not die silently
                _log.exception("reflector of %s: internal error", self.name)
                self._protocol.rejected(self._clock.now(), error)
            if self._may_stream and not self._protocol.watch_list:
                self._streamed_lists.work = False  # other readers of this resource need not find out
            failure = self._protocol.failure
            if failure is None:
                self._journal.failing_since = None
            elif failure is not before and not self._stopped:
                self._journal.failed(self._clock.now(), failure)
                self._changed()

    def _step(self) -> None:
        if not self._streamed_lists.work:
            self._protocol.watch_list = False
        step = self._protocol.next(self._clock.now())
        match step:
            case Wait():
                self._pause(step.seconds)
            case AskList():
                self._list(step)
            case AskWatch():
                self._watch(step)
            case Forget():
                _log.warning("%s: the kind is gone from the server; forgetting what was cached", self.name)
                self._collected, self._kept = {}, set()
                self._fill("")

    def _pause(self, seconds: float) -> None:
        with self._condition:
            deadline = self._clock.now() + seconds
            self._waiting = True
            try:
                while not self._stopped and (left := deadline - self._clock.now()) > 0:
                    self._clock.wait(self._condition, left)
            finally:
                self._waiting = False

    def _list(self, step: AskList) -> None:
        if step.continue_ is None:
            self._collected, self._kept, self._journal.list_bytes = {}, set(), 0
        self._journal.counts["lists"] += 1
        try:
            answer = self._source.list(
                resource_version=step.resource_version or None,
                resource_version_match=step.resource_version_match,
                limit=step.limit,
                continue_=step.continue_,
                timeout=self._request_timeout,
            )
        except Exception as error:  # noqa: BLE001 - every failure is answered by the protocol
            self._protocol.failed(self._clock.now(), error)
            return
        if self._stopped:
            return
        verdict = self._protocol.page(self._clock.now(), answer.resource_version, answer.continue_ or None)
        if verdict is Verdict.STALE:
            return
        for obj in answer.items:
            self._collected[obj.key] = obj
        self._keep_unreadable(answer.unreadable)
        self._journal.list_bytes = max(self._journal.list_bytes, answer.size)
        if verdict is Verdict.SNAPSHOT:
            self._fill(self._protocol.version)

    def _fill(self, version: str) -> bool:
        """Replace the sink's content with what was collected; False if the sink refused."""
        objects, kept = self._collected, self._kept - self._collected.keys()
        self._collected, self._kept = {}, set()
        try:
            if kept:
                self._sink.replace(objects.values(), version, keep=kept)
            else:
                self._sink.replace(objects.values(), version)
        except Exception as error:  # noqa: BLE001 - the sink is foreign code
            self._journal.sink_failed("a list", error)
            self._protocol.rejected(self._clock.now(), error)
            return False
        self._journal.last_list_at = self._clock.now()
        self._changed()
        return True

    def _watch(self, step: AskWatch) -> None:
        self._collected, self._kept = {}, set()
        self._journal.counts["watches"] += 1
        try:
            stream = self._source.watch(
                resource_version=step.resource_version or None,
                timeout_seconds=step.timeout_seconds,
                allow_bookmarks=True,
                send_initial_events=True if step.send_initial_events else None,
                resource_version_match=step.resource_version_match,
                timeout=self._request_timeout,
            )
        except Exception as error:  # noqa: BLE001 - every failure is answered by the protocol
            self._protocol.failed(self._clock.now(), error)
            return
        self._hold(stream)
        failure: BaseException | None = None
        usable = True
        try:
            usable = self._read(stream)
        except BaseException as error:  # noqa: BLE001 - every failure is answered by the protocol
            failure = error
        overdue = self._release(stream)
        now = self._clock.now()
        if self._stopped or not usable:
            return
        if overdue:
            self._protocol.silent(now)
        elif failure is not None:
            self._protocol.failed(now, failure)
        else:
            self._protocol.closed(now)

    def _read(self, stream: WatchStream) -> bool:
        """Read events until the stream ends; False if it was given up because its list could not be used."""
        read_batch: Callable[[], Sequence[WatchEvent]] | None = getattr(stream, "read_batch", None)
        extend: Callable[[Sequence[Delta]], None] | None = getattr(self._sink, "extend", None)
        if read_batch is not None and extend is not None:
            while not self._stopped and (events := read_batch()):
                if not self._events(events, stream, extend):
                    return False
            return True
        for event in stream:
            if self._stopped:
                break
            if not self._event(event, stream):
                return False
        return True

    def _events(
        self, events: Sequence[WatchEvent], stream: WatchStream, extend: Callable[[Sequence[Delta]], None]
    ) -> bool:
        """As `_event` for each; changes in a row that are plainly to be applied are handed over together."""
        for part in runs(events, lambda: self._protocol.is_plain):
            if isinstance(part, WatchEvent):
                if not self._event(part, stream):
                    return False
            else:
                self._hand_over(part, extend)
        return True

    def _hand_over(self, changes: Sequence[Delta], extend: Callable[[Sequence[Delta]], None]) -> None:
        now = self._clock.now()
        version: str = changes[-1].object.resource_version  # type: ignore[union-attr]
        added = any(change.type is DeltaType.ADDED for change in changes)
        verdict = self._protocol.changes(now, len(changes), version, added=added)
        self._journal.events(now, len(changes))
        if verdict is Verdict.COLLECT:
            for change in changes:
                self._collect(EVENT_TYPES[change.type], change.object)  # type: ignore[arg-type]
            return
        try:
            extend(changes)
        except Exception:  # noqa: BLE001 - nothing was taken; one by one it shows which of them was refused
            for change in changes:
                self._apply(EVENT_TYPES[change.type], change.object)  # type: ignore[arg-type]

    def _collect(self, kind: str, obj: Object) -> None:
        if kind == "DELETED":
            self._collected.pop(obj.key, None)
        else:
            self._collected[obj.key] = obj

    def _hold(self, stream: WatchStream) -> None:
        with self._condition:
            self._protocol.opened(self._clock.now())
            if self._protocol.failure is None:
                self._journal.failing_since = None
            self._stream = stream
            self._overdue = False
            stopped = self._stopped
            self._condition.notify_all()  # the keeper has a new deadline
        if stopped:  # `stop` came while the stream was being opened and could not close it
            stream.close()

    def _release(self, stream: WatchStream) -> bool:
        with self._condition:
            self._stream = None
            self._journal.closed(stream)
            overdue, self._overdue = self._overdue, False
        stream.close()
        return overdue

    def _event(self, event: WatchEvent, stream: WatchStream) -> bool:
        """Do what the protocol says of an event; False if the stream is of no more use."""
        obj, kind = event.object, event.type
        now = self._clock.now()
        ends = kind == "BOOKMARK" and obj.annotations.get(_INITIAL_EVENTS_END) == "true"
        verdict = self._protocol.event(now, kind, obj.resource_version, initial_events_end=ends)
        if kind == "BOOKMARK":  # it may bring the deadline nearer, which the keeper sleeps towards
            with self._condition:
                self._condition.notify_all()
        self._journal.events(now)
        if verdict is Verdict.APPLY:
            self._apply(kind, obj)
        elif verdict is Verdict.COLLECT:
            self._collect(kind, obj)
        elif verdict is Verdict.SNAPSHOT:
            self._kept |= set(getattr(stream, "unreadable_keys", ()))  # what could not be read is there all the same
            return self._fill(obj.resource_version)
        elif verdict is Verdict.BOOKMARK:
            self._changed()
        return verdict is not Verdict.STALE

    def _apply(self, kind: str, obj: Object) -> None:
        try:
            if kind == "MODIFIED":
                self._sink.update(obj)
            elif kind == "ADDED":
                self._sink.add(obj)
            else:
                self._sink.delete(obj)
        except Exception as error:  # noqa: BLE001 - the sink is foreign code; one object must not stop the stream
            self._journal.sink_failed(f"{kind} {obj.key}", error)

    # ---- counting and telling

    def _keep_unreadable(self, keys: Iterable[ObjectKey | None]) -> None:
        for key in keys:
            self._journal.unreadable_item(key)
            if key is not None:
                self._kept.add(key)

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()

    # ---- the keeper's thread

    def _keep(self) -> None:
        next_resync = self._next_resync()
        while True:
            with self._condition:
                if self._stopped:
                    return
                now = self._clock.now()
                deadline = self._protocol.deadline() if self._stream is not None and not self._overdue else None
                resync_due = next_resync is not None and next_resync <= now
                stream = self._stream if deadline is not None and deadline <= now else None
                if stream is not None:
                    self._overdue = True
                elif not resync_due:
                    moments = [moment for moment in (deadline, next_resync) if moment is not None]
                    self._clock.wait(self._condition, min(moments) - now if moments else None)
                    continue
            if stream is not None:
                stream.close()
            if resync_due:
                self._do_resync()
                next_resync = self._next_resync()

    def _next_resync(self) -> float | None:
        return self._clock.now() + self._resync * (0.9 + 0.2 * self._random()) if self._resync else None

    def _do_resync(self) -> None:
        resync = getattr(self._sink, "resync", None)
        try:
            if resync is not None:
                resync()
        except Exception as error:  # noqa: BLE001 - the sink is foreign code
            self._journal.sink_failed("a resync", error)
