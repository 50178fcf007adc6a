"""CustomResourceDefinitions and their objects over HTTP."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/ex.io/v1/namespaces/default/widgets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
def served(api: Api, widgets: Json) -> Api:
    assert api("POST", DEFINITIONS, widgets).status == 201
    return api


def test_a_definition_is_established_and_served_at_once(served: Api) -> None:
    definition = served.get(f"{DEFINITIONS}/widgets.ex.io").json
    conditions = {each["type"]: each["status"] for each in definition["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert definition["status"]["storedVersions"] == ["v1"]
    assert definition["spec"]["names"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
        "shortNames": ["wd"],
    }
    resources = {each["name"]: each for each in served.get("/apis/ex.io/v1").json["resources"]}
    assert resources["widgets"]["shortNames"] == ["wd"]
    assert sorted(resources) == ["widgets", "widgets/scale", "widgets/status"]
    assert served.get(WIDGETS).json["kind"] == "WidgetList"


def test_objects_are_pruned_defaulted_and_kept_apart_from_their_status(
    served: Api, widget: Callable[..., Json]
) -> None:
    answer = served("POST", WIDGETS, widget("w", extra=1) | {"status": {"x": 1}})
    assert answer.json["spec"] == {"size": 1, "mode": "a"}
    assert "status" not in answer.json
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.extra\\""'
    both = {"spec": {"size": 5}, "status": {"x": 2}, "metadata": {"labels": {"a": "b"}}}
    patched = served.merge(f"{WIDGETS}/w/status", both).json
    assert (patched["spec"]["size"], patched["status"], patched["metadata"].get("labels")) == (1, {"x": 2}, None)
    assert patched["metadata"]["generation"] == 1
    assert served.merge(f"{WIDGETS}/w", both).json["metadata"]["generation"] == 2


def test_strict_validation_refuses_unknown_fields_and_ignore_is_silent(
    served: Api, widget: Callable[..., Json]
) -> None:
    body = widget("w", extra=1) | {"top": 1}
    body["metadata"]["odd"] = 1
    answer = served("POST", f"{WIDGETS}?fieldValidation=Strict", body)
    assert (answer.status, answer.json["message"]) == (
        400,
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "metadata.odd", '
        'unknown field "spec.extra", unknown field "top"',
    )
    assert "Warning" not in served("POST", f"{WIDGETS}?fieldValidation=Ignore", body).headers


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"spec": {}}, 422, 'Widget.ex.io "w" is invalid: spec.size: Required value'),
        ({"kind": "Gadget"}, 422, 'Gadget.ex.io "w" is invalid: kind: Invalid value: "Gadget": must be Widget'),
        ({"kind": ""}, 400, "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing"),
        (
            {"apiVersion": "ex.io/v2"},
            400,
            "the API version in the data (ex.io/v2) does not match the expected API version (ex.io/v1)",
        ),
        ({"metadata": {"name": "W"}}, 422, 'Widget.ex.io "W" is invalid: metadata.name: Invalid value: "W"'),
    ],
)
def test_an_object_is_refused(
    served: Api, widget: Callable[..., Json], change: Json, status: int, message: str
) -> None:
    answer = served("POST", WIDGETS, widget("w") | change)
    assert (answer.status, answer.json["message"][: len(message)]) == (status, message)


def test_a_replace_needs_the_version(served: Api, widget: Callable[..., Json]) -> None:
    served("POST", WIDGETS, widget("w"))
    answer = served("PUT", f"{WIDGETS}/w", widget("w"))
    assert answer.json["message"] == (
        'widgets.ex.io "w" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'
    )


def test_strategic_patches_are_for_built_in_kinds(served: Api, widget: Callable[..., Json]) -> None:
    served("POST", WIDGETS, widget("w"))
    assert served("PATCH", f"{WIDGETS}/w", {}, content="application/strategic-merge-patch+json").status == 415


def test_tables_have_the_definitions_columns(served: Api, widget: Callable[..., Json]) -> None:
    served("POST", WIDGETS, widget("w", size=4))
    table = served.get(WIDGETS, Accept=TABLE).json
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Size", "Ready", "Age"]
    assert table["rows"][0]["cells"][:3] == ["w", 4, None]
    served.merge(f"{WIDGETS}/w/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    assert served.get(WIDGETS, Accept=TABLE).json["rows"][0]["cells"][2] == "True"


def test_scale_and_selectable_fields(served: Api, widget: Callable[..., Json]) -> None:
    served("POST", WIDGETS, widget("w", size=4))
    served("POST", WIDGETS, widget("v", mode="b"))
    assert served.get(f"{WIDGETS}/w/scale").json["spec"] == {"replicas": 4}
    assert served.merge(f"{WIDGETS}/w/scale", {"spec": {"replicas": 7}}).json["spec"] == {"replicas": 7}
    assert served.merge(f"{WIDGETS}/w/scale", {"spec": {"replicas": 70}}).status == 422
    assert served.get(f"{WIDGETS}?fieldSelector=spec.mode%3Db").names == ["v"]


def test_versions_share_their_objects(api: Api, widgets: Json, widget: Callable[..., Json]) -> None:
    newer = copy.deepcopy(widgets["spec"]["versions"][0]) | {"name": "v2", "storage": False}
    newer["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] = 99
    widgets["spec"]["versions"].append(newer)
    api("POST", DEFINITIONS, widgets)
    api("POST", WIDGETS, widget("w"))
    path = "/apis/ex.io/v2/namespaces/default/widgets"
    assert api.get(f"{path}/w").json["apiVersion"] == "ex.io/v2"
    assert api.get(path).json["items"][0]["apiVersion"] == "ex.io/v2"
    assert api.watch("/apis/ex.io/v2/widgets?watch=1").next()["object"]["apiVersion"] == "ex.io/v2"
    assert api.merge(f"{path}/w", {"spec": {"size": 50}}).json["apiVersion"] == "ex.io/v2"
    assert api.merge(f"{WIDGETS}/w", {"spec": {"size": 51}}).status == 422
    assert [group["preferredVersion"]["version"] for group in api.get("/apis").json["groups"]][-1] == "v2"


def test_a_changed_definition_counts_from_the_next_request(
    served: Api, widgets: Json, widget: Callable[..., Json]
) -> None:
    served("POST", WIDGETS, widget("w"))
    current = served.get(f"{DEFINITIONS}/widgets.ex.io").json
    version = copy.deepcopy(widgets["spec"]["versions"][0])
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["added"] = {"type": "boolean"}
    changed = {**current, "spec": {**current["spec"], "versions": [version]}}
    assert served("PUT", f"{DEFINITIONS}/widgets.ex.io", changed).metadata["generation"] == 2
    assert served.merge(f"{WIDGETS}/w", {"spec": {"added": True}}).json["spec"]["added"] is True


def test_a_definition_takes_its_objects_with_it(served: Api, widget: Callable[..., Json]) -> None:
    served("POST", WIDGETS, widget("w"))
    held = widget("held")
    held["metadata"]["finalizers"] = ["ex.io/hold"]
    served("POST", WIDGETS, held)
    marked = served("DELETE", f"{DEFINITIONS}/widgets.ex.io").metadata
    assert marked["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert served.get(WIDGETS).names == ["held"]
    served.merge(f"{WIDGETS}/held", {"metadata": {"finalizers": None}})
    assert served.get(f"{DEFINITIONS}/widgets.ex.io").status == 404
    assert served.get(WIDGETS).status == 404
    assert "ex.io" not in [group["name"] for group in served.get("/apis").json["groups"]]


RULES = "x-kubernetes-validations"


def change_version(definition: Json, **members: Any) -> Json:
    definition["spec"]["versions"][0].update(members)
    return definition


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda crd: crd["metadata"].update(name="foo"), "metadata.name"),
        (lambda crd: crd["spec"].update(scope="Galaxy"), "spec.scope"),
        (lambda crd: crd["spec"].update(group="apps"), "metadata.name"),
        (lambda crd: crd["spec"].update(conversion={"strategy": "Webhook"}), "spec.conversion.strategy"),
        (lambda crd: change_version(crd, storage=False), "spec.versions"),
        (lambda crd: change_version(crd, schema={}), "spec.versions[0].schema.openAPIV3Schema"),
        (
            lambda crd: change_version(crd, schema={"openAPIV3Schema": {"type": "object", RULES: [{"rule": "true"}]}}),
            f"spec.versions[0].schema.openAPIV3Schema.{RULES}",
        ),
        (
            lambda crd: change_version(crd, schema={"openAPIV3Schema": {"type": "object", "required": "spec"}}),
            "spec.versions[0].schema.openAPIV3Schema",
        ),
        (
            lambda crd: change_version(
                crd, additionalPrinterColumns=[{"name": "x", "type": "string", "jsonPath": "..x"}]
            ),
            "spec.versions[0].additionalPrinterColumns[0].jsonPath",
        ),
    ],
)
def test_a_definition_is_refused(api: Api, widgets: Json, change: Callable[[Json], object], field: str) -> None:
    change(widgets)
    answer = api("POST", DEFINITIONS, widgets)
    assert (answer.status, answer.json["details"]["causes"][0]["field"]) == (422, field)


def test_group_scope_and_names_stay(served: Api) -> None:
    answer = served.merge(f"{DEFINITIONS}/widgets.ex.io", {"spec": {"scope": "Cluster", "names": {"kind": "Gadget"}}})
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == ["spec.scope", "spec.names.kind"]
