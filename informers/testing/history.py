"""Checks of what an informer tells and holds: is every handler's history possible, does the cache equal the server?

A `HistoryChecker` is a handler. From what it was shown before it knows what may come next for each object, whatever the
server and the network did meanwhile; so it needs no script of the events to expect, and fits any test with faults.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from informers.event import Event, EventType, Reason
from informers.key import ObjectKey
from informers.object import Object
from informers.source import ListWatch
from informers.version import is_number, is_older
from workqueue.clock import MonotonicClock

__all__ = ["HistoryChecker", "assert_cache_matches"]

_LOOK_AGAIN = 0.05


class HistoryChecker:
    """A handler (``on_event=HistoryChecker()``) that finds what cannot be. Thread-safe.

    For every uid: first an add, then updates whose old object is the one shown before and whose versions rise (a resync
    shows the same again), then a delete, and nothing after a delete that was seen to happen. Under one name there is
    one object at a time. A delete with its final state unknown (kept in `unknown_deletes`) shows the last state that
    was seen; such an object may turn out to be there still (a kind that was gone for a while). What is wrong is kept
    in `wrong`; no call raises.

    `filtered`: the handler has a filter, or the informer a selector, so that objects may leave and come back.
    `restored`: the server may go back to an earlier state (a backup of etcd), so that versions may fall.
    """

    def __init__(self, *, filtered: bool = False, restored: bool = False) -> None:
        self.wrong: list[str] = []
        self.events = 0
        self.unknown_deletes: list[Object] = []
        self._filtered = filtered
        self._restored = restored
        self._condition = threading.Condition()
        self._shown: dict[ObjectKey, Object] = {}
        self._deleted: set[str] = set()

    def __call__(self, event: Event) -> None:
        """Take the next event."""
        with self._condition:
            self.events += 1
            why = self._check(event, self._shown.get(event.object.key))
            if why:
                shown = self._shown.get(event.object.key)
                self.wrong.append(f"{why}: {_line(event)}; shown before: {'nothing' if shown is None else _at(shown)}")
            if event.type is EventType.DELETE:
                self._shown.pop(event.object.key, None)
            else:
                self._shown[event.object.key] = event.object
            self._condition.notify_all()

    @property
    def shown(self) -> dict[ObjectKey, Object]:
        """What the handler has been shown and not been told to be deleted: a copy."""
        with self._condition:
            return dict(self._shown)

    def check(self) -> None:
        """Raise AssertionError if anything was wrong so far."""
        with self._condition:
            assert not self.wrong, "\n".join(self.wrong)

    def wait_for(self, objects: Callable[[], Iterable[Object]], timeout: float = 10.0) -> None:
        """Wait until what was shown is `objects()`, by name, uid and version. Raises AssertionError with what differs.

        `objects` is called again and again, while the checker is locked. Runs on real time. Ends with `check`. That it
        took too long is not kept in `wrong`: no event was.
        """
        clock = MonotonicClock()
        deadline = clock.now() + timeout
        with self._condition:
            while differences := _differences(self._shown, objects()):
                if clock.now() >= deadline:
                    late = f"shown is not what is there: {'; '.join(differences)}"
                    raise AssertionError("\n".join([*self.wrong, late]))
                self._condition.wait(_LOOK_AGAIN)
        self.check()

    def _check(self, event: Event, before: Object | None) -> str:
        match event.type:
            case EventType.ADD:
                return self._check_add(event.object, before)
            case EventType.UPDATE:
                return self._check_update(event, before)
            case EventType.DELETE:
                return self._check_delete(event, before)

    def _check_add(self, obj: Object, before: Object | None) -> str:
        if before is not None:
            return "added twice" if before.uid == obj.uid else "added while the earlier one of that name was there"
        if obj.uid and obj.uid in self._deleted:
            return "added after it was deleted"
        return ""

    def _check_update(self, event: Event, before: Object | None) -> str:
        old, new = event.old, event.new
        assert old is not None
        assert new is not None
        if before is None:
            return "an update of what was not added"
        if not _same(old, before):
            return "an update of another version than the one shown"
        if new.uid != before.uid:
            return "an update of one object to another one"
        if event.reason is Reason.RESYNC:
            return "" if _same(new, before) else "a resync with something new"
        if _same(new, before) and new.resource_version:
            return "told twice"
        return "" if self._restored or not is_older(new.resource_version, before.resource_version) else "went back"

    def _check_delete(self, event: Event, before: Object | None) -> str:
        obj = event.object
        if before is None:
            return "a delete of what was not added"
        if obj.uid != before.uid:
            return "a delete of another object than the one shown"
        if event.final_state_unknown:
            self.unknown_deletes.append(obj)
        elif not self._filtered:
            self._deleted.add(obj.uid)
        if not self._restored and is_older(obj.resource_version, before.resource_version):
            return "a final state older than the last one shown"
        return ""


class _Cached(Protocol):
    """An informer, as far as its cache is compared."""

    @property
    def lister(self) -> _Lister: ...


class _Lister(Protocol):
    def list(self) -> Iterable[Object]: ...


def assert_cache_matches(informer: _Cached, source: ListWatch, timeout: float = 10.0) -> None:
    """Compare an informer's cache with a fresh list of its source, by name, uid and version; wait until they agree.

    `source` is what the informer reads, or an equal `Resource.list_watch`; it is listed in pages, at the latest
    version. Nobody may write meanwhile. Raises AssertionError that names what differs after `timeout` seconds (of real
    time). For the tests of a program, and for a look at a running one: not a loop to run beside an informer.
    """
    clock = MonotonicClock()
    deadline = clock.now() + timeout
    condition = threading.Condition()
    while True:
        listed = {obj.key: obj for obj in _all(source, max(1.0, deadline - clock.now()))}
        differences = _differences({obj.key: obj for obj in informer.lister.list()}, listed.values())
        if not differences:
            return
        if clock.now() >= deadline:
            raise AssertionError(f"the cache differs from the source: {'; '.join(differences)}")
        with condition:
            condition.wait(_LOOK_AGAIN)


def _all(source: ListWatch, timeout: float) -> Iterable[Object]:
    token: str | None = None
    while True:
        page = source.list(limit=500, continue_=token, timeout=timeout)
        yield from page.items
        token = page.continue_
        if not token:
            return


def _differences(held: Mapping[ObjectKey, Object], wanted: Iterable[Object]) -> list[str]:
    """What differs, at most ten lines of it."""
    there = {obj.key: obj for obj in wanted}
    found = [f"{_at(obj)} is missing" for key, obj in there.items() if key not in held]
    found += [f"{_at(obj)} is not there" for key, obj in held.items() if key not in there]
    found += [f"{_at(held[key])} should be {_at(obj)}" for key, obj in there.items() if not _agrees(held.get(key), obj)]
    return found if len(found) <= 10 else [*found[:10], f"and {len(found) - 10} more"]


def _agrees(held: Object | None, wanted: Object) -> bool:
    return held is None or _same(held, wanted)


def _same(one: Object, other: Object) -> bool:
    return one.key == other.key and one.uid == other.uid and one.resource_version == other.resource_version


def _at(obj: Object) -> str:
    version = obj.resource_version if is_number(obj.resource_version) else repr(obj.resource_version)
    return f"{obj.key} ({obj.uid}) at {version}"


def _line(event: Event) -> str:
    objects = " to ".join(_at(obj) for obj in (event.old, event.new) if obj is not None)
    return f"{event.type.value} {objects}, {event.reason.value}{', unknown' * event.final_state_unknown}"
