"""What handlers are told, and what deltas mean to a cache (pure).

`apply_deltas` is the one place that turns a delta into a change of the cache and events for handlers: it splits an
object that was deleted and re-created unseen, drops what is older than the cache, and keeps silent about items of a
list that did not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

import msgspec

from informers.delta_fifo import Delta, Deltas, DeltaType, Tombstone
from informers.key import ObjectKey
from informers.object import Object
from informers.version import is_older

__all__ = ["Event", "EventType", "Reason", "apply_batch", "apply_deltas"]


class EventType(Enum):
    """What happened to an object."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


class Reason(Enum):
    """Why the event is delivered: seen on the watch, part of the first list (or of the replay to a late handler),
    found by comparing a later list with the cache, or repeated on request."""

    WATCH = "watch"
    INITIAL = "initial"
    RELIST = "relist"
    RESYNC = "resync"


# An attribute of a class costs a look-up each time, and these are needed for every event.
_ADD, _UPDATE, _INITIAL, _WATCH = EventType.ADD, EventType.UPDATE, Reason.INITIAL, Reason.WATCH
_REPLACED, _UPDATED = DeltaType.REPLACED, DeltaType.UPDATED


class Event(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened to one object.

    ADD has `new`, UPDATE both, DELETE `old`: the final state as the server gave it, or with `final_state_unknown` the
    last one that was seen. `held` is what the cache held before a DELETE, which the final state may differ from.
    """

    type: EventType
    old: Object | None
    new: Object | None
    reason: Reason
    final_state_unknown: bool = False
    held: Object | None = None

    @property
    def object(self) -> Object:
        """The object that the event is about: `new`, or `old` of a DELETE."""
        obj = self.new if self.new is not None else self.old
        assert obj is not None
        return obj


def apply_deltas(
    deltas: Iterable[Delta], cached: Object | None, *, is_initial: bool, events: list[Event]
) -> tuple[Object | None, int]:
    """Apply one key's deltas to what the cache holds, append the events, and return what it shall hold.

    The second value is the number of deltas dropped because they were older than the cache (time travel).
    `is_initial`: the first list is being handed out. What came on the watch meanwhile is no part of it.
    """
    dropped, told = 0, len(events)
    for delta in deltas:
        kind, obj = delta.type, delta.object
        if kind is DeltaType.DELETED or isinstance(obj, Tombstone):
            if cached is not None and _deletes(obj, cached):
                events.append(_deleted(obj, cached))
                cached = None
            elif cached is not None:
                dropped += 1
        elif kind is DeltaType.SYNC:
            if cached is not None:
                events.append(Event(EventType.UPDATE, cached, cached, Reason.RESYNC))
        elif cached is None:
            reason = Reason.RELIST if kind is DeltaType.REPLACED else Reason.WATCH
            if is_initial and reason is Reason.RELIST and len(events) == told:
                reason = Reason.INITIAL
            events.append(Event(EventType.ADD, None, obj, reason))
            cached = obj
        elif kind is DeltaType.REPLACED:
            if not _same_version(obj, cached):
                cached = _changed(obj, cached, Reason.RELIST, events)
        elif _is_news(obj, cached):
            cached = _changed(obj, cached, Reason.WATCH, events)
        else:
            dropped += 1
    return cached, dropped


def apply_batch(
    batch: Iterable[Deltas], get: Callable[[ObjectKey], Object | None], *, is_initial: bool, events: list[Event]
) -> tuple[list[tuple[ObjectKey, Object | None]], int]:
    """`apply_deltas` for many keys over the cache that `get` reads; returns its changes, and how many were dropped."""
    changes: list[tuple[ObjectKey, Object | None]] = []
    tell, change = events.append, changes.append
    dropped = 0
    for deltas in batch:
        delta = deltas[0]
        obj = delta.object
        key = obj.key
        cached = get(key)
        # The two cases that come by the thousand, in short; everything else, and every rule, is `apply_deltas`.
        if len(deltas) == 1:
            if cached is None:
                if is_initial and delta.type is _REPLACED:
                    tell(Event(_ADD, None, obj, _INITIAL))  # type: ignore[arg-type]  # no tombstone is REPLACED
                    change((key, obj))  # type: ignore[arg-type]
                    continue
            elif delta.type is _UPDATED and _follows(obj, cached):  # type: ignore[arg-type]  # nor UPDATED
                tell(Event(_UPDATE, cached, obj, _WATCH))  # type: ignore[arg-type]
                change((key, obj))  # type: ignore[arg-type]
                continue
        held, lost = apply_deltas(deltas, cached, is_initial=is_initial, events=events)
        dropped += lost
        if held is not cached:
            change((key, held))
    return changes, dropped


def _follows(obj: Object, cached: Object) -> bool:
    """Whether this is clearly a later state. Texts of one length compare like the numbers that they may be."""
    new, old = obj.resource_version, cached.resource_version
    return new > old and len(new) == len(old) and obj.uid == cached.uid


def _changed(obj: Object, cached: Object, reason: Reason, events: list[Event]) -> Object:
    if _same_uid(obj, cached):
        events.append(Event(EventType.UPDATE, cached, obj, reason))
    else:
        events.append(Event(EventType.DELETE, cached, None, reason, True, cached))
        events.append(Event(EventType.ADD, None, obj, reason))
    return obj


def _deleted(obj: Object | Tombstone, cached: Object) -> Event:
    if isinstance(obj, Tombstone):
        return Event(EventType.DELETE, cached, None, Reason.RELIST, True, cached)
    if not _same_uid(obj, cached):
        return Event(EventType.DELETE, cached, None, Reason.WATCH, True, cached)
    return Event(EventType.DELETE, obj, None, Reason.WATCH, False, cached)


def _deletes(obj: Object | Tombstone, cached: Object) -> bool:
    # Equal versions do delete: old servers send the last state unchanged.
    return isinstance(obj, Tombstone) or not is_older(obj.resource_version, cached.resource_version)


def _is_news(obj: Object, cached: Object) -> bool:
    if is_older(obj.resource_version, cached.resource_version):
        return False
    return not _same_version(obj, cached)


def _same_uid(a: Object, b: Object) -> bool:
    return a.uid == b.uid or not a.uid or not b.uid


def _same_version(a: Object, b: Object) -> bool:
    return _same_uid(a, b) and a.resource_version == b.resource_version and bool(a.resource_version)
