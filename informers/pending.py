"""A handler's events that wait to be delivered, bounded by coalescing (pure).

Up to `limit` events are kept one by one. Past it, events of one object are merged in the place of the first, so the
size is bounded by the number of objects, whoever waits is never blocked, and the handler still sees a legal history:
an add, changes, a delete, per uid. The merged row is left when the handler has caught up.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence

from informers.event import Event, EventType, Reason

__all__ = ["SYNCED", "Batch", "Pending", "merge"]


_INITIAL = Reason.INITIAL


class _Synced:
    """Marks the end of a handler's first events in its row."""

    def __repr__(self) -> str:
        return "SYNCED"


SYNCED = _Synced()


def merge(first: Event, then: Event) -> Event | None:
    """One event that leads to where two events of one object lead; None if that is where it started."""
    reason = first.reason if then.reason is Reason.RESYNC else then.reason
    match first.type, then.type:
        case EventType.ADD, EventType.DELETE:
            return None
        case EventType.ADD, _:
            return Event(EventType.ADD, None, then.new, first.reason)
        case EventType.UPDATE, EventType.UPDATE:
            return Event(EventType.UPDATE, first.old, then.new, reason)
        case EventType.UPDATE, EventType.DELETE:
            return Event(EventType.DELETE, then.old, None, reason, then.final_state_unknown, first.old)
        case EventType.DELETE, EventType.ADD:
            shown = first.old if first.held is None else first.held
            # Equal: the very version that the handler knows came back (a kind that was away for a while).
            return None if shown == then.new else Event(EventType.UPDATE, shown, then.new, reason)
        case _:
            return then


class Batch:
    """Events that are handed to several rows. What is needed of them in a row that merges is found out once."""

    __slots__ = ("_first", "_identities", "events")

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self._identities: list[Hashable] | None = None
        self._first: bool | None = None

    @property
    def of_first_list(self) -> bool:
        """Whether all of it are objects of a first list: each comes once, and nothing came of it before."""
        found = self._first
        if found is None:
            found = self._first = all(event.reason is _INITIAL for event in self.events)
        return found

    @property
    def identities(self) -> list[Hashable]:
        """Which object each event is about."""
        found = self._identities
        if found is None:
            found = self._identities = [_identity(event) for event in self.events]
        return found


def _identity(event: Event) -> Hashable:
    obj = event.object
    return (obj.key, obj.uid)


class Pending:
    """Row of events with a bound. Not thread-safe."""

    def __init__(self, limit: int | None) -> None:
        """`limit` None: never merge."""
        self._limit = limit
        self._row: deque[Event | _Synced] = deque()
        self._merged: OrderedDict[Hashable, Event | _Synced] = OrderedDict()
        self._only_first = True  # the row has nothing but events of a first list
        self.coalesced = 0

    def __len__(self) -> int:
        return len(self._row) + len(self._merged)

    def extend(self, batch: Batch) -> None:
        """Append events, merging if the bound is passed."""
        if self._merged:
            self._merge(batch)
            return
        row = self._row
        self._only_first = (self._only_first or not row) and batch.of_first_list
        # Past the bound too there is nothing to merge in a first list, however long it is.
        if self._only_first or self._limit is None or len(row) + len(batch.events) <= self._limit:
            row.extend(batch.events)
            return
        for event in row:
            self._merge_in(event, event if isinstance(event, _Synced) else _identity(event))
        row.clear()
        self._merge(batch)

    def mark(self) -> None:
        """Append `SYNCED`."""
        if self._merged:
            self._merged[SYNCED] = SYNCED
        else:
            self._row.append(SYNCED)

    def take(self, count: int) -> list[Event | _Synced]:
        """Remove and return up to `count` events from the front."""
        if self._merged:
            return [self._merged.popitem(last=False)[1] for _ in range(min(count, len(self._merged)))]
        row = self._row
        if len(row) <= count:
            found = [*row]
            row.clear()
            return found
        return [row.popleft() for _ in range(count)]

    def clear(self) -> None:
        """Drop everything."""
        self._row.clear()
        self._merged.clear()

    def _merge(self, batch: Batch) -> None:
        merged, events, identities = self._merged, batch.events, batch.identities
        if merged.keys().isdisjoint(identities) and len(set(identities)) == len(identities):
            merged.update(zip(identities, events, strict=True))  # nothing to merge with: so it is with a first list
            return
        for event, identity in zip(events, identities, strict=True):
            self._merge_in(event, identity)

    def _merge_in(self, event: Event | _Synced, identity: Hashable) -> None:
        first = self._merged.get(identity)
        if first is None:
            self._merged[identity] = event
            return
        assert isinstance(first, Event)
        assert isinstance(event, Event)
        self.coalesced += 1
        merged = merge(first, event)
        if merged is None:
            self.coalesced += 1  # two events became none
            del self._merged[identity]
        else:
            self._merged[identity] = merged
