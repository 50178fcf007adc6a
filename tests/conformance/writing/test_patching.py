"""The three kinds of patches: what they change, what they refuse, and how lists are merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any
    Make = Callable[..., Json]


@pytest.fixture
def path(api: Api, core: str) -> str:
    """A ConfigMap."""
    api.create(f"{core}/configmaps", {"metadata": {"name": "a", "labels": {"l": "1"}}, "data": {"b": "1", "c": "2"}})
    return f"{core}/configmaps/a"


@pytest.fixture
def deployment(api: Api, apps: str, workload: Make) -> str:
    """A paused Deployment with two containers."""
    body = workload(replicas=0, paused=True)
    body["spec"]["template"]["spec"]["containers"] = [
        {
            "name": "main",
            "image": "busybox:1",
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "ports": [{"name": "web", "containerPort": 80}],
            "args": ["x", "y"],
        },
        {"name": "side", "image": "busybox:1"},
    ]
    api.create(f"{apps}/deployments", body)
    return f"{apps}/deployments/d"


def _template(**spec: Any) -> Json:
    return {"spec": {"template": {"spec": spec}}}


def _containers(obj: Json) -> dict[str, Json]:
    assert "spec" in obj, obj
    return {each["name"]: each for each in obj["spec"]["template"]["spec"]["containers"]}


def test_a_json_patch_does_its_operations_in_order(api: Api, path: str) -> None:
    patched = api.json_patch(
        path,
        [
            {"op": "test", "path": "/data/b", "value": "1"},
            {"op": "replace", "path": "/data/b", "value": "2"},
            {"op": "copy", "from": "/data/b", "path": "/data/d"},
            {"op": "move", "from": "/data/c", "path": "/data/e"},
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/annotations/example.com~1x", "value": "y"},
            {"op": "remove", "path": "/metadata/labels/l"},
        ],
    )
    assert patched["data"] == {"b": "2", "d": "2", "e": "2"}
    assert patched["metadata"]["annotations"] == {"example.com/x": "y"}
    assert "labels" not in patched["metadata"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/b", "value": "other"},
        {"op": "remove", "path": "/data/none"},
        {"op": "add", "path": "/none/x", "value": "1"},
        {"op": "move", "from": "/data/none", "path": "/data/x"},
    ],
)
def test_a_json_patch_that_does_not_fit_is_refused_as_a_whole(api: Api, path: str, operation: Json) -> None:
    before = api.get(path)
    said = api.json_patch(path, [{"op": "replace", "path": "/data/b", "value": "9"}, operation])
    assert (said["code"], said["reason"]) == (422, "Invalid")
    assert api.get(path) == before


def test_a_merge_patch_takes_away_what_is_null_and_replaces_lists(api: Api, path: str, deployment: str) -> None:
    patched = api.merge(path, {"data": {"b": None, "d": "3"}, "metadata": {"labels": None}})
    assert patched["data"] == {"c": "2", "d": "3"}
    assert "labels" not in patched["metadata"]
    patched = api.merge(deployment, _template(containers=[{"name": "only", "image": "i:1", "env": None}]))
    assert list(_containers(patched)) == ["only"]


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("merge", [1]),
        ("merge", "text"),
        ("json_patch", {"data": {}}),
        ("json_patch", [{"op": "jump", "path": "/data"}]),
        ("json_patch", [1]),
        ("strategic", [1]),
    ],
)
def test_a_patch_of_the_wrong_shape_is_refused(api: Api, path: str, kind: str, patch: object) -> None:
    said = getattr(api, kind)(path, patch)
    assert (said["code"], said["reason"]) in [(400, "BadRequest"), (422, "Invalid")]


def test_a_patched_object_is_validated_as_a_whole(api: Api, path: str, deployment: str) -> None:
    said = api.merge(deployment, {"spec": {"replicas": -1}})
    assert (said["code"], said["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in said["details"]["causes"]] == ["spec.replicas"]
    said = api.merge(path, {"data": {"b": 5}})
    assert (said["code"], said["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in said["details"]["causes"]] == ["patch"]


def test_a_patch_cannot_give_another_name_or_kind(api: Api, path: str) -> None:
    for patch in ({"metadata": {"name": "other"}}, {"metadata": {"namespace": "default"}}):
        said = api.merge(path, patch)
        assert (said["code"], said["reason"]) == (400, "BadRequest")
    for patch in ({"kind": "Secret"}, {"metadata": {"uid": "other"}}):
        said = api.merge(path, patch)
        assert (said["code"], said["reason"]) == (422, "Invalid")


def test_a_patch_with_an_old_version_is_a_conflict(api: Api, path: str) -> None:
    version = api.get(path)["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "data": {"b": "2"}}
    assert api.merge(path, patch)["data"]["b"] == "2"
    said = api.merge(path, patch | {"data": {"b": "3"}})
    assert (said["code"], said["reason"]) == (409, "Conflict")


def test_what_is_not_there_cannot_be_patched(api: Api, core: str) -> None:
    said = api.merge(f"{core}/configmaps/none", {"data": {}})
    assert (said["code"], said["reason"]) == (404, "NotFound")


def test_custom_resources_take_no_strategic_patches(api: Api, define: Callable, widget: Make) -> None:
    widgets = define()
    api.create(widgets, widget())
    said = api.strategic(f"{widgets}/w", {"metadata": {"labels": {"a": "b"}}})
    assert (said["code"], said["reason"]) == (415, "UnsupportedMediaType")
    assert api.json_patch(f"{widgets}/w", [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}])["metadata"][
        "labels"
    ] == {"a": "b"}


def test_a_strategic_patch_merges_containers_env_and_ports_by_their_keys(api: Api, deployment: str) -> None:
    main = {
        "name": "main",
        "env": [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}],
        "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}],
        "args": ["z"],
    }
    patched = _containers(api.strategic(deployment, _template(containers=[main, {"name": "new", "image": "i:1"}])))
    assert set(patched) == {"main", "side", "new"}
    assert patched["main"]["image"] == "busybox:1"
    assert {each["name"]: each["value"] for each in patched["main"]["env"]} == {"A": "1", "B": "9", "C": "3"}
    assert {each["containerPort"]: each.get("name") for each in patched["main"]["ports"]} == {80: "http", 81: None}
    assert patched["main"]["args"] == ["z"]


def test_a_strategic_patch_names_what_goes_and_what_comes_instead(api: Api, deployment: str) -> None:
    patch = _template(containers=[{"name": "side", "$patch": "delete"}])
    assert set(_containers(api.strategic(deployment, patch))) == {"main"}
    main = {"name": "main", "env": [{"$patch": "replace"}, {"name": "Z", "value": "26"}]}
    patched = _containers(api.strategic(deployment, _template(containers=[main])))
    assert patched["main"]["env"] == [{"name": "Z", "value": "26"}]
    patched = _containers(api.strategic(deployment, _template(containers=[{"name": "main", "env": None}])))
    assert "env" not in patched["main"]
    api.merge(deployment, {"metadata": {"labels": {"a": "b"}}})
    patched = api.strategic(deployment, {"metadata": {"labels": {"$patch": "replace", "only": "this"}}})
    assert patched["metadata"]["labels"] == {"only": "this"}


def test_retained_keys_clear_the_others(api: Api, deployment: str) -> None:
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert api.strategic(deployment, patch)["spec"]["strategy"] == {"type": "Recreate"}
    volumes = _template(volumes=[{"name": "v", "emptyDir": {}}])
    api.strategic(deployment, volumes)
    changed = _template(volumes=[{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/tmp"}}])
    [volume] = api.strategic(deployment, changed)["spec"]["template"]["spec"]["volumes"]
    assert volume.keys() == {"name", "hostPath"}


def test_lists_of_plain_values_are_merged_as_sets_where_the_type_says_so(api: Api, path: str) -> None:
    metadata = {"finalizers": ["example.com/a", "example.com/b"]}
    api.merge(path, {"metadata": metadata})
    patched = api.strategic(path, {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}})
    assert sorted(patched["metadata"]["finalizers"]) == ["example.com/a", "example.com/b", "example.com/c"]
    patched = api.strategic(path, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/b"]}})
    assert sorted(patched["metadata"]["finalizers"]) == ["example.com/a", "example.com/c"]
    api.merge(path, {"metadata": {"finalizers": None}})


def test_a_given_order_of_elements_is_kept(api: Api, deployment: str) -> None:
    patch = _template(
        **{
            "$setElementOrder/containers": [{"name": "new"}, {"name": "side"}, {"name": "main"}],
            "containers": [{"name": "new", "image": "i:1"}],
        }
    )
    assert list(_containers(api.strategic(deployment, patch))) == ["new", "side", "main"]


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"$patch": "jump"}},
        {"spec": {"template": {"spec": {"containers": [{"image": "i:1"}]}}}},
        {"spec": {"template": {"spec": {"containers": {"name": "main"}}}}},
    ],
)
def test_a_strategic_patch_that_makes_no_sense_is_refused(api: Api, deployment: str, patch: Json) -> None:
    before = api.get(deployment)["spec"]
    said = api.strategic(deployment, patch)
    assert said["status"] == "Failure"
    assert said["code"] in (400, 422, 500)
    assert api.get(deployment)["spec"] == before
