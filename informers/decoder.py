"""From the bytes of an answer to objects: single ones, pages of a list, events of a watch.

One pass over the bytes: `informers.shape` takes pages and events apart whose objects have the members that were seen
before. The others are split into whatever they have, which is slower and teaches the shape. What cannot be understood
does not stop what can: an item that is no object is left out of the list, logged and named in `ObjectList.unreadable`;
such an event becomes a `Malformed`. An `ObjectDecoder` belongs to one resource of one client, and is thread-safe.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from informers import nesting
from informers.errors import ApiError, MalformedResponseError
from informers.key import ObjectKey
from informers.object import BROKEN, MemberCache, Object, ObjectSource, build
from informers.shape import COMMON, ListMeta, maker
from informers.source import ObjectList, WatchEvent

__all__ = ["Malformed", "ObjectDecoder"]

_log = logging.getLogger(__name__)

_Members = dict[str, msgspec.Raw]


@dataclass(frozen=True, slots=True)
class Malformed:
    """A watch event that is no object, or none with a name. `key` is None where not even that could be read."""

    key: ObjectKey | None
    reason: str
    event_type: str


class _Page(msgspec.Struct, gc=False):
    items: list[_Members] | None
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class _LoosePage(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] | None
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class _Event(msgspec.Struct, gc=False):
    type: str
    object: _Members


class _LooseEvent(msgspec.Struct, gc=False):
    type: str | None = None
    object: msgspec.Raw = msgspec.Raw()


_decode_page = msgspec.json.Decoder(_Page).decode
_decode_loose_page = msgspec.json.Decoder(_LoosePage).decode
_decode_event = msgspec.json.Decoder(_Event).decode
_decode_loose_event = msgspec.json.Decoder(_LooseEvent).decode
_decode_members = msgspec.json.Decoder(_Members).decode
_decode_any = msgspec.json.Decoder().decode

_CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED"))


class ObjectDecoder:
    """Makes objects of one kind from bytes.

    `api_version` and `kind` complete objects whose bytes do not say them (list items of built-in kinds). `partial`
    replaces what the bytes say: PartialObjectMetadata is asked for, and the objects are still of their own kind.
    """

    def __init__(
        self,
        api_version: str = "",
        kind: str = "",
        *,
        cache: MemberCache | None = None,
        managed_fields: bool = False,
        partial: bool = False,
    ) -> None:
        self.source = ObjectSource(api_version, kind, cache)
        self._managed_fields = managed_fields
        self._partial = partial
        self._make = maker(self.source, managed_fields=managed_fields, drop_kind=partial)
        self._shape = COMMON  # replaced as a whole, so that threads see one or the other

    def object(self, body: bytes) -> Object:
        """Decode the answer to a request for one object. Raises MalformedResponseError."""
        try:
            return self._build(_decode_members(body))
        except (*BROKEN, KeyError) as error:
            raise MalformedResponseError(f"the answer is no object: {_why(error)}; it {_begins(body)}") from error

    def page(self, body: bytes) -> ObjectList:
        """Decode the answer to a list. Raises MalformedResponseError if it is no list as a whole."""
        try:
            page = self._shape.page(body)
            make = self._make
            items = [make(item) for item in page.items or () if item.metadata.name]
        except BROKEN:
            return self._uneven_page(body)
        unreadable: list[ObjectKey | None] = []
        for _ in range(len(page.items or ()) - len(items)):
            unreadable.append(self._unreadable(None, KeyError("name")))
        return _listed(page.metadata, items, unreadable, len(body))

    def _uneven_page(self, body: bytes) -> ObjectList:
        """Decode a list of objects that have other members than those before, or that are broken."""
        try:
            page = _decode_page(body)
        except BROKEN:
            return self._loose_page(body)
        items: list[Object] = []
        unreadable: list[ObjectKey | None] = []
        seen: set[str] = set()
        for members in page.items or ():
            try:
                names = [*members]
                obj = self._build(members)
            except (*BROKEN, KeyError) as error:
                unreadable.append(self._unreadable(_readable_key(members.get("metadata")), error))
                continue
            if obj.key.name:
                seen.update(names)
                items.append(obj)
            else:
                unreadable.append(self._unreadable(None, KeyError("name")))
        self._shape = self._shape.with_members(seen)
        return _listed(page.metadata, items, unreadable, len(body))

    def _loose_page(self, body: bytes) -> ObjectList:
        """Decode a list in which something among the items is no JSON object at all, or nested too deeply."""
        try:
            page = _split_page(body)
        except (*BROKEN, ValueError, KeyError) as error:
            raise MalformedResponseError(f"the answer is no list: {_why(error)}; it {_begins(body)}") from error
        items: list[Object] = []
        unreadable: list[ObjectKey | None] = []
        for raw in page.items or ():
            try:
                obj = self._build(_decode_members(raw))
                if not obj.key.name:
                    raise KeyError("name")
            except (*BROKEN, KeyError) as error:
                unreadable.append(self._unreadable(_key_of_item(raw), error))
            else:
                items.append(obj)
        return _listed(page.metadata, items, unreadable, len(body))

    def _unreadable(self, key: ObjectKey | None, error: Exception) -> ObjectKey | None:
        where = f"{self.source.kind} {key}" if key else f"a {self.source.kind} without a readable key"
        _log.warning("an item of a list is left out: %s: %s", where, _why(error))
        return key

    def event(self, line: bytes | bytearray | memoryview) -> WatchEvent | Malformed:
        """Decode one line of a watch. Raises the ApiError of an ERROR event; what is no event comes as `Malformed`."""
        try:
            event = self._shape.event(line)
        except BROKEN:
            return self._uneven_event(line)
        kind = event.type
        if kind == "ERROR":
            raise _event_error(line)
        if not event.object.metadata.name and kind != "BOOKMARK":
            return Malformed(None, "it has no name", kind)
        return WatchEvent(kind, self._make(event.object))

    def events(self, lines: Sequence[bytes]) -> list[WatchEvent] | None:
        """Decode many lines at once; None if there is one among them that `event` should see."""
        decode, make = self._shape.event, self._make
        try:
            events = [decode(line) for line in lines]
            if not all(event.type in _CHANGES and event.object.metadata.name for event in events):
                return None
            return [WatchEvent(event.type, make(event.object)) for event in events]
        except BROKEN:
            return None

    def _uneven_event(self, line: bytes | bytearray | memoryview) -> WatchEvent | Malformed:
        """Decode an event whose object has other members than those before, or that is broken."""
        try:
            event = _decode_event(line)
            if event.type == "ERROR":
                raise _event_error(line)
            names = [*event.object]
            obj = self._build(event.object)
        except (*BROKEN, KeyError) as error:
            return _malformed_event(line, error)
        if not obj.key.name and event.type != "BOOKMARK":
            return Malformed(None, "it has no name", event.type)
        self._shape = self._shape.with_members(names)
        return WatchEvent(event.type, obj)

    def _build(self, members: _Members) -> Object:
        return build(members, self.source, managed_fields=self._managed_fields, drop_kind=self._partial)


def _split_page(body: bytes) -> _LoosePage:
    try:
        return _decode_loose_page(body)
    except RecursionError:
        parts = nesting.members(body)
        meta = msgspec.json.decode(parts.get("metadata", b"{}"), type=ListMeta)
        return _LoosePage([msgspec.Raw(item) for item in nesting.elements(parts["items"])], meta)


def _split_event(line: bytes | bytearray | memoryview) -> _LooseEvent:
    try:
        return _decode_loose_event(line)
    except RecursionError:
        parts = nesting.members(bytes(line))
        return _LooseEvent(msgspec.json.decode(parts["type"], type=str), msgspec.Raw(parts["object"]))


def _split_members(raw: msgspec.Raw) -> _Members:
    try:
        return _decode_members(raw)
    except RecursionError:
        return {name: msgspec.Raw(value) for name, value in nesting.members(bytes(raw)).items()}


def _listed(meta: ListMeta, items: list[Object], unreadable: list[ObjectKey | None], size: int) -> ObjectList:
    version, token = meta.resourceVersion or "", meta.continue_ or ""
    return ObjectList(items, version, token, meta.remainingItemCount, unreadable, size)


def _event_error(line: bytes | bytearray | memoryview) -> ApiError:
    status: Any = _decode_any(_decode_loose_event(line).object)
    code = status.get("code")
    return ApiError.from_status(status, http_status=code if type(code) is int else 500, verb="watch")


def _malformed_event(line: bytes | bytearray | memoryview, error: Exception) -> Malformed:
    try:
        event = _split_event(line)
    except (*BROKEN, ValueError, KeyError):
        return Malformed(None, _why(error), "unknown")
    return Malformed(_key_of_item(event.object), _why(error), event.type or "unknown")


def _key_of_item(raw: msgspec.Raw) -> ObjectKey | None:
    try:
        return _readable_key(_split_members(raw).get("metadata"))
    except (*BROKEN, ValueError):
        return None


def _readable_key(metadata: msgspec.Raw | None) -> ObjectKey | None:
    """Read the key member by member, so that another member's fault does not hide it."""
    if metadata is None:
        return None
    try:
        parts = _split_members(metadata)
        name = _decode_any(parts["name"])
        namespace = _decode_any(parts["namespace"]) if "namespace" in parts else None
    except (*BROKEN, ValueError, KeyError):
        return None
    if not isinstance(name, str) or not name or not isinstance(namespace, str | None):
        return None
    return ObjectKey(namespace or "", name)


def _why(error: Exception) -> str:
    return f"it has no {error.args[0]}" if isinstance(error, KeyError) else str(error)


def _begins(body: bytes) -> str:
    return f"begins {body[:80].decode(errors='replace')!r}" if body else "is empty"
