"""Schemas of custom resources: pruning, defaulting and validation of objects by a structural schema.

Pruning and defaulting are ours; validation is jsonschema's, over the schema rewritten in its words (nullable,
int-or-string), with its complaints reworded as the API server words them. CEL rules are refused with the CRD.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from jsonschema import Draft4Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from informers.store import FieldProblem, Json

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
_OBJECT_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_JUNCTOR_TEXTS = {
    "anyOf": "must validate at least one schema (anyOf)",
    "oneOf": "must validate one and only one schema (oneOf)",
    "not": "must not validate the schema (not)",
}
_COPIED = frozenset({"enum", "format", "multipleOf", "pattern", "required", "uniqueItems"}).union(
    f"{end}{what}" for end in ("min", "max") for what in ("imum", "Length", "Items", "Properties")
) | {"exclusiveMinimum", "exclusiveMaximum"}

format_checker = FormatChecker(formats=())


@format_checker.checks("date-time")
def _is_date_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    if not re.match(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z", value):
        return False
    try:
        datetime.fromisoformat(value.upper())
    except ValueError:
        return False
    return True


@format_checker.checks("int32")
def _is_int32(value: object) -> bool:
    return not isinstance(value, int) or -(1 << 31) <= value < 1 << 31


class Schema:
    """One version's openAPIV3Schema, compiled once."""

    def __init__(self, schema: Json) -> None:
        self._schema = schema
        self._validator = Draft4Validator(_rewrite(schema), format_checker=format_checker)

    def check(self) -> None:
        """Raises jsonschema's SchemaError if the schema makes no sense."""
        Draft4Validator.check_schema(self._validator.schema)

    def prune(self, obj: Json) -> tuple[Json, list[str]]:
        """A copy without the fields that the schema does not know, and their paths."""
        dropped: list[str] = []
        return _pruned_object(obj, self._schema, "", dropped, root=True), sorted(dropped)

    def default(self, obj: Json) -> Json:
        """A copy with nulls that are not allowed dropped and absent fields defaulted."""
        result: Json = _defaulted(obj, self._schema)
        return result

    def problems(self, obj: Json) -> list[FieldProblem]:
        """What is wrong with the object, ordered by field."""
        found = [problem for error in self._validator.iter_errors(obj) for problem in _reworded(error)]
        return sorted(dict.fromkeys(found), key=lambda problem: problem.field)


def _pruned(value: Any, schema: Json, path: str, dropped: list[str]) -> Any:
    if isinstance(value, dict):
        return _pruned_object(value, schema, path, dropped, root=bool(schema.get(EMBEDDED)))
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_pruned(item, items, f"{path}[{index}]", dropped) for index, item in enumerate(value)]
    return value


def _pruned_object(value: Json, schema: Json, path: str, dropped: list[str], *, root: bool) -> Json:
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    kept: Json = {}
    for name, member in value.items():
        where = f"{path}.{name}" if path else name
        if root and name in _OBJECT_FIELDS:
            kept[name] = member
        elif name in properties:
            kept[name] = _pruned(member, properties[name], where, dropped)
        elif isinstance(additional, Mapping):
            kept[name] = _pruned(member, dict(additional), where, dropped)
        elif schema.get(PRESERVE) or additional is True:
            kept[name] = member
        else:
            dropped.append(where)
    return kept


def _defaulted(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        filled: Json = {}
        for name, member in value.items():
            of_member = properties.get(name) or (additional if isinstance(additional, Mapping) else {})
            if member is None and of_member and not of_member.get("nullable") and not of_member.get(PRESERVE):
                continue
            filled[name] = _defaulted(member, of_member)
        for name, of_member in properties.items():
            if name not in filled and "default" in of_member:
                filled[name] = _defaulted(copy.deepcopy(of_member["default"]), of_member)
        return filled
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_defaulted(item, items) for item in value]
    return value


def _rewrite(schema: Json) -> Json:
    """The schema in JSON Schema's own words, without what only informs."""
    result: Json = {name: value for name, value in schema.items() if name in _COPIED}
    kind = schema.get("type")
    if schema.get(INT_OR_STRING):
        result["type"] = ["integer", "string"]
    elif kind:
        result["type"] = kind
    if schema.get("nullable") and "type" in result:
        types = result["type"] if isinstance(result["type"], list) else [result["type"]]
        result["type"] = [*types, "null"]
        if "enum" in result:
            result["enum"] = [*result["enum"], None]
    if schema.get(EMBEDDED):
        result["required"] = [*result.get("required", ()), "apiVersion", "kind"]
    properties = schema.get("properties")
    if properties:
        result["properties"] = {name: _rewrite(member) for name, member in properties.items()}
    for name in ("items", "additionalProperties", "not"):
        if name in schema and not (name == "additionalProperties" and isinstance(schema[name], bool)):
            result[name] = _rewrite(schema[name])
    for name in _JUNCTORS:
        # The branches of int-or-string only repeat its types.
        if schema.get(name) and not (schema.get(INT_OR_STRING) and name == "anyOf"):
            result[name] = [_rewrite(branch) for branch in schema[name]]
    return result


def _reworded(error: ValidationError) -> Iterator[FieldProblem]:
    path = _path(error)
    limit: Any = error.validator_value
    value: Any = error.instance
    rule = error.validator
    where = path or "<root>"
    match rule:
        case "required":
            for name in limit:
                if name not in value:
                    yield FieldProblem.required(f"{path}.{name}" if path else name)
        case "type":
            wanted = [limit] if isinstance(limit, str) else [each for each in limit if each != "null"]
            found = _type_name(value)
            text = f'{where} in body must be of type {",".join(wanted)}: "{found}"'
            yield FieldProblem(where, f'Invalid value: "{found}": {text}', "FieldValueTypeInvalid")
        case "enum":
            yield FieldProblem.unsupported(where, value, [each for each in limit if each is not None])
        case "format":
            text = f'{where} in body must be of type {limit}: "{value}"'
            yield FieldProblem(where, f'Invalid value: "{value}": {text}', "FieldValueTypeInvalid")
        case "maxLength":
            yield FieldProblem(where, f"Too long: may not be more than {limit} bytes", "FieldValueTooLong")
        case "maxItems" | "maxProperties":
            text = f"Too many: {len(value)}: must have at most {limit} items"
            yield FieldProblem(where, text, "FieldValueTooMany")
        case "minItems" | "minProperties":
            what = "items" if rule == "minItems" else "properties"
            yield FieldProblem.invalid(where, len(value), f"{where} in body should have at least {limit} {what}")
        case "anyOf" | "oneOf" | "not":
            yield FieldProblem("<nil>", f'Invalid value: "": "{where}" {_JUNCTOR_TEXTS[rule]}')
        case _:
            yield FieldProblem.invalid(where, value, f"{where} in body {_rule_text(str(rule), limit, error)}")


def _rule_text(rule: str, limit: object, error: ValidationError) -> str:
    """The words for the common rules; the rare ones keep jsonschema's."""
    exclusive = isinstance(error.schema, Mapping) and error.schema.get(f"exclusive{rule.capitalize()}")
    bound = f"{'' if exclusive else 'or equal to '}{limit}"
    texts = {
        "minimum": f"should be greater than {bound}",
        "maximum": f"should be less than {bound}",
        "minLength": f"should be at least {limit} chars long",
        "pattern": f"should match '{limit}'",
        "multipleOf": f"should be a multiple of {limit}",
    }
    return texts.get(rule, f"is wrong: {error.message}")


def _path(error: ValidationError) -> str:
    path = ""
    for step in error.absolute_path:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path = f"{path}.{step}" if path else str(step)
    return path


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), type(value).__name__)
