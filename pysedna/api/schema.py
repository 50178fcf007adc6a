"""From msgspec types to structural schemas, the subset of OpenAPI v3 that CustomResourceDefinitions accept.

msgspec describes types in JSON Schema with references, titles, defaults and unions with null. A structural schema knows
none of these: everything stands in place, each part has a type, and an optional field is one that is not required.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_REF = "#/$defs/{name}"
_DROPPED = ("title", "default", "$ref")


def structural_schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The structural schema of a struct, with its constraints and docstrings. Raises TypeError for a recursive type."""
    (root,), definitions = msgspec.json.schema_components((struct,), ref_template=_REF)
    return _inline(root, definitions, ())


def open_schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The structural schema of a struct whose fields are checked where they are known: all other fields are kept, and
    null stands for a field that is absent."""
    return _opened(structural_schema(struct))


def _opened(schema: Mapping[str, Any]) -> dict[str, Any]:
    result = {key: value for key, value in schema.items() if key != "description"}
    if "properties" in result:
        required = result.get("required", ())
        result["properties"] = {
            name: _opened(part) | ({} if name in required else {"nullable": True})
            for name, part in result["properties"].items()
        }
    if isinstance(result.get("items"), Mapping):
        result["items"] = _opened(result["items"])
    if result.get("type") == "object" and not isinstance(result.get("additionalProperties"), Mapping):
        result["x-kubernetes-preserve-unknown-fields"] = True
    return result


def _inline(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    schema = _without_null(schema)
    reference = schema.get("$ref")
    if reference is not None:
        name = str(reference).rpartition("/")[2]
        if name in path:
            raise TypeError(f"{name} refers to itself; a structural schema cannot")
        schema = {**definitions[name], **schema}
        path = (*path, name)
    # The API server does not keep what is empty, and then what it has would differ from what was applied.
    empty = [key for key in ("required", "properties") if not schema.get(key)]
    result = {key: value for key, value in schema.items() if key not in _DROPPED and key not in empty}
    if "enum" in result:
        result.setdefault("type", "string")
    if "properties" in result:
        result["properties"] = {name: _inline(part, definitions, path) for name, part in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), Mapping):
            result[key] = _inline(result[key], definitions, path)
    return result


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """`T | None` means that the field may be absent; absence is said by `required`."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if not choices:
        return schema
    if len(choices) > 1:
        raise TypeError(f"a union of several types is not structural: {choices}")
    return {**choices[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
