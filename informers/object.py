"""`Object`: an immutable Kubernetes object over the JSON bytes that the server sent.

A cache holds many objects of which most are never looked into, so an object is its bytes plus what identifies it (key,
uid, resourceVersion). Everything else is decoded when first asked for; decoded members live in a `MemberCache`, a
bounded LRU of whoever made the object, not in the object. Instances are msgspec structs that the garbage collector does
not track: they refer to nothing that could refer back to them.
`decoder.py` makes objects from lists and watches; `Object.from_dict` and `from_bytes` make single ones.
"""

from __future__ import annotations

import threading
from abc import ABCMeta
from collections.abc import Iterator, KeysView, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from cachetools import LRUCache

from informers.errors import MalformedObjectError
from informers.key import ObjectKey
from informers.models import model_builder
from informers.views import MappingView, plain, view

__all__ = ["MemberCache", "Object", "ObjectSource", "OwnerReference"]

S = TypeVar("S")

# What msgspec raises for text that is no JSON, not of the type, or nested deeper than the stack goes; strings are
# checked to be UTF-8 apart.
BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_EMPTY: Mapping[str, Any] = MappingView({})
_decode_any = msgspec.json.Decoder().decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder(enc_hook=plain).encode


class OwnerReference(msgspec.Struct, frozen=True, gc=False):
    """A reference from an object to one of its owners, as it stands in metadata.ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False

    @property
    def group(self) -> str:
        """The API group of the owner; empty for the core group."""
        return self.api_version.rpartition("/")[0]


class MemberCache:
    """Decoded members of recently used objects, bounded by the bytes of the objects that they come from. Thread-safe.

    An entry is found by the identity of the object's bytes and keeps those bytes alive, so an identity cannot be
    reused while its entry stands. Objects of more than the whole bound are never kept.
    """

    __slots__ = ("_entries", "_lock")

    def __init__(self, max_bytes: int = 4 << 20) -> None:
        self._entries: LRUCache[int, tuple[bytes, dict[str, Any]]] = LRUCache(max_bytes, getsizeof=_entry_size)
        self._lock = threading.Lock()

    def members(self, raw: bytes) -> dict[str, Any]:
        """Give the members of this JSON object: decoded values, or `msgspec.Raw` for those nobody asked for yet.

        The dict is shared: a caller may only replace a Raw by what it decodes to.
        """
        with self._lock:
            entry = self._entries.get(id(raw))
        if entry is not None and entry[0] is raw:
            return entry[1]
        found: dict[str, Any] = _decode_members(raw)
        with self._lock:
            if len(raw) < self._entries.maxsize:
                self._entries[id(raw)] = (raw, found)
        return found

    def __len__(self) -> int:
        return len(self._entries)


def _entry_size(entry: tuple[bytes, dict[str, Any]]) -> int:
    return len(entry[0]) + 1


class ObjectSource:
    """What all objects of one origin share: the kind they have where the bytes do not say it, and the member cache."""

    __slots__ = ("api_version", "cache", "kind")

    def __init__(self, api_version: str = "", kind: str = "", cache: MemberCache | None = None) -> None:
        self.api_version = api_version
        self.kind = kind
        self.cache = MemberCache() if cache is None else cache

    def defaults(self) -> dict[str, str]:
        """The members that bytes without them are completed with."""
        return {"apiVersion": self.api_version, "kind": self.kind} if self.kind else {}


class _ObjectMeta(msgspec.StructMeta, ABCMeta):
    """Lets a struct be a `Mapping` too."""


class Object(msgspec.Struct, Mapping[str, Any], metaclass=_ObjectMeta, frozen=True, gc=False, eq=False):
    """An immutable Kubernetes object: a read-only mapping of its members, over bytes. Safe to share between threads.

    ``obj["spec"]`` decodes that member into read-only views (`informers.views`), kept in a bounded cache; `to_dict` and
    `decode` always give fresh values. `raw` is the JSON without managedFields (unless they were asked for).
    Objects are equal, and hash alike, if uid and resourceVersion are the same; without either an object equals itself
    only. It is never equal to a dict: compare members or ``to_dict()``. Pickling and copying are supported.
    Accessors raise MalformedObjectError, naming the object, if what they read is not of the type that the API defines.
    """

    raw: bytes
    key: ObjectKey
    uid: str
    resource_version: str
    source: ObjectSource

    # --- making one

    @classmethod
    def from_dict(
        cls,
        d: Mapping[str, Any],
        *,
        api_version: str | None = None,
        kind: str | None = None,
        managed_fields: bool = False,
        source: ObjectSource | None = None,
    ) -> Object:
        """Make an object from a mapping, which is copied. Raises MalformedObjectError if it is none or has no metadata.

        `api_version` and `kind` are what the object has where the mapping does not say it. A missing name is allowed
        (the server may be asked to generate one). Dates and other types are encoded as msgspec does it.
        """
        if isinstance(d, Object):
            return d
        try:
            raw = _encode(d if type(d) is dict else dict(d))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise MalformedObjectError(f"not a Kubernetes object: {error}") from error
        return cls.from_bytes(raw, api_version=api_version, kind=kind, managed_fields=managed_fields, source=source)

    @classmethod
    def from_bytes(
        cls,
        b: bytes,
        *,
        api_version: str | None = None,
        kind: str | None = None,
        managed_fields: bool = False,
        source: ObjectSource | None = None,
    ) -> Object:
        """Make an object from JSON; `from_dict` says what the arguments mean and what is refused.

        `source` shares kind and member cache with other objects; without it the object has its own.
        """
        if source is None:
            source = ObjectSource(api_version or "", kind or "", MemberCache(max(2 * len(b), 1024)))
        try:
            return build(_decode_members(b), source, managed_fields=managed_fields)
        except MalformedObjectError:
            raise
        except (*BROKEN, KeyError) as error:
            raise MalformedObjectError(f"not a Kubernetes object: {error}") from error

    # --- the mapping

    def _members(self) -> dict[str, Any]:
        try:
            return self.source.cache.members(self.raw)
        except BROKEN as error:
            raise MalformedObjectError(f"{self!r}: {error}") from error

    def __getitem__(self, key: str) -> Any:
        members = self._members()
        try:
            value = members[key]
        except KeyError:
            return self.source.defaults()[key]
        if type(value) is msgspec.Raw:
            try:
                value = view(_decode_any(value))
            except BROKEN as error:
                raise MalformedObjectError(f"{self!r}: {key}: {error}") from error
            members[key] = value
        return value

    def _names(self) -> dict[str, Any]:
        members, defaults = self._members(), self.source.defaults()
        return members if defaults.keys() <= members.keys() else {**defaults, **members}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, key: object) -> bool:
        return key in self._names()

    def keys(self) -> KeysView[str]:
        """The names of the members; decodes nothing else."""
        return self._names().keys()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Object):
            return NotImplemented if not isinstance(other, Mapping) else False
        return bool(self.uid and self.resource_version) and (
            self.uid == other.uid and self.resource_version == other.resource_version
        )

    def __hash__(self) -> int:
        if self.uid and self.resource_version:
            return hash((self.uid, self.resource_version))
        return object.__hash__(self)

    def __repr__(self) -> str:
        try:
            kind = f"{self.api_version} {self.kind}".strip()
        except MalformedObjectError:
            kind = ""
        name = f" {self.key}" if self.key.name else ""
        version = f" @{self.resource_version}" if self.resource_version else ""
        return f"<{kind or 'Object'}{name}{version}>"

    def __copy__(self) -> Object:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Object:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (self.raw, self.source.api_version, self.source.kind))

    # --- whole values

    def to_dict(self) -> dict[str, Any]:
        """Give a fresh plain dict of the whole object, apiVersion and kind included. The caller owns it."""
        try:
            found: dict[str, Any] = _decode_any(self.raw)
        except BROKEN as error:
            raise MalformedObjectError(f"{self!r}: {error}") from error
        defaults = self.source.defaults()
        return found if defaults.keys() <= found.keys() else {**defaults, **found}

    def to_json(self) -> bytes:
        """The object as JSON, apiVersion and kind included. `raw` may lack these two."""
        defaults = self.source.defaults()
        if not defaults or self._names() is self._members():
            return self.raw
        missing = {name: value for name, value in defaults.items() if name not in self._members()}
        return _encode(missing)[:-1] + b"," + self.raw[1:]

    def decode(self, type: type[S]) -> S:
        """Decode the object into a type: any that msgspec knows, or a model class of the official client.

        Always fresh. For a msgspec type this is one pass over the bytes that skips what the type does not name, so a
        small struct is the fastest way to a deep field (in an index function, say).
        Raises MalformedObjectError, with the path, if the object does not fit the type.
        """
        try:
            struct: Any = type
            if isinstance(struct, msgspec.StructMeta):
                return msgspec.json.decode(self.raw if _ignores_kind(struct) else self._prefixed(), type=type)
            build_model = model_builder(type)
            if build_model is not None:
                model: S = build_model(self.to_dict())
                return model
            return msgspec.json.decode(self._prefixed(), type=type)
        except (*BROKEN, ValueError) as error:
            name = getattr(type, "__name__", type)
            raise MalformedObjectError(f"{self!r} as {name}: {error}") from error

    def _prefixed(self) -> bytes:
        """The bytes, completed in front: of two equal names the last one counts, so what they say themselves wins."""
        defaults = self.source.defaults()
        return _encode(defaults)[:-1] + b"," + self.raw[1:] if defaults else self.raw

    # --- what every object has

    @property
    def name(self) -> str:
        """metadata.name; empty if the server is to generate it."""
        return self.key.name

    @property
    def namespace(self) -> str:
        """metadata.namespace; empty for cluster scoped objects."""
        return self.key.namespace

    @property
    def kind(self) -> str:
        """The kind, of the resource or else from the bytes; empty if neither says it."""
        return self.source.kind or self._text("kind")

    @property
    def api_version(self) -> str:
        """The apiVersion, of the resource or else from the bytes; empty if neither says it."""
        return self.source.api_version or self._text("apiVersion")

    def _text(self, member: str) -> str:
        value = self.get(member)
        return value if isinstance(value, str) else ""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata, a read-only view."""
        metadata: Mapping[str, Any] = self["metadata"]
        return metadata

    def _of_metadata(self, name: str, expected: type[S] | tuple[type[S], ...], empty: S) -> S:
        value = self.metadata.get(name)
        if value is None:
            return empty
        if not isinstance(value, expected):
            raise MalformedObjectError(f"{self!r}: metadata.{name} is {value!r}")
        return value

    @property
    def generation(self) -> int:
        """metadata.generation, 0 if the server does not count it for this kind."""
        return self._of_metadata("generation", int, 0)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, a read-only view; empty if there are none."""
        return self._of_metadata("labels", Mapping, _EMPTY)

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations, a read-only view; empty if there are none."""
        return self._of_metadata("annotations", Mapping, _EMPTY)

    @property
    def finalizers(self) -> Sequence[str]:
        """The finalizers, in order."""
        return tuple(self._of_metadata("finalizers", Sequence, ()))

    @property
    def creation_timestamp(self) -> str | None:
        """When the server stored the object: RFC 3339 text as the server wrote it; None before it did."""
        return self._of_metadata("creationTimestamp", str, "") or None

    @property
    def deletion_timestamp(self) -> str | None:
        """When the object will be gone at the earliest (RFC 3339 text); None if nobody asked for its deletion."""
        return self._of_metadata("deletionTimestamp", str, "") or None

    @property
    def owner_references(self) -> tuple[OwnerReference, ...]:
        """The owners, in order."""
        found = self._of_metadata("ownerReferences", Sequence, ())
        return tuple(map(self._owner, found))

    def _owner(self, reference: Any) -> OwnerReference:
        try:
            return OwnerReference(
                reference["apiVersion"],
                reference["kind"],
                reference["name"],
                reference["uid"],
                reference.get("controller") is True,
                reference.get("blockOwnerDeletion") is True,
            )
        except (KeyError, TypeError) as error:
            raise MalformedObjectError(f"{self!r}: owner reference {reference!r} lacks {error}") from error

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        for reference in self.owner_references:
            if reference.controller:
                return reference
        return None


def _ignores_kind(struct: Any) -> bool:
    """Whether a struct reads neither kind nor apiVersion, so that it does not matter if the bytes lack them."""
    names = struct.__struct_encode_fields__
    return not ("kind" in names or "apiVersion" in names or struct.__struct_config__.tag_field)


def _restore(raw: bytes, api_version: str, kind: str) -> Object:
    return Object.from_bytes(raw, api_version=api_version, kind=kind, managed_fields=True)


class _Identity(msgspec.Struct, gc=False):
    """What is decoded on arrival, and nothing else. Null stands for absent, as everywhere in Kubernetes."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resourceVersion: str | None = None  # noqa: N815 - the fields' names in the API
    managedFields: msgspec.Raw = msgspec.Raw()  # noqa: N815


decode_identity = msgspec.json.Decoder(_Identity).decode


def build(
    members: dict[str, msgspec.Raw], source: ObjectSource, *, managed_fields: bool = False, drop_kind: bool = False
) -> Object:
    """Make an object of members that were split but not decoded; the members are given up.

    Without `managed_fields` these are cut: the members of metadata are split once more, that one is left out, and the
    pieces are joined again, which costs a copy of the bytes. `drop_kind` leaves out what the bytes say of the kind, for
    answers that come in another form than asked (PartialObjectMetadata).
    Raises KeyError without metadata, msgspec.MsgspecError if what identifies the object does not decode.
    """
    own = decode_identity(members["metadata"])
    if own.managedFields and not managed_fields:
        parts = _decode_members(members["metadata"])
        del parts["managedFields"]
        members["metadata"] = msgspec.Raw(_encode(parts))
    if drop_kind:
        members.pop("kind", None)
        members.pop("apiVersion", None)
    return Object(
        _encode(members),
        ObjectKey(own.namespace or "", own.name or ""),
        own.uid or "",
        own.resourceVersion or "",
        source,
    )
