"""What the Sedna kinds share: the group, references, key-value pairs, pod templates and the root of a resource.

The structs are the one source of truth: they decode objects and `pysedna.api.crds` makes the CRDs of them, so the two
cannot drift apart. Field names on the wire are upstream's. None stands for a field that is absent, and absent fields
are left out when a struct is encoded. Pod templates stay open mappings: Kubernetes owns their form, and what we do not
read must arrive in the pods as the user wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

import msgspec
from msgspec import Meta

from pysedna.api import pod_template
from pysedna.api.errors import InvalidResource

GROUP = "sedna.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=253)]
Url: TypeAlias = Annotated[str, Meta(min_length=1, description="A path of the node, or an s3, http or https URL.")]
Format: TypeAlias = Annotated[str, Meta(min_length=1)]
Time: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Count: TypeAlias = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int32"})]
Int64: TypeAlias = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})]
ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]
OpenObject: TypeAlias = Annotated[dict[str, Any], Meta(extra_json_schema=_OPEN)]
PodTemplate: TypeAlias = Annotated[dict[str, Any], Meta(extra_json_schema=pod_template.SCHEMA)]


class Base(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all parts of the Sedna kinds: immutable, camelCase on the wire, unknown fields ignored."""


class Reference(Base, frozen=True, kw_only=True):
    """The name of another object in the same namespace."""

    name: Name


class Worker(Base, frozen=True, kw_only=True):
    """What runs in pods made from a template. Reading one whose template lacks the needed form fails."""

    template: PodTemplate

    def __post_init__(self) -> None:
        pod_template.check(self.template)


class KeyValue(Base, frozen=True, kw_only=True):
    """One entry of a list that stands for a mapping."""

    key: Annotated[str, Meta(min_length=1)]
    value: str


class ObjectMeta(Base, frozen=True, kw_only=True):
    """The parts of an object's metadata that the controllers read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class Resource(Base, frozen=True, kw_only=True):
    """An object of a kind: the fields beside spec and status."""

    api_version: str = API_VERSION
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @classmethod
    def from_dict(cls, obj: Mapping[str, Any]) -> Self:
        """Read an object of this kind from a plain mapping. Raises `InvalidResource` with the path of what is wrong."""
        try:
            return msgspec.convert(obj, cls)
        except msgspec.ValidationError as error:
            raise InvalidResource(str(error)) from error
