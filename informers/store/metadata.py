"""The rules of object metadata: what the server sets, what a writer may change, when the generation moves."""

from typing import Any

import orjson

from informers.errors import ApiError, BadRequestError
from informers.key import ObjectKey
from informers.store.failures import FieldProblem, conflict, invalid, modified, parse_version
from informers.store.types import Json, ResourceType, Stored, timestamp

_SERVER_FIELDS = ("managedFields", "selfLink")
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_SUBRESOURCES = {"status": ("status",), "finalize": ("spec",), "binding": ("spec", "status")}
_GENERATED_NAME_BASE = 58  # 63 less the five random characters


def for_create(resource: ResourceType, obj: Json, namespace: str) -> Json:
    """A copy of `obj` with clean metadata and its namespace; the name may still be to be generated."""
    metadata = _metadata(obj)
    _check_namespace(resource, metadata, namespace)
    if metadata.get("resourceVersion") not in (None, "", "0"):
        raise ApiError("resourceVersion should not be set on objects to be created")
    for field in (*_SERVER_FIELDS, "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "generation"):
        metadata.pop(field, None)
    if not metadata.get("name") and not metadata.get("generateName"):
        problem = FieldProblem.required("metadata.name", "name or generateName is required")
        raise invalid(resource.group, resource.kind, "", [problem])
    if resource.namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    if resource.generation:
        metadata["generation"] = 1
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj, "metadata": metadata}


def identified(obj: Json, *, name: str, uid: str, now: float) -> Json:
    """`obj` as a new object under its final name."""
    metadata = {**obj["metadata"], "name": name, "uid": uid, "creationTimestamp": timestamp(now)}
    return {**obj, "metadata": metadata}


def generated_name(prefix: str, suffix: str) -> str:
    return prefix[:_GENERATED_NAME_BASE] + suffix


def for_update(resource: ResourceType, key: ObjectKey, old: Stored, obj: Json, subresource: str | None) -> Json:
    """`obj` as the next state of `old`: preconditions checked, and only what the endpoint may change changed."""
    metadata = _metadata(obj)
    _check_namespace(resource, metadata, key.namespace)
    if not metadata.get("name"):
        text = f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided"
        raise BadRequestError(text)
    if metadata["name"] != key.name:
        raise BadRequestError(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({key.name})"
        )
    _check_preconditions(resource, old, metadata)
    if subresource is not None:
        updated = _subresource(old.object, obj, subresource)
        if subresource == "status" and resource.status_metadata:
            updated["metadata"] = _next_metadata(resource, old.object["metadata"], metadata)
        return updated
    metadata = _next_metadata(resource, old.object["metadata"], metadata)
    updated = {"apiVersion": resource.api_version, "kind": resource.kind, **obj, "metadata": metadata}
    if "status" in resource.subresources:
        _keep(updated, old.object, "status")
    return updated


def with_generation(resource: ResourceType, old: Json, new: Json) -> Json:
    """`new` with the generation of `old`, one higher if anything but metadata and status changed."""
    generation = old["metadata"].get("generation")
    if not resource.generation:
        return new
    ignored = {"apiVersion", "metadata"} | ({"status"} & resource.subresources)
    moved = any(old.get(member) != new.get(member) for member in (old.keys() | new.keys()) - ignored)
    if resource.annotations_generation:
        moved = moved or old["metadata"].get("annotations") != new["metadata"].get("annotations")
    return {**new, "metadata": {**new["metadata"], "generation": (generation or 0) + moved}}


def with_version(obj: Json, version: int) -> Json:
    """`obj` as it is stored: under its version, with apiVersion and kind in front."""
    metadata = {**obj["metadata"], "resourceVersion": str(version)}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **obj, "metadata": metadata}


def same(old: Json, new: Json) -> bool:
    """Whether a write would change nothing. (Python's == takes True for 1, so equals are compared as JSON too.)"""
    if old != new:
        return False
    return orjson.dumps(old, option=orjson.OPT_SORT_KEYS) == orjson.dumps(new, option=orjson.OPT_SORT_KEYS)


def _metadata(obj: Json) -> dict[str, Any]:
    metadata = obj.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise BadRequestError("metadata must be an object")
    return {name: value for name, value in (metadata or {}).items() if value is not None}


def _check_namespace(resource: ResourceType, metadata: Json, namespace: str) -> None:
    given = metadata.get("namespace", "") if resource.namespaced else ""
    if given and given != namespace:
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise BadRequestError(text)


def _check_preconditions(resource: ResourceType, old: Stored, metadata: Json) -> None:
    name, current = old.key.name, old.object["metadata"]
    uid = metadata.get("uid") or current["uid"]
    if uid != current["uid"]:
        text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current['uid']}"
        raise conflict(resource, name, text)
    version = parse_version(metadata.get("resourceVersion"))
    if not version:
        if resource.unconditional_update:
            return
        problem = FieldProblem.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(resource.group, resource.plural, name, [problem])
    if version != old.version:
        raise modified(resource, name)


def _next_metadata(resource: ResourceType, old: Json, new: Json) -> Json:
    """The metadata of a replaced object; what only the server sets comes from `old`."""
    for field in (*_SERVER_FIELDS, "generation", "resourceVersion"):
        new.pop(field, None)
    kept = {field: old[field] for field in (*_IMMUTABLE, "generation", "resourceVersion") if field in old}
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if new.pop(field, None) not in (None, old.get(field)):
            problem = FieldProblem(f"metadata.{field}", "Invalid value: field is immutable")
            raise invalid(resource.group, resource.kind, old["name"], [problem])
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers") or []) - set(old.get("finalizers") or []))
        if added:
            listed = ", ".join(f'"{each}"' for each in added)
            text = "no new finalizers can be added if the object is being deleted, "
            text += f"found new finalizers []string{{{listed}}}"
            problem = FieldProblem.forbidden("metadata.finalizers", text)
            raise invalid(resource.group, resource.kind, old["name"], [problem])
    if not new.get("finalizers"):
        new.pop("finalizers", None)
    return {**new, **kept}


def _subresource(old: Json, new: Json, subresource: str) -> Json:
    """`old` with the members that the subresource writes."""
    updated = dict(old)
    for member in _SUBRESOURCES[subresource]:
        _keep(updated, new, member)
    return updated


def _keep(target: Json, source: Json, member: str) -> None:
    if member in source:
        target[member] = source[member]
    else:
        target.pop(member, None)
