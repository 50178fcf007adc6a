"""When an object goes because its owners went, and when an owner may go. Pure.

The rules of Kubernetes' garbage collector: an object stays while one of its owners is there; it goes when all are
gone; an owner that is deleted in the foreground waits for the dependents that block it; one that is deleted as an
orphanage lets go of them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from informers import Object

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
Propagation = Literal["Background", "Foreground", "Orphan"]


class Owner(enum.Enum):
    """How an owner stands, as far as a dependent is concerned."""

    SOLID = "there"
    ABSENT = "gone"
    WAITING = "being deleted in the foreground"


@dataclass(frozen=True, slots=True)
class Leave:
    """The object stays as it is."""


@dataclass(frozen=True, slots=True)
class Release:
    """The object stays, without its references to these owners (by uid)."""

    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unblock:
    """The references to owners that wait no longer say that they block them (a cycle would never end)."""

    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """The object goes."""

    propagation: Propagation


@dataclass(frozen=True, slots=True)
class OwnerStep:
    """What an owner that is being deleted needs next.

    `examine`: dependents that hold it up and must be looked at; `release`: dependents that must lose their
    reference to it first; `done`: the finalizer that can be taken off now.
    """

    examine: tuple[Object, ...] = ()
    release: tuple[Object, ...] = ()
    done: str = ""


def judge(
    obj: Object, owners: Mapping[str, Owner], dependents: Sequence[Object]
) -> Leave | Release | Delete | tuple[Unblock, Delete]:
    """What becomes of an object whose owners (by uid) stand like that. `obj` is as the server has it now."""
    references = obj.owner_references
    if not references or is_deleted_in_foreground(obj) or obj.deletion_timestamp is not None:
        return Leave()
    standing = {reference.uid: owners.get(reference.uid, Owner.SOLID) for reference in references}
    gone = tuple(uid for uid, owner in standing.items() if owner is not Owner.SOLID)
    if not gone:
        return Leave()
    if len(gone) < len(standing):
        return Release(gone)
    waiting = tuple(uid for uid in gone if standing[uid] is Owner.WAITING)
    if waiting and dependents:
        delete = Delete("Foreground")
        # A dependent that is being deleted in the foreground itself may be one that waits for us: a cycle.
        cycle = any(is_deleted_in_foreground(one) for one in dependents)
        return (Unblock(waiting), delete) if cycle else delete
    return Delete(_propagation(obj))


def owner_step(owner: Object, dependents: Sequence[Object]) -> OwnerStep:
    """What to do for an object that is being deleted and has these dependents."""
    if owner.deletion_timestamp is None:
        return OwnerStep()
    if ORPHAN in owner.finalizers:
        return OwnerStep(release=tuple(dependents)) if dependents else OwnerStep(done=ORPHAN)
    if FOREGROUND in owner.finalizers:
        blocking = tuple(one for one in dependents if blocks(one, owner.uid))
        return (
            OwnerStep(examine=tuple(dependents)) if blocking else OwnerStep(examine=tuple(dependents), done=FOREGROUND)
        )
    return OwnerStep()


def blocks(dependent: Object, uid: str) -> bool:
    """Whether the dependent holds up the deletion of the owner with that uid."""
    return any(one.uid == uid and one.block_owner_deletion for one in dependent.owner_references)


def is_deleted_in_foreground(obj: Object) -> bool:
    """Whether the object waits for its dependents."""
    return obj.deletion_timestamp is not None and FOREGROUND in obj.finalizers


def is_work(obj: Object) -> bool:
    """Whether an object that is being deleted needs the collector itself."""
    return obj.deletion_timestamp is not None and bool({FOREGROUND, ORPHAN} & set(obj.finalizers))


def _propagation(obj: Object) -> Propagation:
    if ORPHAN in obj.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in obj.finalizers else "Background"
