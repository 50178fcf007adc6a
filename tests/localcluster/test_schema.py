"""Schemas of custom resources: what is dropped, filled in, refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from pysedna.localcluster.schema import Schema

Json = dict[str, Any]


def spec(**members: Any) -> Json:
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": members}


def test_unknown_fields_are_dropped_at_every_depth(schema: Json) -> None:
    obj = spec(size=1, extra=1, list=[{"when": "x", "other": 1}], map={"a": 1}, raw={"any": {"thing": 1}}) | {"top": 1}
    pruned, dropped = Schema(schema).prune(obj)
    assert dropped == ["spec.extra", "spec.list[0].other", "top"]
    assert pruned == spec(size=1, list=[{"when": "x"}], map={"a": 1}, raw={"any": {"thing": 1}})


def test_known_fields_below_preserved_ones_are_pruned_by_their_own_schema() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"inner": inner}}
    pruned, dropped = Schema({"type": "object", "properties": {"spec": kept}}).prune(
        {"spec": {"other": {"x": 1}, "inner": {"a": "1", "b": "2"}}}
    )
    assert (pruned, dropped) == ({"spec": {"other": {"x": 1}, "inner": {"a": "1"}}}, ["spec.inner.b"])


def test_embedded_resources_keep_kind_and_metadata() -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
    obj = {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {}, "x": 1}}
    pruned, dropped = Schema({"type": "object", "properties": {"template": embedded}}).prune(obj)
    assert dropped == ["template.x"]
    assert pruned["template"]["metadata"] == {"labels": {"a": "b"}}


def test_defaults_fill_what_is_absent_also_inside_lists(schema: Json) -> None:
    filled = Schema(schema).default(spec(size=1, list=[{"when": "x"}, {"when": "y", "count": 5}]))
    assert filled["spec"] == {"size": 1, "mode": "a", "list": [{"when": "x", "count": 3}, {"when": "y", "count": 5}]}


def test_a_null_is_absent_unless_the_field_is_nullable(schema: Json) -> None:
    filled = Schema(schema).default(spec(size=1, mode=None, name=None, nothing=None))
    assert filled["spec"] == {"size": 1, "mode": "a", "nothing": None}


def test_a_default_is_not_shared_between_objects() -> None:
    default = {"type": "object", "default": {"list": []}, "x-kubernetes-preserve-unknown-fields": True}
    compiled = Schema({"type": "object", "properties": {"spec": default}})
    first, second = compiled.default({}), compiled.default({})
    first["spec"]["list"].append(1)
    assert second == {"spec": {"list": []}}


@pytest.mark.parametrize(
    "members",
    [
        {"size": 1, "port": 80},
        {"size": 10, "port": "http"},
        {"size": 1, "nothing": None, "raw": {"a": [1, {}]}, "map": {}},
        {"size": 1, "list": [{"when": "2020-01-01T00:00:00Z"}, {"when": "2020-01-01T00:00:00.123456+01:00"}]},
    ],
)
def test_good_objects_have_no_problems(schema: Json, members: Json) -> None:
    assert Schema(schema).problems(spec(**members)) == []


@pytest.mark.parametrize(
    ("members", "field", "message", "reason"),
    [
        ({}, "spec.size", "Required value", "FieldValueRequired"),
        (
            {"size": 0},
            "spec.size",
            "Invalid value: 0: spec.size in body should be greater than or equal to 1",
            "FieldValueInvalid",
        ),
        (
            {"size": 11},
            "spec.size",
            "Invalid value: 11: spec.size in body should be less than or equal to 10",
            "FieldValueInvalid",
        ),
        (
            {"size": "1"},
            "spec.size",
            'Invalid value: "string": spec.size in body must be of type integer: "string"',
            "FieldValueTypeInvalid",
        ),
        (
            {"size": 1, "mode": "c"},
            "spec.mode",
            'Unsupported value: "c": supported values: "a", "b"',
            "FieldValueNotSupported",
        ),
        (
            {"size": 1, "name": "ab"},
            "spec.name",
            "Invalid value: \"ab\": spec.name in body should match '^x'",
            "FieldValueInvalid",
        ),
        ({"size": 1, "name": "xabcd"}, "spec.name", "Too long: may not be more than 4 bytes", "FieldValueTooLong"),
        (
            {"size": 1, "port": True},
            "spec.port",
            'Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"',
            "FieldValueTypeInvalid",
        ),
        (
            {"size": 1, "list": []},
            "spec.list",
            "Invalid value: 0: spec.list in body should have at least 1 items",
            "FieldValueInvalid",
        ),
        (
            {"size": 1, "list": [{"when": "2020-01-01T00:00:00Z"}, {"when": "today"}]},
            "spec.list[1].when",
            'Invalid value: "today": spec.list[1].when in body must be of type date-time: "today"',
            "FieldValueTypeInvalid",
        ),
        ({"size": 1, "list": [{}]}, "spec.list[0].when", "Required value", "FieldValueRequired"),
        (
            {"size": 1, "map": {"k": "v"}},
            "spec.map.k",
            'Invalid value: "string": spec.map.k in body must be of type integer: "string"',
            "FieldValueTypeInvalid",
        ),
        (
            {"size": 1, "raw": []},
            "spec.raw",
            'Invalid value: "array": spec.raw in body must be of type object: "array"',
            "FieldValueTypeInvalid",
        ),
    ],
)
def test_a_fault_is_told_in_the_api_servers_words(
    schema: Json, members: Json, field: str, message: str, reason: str
) -> None:
    [problem] = Schema(schema).problems(spec(**members))
    assert (problem.field, problem.message, problem.reason) == (field, message, reason)


def test_all_faults_are_told_at_once(schema: Json) -> None:
    problems = Schema(schema).problems(spec(mode="c", port=[], map={"a": "b"}))
    assert [problem.field for problem in problems] == ["spec.map.a", "spec.mode", "spec.port", "spec.size"]


@pytest.mark.parametrize(
    ("rule", "value", "text"),
    [
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 1, "should be greater than 1"),
        ({"type": "integer", "maximum": 3, "exclusiveMaximum": True}, 3, "should be less than 3"),
        ({"type": "integer", "multipleOf": 2}, 3, "should be a multiple of 2"),
        ({"type": "string", "minLength": 2}, "a", "should be at least 2 chars long"),
        ({"type": "array", "uniqueItems": True}, [1, 1], "is wrong: [1, 1] has non-unique elements"),
        ({"type": "object", "minProperties": 1}, {}, "should have at least 1 properties"),
        ({"oneOf": [{"type": "string"}, {"minLength": 0}]}, "a", "must validate one and only one schema (oneOf)"),
        ({"anyOf": [{"type": "object"}, {"type": "array"}]}, "a", "must validate at least one schema (anyOf)"),
        ({"not": {"type": "string"}}, "a", "must not validate the schema (not)"),
        ({"type": "array", "maxItems": 1}, [1, 2], "Too many: 2: must have at most 1 items"),
        ({"type": "integer", "format": "int32"}, 1 << 31, "must be of type int32"),
    ],
)
def test_every_rule_of_a_schema_is_held(rule: Json, value: object, text: str) -> None:
    [problem] = Schema({"type": "object", "properties": {"x": rule}}).problems({"x": value})
    assert text in problem.message


def test_a_nullable_enum_takes_null() -> None:
    rule = {"type": "string", "nullable": True, "enum": ["a"]}
    assert Schema({"type": "object", "properties": {"x": rule}}).problems({"x": None}) == []
