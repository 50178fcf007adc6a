"""Replacing: names, immutable metadata, conflicts, the two sides of a status, generation, scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any
    Make = Callable[..., Json]


@pytest.fixture
def maps(core: str) -> str:
    return f"{core}/configmaps"


@pytest.fixture
def made(api: Api, maps: str) -> Json:
    found: Json = api.create(maps, {"metadata": {"name": "a", "labels": {"l": "1"}}, "data": {"b": "1"}})
    return found


def test_the_name_in_the_body_is_that_in_the_url(api: Api, maps: str, made: Json) -> None:
    other = api.replace(f"{maps}/a", {**made, "metadata": {**made["metadata"], "name": "other"}})
    assert (other["code"], other["reason"]) == (400, "BadRequest")
    assert other["message"] == "the name of the object (other) does not match the name on the URL (a)"
    none = api.replace(f"{maps}/a", {"data": {"b": "2"}})
    assert (none["code"], none["reason"]) == (400, "BadRequest")
    assert "name must be provided" in none["message"]
    elsewhere = api.replace(f"{maps}/a", {**made, "metadata": {**made["metadata"], "namespace": "default"}})
    assert (elsewhere["code"], elsewhere["reason"]) == (400, "BadRequest")


def test_what_is_not_there_cannot_be_replaced(api: Api, maps: str) -> None:
    said = api.replace(f"{maps}/gone", {"metadata": {"name": "gone"}})
    assert (said["code"], said["reason"]) == (404, "NotFound")
    assert said["message"] == 'configmaps "gone" not found'
    assert said["details"] == {"name": "gone", "kind": "configmaps"}


def test_replacing_an_old_version_is_a_conflict(api: Api, maps: str, made: Json) -> None:
    newer = api.replace(f"{maps}/a", {**made, "data": {"b": "2"}})
    assert int(newer["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    said = api.replace(f"{maps}/a", {**made, "data": {"b": "3"}})
    assert (said["code"], said["reason"]) == (409, "Conflict")
    assert said["message"] == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert said["details"] == {"name": "a", "kind": "configmaps"}
    assert api.get(f"{maps}/a") == newer


def test_without_a_version_a_built_in_object_is_overwritten(api: Api, maps: str, made: Json) -> None:
    written = api.replace(f"{maps}/a", {"metadata": {"name": "a"}, "data": {"b": "4"}})
    assert written["data"] == {"b": "4"}
    assert written["metadata"]["uid"] == made["metadata"]["uid"]
    assert written["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert "labels" not in written["metadata"]


def test_without_a_version_a_custom_object_is_not_overwritten(api: Api, define: Callable, widget: Make) -> None:
    widgets = define()
    api.create(widgets, widget("w"))
    said = api.replace(f"{widgets}/w", widget("w"))
    assert (said["code"], said["reason"]) == (422, "Invalid")
    [cause] = said["details"]["causes"]
    assert cause["field"] == "metadata.resourceVersion"
    assert cause["message"].endswith("must be specified for an update")


@pytest.mark.parametrize("field", ["deletionTimestamp", "deletionGracePeriodSeconds"])
def test_only_a_delete_marks_an_object_as_deleted(api: Api, maps: str, made: Json, field: str) -> None:
    value = 5 if field.endswith("Seconds") else "2001-01-01T00:00:00Z"
    said = api.replace(f"{maps}/a", {**made, "metadata": {**made["metadata"], field: value}})
    assert (said["code"], said["reason"]) == (422, "Invalid")
    assert [(cause["field"], cause["reason"]) for cause in said["details"]["causes"]] == [
        (f"metadata.{field}", "FieldValueInvalid")
    ]
    assert said["details"]["causes"][0]["message"].endswith("field is immutable")


def test_another_uid_is_a_conflict(api: Api, maps: str, made: Json) -> None:
    said = api.replace(f"{maps}/a", {**made, "metadata": {**made["metadata"], "uid": "other"}})
    assert (said["code"], said["reason"]) == (409, "Conflict")
    assert said["message"].startswith('Operation cannot be fulfilled on configmaps "a": ')
    uid = made["metadata"]["uid"]
    assert said["message"].endswith(f"Precondition failed: UID in precondition: other, UID in object meta: {uid}")


def test_what_identifies_an_object_is_kept_whatever_is_sent(api: Api, maps: str, made: Json) -> None:
    version = made["metadata"]["resourceVersion"]
    sent = {"name": "a", "resourceVersion": version, "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 5}
    for metadata in (sent, {"name": "a"}):
        written = api.replace(f"{maps}/a", {"metadata": metadata, "data": {"c": "d"}})["metadata"]
        for field in ("uid", "creationTimestamp", "namespace"):
            assert written[field] == made["metadata"][field]
        assert "generation" not in written


def test_a_write_that_changes_nothing_makes_no_version(api: Api, maps: str, made: Json) -> None:
    assert api.replace(f"{maps}/a", made) == made
    assert api.merge(f"{maps}/a", {"data": {"b": "1"}}) == made
    assert api.json_patch(f"{maps}/a", [{"op": "add", "path": "/data/b", "value": "1"}]) == made
    assert api.strategic(f"{maps}/a", {"metadata": {"labels": {"l": "1"}}}) == made


def test_the_main_endpoint_leaves_the_status_alone(api: Api, apps: str, workload: Make) -> None:
    path = f"{apps}/deployments/d"
    api.create(f"{apps}/deployments", workload(replicas=0, paused=True))
    api.merge(path, {"metadata": {"labels": {"a": "b"}}, "status": {"collisionCount": 5}})
    current = api.get(path)
    assert current["metadata"]["labels"] == {"a": "b"}
    assert "collisionCount" not in current["status"]


def test_the_status_subresource_leaves_the_rest_alone(api: Api, core: str, pod: Make) -> None:
    made = api.create(f"{core}/pods", pod())
    changed = {
        **made,
        "spec": {**made["spec"], "containers": [{"name": "main", "image": "other:2"}]},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.1.2.3"}], "podIP": "10.1.2.3"},
    }
    written = api.replace(f"{core}/pods/p/status", changed)
    assert written["status"]["phase"] == "Running"
    assert written["status"]["podIP"] == "10.1.2.3"
    assert written["spec"] == made["spec"]
    assert written["metadata"]["generation"] == made["metadata"]["generation"]
    assert api.get(f"{core}/pods/p") == api.get(f"{core}/pods/p/status") == written
    old = api.replace(f"{core}/pods/p/status", made)
    assert (old["code"], old["reason"]) == (409, "Conflict")


def test_a_custom_status_is_written_at_its_own_endpoint(api: Api, define: Callable, widget: Make) -> None:
    status = {"type": "object", "properties": {"ready": {"type": "boolean"}}}
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    root = {"properties": {"spec": spec, "status": status}}
    widgets = define(root=root, subresources={"status": {}})
    made = api.create(widgets, {**widget("w", size=1), "status": {"ready": True}})
    assert "status" not in made
    written = api.replace(f"{widgets}/w/status", {**made, "spec": {"size": 2}, "status": {"ready": True}})
    assert (written["spec"], written["status"]) == ({"size": 1}, {"ready": True})
    assert written["metadata"]["generation"] == 1
    written = api.merge(f"{widgets}/w", {"spec": {"size": 3}, "status": {"ready": False}})
    assert (written["spec"], written["status"]) == ({"size": 3}, {"ready": True})
    assert written["metadata"]["generation"] == 2
    assert api.merge(f"{widgets}/w/status", {"status": {"ready": "yes"}})["code"] == 422


def test_without_a_status_subresource_the_status_is_data(api: Api, define: Callable, widget: Make) -> None:
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    widgets = define(root={"properties": {"status": open_}})
    made = api.create(widgets, {**widget("w"), "status": {"ready": True}})
    assert made["status"] == {"ready": True}
    assert api.merge(f"{widgets}/w", {"status": {"ready": False}})["metadata"]["generation"] == 2
    assert api.merge(f"{widgets}/w/status", {"status": {}})["code"] == 404


def test_the_status_subresource_of_a_built_in_kind_takes_annotations_and_that_of_a_custom_kind_does_not(
    api: Api, core: str, pod: Make, define: Callable, widget: Make
) -> None:
    note = {"metadata": {"annotations": {"a": "b"}}}
    api.create(f"{core}/pods", pod())
    assert api.merge(f"{core}/pods/p/status", note)["metadata"]["annotations"] == {"a": "b"}
    widgets = define(subresources={"status": {}})
    api.create(widgets, widget())
    assert "annotations" not in api.merge(f"{widgets}/w/status", note)["metadata"]


def test_the_generation_moves_with_the_spec_only(api: Api, apps: str, workload: Make) -> None:
    path = f"{apps}/deployments/d"
    made = api.create(f"{apps}/deployments", workload(replicas=0, paused=True))
    assert made["metadata"]["generation"] == 1

    def after(patch: Json, where: str = path) -> int:
        found: int = api.merge(where, patch)["metadata"]["generation"]
        return found

    assert after({"metadata": {"labels": {"a": "b"}}}) == 1
    assert after({"spec": {"minReadySeconds": 1}}) == 2
    assert after({"metadata": {"generation": 9}, "spec": {"minReadySeconds": 2}}) == 3
    assert after({"status": {"collisionCount": 1}}, f"{path}/status") == 3
    assert after({"spec": {"minReadySeconds": 2}}) == 3


def test_a_changed_annotation_moves_the_generation_of_a_deployment_but_not_of_a_replica_set(
    api: Api, apps: str, workload: Make
) -> None:
    api.create(f"{apps}/deployments", workload(replicas=0, paused=True))
    api.create(f"{apps}/replicasets", workload("r", replicas=0))
    note = {"metadata": {"annotations": {"a": "b"}}}
    assert api.merge(f"{apps}/deployments/d", note)["metadata"]["generation"] == 2
    assert api.merge(f"{apps}/replicasets/r", note)["metadata"]["generation"] == 1


def test_scale_shows_and_sets_the_replicas(api: Api, apps: str, namespace: str, workload: Make) -> None:
    path = f"{apps}/replicasets/r"
    made = api.create(f"{apps}/replicasets", workload("r", replicas=0))
    scale = api.get(f"{path}/scale")
    assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
    assert scale["spec"] == {}
    assert scale["status"] == {"replicas": 0, "selector": "app=r"}
    for field in ("name", "namespace", "uid", "creationTimestamp"):
        assert scale["metadata"][field] == made["metadata"][field]

    api.merge(path, {"metadata": {"labels": {"a": "b"}}})
    stale = api.replace(f"{path}/scale", {**scale, "spec": {"replicas": 2}})
    assert (stale["code"], stale["reason"]) == (409, "Conflict")
    scaled = api.replace(f"{path}/scale", {"metadata": {"name": "r", "namespace": namespace}, "spec": {"replicas": 2}})
    assert scaled["spec"] == {"replicas": 2}
    assert api.merge(f"{path}/scale", {"spec": {"replicas": 1}})["spec"] == {"replicas": 1}
    assert api.get(path)["spec"]["replicas"] == 1
    assert api.get(path)["metadata"]["generation"] == 3

    said = api.merge(f"{path}/scale", {"spec": {"replicas": -1}})
    assert (said["code"], said["reason"]) == (422, "Invalid")
    [cause] = said["details"]["causes"]
    assert cause["field"] == "spec.replicas"
    assert cause["message"] == "Invalid value: -1: must be greater than or equal to 0"
    none = {"metadata": {"namespace": namespace}, "spec": {"replicas": 2}}
    assert api.replace(f"{path}/scale", none)["code"] == 400


def test_a_custom_scale_follows_the_paths_of_its_definition(api: Api, define: Callable, widget: Make) -> None:
    spec = {"type": "object", "properties": {"size": {"type": "integer", "minimum": 0}}}
    status = {"type": "object", "properties": {"size": {"type": "integer"}, "chosen": {"type": "string"}}}
    paths = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.chosen",
    }
    root = {"properties": {"spec": spec, "status": status}}
    widgets = define(root=root, subresources={"status": {}, "scale": paths})
    api.create(widgets, widget("w", size=3))
    api.merge(f"{widgets}/w/status", {"status": {"size": 2, "chosen": "a=b"}})
    scale = api.get(f"{widgets}/w/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "a=b"})
    assert api.merge(f"{widgets}/w/scale", {"spec": {"replicas": 7}})["spec"] == {"replicas": 7}
    current = api.get(f"{widgets}/w")
    assert (current["spec"], current["metadata"]["generation"]) == ({"size": 7}, 2)
