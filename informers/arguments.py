"""How the arguments of `Resource`'s calls become queries and bodies, and which of them are refused (pure)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from informers.errors import ScopeError
from informers.key import ObjectKey
from informers.object import Object
from informers.request import ResourceInfo
from informers.selectors import FieldSelector, LabelSelector
from informers.views import plain

__all__ = [
    "Budget",
    "body_of",
    "check_scope",
    "delete_options",
    "given",
    "key_of",
    "metadata_of",
    "scope",
    "selection",
    "selector_text",
    "without_version",
    "write_options",
]

_encode = msgspec.json.Encoder(enc_hook=plain).encode


class Budget:
    """The total time of one call that may need more than one request. Calling it gives what is left."""

    def __init__(self, timeout: float | None) -> None:
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def __call__(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())


def given(**values: Any) -> dict[str, str]:
    """Query parameters of those values that are not None, as text."""
    return {
        name: ("true" if value else "false") if isinstance(value, bool) else str(value)
        for name, value in values.items()
        if value is not None
    }


def selector_text(selector: str | LabelSelector | FieldSelector | None) -> str | None:
    """The text of a selector; None if it selects everything. Raises ValueError for one that selects nothing."""
    if isinstance(selector, LabelSelector) and selector.impossible:
        raise ValueError("a selector that matches nothing cannot be sent to an API server")
    return str(selector) or None if selector is not None else None


def selection(label_selector: str | LabelSelector | None, field_selector: str | FieldSelector | None) -> dict[str, str]:
    """Query parameters of the two selectors."""
    return given(labelSelector=selector_text(label_selector), fieldSelector=selector_text(field_selector))


def write_options(dry_run: bool, field_manager: str | None, field_validation: str | None) -> dict[str, str]:
    """Query parameters that all writes but deletes have."""
    if field_validation not in (None, "Strict", "Warn", "Ignore"):
        raise ValueError(f"field_validation is Strict, Warn or Ignore, not {field_validation!r}")
    return given(
        dryRun="All" if dry_run else None, fieldManager=field_manager or None, fieldValidation=field_validation
    )


def delete_options(
    propagation: str | None, grace_period: int | None, preconditions: Mapping[str, str], dry_run: bool
) -> bytes:
    """The body of a delete."""
    if propagation not in (None, "Background", "Foreground", "Orphan"):
        raise ValueError(f"propagation is Background, Foreground or Orphan, not {propagation!r}")
    if grace_period is not None and grace_period < 0:
        raise ValueError(f"a grace period of {grace_period} seconds")
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if grace_period is not None:
        options["gracePeriodSeconds"] = int(grace_period)
    if preconditions:
        options["preconditions"] = preconditions
    if dry_run:
        options["dryRun"] = ["All"]
    return _encode(options)


def metadata_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of what is to be written. Raises ValueError if there is none."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping):
        raise ValueError("the object has no metadata")
    return metadata


def key_of(obj: Mapping[str, Any], info: ResourceInfo) -> ObjectKey:
    """The key under which an object is to be written; its name may be empty. Raises ValueError for a wrong scope."""
    metadata = metadata_of(obj)
    key = ObjectKey(metadata.get("namespace") or "", metadata.get("name") or "")
    check_scope(info, key)
    return key


def check_scope(info: ResourceInfo, key: ObjectKey) -> None:
    """Raise ValueError if a namespace is missing or out of place."""
    if info.namespaced and not key.namespace:
        raise ValueError(f"{info.kind} {key.name!r} needs a namespace")
    if not info.namespaced and key.namespace:
        raise ValueError(f"{info.kind} {key.name!r} is cluster scoped and has no namespace ({key.namespace!r} given)")


def scope(info: ResourceInfo, namespace: str | None) -> str:
    """The namespace of a list or watch; empty for all. Raises ScopeError if the resource has none."""
    if namespace and not info.namespaced:
        raise ScopeError(
            f"{info.plural} are cluster scoped: there are none in namespace {namespace!r}, ask with namespace=None"
        )
    return namespace or ""


def body_of(obj: Mapping[str, Any], info: ResourceInfo, subresource: str | None) -> bytes:
    """The JSON of what is to be written, completed with apiVersion and kind. Raises ValueError if they are others.

    Subresources other than status have kinds of their own, so they are sent as they are.
    """
    if subresource not in (None, "", "status"):
        return obj.to_json() if isinstance(obj, Object) else _encode(dict(obj))
    own = {"apiVersion": info.api_version, "kind": info.kind}
    for member, expected in own.items():
        found = obj.get(member)
        if found and found != expected:
            raise ValueError(f"{member} is {found!r}, the resource is {info.api_version} {info.kind}")
    if isinstance(obj, Object) and all(obj.get(member) for member in own):
        return obj.to_json()
    return _encode({**obj, **own})


def without_version(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object without its resourceVersion."""
    metadata = {name: value for name, value in metadata_of(obj).items() if name != "resourceVersion"}
    return {**obj, "metadata": metadata}
