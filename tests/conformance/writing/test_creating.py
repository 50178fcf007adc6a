"""Creating: names, namespaces, what the server sets itself, dry run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any


def test_a_generated_name_is_its_prefix_and_five_characters(api: Api, core: str) -> None:
    made = api.create(f"{core}/configmaps", {"metadata": {"generateName": "a-"}})
    assert re.fullmatch("a-[bcdfghjklmnpqrstvwxz2456789]{5}", made["metadata"]["name"])
    assert made["metadata"]["generateName"] == "a-"
    assert api.get(f"{core}/configmaps/{made['metadata']['name']}") == made
    long = api.create(f"{core}/configmaps", {"metadata": {"generateName": "b" * 70}})["metadata"]["name"]
    assert len(long) == 63
    named = api.create(f"{core}/configmaps", {"metadata": {"generateName": "a-", "name": "given"}})
    assert named["metadata"]["name"] == "given"


def test_an_object_without_any_name_is_refused(api: Api, core: str) -> None:
    said = api.create(f"{core}/configmaps", {"metadata": {"labels": {"a": "b"}}})
    assert (said["code"], said["reason"]) == (422, "Invalid")
    assert said["message"] == (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )
    cause = {
        "reason": "FieldValueRequired",
        "message": "Required value: name or generateName is required",
        "field": "metadata.name",
    }
    assert said["details"] == {"kind": "ConfigMap", "causes": [cause]}


def test_a_body_of_another_namespace_is_refused(api: Api, core: str) -> None:
    said = api.create(f"{core}/configmaps", {"metadata": {"name": "a", "namespace": "default"}})
    assert (said["code"], said["reason"]) == (400, "BadRequest")
    assert said["message"] == ("the namespace of the provided object does not match the namespace sent on the request")


def test_a_body_of_another_kind_or_version_is_refused(api: Api, core: str) -> None:
    for wrong in ({"kind": "Secret", "apiVersion": "v1"}, {"kind": "ConfigMap", "apiVersion": "v2"}):
        said = api.create(f"{core}/configmaps", {"metadata": {"name": "a"}, **wrong})
        assert (said["code"], said["reason"]) == (400, "BadRequest")
        version = wrong["apiVersion"]
        assert said["message"].startswith(f'{wrong["kind"]} in version "{version}" cannot be handled as a ConfigMap: ')


def test_a_body_that_does_not_name_its_kind_is_of_the_kind_of_the_path(api: Api, core: str) -> None:
    made = api.create(f"{core}/configmaps", {"metadata": {"name": "a"}, "data": {"b": "c"}})
    assert (made["apiVersion"], made["kind"], made["data"]) == ("v1", "ConfigMap", {"b": "c"})


def test_a_name_that_is_taken_is_refused(api: Api, core: str) -> None:
    api.create(f"{core}/configmaps", {"metadata": {"name": "a"}})
    said = api.create(f"{core}/configmaps", {"metadata": {"name": "a"}})
    assert (said["code"], said["reason"]) == (409, "AlreadyExists")
    assert said["message"] == 'configmaps "a" already exists'
    assert said["details"] == {"name": "a", "kind": "configmaps"}


def test_a_namespace_that_is_not_there_is_named_as_what_is_not_found(api: Api) -> None:
    said = api.create("/api/v1/namespaces/no-such-place/configmaps", {"metadata": {"name": "a"}})
    assert (said["code"], said["reason"]) == (404, "NotFound")
    assert said["message"] == 'namespaces "no-such-place" not found'
    assert said["details"] == {"name": "no-such-place", "kind": "namespaces"}


def _owner(uid: str) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid, "controller": True}


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"name": "Upper"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"name": "a", "labels": {"a b": ""}}, "metadata.labels"),
        ({"name": "a", "labels": {"a": "b c"}}, "metadata.labels"),
        ({"name": "a", "labels": {"a": "b" * 64}}, "metadata.labels"),
        ({"name": "a", "ownerReferences": [{}]}, "metadata.ownerReferences[0].uid"),
        ({"name": "a", "ownerReferences": [_owner("x"), _owner("y")]}, "metadata.ownerReferences"),
        ({"name": "a", "finalizers": ["plain"]}, "metadata.finalizers[0]"),
        ({"name": "a", "annotations": {"a b": ""}}, "metadata.annotations"),
        ({"generateName": "Upper"}, "metadata.name"),
        ({"generateName": "Upper-"}, "metadata.generateName"),
    ],
)
def test_metadata_of_the_wrong_form_is_named_in_a_cause(api: Api, core: str, metadata: Json, field: str) -> None:
    said = api.create(f"{core}/configmaps", {"metadata": metadata})
    assert (said["code"], said["reason"]) == (422, "Invalid")
    causes = said["details"]["causes"]
    assert field in [cause["field"] for cause in causes]
    for cause in causes:
        assert f"{cause['field']}: {cause['message']}" in said["message"]


def test_the_server_alone_sets_uid_version_generation_and_times(api: Api, apps: str, workload: Callable) -> None:
    body = workload(replicas=0)
    body["metadata"] |= {
        "uid": "mine",
        "generation": 7,
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "selfLink": "/here",
    }
    metadata = api.create(f"{apps}/deployments", body)["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"] > "2020"
    assert metadata.keys().isdisjoint({"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"})


def test_data_of_the_wrong_type_cannot_be_read(api: Api, core: str, workload: Callable, apps: str) -> None:
    for path, body in {
        f"{core}/configmaps": {"metadata": {"name": "a"}, "data": {"b": 5}},
        f"{core}/secrets": {"metadata": {"name": "a"}, "data": []},
        f"{core}/pods": {"metadata": {"name": "a", "labels": {"b": 5}}},
        f"{apps}/deployments": workload(replicas="two"),
    }.items():
        said = api.create(path, body)
        assert (said["code"], said["reason"]) == (400, "BadRequest"), path
        assert " cannot be handled as a " in said["message"]


def test_metadata_that_is_empty_is_left_out(api: Api, core: str) -> None:
    empty: Json = {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": [], "generateName": ""}
    made = api.create(f"{core}/configmaps", {"metadata": {"name": "a", **empty}})
    assert made["metadata"].keys().isdisjoint(empty)


def test_an_object_to_be_created_has_no_version_yet(api: Api, core: str) -> None:
    said = api.create(f"{core}/configmaps", {"metadata": {"name": "a", "resourceVersion": "5"}})
    assert said["code"] == 500
    assert said["message"] == "resourceVersion should not be set on objects to be created"


def test_what_belongs_to_the_status_subresource_is_dropped_at_creation(
    api: Api, core: str, pod: Callable[..., Json], apps: str, workload: Callable[..., Json]
) -> None:
    made = api.create(f"{core}/pods", {**pod(), "status": {"phase": "Failed", "podIP": "10.0.0.1"}})
    assert made["status"]["phase"] == "Pending"
    assert "podIP" not in made["status"]
    made = api.create(f"{apps}/deployments", {**workload(replicas=0), "status": {"replicas": 3}})
    assert made["status"] == {}


def test_dry_run_answers_as_if_it_were_done_and_does_nothing(api: Api, core: str) -> None:
    maps = f"{core}/configmaps"
    made = api.create(maps, {"metadata": {"name": "a"}, "data": {"b": "1"}}, dryRun="All")
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    assert api.get(f"{maps}/a")["code"] == 404

    made = api.create(maps, {"metadata": {"name": "a"}, "data": {"b": "1"}})
    assert api.create(maps, {"metadata": {"name": "a"}}, dryRun="All")["reason"] == "AlreadyExists"
    assert api.replace(f"{maps}/a", {**made, "data": {"b": "2"}}, dryRun="All")["data"] == {"b": "2"}
    patched = api.merge(f"{maps}/a", {"data": {"b": "3"}}, dryRun="All")
    assert patched["data"] == {"b": "3"}
    assert patched["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert api.delete(f"{maps}/a", dryRun="All")["status"] == "Success"
    assert api.delete(f"{maps}/a", {"dryRun": ["All"]})["status"] == "Success"
    assert len(api.delete(maps, dryRun="All")["items"]) >= 1
    assert api.get(f"{maps}/a") == made


def test_another_dry_run_than_all_is_refused(api: Api, core: str) -> None:
    said = api.create(f"{core}/configmaps", {"metadata": {"name": "a"}}, dryRun="Some")
    assert (said["code"], said["reason"]) == (422, "Invalid")
    cause = {
        "reason": "FieldValueNotSupported",
        "message": 'Unsupported value: ["Some"]: supported values: "All"',
        "field": "dryRun",
    }
    assert said["details"]["causes"] == [cause]
