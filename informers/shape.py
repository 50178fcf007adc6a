"""The shape of one kind's objects, which lets a page or an event be taken apart in one pass over its bytes.

A decoder that does not know which members an object has must split it into a dict first, read the metadata in a second
pass, and go through them a third time to leave managedFields out. A `Shape` names the members beforehand: what
identifies an object is decoded where it stands, everything else stays text, and encoding the pieces again gives the
object without what was taken away. What does not fit is refused as a whole, never guessed at: the caller then goes the
long way, and learns from the objects it finds there. Pure; shapes are immutable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import msgspec

from informers.key import ObjectKey
from informers.object import Object, ObjectSource
from informers.shared_text import SharedText

__all__ = ["ABSENT", "COMMON", "Item", "ListMeta", "PageOf", "Shape", "maker"]

ABSENT = msgspec.Raw()
_MOST_MEMBERS = 32  # an object with more of them is no Kubernetes object, and may be made to exhaust us
_can_be_named = re.compile(r'[^"\\\x00-\x1f]*').fullmatch  # msgspec writes the names of fields as they are

_Text = str | None | msgspec.UnsetType


class ListMeta(msgspec.Struct, gc=False):
    """The metadata of a list."""

    resourceVersion: str | None = None  # noqa: N815 - the fields' names in the API
    continue_: str | None = msgspec.field(name="continue", default=None)
    remainingItemCount: int | None = None  # noqa: N815


class Metadata(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """ObjectMeta: what identifies an object is decoded, the rest is kept as it came. Absent and null are two things."""

    name: _Text = msgspec.UNSET
    generateName: msgspec.Raw = ABSENT  # noqa: N815
    namespace: _Text = msgspec.UNSET
    selfLink: msgspec.Raw = ABSENT  # noqa: N815
    uid: _Text = msgspec.UNSET
    resourceVersion: _Text = msgspec.UNSET  # noqa: N815
    generation: msgspec.Raw = ABSENT
    creationTimestamp: msgspec.Raw = ABSENT  # noqa: N815
    deletionTimestamp: msgspec.Raw = ABSENT  # noqa: N815
    deletionGracePeriodSeconds: msgspec.Raw = ABSENT  # noqa: N815
    labels: msgspec.Raw = ABSENT
    annotations: msgspec.Raw = ABSENT
    ownerReferences: msgspec.Raw = ABSENT  # noqa: N815
    finalizers: msgspec.Raw = ABSENT
    managedFields: msgspec.Raw = ABSENT  # noqa: N815


class Item(Protocol):
    """An object in pieces: its metadata, and the other members as text, `kind` and `apiVersion` always among them."""

    metadata: Metadata
    kind: msgspec.Raw
    apiVersion: msgspec.Raw  # noqa: N815


class PageOf(Protocol):
    """A list in pieces."""

    items: list[Item] | None
    metadata: ListMeta


class EventOf(Protocol):
    """A watch event in pieces."""

    type: str
    object: Item


class Shape:
    """The names of the members that the objects of one kind have, and decoders made for them.

    `page` and `event` raise msgspec.MsgspecError for whatever has a member that is not among them.
    """

    __slots__ = ("event", "members", "page")

    def __init__(self, members: Iterable[str]) -> None:
        self.members = frozenset(members) | {"apiVersion", "kind", "metadata"}
        others = sorted(self.members - {"apiVersion", "kind", "metadata"})
        names = {f"member{number}": name for number, name in enumerate(others)}
        item = _struct(
            "Item",
            [("apiVersion", msgspec.Raw, ABSENT), ("kind", msgspec.Raw, ABSENT), ("metadata", Metadata)]
            + [(field, msgspec.Raw, ABSENT) for field in names],
            rename=names,
            forbid_unknown_fields=True,
            omit_defaults=True,
        )
        default_meta = msgspec.field(default_factory=ListMeta)
        page = _struct("Page", [("items", list[item] | None), ("metadata", ListMeta, default_meta)])  # type: ignore[valid-type]
        event = _struct("Event", [("type", str), ("object", item)])
        self.page: Callable[[bytes], PageOf] = msgspec.json.Decoder(page).decode
        self.event: Callable[[bytes | bytearray | memoryview], EventOf] = msgspec.json.Decoder(event).decode

    def with_members(self, members: Iterable[str]) -> Shape:
        """The shape that fits objects with these members too; itself if it does already, or if they are too many.

        A name that would have to be escaped cannot be taught: objects that have it always go the long way.
        """
        wanted = self.members.union(filter(_can_be_named, members))
        if wanted == self.members or len(wanted) > _MOST_MEMBERS:
            return self
        return Shape(wanted)


def _struct(name: str, fields: list[Any], **options: Any) -> type[Any]:
    return msgspec.defstruct(name, fields, gc=False, kw_only=True, **options)


COMMON = Shape(("spec", "status"))

_encode = msgspec.json.Encoder().encode
# As `ObjectKey(namespace, name)`, without a Python function for each object.
_new_key: Callable[[tuple[str, str]], ObjectKey] = partial(tuple.__new__, ObjectKey)


def maker(source: ObjectSource, *, managed_fields: bool, drop_kind: bool) -> Callable[[Item], Object]:
    """Give the function that makes objects of items that have a name or need none; the items are given up.

    The arguments mean what they mean for `informers.object.build`.
    """
    # Sharing namespaces saves memory, and comparing keys is mostly comparing identities then.
    shared = SharedText()

    def make(item: Item) -> Object:
        meta = item.metadata
        if not managed_fields:
            meta.managedFields = ABSENT
        if drop_kind:
            item.kind = item.apiVersion = ABSENT
        key = _new_key((shared[meta.namespace or ""], meta.name or ""))
        return Object(_encode(item), key, meta.uid or "", meta.resourceVersion or "", source)

    return make
