"""Which kinds the cluster serves: the table of built-in ones, and a registry that CRDs add theirs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from informers.store import ResourceType
from informers.store.builtin import builtin_kinds

if TYPE_CHECKING:
    from pysedna.localcluster.crd import CustomVersion

READ_VERBS = ("get", "list", "watch")
WRITE_VERBS = ("create", "delete", "deletecollection", "patch", "update")


@dataclass(frozen=True, slots=True)
class Kind:
    """One served version of a resource. `custom` is what a CRD says of it, None for built-in kinds."""

    resource: ResourceType
    version: str
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    returns_deleted: bool = False
    """Whether a delete answers with the object instead of a Status."""
    custom: CustomVersion | None = field(default=None, compare=False)

    @property
    def api_version(self) -> str:
        group = self.resource.group
        return f"{group}/{self.version}" if group else self.version

    @property
    def verbs(self) -> list[str]:
        without = {"deletecollection"} if self.resource.plural == "namespaces" else set()
        return sorted({*READ_VERBS, *WRITE_VERBS} - without)


_TYPES = {(resource.group, resource.kind): resource for resource in builtin_kinds()}


def _kind(group: str, kind: str, traits: str = "", *, short: str = "", subresources: str = "") -> Kind:
    """A built-in kind; `traits` are words, the other texts lists of words."""
    marks, resource = traits.split(), _TYPES[group, kind]
    categories, names = ("all",) * ("all" in marks), tuple(short.split())
    parts = tuple(sorted({*resource.subresources, *subresources.split()}))
    return Kind(resource, resource.version, kind.lower(), f"{kind}List", names, categories, parts, "returned" in marks)


BUILT_IN: tuple[Kind, ...] = (
    _kind("", "ConfigMap", short="cm"),
    _kind("", "Event", short="ev"),
    _kind("", "Namespace", short="ns", subresources="finalize"),
    _kind("", "Node", short="no"),
    _kind("", "Pod", "all returned", short="po", subresources="binding"),
    _kind("", "Secret"),
    _kind("", "Service", "all returned", short="svc"),
    _kind("", "ServiceAccount", "returned", short="sa"),
    _kind("apps", "Deployment", "all", short="deploy", subresources="scale"),
    _kind("apps", "ReplicaSet", "all", short="rs", subresources="scale"),
    _kind("coordination.k8s.io", "Lease"),
    _kind("apiextensions.k8s.io", "CustomResourceDefinition", short="crd crds"),
)
"""The kinds that are served from the start, with what clients are told of them; what the store does is in its table."""


class Kinds:
    """The served kinds, found by group, version and plural. Belongs to the server's thread."""

    def __init__(self, kinds: Iterable[Kind] = BUILT_IN) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self.generation = 0
        """Moves with each change, so that discovery documents can be kept."""
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        self._kinds[kind.resource.group, kind.version, kind.resource.plural] = kind
        self.generation += 1

    def remove(self, qualified: str) -> None:
        """Stops serving all versions of a resource."""
        self._kinds = {key: kind for key, kind in self._kinds.items() if kind.resource.qualified != qualified}
        self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def named(self, qualified: str) -> list[Kind]:
        """The served versions of a resource."""
        return [kind for kind in self._kinds.values() if kind.resource.qualified == qualified]

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def groups(self) -> dict[str, list[str]]:
        """Group -> its versions, in the order in which clients should prefer them."""
        groups: dict[str, list[str]] = {}
        for group, version, _ in self._kinds:
            versions = groups.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        return {group: sorted(versions, key=version_priority) for group, versions in groups.items()}


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sort key: v2 before v1 before v1beta2 before v1alpha1 before anything else."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stage, -int(match[1]), -int(match[3] or 0), version)


def built_in(kind: str) -> Kind:
    """The built-in kind of that name."""
    return next(each for each in BUILT_IN if each.resource.kind == kind)
