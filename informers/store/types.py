"""The values that the store takes and gives: resource types, stored versions, events, options of a delete.

All are immutable; the dicts inside them are shared between versions, watchers and callers and must not be changed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import orjson

from informers.key import ObjectKey

Json = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class ResourceType:
    """What the store needs to know of a kind.

    Two resource types with the same group and plural are one resource (versions of a CRD share their objects).
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    subresources: frozenset[str] = frozenset()
    """With "status" in it, the main endpoint ignores changes of `status` and the subresource all others."""
    generation: bool = False
    """Whether `metadata.generation` is kept: 1 at creation, one more with each change outside metadata and status."""
    annotations_generation: bool = False
    """Whether changed annotations move the generation too (Deployments)."""
    status_metadata: bool = False
    """Whether the status subresource takes metadata too, as that of most built-in kinds does."""
    graceful: bool = False
    """Whether a delete first marks the object and waits for a second one with grace period 0 (pods)."""
    unconditional_update: bool = True
    """Whether a replace may leave out the resourceVersion; the API server refuses that for custom resources."""
    fields: tuple[str, ...] = ()
    """Fields that field selectors may name, beside metadata.name and metadata.namespace."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`deployments.apps`, `pods`: how messages name the resource, and its identity in the store."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def key(self, namespace: str, name: str) -> ObjectKey:
        """The key of an object of this type; the namespace is dropped for cluster-scoped resources."""
        return ObjectKey(namespace if self.namespaced else "", name)


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the owner of the store adds to a resource type; both return an object and may share parts of theirs."""

    prepare: Callable[[Json, Json | None, str | None], Json] | None = None
    """(new, old or None, subresource or None) -> new, defaulted; raises `ApiError`. Runs before generation moves."""
    deleting: Callable[[Json], Json] | None = None
    """Called with an object that is being marked as deleted (a namespace turns Terminating)."""
    pending: Callable[[Json], bool] | None = None
    """Whether something beside `metadata.finalizers` holds an object that is being deleted (a namespace's spec)."""


class Stored:
    """One version of one object. Its renderings (JSON bytes and others that a shell asks for) are made once."""

    __slots__ = ("_renderings", "key", "object", "version")

    def __init__(self, key: ObjectKey, obj: Json, version: int) -> None:
        self.key = key
        self.object = obj
        self.version = version
        self._renderings: dict[str, bytes] = {}

    @property
    def raw(self) -> bytes:
        """The object as JSON."""
        return self.rendered("", lambda stored: orjson.dumps(stored.object))

    def rendered(self, name: str, render: Callable[["Stored"], bytes]) -> bytes:
        """The rendering called `name`, made by `render` when it is first asked for."""
        found = self._renderings.get(name)
        if found is None:
            found = self._renderings[name] = render(self)
        return found

    def __repr__(self) -> str:
        return f"Stored({str(self.key)!r}, version={self.version})"


class Event:
    """One write: what it did to which object. A DELETED event carries the last state under the delete's version."""

    __slots__ = ("previous", "resource", "stored", "type", "version")

    def __init__(self, type: EventType, resource: ResourceType, stored: Stored, previous: Stored | None) -> None:
        self.version = stored.version
        self.type: EventType = type
        self.resource = resource
        self.stored = stored
        self.previous = previous

    def __repr__(self) -> str:
        return f"Event({self.type} {self.resource.qualified} {self.stored.key} @{self.version})"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a delete. `propagation` is Background, Foreground, Orphan or None (the default); grace in seconds."""

    propagation: str | None = None
    grace_period: int | None = None
    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True)
class Deletion:
    """The outcome of a delete: the object's last state, and whether it is gone or only marked."""

    stored: Stored
    gone: bool


def timestamp(seconds: float) -> str:
    """Epoch seconds as the API server writes times: whole seconds, UTC, RFC 3339."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds)))


def epoch(text: str) -> float:
    """The inverse of `timestamp`; fractions of a second are dropped. Raises ValueError for other texts."""
    return datetime.fromisoformat(f"{text[:19]}+00:00").timestamp()
