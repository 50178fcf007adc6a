"""A handler's events that wait to be delivered, bounded by coalescing (pure).

Up to `limit` events are kept one by one. Past it, events of one object are merged in the place of the first, so the
size is bounded by the number of objects, whoever waits is never blocked, and the handler still sees a legal history:
an add, changes, a delete, per uid. The merged row is left when the handler has caught up.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable

from informers.event import Event, EventType, Reason

__all__ = ["SYNCED", "Pending", "merge"]


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


class Pending:
    """Row of events with a bound. Not thread-safe."""

    def __init__(self, limit: int | None) -> None:
        """`limit` None: never merge."""
        self._limit = limit
        self._row: deque[Event | _Synced] = deque()
        self._merged: OrderedDict[Hashable, Event | _Synced] = OrderedDict()
        self.coalesced = 0

    def __len__(self) -> int:
        return len(self._row) + len(self._merged)

    def extend(self, events: Iterable[Event | _Synced]) -> None:
        """Append events, merging if the bound is passed."""
        if self._merged:
            for event in events:
                self._merge_in(event)
            return
        self._row.extend(events)
        if self._limit is not None and len(self._row) > self._limit:
            for event in self._row:
                self._merge_in(event)
            self._row.clear()

    def take(self, count: int) -> list[Event | _Synced]:
        """Remove and return up to `count` events from the front."""
        if self._merged:
            return [self._merged.popitem(last=False)[1] for _ in range(min(count, len(self._merged)))]
        return [self._row.popleft() for _ in range(min(count, len(self._row)))]

    def clear(self) -> None:
        """Drop everything."""
        self._row.clear()
        self._merged.clear()

    def _merge_in(self, event: Event | _Synced) -> None:
        if isinstance(event, _Synced):
            self._merged[event] = event
            return
        obj = event.object
        identity: Hashable = (obj.key, obj.uid)
        first = self._merged.get(identity)
        if first is None:
            self._merged[identity] = event
            return
        assert not isinstance(first, _Synced)
        self.coalesced += 1
        merged = merge(first, event)
        if merged is None:
            self.coalesced += 1  # two events became none
            del self._merged[identity]
        else:
            self._merged[identity] = merged
