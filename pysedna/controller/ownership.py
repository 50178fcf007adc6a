"""Objects that belong to one another: owner references, children made or brought up to date, finalizers, conditions.

An owner reference names the owner's API version, kind (never a controller's name) and uid. Owners are matched by
API group and kind, so a new version of the owner's API does not lose its children.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from informers import NotFoundError, Object, ObjectKey

Outcome = Literal["created", "updated", "unchanged"]


class Writes(Protocol):
    """What the functions here need of an `informers.Resource` (or the view of one that a `Context` gives)."""

    def get(self, key: ObjectKey | str) -> Object: ...
    def create(self, obj: Any) -> Object: ...
    def replace(self, obj: Any) -> Object: ...
    def patch(self, key: ObjectKey | str, patch: Any) -> Object: ...


def api_group(api_version: str) -> str:
    """The group of an API version: `apps` of `apps/v1`, the empty one of `v1`."""
    return api_version.rpartition("/")[0]


def owner_reference(owner: Object, *, controller: bool = True, block_owner_deletion: bool = True) -> dict[str, Any]:
    """The entry for `metadata.ownerReferences` that makes an object a child of `owner`.

    Raises ValueError when the owner lacks what a reference needs; only an object that a server has stored has a uid.
    """
    fields = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    missing = [name for name, value in fields.items() if not value]
    if missing:
        raise ValueError(f"{owner.key} cannot own anything: it has no {', '.join(missing)}")
    return {**fields, "controller": controller, "blockOwnerDeletion": block_owner_deletion}


def owners(
    kind: tuple[str, str], *, cluster_scoped: bool = False, controller_only: bool = True
) -> Callable[[Object], Iterable[ObjectKey]]:
    """A mapping for `Watch`: from an object to the keys of its owners of that (api_version, kind).

    Group and kind are compared, the version is not. `cluster_scoped`: the owner has no namespace.
    `controller_only`: only the owner that is its controller counts.
    """
    group, wanted = api_group(kind[0]), kind[1]

    def map_to_owners(obj: Object) -> list[ObjectKey]:
        namespace = "" if cluster_scoped else obj.namespace
        return [
            ObjectKey(namespace, reference.name)
            for reference in obj.owner_references
            if reference.kind == wanted
            and api_group(reference.api_version) == group
            and (reference.controller or not controller_only)
        ]

    return map_to_owners


def create_or_update(
    resource: Writes, desired: Mapping[str, Any], mutate: Callable[[dict[str, Any]], None]
) -> tuple[Object, Outcome]:
    """Make an object what `mutate` makes of it: one read, and one write if there is something to change.

    `desired` says which object (metadata.name and namespace) and how a new one begins. `mutate` changes a dict in
    place: a copy of `desired` if there is no such object yet, else a copy of the live one; it must give the same
    whenever it is called. Returns the object as stored and what was done. A write that crosses another raises
    ConflictError or AlreadyExistsError: let the reconcile be retried.
    """
    draft = Object.from_dict(desired).to_dict()
    try:
        current = resource.get(Object.from_dict(desired).key)
    except NotFoundError:
        mutate(draft)
        return resource.create(draft), "created"
    before, changed = current.to_dict(), current.to_dict()
    mutate(changed)
    if changed == before:
        return current, "unchanged"
    return resource.replace(changed), "updated"


def ensure_finalizer(resource: Writes, obj: Object, finalizer: str) -> Object:
    """Make sure that `obj` carries the finalizer; returns the object as it is now.

    One patch if it has to be added, with the version that `obj` was read at: ConflictError when it changed
    meanwhile. The server refuses new finalizers on an object that is being deleted.
    """
    if finalizer in obj.finalizers:
        return obj
    return _write_finalizers(resource, obj, [*obj.finalizers, finalizer])


def remove_finalizer(resource: Writes, obj: Object, finalizer: str) -> Object | None:
    """Take the finalizer off; returns the object as it is now, or None if it is gone.

    One patch if there is something to remove, with the version that `obj` was read at: ConflictError when it
    changed meanwhile.
    """
    if finalizer not in obj.finalizers:
        return obj
    try:
        return _write_finalizers(resource, obj, [name for name in obj.finalizers if name != finalizer])
    except NotFoundError:
        return None


def _write_finalizers(resource: Writes, obj: Object, finalizers: list[str]) -> Object:
    return resource.patch(obj.key, {"metadata": {"resourceVersion": obj.resource_version, "finalizers": finalizers}})


def set_condition(
    conditions: Sequence[Mapping[str, Any]],
    type: str,
    status: bool | Literal["True", "False", "Unknown"],
    *,
    reason: str,
    message: str = "",
    observed_generation: int | None = None,
    now: str,
) -> list[dict[str, Any]]:
    """The conditions with one of them set; the given ones stay as they are, in their order.

    `now` (see `rfc3339`) becomes lastTransitionTime only if the status differs from before, so a condition that
    says the same again is equal to the old one and costs no write.
    """
    text = str(status) if isinstance(status, bool) else status
    fresh: dict[str, Any] = {"type": type, "status": text, "reason": reason, "message": message}
    if observed_generation is not None:
        fresh["observedGeneration"] = observed_generation
    result = [dict(condition) for condition in conditions]
    for index, condition in enumerate(result):
        if condition.get("type") == type:
            same = condition.get("status") == text
            result[index] = {**fresh, "lastTransitionTime": condition.get("lastTransitionTime", now) if same else now}
            return result
    return [*result, {**fresh, "lastTransitionTime": now}]


def rfc3339(seconds: float) -> str:
    """A time of the wall clock (`time.time()`) as the API writes it: UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
