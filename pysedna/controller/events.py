"""Which events are written, and how: the pure part of the event recorder.

Many events say the same thing. As client-go's correlator does, an identical one raises the count of the event
already written; ten different messages of one group within ten minutes become one event "(combined from similar
events)"; and one source may write about one object 25 events at once and one every five minutes after that. The
three memories are LRU maps of 4096 entries, so a cluster of any size costs a bounded amount. Time (`now`,
monotonic seconds, and the stamps) is an argument.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

MEMORY = 4096
SIMILAR_LIMIT = 10
SIMILAR_WINDOW = 600.0
SPAM_BURST = 25
SPAM_INTERVAL = 300.0
MESSAGE_LIMIT = 1024  # the API server refuses longer ones
COMBINED = "(combined from similar events): "
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One thing that happened to one object, as a controller reported it."""

    component: str
    involved: tuple[tuple[str, str], ...]  # the fields of involvedObject, sorted
    type: str
    reason: str
    message: str

    @property
    def namespace(self) -> str:
        """Where the event lives: with its object, or in `default` when that has no namespace."""
        return dict(self.involved).get("namespace") or "default"


@dataclass(frozen=True, slots=True)
class Write:
    """An event to write. `patch` is None for a new one; else it changes the event `name` that was written before.

    `body` is always the whole event, for the case that the one to patch is gone.
    """

    namespace: str
    name: str
    body: dict[str, Any]
    patch: dict[str, Any] | None


@dataclass(slots=True)
class _Written:
    name: str
    first: str
    count: int


@dataclass(slots=True)
class _Group:
    messages: set[str]
    last: float


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class _Lru(Generic[K, V]):
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        value = self._items.get(key)
        if value is not None:
            self._items.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._limit:
            self._items.popitem(last=False)

    def __len__(self) -> int:
        return len(self._items)


class Correlator:
    """Turns occurrences into writes. Not thread-safe: one thread owns it."""

    def __init__(self, *, memory: int = MEMORY) -> None:
        self._written: _Lru[tuple[object, ...], _Written] = _Lru(memory)
        self._groups: _Lru[tuple[object, ...], _Group] = _Lru(memory)
        self._buckets: _Lru[tuple[object, ...], _Bucket] = _Lru(memory)

    def correlate(self, what: Occurrence, *, now: float, stamp: str, suffix: str) -> Write | None:
        """What to write for `what`, or None when its source has said enough about this object.

        `stamp` is the time as the API wants it, `suffix` makes the name of a new event unique.
        """
        message, key = self._aggregate(what, now)
        if not self._admit(what, now):
            return None
        written = self._written.get(key)
        if written is None:
            written = _Written(event_name(dict(what.involved)["name"], suffix), stamp, 0)
            self._written.put(key, written)
        written.count += 1
        body = _body(what, message, written, stamp)
        if written.count == 1:
            return Write(what.namespace, written.name, body, None)
        patch = {"count": written.count, "lastTimestamp": stamp, "message": body["message"]}
        return Write(what.namespace, written.name, body, patch)

    def _aggregate(self, what: Occurrence, now: float) -> tuple[str, tuple[object, ...]]:
        group_key = (what.component, what.involved, what.type, what.reason)
        group = self._groups.get(group_key)
        if group is None or now - group.last > SIMILAR_WINDOW:
            group = _Group(set(), now)
            self._groups.put(group_key, group)
        group.last = now
        if len(group.messages) < SIMILAR_LIMIT:
            group.messages.add(what.message)
        if len(group.messages) < SIMILAR_LIMIT:
            return what.message, (*group_key, what.message)
        return COMBINED + what.message, group_key

    def _admit(self, what: Occurrence, now: float) -> bool:
        key = (what.component, what.involved)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = _Bucket(SPAM_BURST, now)
            self._buckets.put(key, bucket)
        bucket.tokens = min(SPAM_BURST, bucket.tokens + (now - bucket.at) / SPAM_INTERVAL)
        bucket.at = now
        if bucket.tokens < 1.0:
            return False
        bucket.tokens -= 1.0
        return True


def involved_object(obj: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The fields of `involvedObject` for an object (an `informers.Object` or a dict with apiVersion, kind and
    metadata).
    """
    metadata = obj.get("metadata") or {}
    fields = {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "namespace": metadata.get("namespace"),
        "name": metadata.get("name"),
        "uid": metadata.get("uid"),
    }
    if not fields["name"] or not fields["kind"]:
        raise ValueError("an event needs an object with a kind and a name")
    # No resourceVersion: it would make every event of a changing object a group of its own.
    return tuple(sorted((k, str(v)) for k, v in fields.items() if v))


def event_name(name: str, suffix: str) -> str:
    """`<object>.<suffix>`, shortened to the 253 characters a name may have; a hash stands in for a name no event
    may carry.
    """
    stem = name[: 252 - len(suffix)].rstrip("-.")
    if not _SUBDOMAIN.fullmatch(stem):
        stem = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{stem}.{suffix}"


def _body(what: Occurrence, message: str, written: _Written, stamp: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": written.name, "namespace": what.namespace},
        "involvedObject": dict(what.involved),
        "type": what.type,
        "reason": what.reason,
        "message": message[:MESSAGE_LIMIT],
        "source": {"component": what.component},
        "reportingComponent": what.component,
        "reportingInstance": "",
        "firstTimestamp": written.first,
        "lastTimestamp": stamp,
        "count": written.count,
    }
