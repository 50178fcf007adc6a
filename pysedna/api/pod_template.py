"""The minimum of a pod template: the parts that our controllers read, and of what type they must be.

Kubernetes owns the form of a template, so it stays an open mapping that arrives in the pods as the user wrote it. But
what we read of it must be what it is taken for: the CRDs refuse other things with their path, and a template that
comes in another way (an older definition, upstream's) is found out when the spec is read.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pysedna.api.schema import open_schema


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a template: fields that are not named here are left to Kubernetes."""


class Variable(Part, frozen=True, kw_only=True):
    """An environment variable."""

    name: Annotated[str, Meta(min_length=1)]
    value: str | None = None


class Port(Part, frozen=True, kw_only=True):
    """A port of a container."""

    container_port: int | None = None
    host_port: int | None = None
    protocol: str | None = None


class Mount(Part, frozen=True, kw_only=True):
    """A volume in a container."""

    mount_path: str | None = None


class Container(Part, frozen=True, kw_only=True):
    """A container."""

    name: Annotated[str, Meta(min_length=1, max_length=63)]
    env: list[Variable] | None = None
    ports: list[Port] | None = None
    volume_mounts: list[Mount] | None = None


class PodSpec(Part, frozen=True, kw_only=True):
    """The spec of the pods."""

    containers: Annotated[list[Container], Meta(min_length=1)]
    init_containers: list[Container] | None = None
    volumes: list[dict[str, Any]] | None = None
    node_name: str | None = None
    host_network: bool | None = None
    restart_policy: str | None = None
    dns_policy: str | None = None


class TemplateMeta(Part, frozen=True, kw_only=True):
    """What of the metadata reaches the pods."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class Template(Part, frozen=True, kw_only=True):
    """A pod template."""

    metadata: TemplateMeta | None = None
    spec: PodSpec


SCHEMA = open_schema(Template)


def check(template: dict[str, Any]) -> None:
    """Raise ValueError with the path if a template lacks this form."""
    try:
        msgspec.convert(template, Template)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise ValueError(f"template{path.rstrip('`')}: {what}") from error
