"""Schemas of custom resources: what is dropped, filled in, accepted and refused, field by field."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any
    Make = Callable[..., Json]
    Define = Callable[..., str]


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


INTEGER: Json = {"type": "integer"}
STRING: Json = {"type": "string"}


def test_fields_that_the_schema_does_not_know_are_dropped_at_every_depth(
    api: Api, define: Define, widget: Make
) -> None:
    spec = _object(
        size=INTEGER,
        inner=_object(size=INTEGER),
        list={"type": "array", "items": _object(size=INTEGER)},
        map={"type": "object", "additionalProperties": _object(size=INTEGER)},
    )
    widgets = define(spec)
    sent = {"size": 1, "other": 2}
    made = api.create(widgets, {**widget(**sent, inner=sent, list=[sent], map={"a": sent}), "top": 1})
    kept = {"size": 1}
    assert made["spec"] == {**kept, "inner": kept, "list": [kept], "map": {"a": kept}}
    assert "top" not in made
    assert "other" not in api.merge(f"{widgets}/w", {"spec": {"other": 3}})["spec"]


def test_preserved_unknown_fields_stay_and_known_ones_below_them_are_pruned_by_their_schema(
    api: Api, define: Define, widget: Make
) -> None:
    raw = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    widgets = define(_object(raw=raw, half={**_object(known=_object(a=INTEGER)), **raw}))
    spec = {"raw": {"any": {"thing": [1]}}, "half": {"unknown": {"x": None}, "known": {"a": 1, "b": 2}}}
    made = api.create(widgets, widget(**spec))
    assert made["spec"] == {
        "raw": {"any": {"thing": [1]}},
        "half": {"unknown": {"x": None}, "known": {"a": 1}},
    }


def test_embedded_resources_keep_their_kind_and_metadata(api: Api, define: Define, widget: Make) -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
    widgets = define(_object(template=embedded))
    template = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"a": 1}, "other": 1}
    made = api.create(widgets, widget(template=template))
    assert made["spec"]["template"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}
    said = api.create(widgets, widget("v", template={"spec": {}}))
    assert (said["code"], said["reason"]) == (422, "Invalid")
    assert {cause["field"] for cause in said["details"]["causes"]} >= {"spec.template.apiVersion", "spec.template.kind"}


def test_absent_fields_get_their_defaults_where_their_parent_is_there(api: Api, define: Define, widget: Make) -> None:
    spec = _object(
        mode={"type": "string", "default": "a"},
        inner=_object(size={"type": "integer", "default": 3}),
        whole={**_object(size={"type": "integer", "default": 3}), "default": {}},
        list={"type": "array", "items": _object(size={"type": "integer", "default": 3})},
    )
    widgets = define(spec)
    made = api.create(widgets, widget(list=[{}, {"size": 4}]))
    assert made["spec"] == {"mode": "a", "whole": {"size": 3}, "list": [{"size": 3}, {"size": 4}]}
    made = api.create(widgets, widget("v", inner={}, mode="b"))
    assert made["spec"] == {"mode": "b", "inner": {"size": 3}, "whole": {"size": 3}}
    bare = widget("u")
    del bare["spec"]
    assert "spec" not in api.create(widgets, bare)


def test_stored_objects_show_what_the_present_schema_says(
    api: Api, define: Define, widget: Make, eventually: Callable[[Callable[[], object]], None]
) -> None:
    widgets = define(_object(size=INTEGER, old=INTEGER))
    made = api.create(widgets, widget(size=1, old=2))
    define(_object(size=INTEGER, mode={"type": "string", "default": "a"}))
    eventually(lambda: api.get(f"{widgets}/w")["spec"] == {"size": 1, "mode": "a"})
    assert api.get(f"{widgets}/w")["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_null_is_kept_where_it_may_be_and_dropped_elsewhere(api: Api, define: Define, widget: Make) -> None:
    spec = _object(
        maybe={"type": "string", "nullable": True},
        filled={"type": "string", "default": "d"},
        nullable={"type": "string", "nullable": True, "default": "d"},
        plain=STRING,
    )
    widgets = define(spec)
    made = api.create(widgets, widget(maybe=None, filled=None, nullable=None))
    assert made["spec"] == {"maybe": None, "filled": "d", "nullable": None}
    assert "plain" not in api.create(widgets, widget("v", plain=None))["spec"]


def test_int_or_string_takes_both_and_nothing_else(api: Api, define: Define, widget: Make) -> None:
    port = {"x-kubernetes-int-or-string": True, "anyOf": [INTEGER, STRING]}
    widgets = define(_object(port=port, bare={"x-kubernetes-int-or-string": True}))
    for name, value in {"a": 80, "b": "http"}.items():
        assert api.create(widgets, widget(name, port=value, bare=value))["spec"] == {"port": value, "bare": value}
    for name, value in {"c": 1.5, "d": True, "e": []}.items():
        said = api.create(widgets, widget(name, bare=value))
        assert (said["code"], said["reason"]) == (422, "Invalid"), value
        assert "spec.bare" in [cause["field"] for cause in said["details"]["causes"]]


def _wrong_type(where: str, wanted: str, found: str) -> str:
    return f'Invalid value: "{found}": {where} in body must be of type {wanted}: "{found}"'


RULES = _object(
    size={"type": "integer", "minimum": 1, "maximum": 10},
    above={"type": "integer", "minimum": 1, "exclusiveMinimum": True},
    number={"type": "number", "multipleOf": 0.5},
    mode={"type": "string", "enum": ["a", "b"]},
    word={"type": "string", "pattern": "^x", "minLength": 2, "maxLength": 4},
    list={"type": "array", "minItems": 1, "maxItems": 2, "items": STRING},
    map={"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": INTEGER},
    when={"type": "string", "format": "date-time"},
    flag={"type": "boolean"},
    small={"type": "integer", "format": "int32"},
    needy={**_object(a=INTEGER, b=INTEGER), "required": ["a", "b"]},
)


BROKEN: list[tuple[str, object, str, str, str]] = [
    ("size", 0, "Invalid", "size", "Invalid value: 0: spec.size in body should be greater than or equal to 1"),
    ("size", 11, "Invalid", "size", "Invalid value: 11: spec.size in body should be less than or equal to 10"),
    ("above", 1, "Invalid", "above", "Invalid value: 1: spec.above in body should be greater than 1"),
    ("number", 0.7, "Invalid", "number", "Invalid value: 0.7: spec.number in body should be a multiple of 0.5"),
    ("mode", "c", "NotSupported", "mode", 'Unsupported value: "c": supported values: "a", "b"'),
    ("word", "yy", "Invalid", "word", "Invalid value: \"yy\": spec.word in body should match '^x'"),
    ("word", "x", "Invalid", "word", 'Invalid value: "x": spec.word in body should be at least 2 chars long'),
    ("word", "xxxxx", "TooLong", "word", "Too long: may not be more than 4 bytes"),
    ("list", [], "Invalid", "list", "Invalid value: 0: spec.list in body should have at least 1 items"),
    ("list", ["a", "b", "c"], "TooMany", "list", "Too many: 3: must have at most 2 items"),
    ("map", {}, "Invalid", "map", "Invalid value: 0: spec.map in body should have at least 1 properties"),
    ("map", {"a": 1, "b": 1, "c": 1}, "TooMany", "map", "Too many: 3: must have at most 2 items"),
    ("map", {"a": "x"}, "TypeInvalid", "map.a", _wrong_type("spec.map.a", "integer", "string")),
    ("list", [1], "TypeInvalid", "list[0]", _wrong_type("spec.list[0]", "string", "integer")),
    ("flag", "yes", "TypeInvalid", "flag", _wrong_type("spec.flag", "boolean", "string")),
    ("size", "1", "TypeInvalid", "size", _wrong_type("spec.size", "integer", "string")),
    (
        "when",
        "noon",
        "TypeInvalid",
        "when",
        'Invalid value: "noon": spec.when in body must be of type date-time: "noon"',
    ),
    ("needy", {"a": 1}, "Required", "needy.b", "Required value"),
]


def test_a_value_that_breaks_a_rule_is_named_with_its_field(api: Api, define: Define, widget: Make) -> None:
    widgets = define(RULES)
    group = widget()["apiVersion"].partition("/")[0]
    for field, value, reason, where, message in BROKEN:
        said = api.create(widgets, widget(**{field: value}))
        assert said.get("code") == 422, (field, value)
        cause = {"reason": f"FieldValue{reason}", "message": message, "field": f"spec.{where}"}
        assert said["details"] == {"name": "w", "group": group, "kind": "Widget", "causes": [cause]}
        assert said["message"] == f'Widget.{group} "w" is invalid: spec.{where}: {message}'


def test_every_fault_has_a_cause_of_its_own(api: Api, define: Define, widget: Make) -> None:
    widgets = define({**RULES, "required": ["size"]})
    said = api.create(widgets, widget(mode="c", needy={}, flag=1))
    causes = {(cause["field"], cause["reason"]) for cause in said["details"]["causes"]}
    assert causes == {
        ("spec.size", "FieldValueRequired"),
        ("spec.mode", "FieldValueNotSupported"),
        ("spec.needy.a", "FieldValueRequired"),
        ("spec.needy.b", "FieldValueRequired"),
        ("spec.flag", "FieldValueTypeInvalid"),
    }
    assert said["message"].count(", spec.") == 4
    assert "[spec." in said["message"]


def test_numbers_that_are_no_integers_of_the_format_are_refused(api: Api, define: Define, widget: Make) -> None:
    widgets = define(RULES)
    for wrong in ({"small": 1 << 31}, {"size": 1.5}):
        said = api.create(widgets, widget(**wrong))
        assert (said["code"], said["reason"]) == (422, "Invalid")


def test_alternatives_must_be_met(api: Api, define: Define, widget: Make) -> None:
    spec = _object(a=INTEGER, b=INTEGER)
    spec["oneOf"] = [{"required": ["a"]}, {"required": ["b"]}]
    widgets = define(spec)
    assert api.create(widgets, widget("a", a=1))["spec"] == {"a": 1}
    for name, wrong in {"none": {}, "both": {"a": 1, "b": 1}}.items():
        said = api.create(widgets, widget(name, **wrong))
        assert (said["code"], said["reason"]) == (422, "Invalid")
        text = said["details"]["causes"][0]["message"]
        assert text.startswith('Invalid value: "": "spec" must validate one and only one schema (oneOf)')


def test_strict_field_validation_names_every_unknown_field(api: Api, define: Define, widget: Make) -> None:
    widgets = define(_object(size=INTEGER, inner=_object(a=INTEGER), list={"type": "array", "items": _object()}))
    wrong = widget(size=1, other=2, inner={"b": 1}, list=[{"c": 1}])
    wrong["metadata"]["wrong"] = "x"
    wrong["extra"] = {}
    said = api.create(widgets, wrong, fieldValidation="Strict")
    assert (said["code"], said["reason"]) == (400, "BadRequest")
    for path in ("spec.other", "spec.inner.b", "spec.list[0].c", "metadata.wrong", "extra"):
        assert f'unknown field "{path}"' in said["message"]
    assert said["message"].startswith('Widget in version "v1" cannot be handled as a Widget: strict decoding error: ')
    assert api.create(widgets, wrong, fieldValidation="Ignore")["spec"] == {"size": 1, "inner": {}, "list": [{}]}
    said = api.merge(f"{widgets}/w", {"spec": {"other": 1}}, fieldValidation="Strict")
    assert said["status"] == "Failure"
    assert 'unknown field "spec.other"' in said["message"]


def test_a_custom_body_names_its_kind_and_version(api: Api, define: Define, widget: Make) -> None:
    widgets = define()
    for wrong in ({"kind": ""}, {"apiVersion": ""}):
        said = api.create(widgets, {**widget(), **wrong})
        assert (said["code"], said["reason"]) == (400, "BadRequest"), wrong
    said = api.create(widgets, {**widget(), "kind": "Gadget"})
    assert (said["code"], said["reason"]) in [(400, "BadRequest"), (422, "Invalid")]
    said = api.create(widgets, {**widget(), "apiVersion": "other.example.com/v1"})
    assert (said["code"], said["reason"]) == (400, "BadRequest")


def test_every_served_version_shows_the_same_objects(api: Api, define: Define, widget: Make) -> None:
    spec = _object(size=INTEGER, more=STRING)
    second = {
        "name": "v2",
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": _object(spec=spec)},
    }
    old = {**second, "name": "v0", "served": False}
    widgets = define(_object(size=INTEGER), versions=(second, old))
    newer = widgets.replace("/v1/", "/v2/")
    made = api.create(widgets, widget(size=1))
    shown = api.get(f"{newer}/w")
    assert shown["apiVersion"] == made["apiVersion"].replace("/v1", "/v2")
    assert shown["metadata"]["uid"] == made["metadata"]["uid"]
    assert shown["spec"] == {"size": 1}
    assert [item["apiVersion"] for item in api.get(newer)["items"]] == [shown["apiVersion"]]
    assert api.merge(f"{newer}/w", {"spec": {"size": 2}})["apiVersion"] == shown["apiVersion"]
    assert api.get(f"{widgets}/w")["spec"] == {"size": 2}
    said = api.create(newer, widget("v", size=1))
    assert (said["code"], said["reason"]) == (400, "BadRequest")
    assert api.create(newer, widget("v", version="v2", size=1))["apiVersion"] == shown["apiVersion"]
    assert api.get(f"{widgets.replace('/v1/', '/v0/')}/w")["code"] == 404


def test_printer_columns_become_the_columns_of_a_table(api: Api, define: Define, widget: Make) -> None:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How big"},
        {"name": "First", "type": "string", "jsonPath": ".spec.list[0]"},
        {"name": "Ready", "type": "string", "jsonPath": '.spec.parts[?(@.name=="ready")].value', "priority": 1},
        {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    part = _object(name=STRING, value=STRING)
    spec = _object(size=INTEGER, list={"type": "array", "items": STRING}, parts={"type": "array", "items": part})
    widgets = define(spec, additionalPrinterColumns=columns)
    api.create(widgets, widget("a", size=3, list=["x", "y"], parts=[{"name": "ready", "value": "yes"}]))
    api.create(widgets, widget("b"))

    table = api.table(widgets)
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Size", "First", "Ready", "Since"]
    size = table["columnDefinitions"][1]
    assert (size["type"], size["description"], size["priority"]) == ("integer", "How big", 0)
    assert table["columnDefinitions"][3]["priority"] == 1
    first, second = (row["cells"] for row in table["rows"])
    assert first[:4] == ["a", 3, "x", "yes"]
    assert second[:4] == ["b", None, None, None]
    assert first[4] == "" or first[4].endswith("s")
    assert table["rows"][0]["object"]["metadata"]["name"] == "a"


def _version(**members: Any) -> Json:
    schema = {"openAPIV3Schema": _object(spec={"type": "object"})}
    return {"name": "v1", "served": True, "storage": True, "schema": schema, **members}


def _schema(spec: Json) -> Json:
    return {"versions": [_version(schema={"openAPIV3Schema": _object(spec=spec)})]}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scope": "Galaxy"}, "spec.scope"),
        ({"versions": [_version(storage=False)]}, "spec.versions"),
        ({"versions": [_version(), _version(name="v2")]}, "spec.versions"),
        ({"versions": [_version(schema={})]}, "openAPIV3Schema"),
        (
            {"versions": [_version(schema={"openAPIV3Schema": {"type": "string"}})]},
            "openAPIV3Schema.type",
        ),
        (_schema({"properties": {"a": INTEGER}}), "openAPIV3Schema.properties[spec].type"),
        (
            {"versions": [_version(additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": "a"}])]},
            "additionalPrinterColumns[0].jsonPath",
        ),
        (_schema({"type": "array"}), "properties[spec].items"),
        (_schema({"type": "integer", "default": "x"}), "properties[spec].default"),
        (_schema({"type": "object", "$ref": "#/other"}), "properties[spec].$ref"),
        ({"names": {"plural": "others", "kind": "Widget"}}, "metadata.name"),
        ({"names": {"plural": "widgets"}}, "spec.names.kind"),
    ],
)
def test_a_definition_is_refused_with_the_field_that_is_wrong(
    api: Api, namespace: str, change: Json, field: str
) -> None:
    group = f"{namespace}.example.com"
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [_version()], **change}
    said = api.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{group}"},
            "spec": spec,
        },
    )
    assert (said["code"], said["reason"]) == (422, "Invalid")
    # The way to a version differs with the number of versions on a real API server.
    causes = said["details"]["causes"]
    assert any(cause["field"].lower().endswith(field.lower()) for cause in causes), causes


@pytest.mark.slow
def test_a_definition_takes_its_objects_with_it(
    api: Api, define: Define, widget: Make, namespace: str, eventually: Callable[[Callable[[], object]], None]
) -> None:
    widgets = define()
    body = widget()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(widgets, body)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{namespace}.example.com"
    assert api.delete(path)["metadata"]["deletionTimestamp"]
    eventually(lambda: api.get(f"{widgets}/w")["metadata"].get("deletionTimestamp"))
    assert api.get(path)["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    api.merge(f"{widgets}/w", {"metadata": {"finalizers": None}})
    eventually(lambda: api.get(path).get("code") == 404)
    eventually(lambda: api.get(widgets).get("code") == 404)
