"""How a `FakeClient` learns of kinds that are not built in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from informers.store import ResourceType
from informers.store.builtin import plural_of, split_api_version

__all__ = ["KindLike", "derive", "kinds_of"]

KindLike = ResourceType | tuple[str, str] | Mapping[str, Any]


def derive(api_version: str, kind: str, *, namespaced: bool = True) -> ResourceType:
    """The type that a custom resource of this name most likely has: a regular plural and a status subresource."""
    group, version = split_api_version(api_version)
    return ResourceType(
        group,
        version,
        kind,
        plural_of(kind),
        namespaced=namespaced,
        subresources=frozenset({"status"}),
        generation=True,
        unconditional_update=False,
    )


def kinds_of(kinds: Iterable[KindLike]) -> list[ResourceType]:
    """The types for what a test may give: types, (api_version, kind), or CustomResourceDefinitions.

    Raises TypeError for anything else.
    """
    found: list[ResourceType] = []
    for kind in kinds:
        if isinstance(kind, ResourceType):
            found.append(kind)
        elif isinstance(kind, tuple):
            found.append(derive(*kind))
        elif isinstance(kind, Mapping) and kind.get("kind") == "CustomResourceDefinition":
            found += _defined(kind)
        else:
            raise TypeError(f"{kind!r} is no ResourceType, no (api_version, kind) and no CustomResourceDefinition")
    return found


def _defined(definition: Mapping[str, Any]) -> list[ResourceType]:
    spec = definition["spec"]
    return [
        ResourceType(
            spec["group"],
            version["name"],
            spec["names"]["kind"],
            spec["names"]["plural"],
            namespaced=spec.get("scope", "Namespaced") == "Namespaced",
            subresources=frozenset({"status"} & (version.get("subresources") or {}).keys()),
            generation=True,
            unconditional_update=False,
            fields=tuple(one["jsonPath"].lstrip(".") for one in version.get("selectableFields") or ()),
        )
        for version in spec["versions"]
        if version.get("served", True)
    ]
