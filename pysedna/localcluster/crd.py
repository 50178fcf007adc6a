"""CustomResourceDefinitions: checked, completed, and turned into served kinds.

A definition is accepted at once: its conditions say Established from its creation on. What it may ask for and the
cluster does not do (CEL rules, conversion webhooks) is refused, so that it cannot be relied on by mistake.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from jsonschema.exceptions import SchemaError

from informers.store import FieldProblem, Json, ResourceType, invalid
from pysedna.localcluster.jsonpath import JSONPath
from pysedna.localcluster.kinds import BUILT_IN, Kind
from pysedna.localcluster.schema import INT_OR_STRING, PRESERVE, Schema

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_GROUP = "apiextensions.k8s.io"
_SCALE_PATHS = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
_REAL = "the embedded cluster does not do this, use a real API server"


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column of a custom resource."""

    name: str
    type: str
    path: JSONPath
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Scale:
    """The paths of a scale subresource, dotted."""

    spec: str
    status: str
    selector: str


@dataclass(frozen=True, slots=True)
class CustomVersion:
    """What one version of a definition says beyond names: schema, columns, scale."""

    schema: Schema
    openapi: Json
    columns: tuple[Column, ...]
    scale: Scale | None


def prepare(crd: Json, old: Json | None, *, now: str) -> Json:
    """The definition as it is stored: defaulted, checked, with its status. Raises `InvalidError`."""
    spec = dict(crd.get("spec") or {})
    names = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", f"{kind}List")
    spec["names"] = names
    spec.setdefault("conversion", {"strategy": "None"})
    crd = {**crd, "spec": spec}
    problems = list(_problems(crd))
    if old is not None:
        problems += _changes(old["spec"], spec)
    if problems:
        raise invalid(_GROUP, "CustomResourceDefinition", crd["metadata"]["name"], problems)
    status = dict((old or {}).get("status") or {})
    storage = next(version["name"] for version in spec["versions"] if version["storage"])
    stored = status.get("storedVersions") or []
    crd["status"] = {
        "conditions": status.get("conditions") or _conditions(now),
        "acceptedNames": names,
        "storedVersions": stored if storage in stored else [*stored, storage],
    }
    if old is None:
        metadata = crd["metadata"]
        finalizers = [*(metadata.get("finalizers") or []), CLEANUP_FINALIZER]
        crd["metadata"] = {**metadata, "finalizers": list(dict.fromkeys(finalizers))}
    return crd


def kinds(crd: Json) -> list[Kind]:
    """The kinds that a stored definition serves."""
    spec, names = crd["spec"], crd["spec"]["names"]
    storage = next(version for version in spec["versions"] if version["storage"])
    served = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        resource = ResourceType(
            spec["group"],
            storage["name"],
            names["kind"],
            names["plural"],
            spec["scope"] == "Namespaced",
            subresources=frozenset({"status"} & set(subresources)),
            generation=True,
            unconditional_update=False,
            fields=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
        )
        served.append(
            Kind(
                resource,
                version["name"],
                names["singular"],
                names["listKind"],
                tuple(names.get("shortNames") or ()),
                tuple(names.get("categories") or ()),
                tuple(sorted(subresources)),
                custom=_custom(version),
            )
        )
    return served


def _custom(version: Json) -> CustomVersion:
    openapi = version["schema"]["openAPIV3Schema"]
    columns = [
        Column(
            column["name"],
            column["type"],
            JSONPath(column["jsonPath"]),
            column.get("format", ""),
            column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
            column.get("priority", 0),
        )
        for column in version.get("additionalPrinterColumns") or ()
    ]
    if not columns:
        columns = [Column("Age", "date", JSONPath(".metadata.creationTimestamp"))]
    scale = (version.get("subresources") or {}).get("scale")
    paths = None
    if scale is not None:
        paths = Scale(*(scale.get(name, "").lstrip(".") for name in _SCALE_PATHS))
    return CustomVersion(Schema(openapi), openapi, tuple(columns), paths)


def _conditions(now: str) -> list[Json]:
    texts = {
        "NamesAccepted": ("NoConflicts", "no conflicts found"),
        "Established": ("InitialNamesAccepted", "the initial names have been accepted"),
    }
    return [
        {"type": type, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
        for type, (reason, message) in texts.items()
    ]


def _problems(crd: Json) -> Iterator[FieldProblem]:
    spec, name = crd["spec"], crd["metadata"].get("name", "")
    names, versions = spec["names"], spec.get("versions") or []
    if name != f"{names.get('plural')}.{spec.get('group')}":
        yield FieldProblem.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    for field in ("plural", "kind"):
        if not names.get(field):
            yield FieldProblem.required(f"spec.names.{field}")
    if any(spec.get("group") == kind.resource.group for kind in BUILT_IN):
        yield FieldProblem.invalid("spec.group", spec.get("group"), "is a group of built-in kinds")
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        yield FieldProblem.unsupported("spec.scope", spec.get("scope", ""), ["Cluster", "Namespaced"])
    if (spec["conversion"] or {}).get("strategy") != "None":
        yield FieldProblem.invalid("spec.conversion.strategy", spec["conversion"].get("strategy"), _REAL)
    for index, version in enumerate(versions):
        yield from _version_problems(version, f"spec.versions[{index}]")
    if not any(version.get("served") for version in versions):
        yield FieldProblem("spec.versions", f"Invalid value: no version is served: {_REAL}")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield FieldProblem("spec.versions", "Invalid value: must have exactly one version marked as storage version")


def _version_problems(version: Json, path: str) -> Iterator[FieldProblem]:
    if not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", str(version.get("name", ""))):
        yield FieldProblem.invalid(f"{path}.name", version.get("name", ""), "a DNS-1035 label must be given")
    version.setdefault("storage", False)
    openapi = (version.get("schema") or {}).get("openAPIV3Schema")
    where = f"{path}.schema.openAPIV3Schema"
    if not isinstance(openapi, dict):
        yield FieldProblem.required(where)
        return
    if openapi.get("type") != "object":
        yield FieldProblem.invalid(f"{where}.type", openapi.get("type", ""), "must be object at the root")
    try:
        Schema(openapi).check()
    except SchemaError as error:
        yield FieldProblem.invalid(where, "...", error.message)
    else:
        yield from _structure_problems(openapi, where)
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        column_path = f"{path}.additionalPrinterColumns[{index}]"
        for field in ("name", "type", "jsonPath"):
            if not column.get(field):
                yield FieldProblem.required(f"{column_path}.{field}")
        text = str(column.get("jsonPath", ""))
        try:
            JSONPath(text)
        except ValueError as error:
            yield FieldProblem.invalid(f"{column_path}.jsonPath", text, str(error))
        if not text.startswith("."):
            yield FieldProblem.invalid(f"{column_path}.jsonPath", text, "must be a simple json path starting with .")


def _structure_problems(schema: Json, path: str) -> Iterator[FieldProblem]:
    """Every value has a type, but for those that may be anything; defaults are valid."""
    for word in ("x-kubernetes-validations", "$ref", "uniqueItems"):
        if schema.get(word):
            yield FieldProblem.forbidden(f"{path}.{word}", _REAL)
    if schema.get("type") == "array" and "items" not in schema:
        yield FieldProblem.required(f"{path}.items", "must be specified")
    if "default" in schema:
        for problem in Schema(schema).problems(schema["default"]):
            yield FieldProblem(f"{path}.default", problem.message)
    if not any(schema.get(word) for word in ("type", INT_OR_STRING, PRESERVE)):
        yield FieldProblem.required(f"{path}.type", "must not be empty for specified object fields")
    members = {f"properties[{name}]": member for name, member in (schema.get("properties") or {}).items()}
    members |= {name: schema.get(name) for name in ("items", "additionalProperties")}
    for name, member in members.items():
        if isinstance(member, dict):
            yield from _structure_problems(member, f"{path}.{name}")


def _changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    for field in ("group", "scope"):
        if old[field] != new.get(field):
            yield FieldProblem.invalid(f"spec.{field}", new.get(field), "field is immutable")
    for field in ("plural", "kind"):
        if old["names"][field] != new["names"].get(field):
            yield FieldProblem.invalid(f"spec.names.{field}", new["names"].get(field), "field is immutable")
