"""A list and watch source in memory, with the history and the faults of a real one.

For tests of informers and of what is built on them: it keeps every version since the last compaction, pages lists,
resumes watches, streams initial lists, and can be told to forget, drop, stall and fail at any moment, or by the name of
a fault. No threads, no sockets; time-outs of watches run on the clock given.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from informers.errors import (
    ConnectionReset,
    ExpiredError,
    InvalidError,
    MalformedResponseError,
    NotFoundError,
    ServerTimeoutError,
)
from informers.key import ObjectKey, as_key
from informers.object import Object
from informers.source import ObjectList, WatchEvent
from informers.testing.fake_watch import Entry, FakeWatch, bookmark
from informers.testing.faults import Fault
from workqueue.clock import Clock, MonotonicClock

__all__ = ["FakeListWatch", "Request"]

Verb = Literal["list", "watch"]
Item = tuple[ObjectKey, Object | None]
# An alias, because inside the class the name `list` is the method's.
Items = list[Item]


@dataclass(frozen=True, slots=True)
class Request:
    """One request that the source got: the verb and the options that were not None."""

    verb: Verb
    options: Mapping[str, Any]


@dataclass(slots=True)
class _Faults:
    compacted: int = 0
    stalled: bool = False
    lagging_at: int | None = None  # where the server stands still that new requests come to
    empty: int = 0
    errors: dict[str, deque[Exception]] = field(default_factory=lambda: {"list": deque(), "watch": deque()})


class FakeListWatch:
    """Source of a reflector over objects in memory. Thread-safe.

    `objects` is what there is at the start. `watch_list` False refuses streamed lists as old servers do. Writers give
    plain mappings (or Objects); the source sets resourceVersion, and a uid where there is none, and returns what it
    stored. Versions rise by one with every write, whatever the object.
    """

    def __init__(
        self,
        objects: Iterable[Mapping[str, Any]] = (),
        *,
        watch_list: bool = True,
        description: str = "fake source",
        clock: Clock | None = None,
    ) -> None:
        self.description = description
        self.watch_list = watch_list
        self._clock: Clock = clock or MonotonicClock()
        self._condition = threading.Condition()
        self._version = 0
        self._uids = 0
        self._items: dict[ObjectKey, Object | None] = {}
        self._uid_of: dict[ObjectKey, str] = {}
        self._history: list[Entry] = []
        self._snapshots: dict[str, tuple[int, Sequence[Item]]] = {}
        self._streams: list[FakeWatch] = []
        self._faults = _Faults()
        self._requests: list[Request] = []
        for obj in objects:
            self.add(obj)

    # ---- writing

    def add(self, obj: Mapping[str, Any]) -> Object:
        """Create an object. Raises ValueError if its name is taken."""
        return self._write("ADDED", obj)

    def modify(self, obj: Mapping[str, Any]) -> Object:
        """Change an object; it keeps its uid. Raises NotFoundError if there is none of that name."""
        return self._write("MODIFIED", obj)

    def delete(self, key: ObjectKey | str) -> Object:
        """Delete an object and return its final state (only its name, if it was poisoned). Raises NotFoundError."""
        with self._condition:
            key = self._present(key)
            last = self._items.pop(key)
            uid = self._uid_of.pop(key)
            self._version += 1
            named = {"metadata": {"namespace": key.namespace, "name": key.name}}
            final = self._at_version(last.to_dict() if last is not None else named, uid)
            self._record(Entry(self._version, "DELETED", key, final, last))
            return final

    def poison(self, key: ObjectKey | str) -> None:
        """Give an object a new version that cannot be read: in lists only its key shows, in watches nothing.

        The next `modify` or `delete` heals it.
        """
        with self._condition:
            key = self._present(key)
            self._version += 1
            before, self._items[key] = self._items[key], None
            self._record(Entry(self._version, "MODIFIED", key, None, before))

    # ---- faults

    def compact(self) -> None:
        """Forget the history: watches from versions before now, and lists half read, get 410."""
        with self._condition:
            self._faults.compacted = self._version
            self._history.clear()
            self._snapshots.clear()
            for stream in self._streams:
                stream.compacted()
            self._condition.notify_all()

    def drop_watches(self, error: Exception | None = None) -> None:
        """End all open watches: normally, or with an error."""
        with self._condition:
            for stream in self._streams:
                stream.end(error)
            self._condition.notify_all()

    def stall(self) -> None:
        """Let watches, open and new ones, deliver nothing until `resume`."""
        with self._condition:
            self._faults.stalled = True

    def resume(self) -> None:
        """End a stall."""
        with self._condition:
            self._faults.stalled = False
            self._condition.notify_all()

    def fail_next(self, verb: Verb, error: Exception, times: int = 1) -> None:
        """Let the next requests of this verb raise `error` instead of being answered."""
        with self._condition:
            self._faults.errors[verb].extend([error] * times)

    def clear_failures(self) -> None:
        """Take back what `fail_next` has planned."""
        with self._condition:
            for errors in self._faults.errors.values():
                errors.clear()

    def inject(self, fault: Fault) -> None:
        """Play a fault by its name; see `Fault` for what it hits and how long it goes on."""
        with self._condition:
            match fault:
                case Fault.GONE:
                    self._faults.errors["watch"].append(ExpiredError("too old resource version"))
                case Fault.EMPTY:
                    self._faults.empty += 1
                case Fault.REORDER:
                    self._faults.lagging_at = self._version
            for stream in self._streams:
                _hit(stream, fault)
            self._condition.notify_all()

    def recover(self) -> None:
        """End all faults that go on and take back what is planned. What is half open, or was lost, stays so."""
        with self._condition:
            self._faults.stalled, self._faults.lagging_at, self._faults.empty = False, None, 0
            for errors in self._faults.errors.values():
                errors.clear()
            for stream in self._streams:
                stream.catch_up()
            self._condition.notify_all()

    def bookmark(self) -> None:
        """Send a bookmark with the present version to all open watches that take them."""
        with self._condition:
            for stream in self._streams:
                stream.push(bookmark(self._version))
            self._condition.notify_all()

    # ---- looking

    def objects(self) -> dict[ObjectKey, Object]:
        """What the source holds now, without what is poisoned."""
        with self._condition:
            return {key: obj for key, obj in self._items.items() if obj is not None}

    def poisoned(self) -> Sequence[ObjectKey]:
        """The keys of what cannot be read now."""
        with self._condition:
            return [key for key, obj in self._items.items() if obj is None]

    def __contains__(self, key: object) -> bool:
        """Whether there is an object of this key ("ns/name" or `ObjectKey`), readable or not."""
        with self._condition:
            return isinstance(key, str | ObjectKey) and as_key(key) in self._items

    @property
    def resource_version(self) -> str:
        """The version of the last write."""
        return str(self._version)

    @property
    def open_watches(self) -> int:
        """Watches that are open now."""
        with self._condition:
            return len(self._streams)

    def requests(self, verb: Verb | None = None) -> Sequence[Request]:
        """The requests so far, failed ones too; of one verb, or all."""
        with self._condition:
            return [request for request in self._requests if verb in (None, request.verb)]

    def wait_for_requests(self, verb: Verb, count: int, timeout: float = 10.0) -> None:
        """Wait until there were `count` requests of this verb. Raises TimeoutError."""

        def enough() -> bool:
            return sum(request.verb == verb for request in self._requests) >= count

        with self._condition:
            if not self._condition.wait_for(enough, timeout):
                raise TimeoutError(f"{self._requests} instead of {count} requests of {verb}")

    # ---- the ListWatch protocol

    def list(
        self,
        *,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        limit: int | None = None,
        continue_: str | None = None,
        timeout: float | None = None,
    ) -> ObjectList:
        """See `informers.source.ListWatch`."""
        options = {
            "resource_version": resource_version,
            "resource_version_match": resource_version_match,
            "limit": limit,
            "continue_": continue_,
        }
        with self._condition:
            self._requested("list", options)
            if self._faults.empty:
                self._faults.empty -= 1
                raise MalformedResponseError("the answer is no list: it is empty", verb="list")
            start = 0
            if continue_:
                start, items = self._page_of(continue_)
                version = continue_.partition("/")[0]
            else:
                at = self._answered_at(resource_version, list_=True)
                items, version = self._items_at(at), str(at)
            page = items[start : start + limit] if limit else items[start:]
            left = len(items) - start - len(page)
            token = ""
            if left:
                token = f"{version}/{start + len(page)}"
                self._snapshots[token] = (start + len(page), items)
            return ObjectList(
                items=[obj for _, obj in page if obj is not None],
                resource_version=version,
                continue_=token,
                remaining=left or None,
                unreadable=[key for key, obj in page if obj is None],
            )

    def watch(
        self,
        *,
        resource_version: str | None = None,
        timeout_seconds: float | None = None,
        allow_bookmarks: bool = True,
        send_initial_events: bool | None = None,
        resource_version_match: str | None = None,
        timeout: float | None = None,
    ) -> FakeWatch:
        """See `informers.source.ListWatch`."""
        options = {
            "resource_version": resource_version,
            "timeout_seconds": timeout_seconds,
            "send_initial_events": send_initial_events,
            "resource_version_match": resource_version_match,
        }
        with self._condition:
            self._requested("watch", options)
            if send_initial_events and not self.watch_list:
                raise InvalidError("sendInitialEvents is forbidden for watch: the WatchList feature gate is off")
            at = self._answered_at(resource_version, list_=bool(send_initial_events))
            stream = FakeWatch(
                self._condition,
                self._clock,
                deadline=None if timeout_seconds is None else self._clock.now() + timeout_seconds,
                bookmarks=allow_bookmarks,
                stalled=self._is_stalled,
                on_end=self._ended,
            )
            if self._faults.empty:
                self._faults.empty -= 1
                stream.end(None)
            self._fill(stream, resource_version or "", bool(send_initial_events), at)
            self._streams.append(stream)
            return stream

    # ---- inside; the caller holds the lock

    def _requested(self, verb: Verb, options: Mapping[str, Any]) -> None:
        given = {name: value for name, value in options.items() if value is not None}
        self._requests.append(Request(verb, given))
        self._condition.notify_all()
        if self._faults.errors[verb]:
            raise self._faults.errors[verb].popleft()

    def _answered_at(self, version: str | None, *, list_: bool) -> int:
        """The version at which the server that answers stands. Only a request without a version is a quorum read."""
        lagging = self._faults.lagging_at
        if lagging is None or not version or lagging < self._faults.compacted:
            lagging, list_ = self._version, False
        if version and int(version) > lagging and not list_:
            raise ServerTimeoutError(
                f"Too large resource version: {version}, current: {lagging}",
                details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
            )
        return lagging

    def _items_at(self, version: int) -> Items:
        items = dict(self._items)
        for entry in reversed(self._history):
            if entry.version <= version:
                break
            if entry.type == "ADDED":
                items.pop(entry.key, None)
            else:
                items[entry.key] = entry.before
        return [*items.items()]

    def _page_of(self, token: str) -> tuple[int, Items]:
        snapshot = self._snapshots.pop(token, None)
        if snapshot is None:
            raise ExpiredError("The provided continue parameter is too old")
        return snapshot[0], [*snapshot[1]]

    def _fill(self, stream: FakeWatch, version: str, initial: bool, at: int) -> None:
        """Queue what a new watch begins with, at a server that stands at version `at`."""
        seen = at
        if initial or version in ("", "0"):
            for key, obj in self._items_at(at):
                if obj is None:
                    stream.push_unreadable(f"ADDED {key}", key)
                else:
                    stream.push(WatchEvent("ADDED", obj))
            if initial:
                stream.push(bookmark(at, initial_events_end=True))
        else:
            seen = int(version)
            if seen < self._faults.compacted:
                stream.expire()
        later = [entry for entry in self._history if entry.version > seen]
        for entry in later:
            if entry.version <= at:
                stream.push_entry(entry)
        if at < self._version or at == self._faults.lagging_at:
            stream.hold()
            for entry in later:
                if entry.version > at:
                    stream.push_entry(entry)

    def _write(self, type_: str, obj: Mapping[str, Any]) -> Object:
        data = obj.to_dict() if isinstance(obj, Object) else dict(obj)
        key = Object.from_dict(data).key
        with self._condition:
            if type_ == "ADDED":
                if key in self._items:
                    raise ValueError(f"{key} exists")
                self._uids += 1
                uid = str(data.get("metadata", {}).get("uid") or f"uid-{self._uids}")
            else:
                uid = self._uid_of[self._present(key)]
            self._version += 1
            stored, before = self._at_version(data, uid), self._items.get(key)
            self._items[key] = stored
            self._uid_of[key] = uid
            self._record(Entry(self._version, type_, key, stored, before))
            return stored

    def _present(self, key: ObjectKey | str) -> ObjectKey:
        key = as_key(key)
        if key not in self._items:
            raise NotFoundError(f"{key} is not there", key=key)
        return key

    def _at_version(self, data: Mapping[str, Any], uid: str) -> Object:
        metadata = {**data["metadata"], "uid": uid, "resourceVersion": str(self._version)}
        return Object.from_dict({**data, "metadata": metadata})

    def _record(self, entry: Entry) -> None:
        self._history.append(entry)
        for stream in self._streams:
            stream.push_entry(entry)
        self._condition.notify_all()

    def _ended(self, stream: FakeWatch) -> None:
        if stream in self._streams:
            self._streams.remove(stream)

    def _is_stalled(self) -> bool:
        return self._faults.stalled


def _hit(stream: FakeWatch, fault: Fault) -> None:
    """What a fault does to a watch that is open."""
    match fault:
        case Fault.GONE:
            stream.expire()
        case Fault.CUT:
            stream.cut(ConnectionReset("the connection broke"))
        case Fault.HALF_OPEN:
            stream.half_open = True
        case Fault.SLOW:
            stream.slow = True
        case Fault.POISON:
            stream.push_unreadable("MODIFIED of something without a readable key")
        case Fault.DUPLICATE:
            stream.twice = True
