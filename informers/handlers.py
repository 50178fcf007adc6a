"""Event handlers: a registration is one handler, its waiting events, and the thread that delivers them.

Each handler has a thread of its own, so that a slow one holds up neither the cache nor other handlers. Events come in
batches, one hand-over a batch, and are delivered one after the other; an exception is logged, counted, and ends only
the event it belongs to. Filters run here too, against what the handler itself has been shown.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from informers.errors import SyncError, SyncTimeout
from informers.event import Event, EventType, Reason
from informers.foreign import described
from informers.object import Object
from informers.pending import SYNCED, Batch, Pending
from workqueue.clock import Clock

__all__ = ["EventHandler", "HandlerStatistics", "Registration"]

_log = logging.getLogger(__name__)

FOR_OTHER_HANDLERS = 1.0
"""Seconds for which a handler waits for others to end: they may be waiting for it."""

# A handler thread takes this many events at once where that cannot hurt the bound.
_CHUNK = 32

_ADD, _UPDATE, _INITIAL = EventType.ADD, EventType.UPDATE, Reason.INITIAL

OnAdd = Callable[[Object, bool], object]
OnUpdate = Callable[[Object, Object], object]
OnDelete = Callable[[Object, bool], object]
OnEvent = Callable[[Event], object]
Filter = Callable[[Object], bool]


@dataclass(frozen=True, slots=True)
class EventHandler:
    """The functions of one handler; see `SharedInformer.add_event_handler`."""

    on_add: OnAdd | None = None
    on_update: OnUpdate | None = None
    on_delete: OnDelete | None = None
    on_event: OnEvent | None = None
    filter: Filter | None = None

    @property
    def name(self) -> str:
        """A name for messages, made of the functions' names."""
        functions = (self.on_event, self.on_add, self.on_update, self.on_delete)
        return ",".join(dict.fromkeys(_name(function) for function in functions if function is not None))

    def filtered(self, event: Event) -> Event | None:
        """The event as this handler shall see it: what enters the filter is an add, what leaves it a delete."""
        accepts = self.filter
        if accepts is None:
            return event
        if event.type is EventType.UPDATE:
            assert event.old is not None
            assert event.new is not None
            before, after = accepts(event.old), accepts(event.new)
            if before and after:
                return event
            if before:
                return Event(EventType.DELETE, event.old, None, event.reason, False, event.old)
            return Event(EventType.ADD, None, event.new, event.reason) if after else None
        # A delete is judged by what the handler was shown; the final state may look different.
        shown = event.held if event.held is not None else event.object
        return event if accepts(shown) else None

    def deliver(self, event: Event, failed: Callable[[Event, BaseException], object]) -> None:
        """Make the calls that the event is worth, after the filter. Each that raises is told to `failed`."""
        if self.filter is not None:
            try:
                shown = self.filtered(event)
            except BaseException as error:  # noqa: BLE001 - foreign code; the next event must still be delivered
                failed(event, error)
                return
            if shown is None:
                return
            event = shown
        kind = event.type
        try:
            if kind is _UPDATE:
                if self.on_update is not None:
                    self.on_update(event.old, event.new)  # type: ignore[arg-type]  # an update has both
            elif kind is _ADD:
                if self.on_add is not None:
                    self.on_add(event.new, event.reason is _INITIAL)  # type: ignore[arg-type]
            elif self.on_delete is not None:
                self.on_delete(event.old, event.final_state_unknown)  # type: ignore[arg-type]
        except BaseException as error:  # noqa: BLE001 - as above; sys.exit() ends no thread but the main one
            failed(event, error)
        if self.on_event is not None:
            try:
                self.on_event(event)
            except BaseException as error:  # noqa: BLE001
                failed(event, error)


class _HandlerThread(threading.Thread):
    """A thread that delivers events to a handler."""


def in_handler() -> bool:
    """Whether this is called from a handler, of whatever informer."""
    return isinstance(threading.current_thread(), _HandlerThread)


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__).replace(".<locals>", "")


@dataclass(frozen=True, slots=True)
class HandlerStatistics:
    """A handler's numbers at one moment."""

    name: str
    synced: bool
    pending: int
    delivered: int
    coalesced: int
    failed: int
    last_error: str


class Registration:
    """One handler of one informer. Made by `SharedInformer.add_event_handler`; all methods are thread-safe."""

    def __init__(
        self,
        handler: EventHandler,
        *,
        name: str,
        resync: float,
        max_pending: int | None,
        clock: Clock,
        on_remove: Callable[[Registration], None],
    ) -> None:
        if max_pending is not None and max_pending < 1:
            raise ValueError(f"max_pending must be at least 1 or None, not {max_pending}")
        self.name = name
        self.resync = resync
        self.next_resync: float | None = None
        """When the next resync is due; the informer's, under the informer's lock."""
        self._handler = handler
        self._clock = clock
        self._on_remove = on_remove
        self._condition = threading.Condition()
        self._pending = Pending(max_pending)
        self._chunk = _CHUNK if max_pending is None or max_pending >= 16 * _CHUNK else 1
        self._thread: threading.Thread | None = None
        self._in_hand = 0
        self._synced = False
        self._ended = ""
        self._delivered = 0
        self._failed = 0
        self._last_error = ""

    # ---- for users

    def has_synced(self) -> bool:
        """Whether the informer was filled and this handler has been through all of its first events."""
        return self._synced

    def wait_for_sync(self, timeout: float | None = None) -> None:
        """Wait for `has_synced`. Raises `SyncError` (which is also TimeoutError when time ran out)."""
        with self._condition:
            deadline = None if timeout is None else self._clock.now() + timeout
            while not self._synced:
                if self._ended:
                    raise SyncError(f"handler {self.name} did not sync: {self._ended}")
                left = None if deadline is None else deadline - self._clock.now()
                if left is not None and left <= 0:
                    reason = f"{len(self._pending) + self._in_hand} events pending"
                    raise SyncTimeout(f"handler {self.name} did not sync in {timeout:g} s: {reason}", reason)
                self._clock.wait(self._condition, left)

    def remove(self, wait: bool = False) -> None:
        """End this handler: what is pending is dropped; a call that runs is not interrupted. Idempotent.

        With `wait` returns once that call has ended, however long it takes. From within the handler: at once; from
        within another one: after a second at most, since that call may be waiting for this one.
        """
        self._on_remove(self)
        self.end("it was removed")
        if wait:
            self.join(FOR_OTHER_HANDLERS if in_handler() else None)

    def statistics(self) -> HandlerStatistics:
        """The handler's numbers now. `delivered` counts events, filtered ones too; `failed` calls that raised."""
        with self._condition:
            return HandlerStatistics(
                name=self.name,
                synced=self._synced,
                pending=len(self._pending) + self._in_hand,
                delivered=self._delivered,
                coalesced=self._pending.coalesced,
                failed=self._failed,
                last_error=self._last_error,
            )

    # ---- for the informer

    def offer(self, batch: Batch) -> None:
        """Hand over a batch. Never blocks on the handler."""
        with self._condition:
            if not self._ended:
                self._pending.extend(batch)
                self._condition.notify_all()

    def mark_synced(self) -> None:
        """All first events have been handed over; the handler is synced when it gets here."""
        with self._condition:
            self._pending.mark()
            self._condition.notify_all()

    def start(self) -> None:
        """Start the delivering thread."""
        with self._condition:
            if self._thread is None and not self._ended:
                self._thread = _HandlerThread(target=self._run, name=f"handler {self.name}", daemon=True)
                self._thread.start()

    def end(self, why: str) -> None:
        """Drop what is pending and let the thread end after the call it is in."""
        with self._condition:
            self._ended = self._ended or why
            self._pending.clear()
            self._condition.notify_all()

    @property
    def threads(self) -> tuple[threading.Thread, ...]:
        """The delivering thread, once it was started."""
        return (self._thread,) if self._thread is not None else ()

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def join(self, timeout: float | None) -> bool:
        """Wait for the thread; True if it has ended, or if this is it."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    # ---- the thread

    def _run(self) -> None:
        while True:
            with self._condition:
                self._in_hand = 0
                while not self._pending and not self._ended:
                    self._condition.wait()
                if self._ended:
                    return
                events = self._pending.take(self._chunk)
                self._in_hand = len(events)
            deliver, failed = self._handler.deliver, self._count_failure
            for event in events:
                if self._has_ended():
                    return
                if event is SYNCED:
                    self._set_synced()
                else:
                    self._delivered += 1
                    deliver(event, failed)  # type: ignore[arg-type]  # all but that mark are events
                self._in_hand -= 1

    def _has_ended(self) -> bool:
        return bool(self._ended)

    def _count_failure(self, event: Event, error: BaseException) -> None:
        key = event.object.key
        with self._condition:
            self._failed += 1
            self._last_error = f"{event.type.value} {key}: {described(error)}"
        _log.exception("handler %s failed on %s of %s", self.name, event.type.value, key)

    def _set_synced(self) -> None:
        with self._condition:
            self._synced = True
            self._condition.notify_all()
