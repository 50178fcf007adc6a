"""What a reconcile wants done to its children, as values: the pure cores say it, the executor does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from informers import ObjectKey

Kind: TypeAlias = tuple[str, str]
"""API version and kind."""

POD: Kind = ("v1", "Pod")
SERVICE: Kind = ("v1", "Service")
DEPLOYMENT: Kind = ("apps/v1", "Deployment")
AUTOSCALER: Kind = ("autoscaling/v2", "HorizontalPodAutoscaler")


@dataclass(frozen=True, slots=True)
class Create:
    """Create a child that is missing."""

    kind: Kind
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Replace:
    """Write a child whole, on top of the version that its manifest carries. `why` goes into the event."""

    kind: Kind
    manifest: Mapping[str, Any]
    why: str


@dataclass(frozen=True, slots=True)
class Patch:
    """Apply a merge patch to a child; the patch carries the version that it was made for."""

    kind: Kind
    key: ObjectKey
    patch: Mapping[str, Any]
    why: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the child with this uid; another one under the same name stays. `why` goes into the event."""

    kind: Kind
    key: ObjectKey
    uid: str
    why: str


Action: TypeAlias = Create | Replace | Patch | Delete


def key_of(action: Action) -> ObjectKey:
    """The object that an action is about."""
    if isinstance(action, Create | Replace):
        metadata = action.manifest["metadata"]
        return ObjectKey(metadata.get("namespace", ""), metadata["name"])
    return action.key
