"""Deleting: answers, preconditions, finalizers, grace periods, propagation, collections, namespaces."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any
    Make = Callable[..., Json]
    Eventually = Callable[[Callable[[], object]], None]

FINALIZER = "example.com/hold"


def _held(name: str = "a", **metadata: Any) -> Json:
    return {"metadata": {"name": name, "finalizers": [FINALIZER], **metadata}}


def _seconds_left(metadata: Json) -> float:
    first, last = (datetime.fromisoformat(metadata[f"{which}Timestamp"]) for which in ("creation", "deletion"))
    return (last - first).total_seconds()


@pytest.fixture
def maps(core: str) -> str:
    return f"{core}/configmaps"


def test_a_delete_answers_with_a_status_or_for_some_kinds_with_the_object(
    api: Api, core: str, maps: str, pod: Make
) -> None:
    made = api.create(maps, {"metadata": {"name": "a"}})
    answer = api.delete(f"{maps}/a")
    assert answer == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]},
    }
    api.create(f"{core}/serviceaccounts", {"metadata": {"name": "a"}})
    assert api.delete(f"{core}/serviceaccounts/a")["kind"] == "ServiceAccount"
    api.create(f"{core}/pods", pod())
    assert api.delete(f"{core}/pods/p", gracePeriodSeconds="0")["kind"] == "Pod"


def test_what_is_not_there_cannot_be_deleted(api: Api, maps: str) -> None:
    said = api.delete(f"{maps}/a")
    assert (said["code"], said["reason"]) == (404, "NotFound")
    assert said["details"] == {"name": "a", "kind": "configmaps"}


def test_the_old_way_to_say_orphan_is_done_or_refused(api: Api, maps: str) -> None:
    api.create(maps, _held())
    said = api.delete(f"{maps}/a", {"orphanDependents": True})
    assert said.get("code") == 400 or "orphan" in said["metadata"]["finalizers"]
    api.merge(f"{maps}/a", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_delete_whose_precondition_does_not_hold_is_a_conflict(api: Api, maps: str, field: str) -> None:
    made = api.create(maps, {"metadata": {"name": "a"}})
    said = api.delete(f"{maps}/a", {"preconditions": {field: "1"}})
    assert (said["code"], said["reason"]) == (409, "Conflict")
    found = made["metadata"][field]
    name = {"uid": "UID", "resourceVersion": "ResourceVersion"}[field]
    assert f"the {name} in the precondition (1) does not match the {name} in record ({found})" in said["message"]
    assert api.delete(f"{maps}/a", {"preconditions": {field: found}})["status"] == "Success"
    assert api.get(f"{maps}/a")["code"] == 404


def test_a_finalizer_holds_a_deleted_object_until_it_is_taken_away(api: Api, maps: str) -> None:
    api.create(maps, _held())
    marked = api.delete(f"{maps}/a")
    assert marked["kind"] == "ConfigMap"
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    again = api.delete(f"{maps}/a")
    assert again["metadata"] == marked["metadata"] == api.get(f"{maps}/a")["metadata"]
    assert api.create(maps, {"metadata": {"name": "a"}})["reason"] == "AlreadyExists"

    assert api.merge(f"{maps}/a", {"data": {"still": "writable"}})["data"] == {"still": "writable"}
    last = api.merge(f"{maps}/a", {"metadata": {"finalizers": None}})
    assert last["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    assert "finalizers" not in last["metadata"]
    assert api.get(f"{maps}/a")["code"] == 404


def test_an_object_that_is_being_deleted_takes_no_new_finalizers(api: Api, maps: str) -> None:
    api.create(maps, _held())
    api.delete(f"{maps}/a")
    said = api.merge(f"{maps}/a", {"metadata": {"finalizers": [FINALIZER, "example.com/more"]}})
    assert (said["code"], said["reason"]) == (422, "Invalid")
    [cause] = said["details"]["causes"]
    assert cause == {
        "reason": "FieldValueForbidden",
        "field": "metadata.finalizers",
        "message": "Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"example.com/more"}',
    }
    api.merge(f"{maps}/a", {"metadata": {"finalizers": None}})


def test_a_mark_cannot_be_taken_back(api: Api, maps: str) -> None:
    api.create(maps, _held())
    marked = api.delete(f"{maps}/a")
    metadata = {"deletionTimestamp": None, "deletionGracePeriodSeconds": None, "labels": {"a": "b"}}
    written = api.merge(f"{maps}/a", {"metadata": metadata})
    assert written["metadata"]["labels"] == {"a": "b"}
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        assert written["metadata"][field] == marked["metadata"][field]
    api.merge(f"{maps}/a", {"metadata": {"finalizers": None}})


def test_marking_an_object_moves_its_generation(api: Api, apps: str, workload: Make) -> None:
    body = workload(replicas=0)
    body["metadata"]["finalizers"] = [FINALIZER]
    api.create(f"{apps}/replicasets", body)
    assert api.delete(f"{apps}/replicasets/d")["metadata"]["generation"] == 2
    assert api.merge(f"{apps}/replicasets/d", {"metadata": {"finalizers": None}})["metadata"]["generation"] == 2


def test_a_pod_on_a_node_is_given_time(api: Api, core: str, pod: Make) -> None:
    path = f"{core}/pods/p"
    api.create(f"{core}/pods", pod(terminationGracePeriodSeconds=300))
    marked = api.delete(path)
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 300
    assert 299 <= _seconds_left(marked["metadata"]) <= 310
    assert marked["metadata"]["generation"] == 2

    assert api.delete(path, {"gracePeriodSeconds": 400})["metadata"]["deletionGracePeriodSeconds"] == 300
    shorter = api.delete(path, gracePeriodSeconds="100")
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 100
    assert 99 <= _seconds_left(shorter["metadata"]) <= 110
    assert api.delete(path, {"gracePeriodSeconds": 0})["metadata"]["name"] == "p"
    assert api.get(path)["code"] == 404


def test_a_pod_without_a_node_and_one_that_has_ended_go_at_once(api: Api, core: str, pod: Make) -> None:
    free = pod("free")
    # Nothing binds it meanwhile: the clusters of these cases have no nodes.
    del free["spec"]["nodeName"]
    api.create(f"{core}/pods", free)
    api.delete(f"{core}/pods/free")
    assert api.get(f"{core}/pods/free")["code"] == 404
    api.create(f"{core}/pods", pod("ended"))
    api.merge(f"{core}/pods/ended/status", {"status": {"phase": "Succeeded"}})
    api.delete(f"{core}/pods/ended")
    assert api.get(f"{core}/pods/ended")["code"] == 404


def test_the_propagation_becomes_a_finalizer(api: Api, maps: str) -> None:
    for policy, finalizers in {
        "Background": [FINALIZER],
        "Foreground": [FINALIZER, "foregroundDeletion"],
        "Orphan": [FINALIZER, "orphan"],
    }.items():
        name = policy.lower()
        api.create(maps, _held(name))
        marked = api.delete(f"{maps}/{name}", {"propagationPolicy": policy})
        assert sorted(marked["metadata"]["finalizers"]) == finalizers
        api.merge(f"{maps}/{name}", {"metadata": {"finalizers": None}})
    api.create(maps, _held("query"))
    marked = api.delete(f"{maps}/query", propagationPolicy="Foreground")
    assert sorted(marked["metadata"]["finalizers"]) == [FINALIZER, "foregroundDeletion"]
    api.merge(f"{maps}/query", {"metadata": {"finalizers": None}})


def test_an_unknown_propagation_is_refused(api: Api, maps: str) -> None:
    api.create(maps, {"metadata": {"name": "a"}})
    said = api.delete(f"{maps}/a", {"propagationPolicy": "Sideways"})
    assert (said["code"], said["reason"]) == (422, "Invalid")
    [cause] = said["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("propagationPolicy", "FieldValueNotSupported")
    assert api.get(f"{maps}/a")["kind"] == "ConfigMap"


def test_a_collection_is_deleted_as_its_selectors_say(api: Api, core: str, maps: str, pod: Make) -> None:
    for name, labels in {"a": {"x": "1"}, "b": {"x": "2"}, "c": {}}.items():
        api.create(maps, {"metadata": {"name": name, "labels": labels}})
    api.create(maps, _held("held", labels={"x": "1"}))
    answer = api.delete(maps, labelSelector="x=1")
    assert (answer["kind"], [item["metadata"]["name"] for item in answer["items"]]) == ("ConfigMapList", ["a", "held"])
    assert api.get(f"{maps}/a")["code"] == 404
    assert api.get(f"{maps}/held")["metadata"]["deletionTimestamp"]
    api.merge(f"{maps}/held", {"metadata": {"finalizers": None}})
    api.delete(maps, fieldSelector="metadata.name=b")
    left = {item["metadata"]["name"] for item in api.get(maps)["items"]}
    assert "c" in left
    assert left.isdisjoint({"a", "b", "held"})

    for name in ("p", "q"):
        api.create(f"{core}/pods", pod(name))
    api.delete(f"{core}/pods", {"gracePeriodSeconds": 0})
    assert api.get(f"{core}/pods")["items"] == []


@pytest.mark.slow
def test_a_namespace_goes_after_all_that_is_in_it(api: Api, core: str, maps: str, eventually: Eventually) -> None:
    api.create(maps, {"metadata": {"name": "a"}})
    api.create(maps, _held("held"))
    api.create(f"{core}/secrets", {"metadata": {"name": "s"}})
    marked = api.delete(core)
    assert marked["status"]["phase"] == "Terminating"
    assert marked["spec"] == {"finalizers": ["kubernetes"]}
    said = api.create(maps, {"metadata": {"name": "late"}})
    assert (said["code"], said["reason"]) == (403, "Forbidden")
    name = core.rpartition("/")[2]
    assert said["message"] == (
        f'configmaps "late" is forbidden: unable to create new content in namespace {name} '
        "because it is being terminated"
    )
    assert said["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
    ]

    eventually(lambda: api.get(f"{maps}/a").get("code") == 404 and api.get(f"{core}/secrets")["items"] == [])
    assert api.get(core)["status"]["phase"] == "Terminating"
    assert api.get(f"{maps}/held")["metadata"]["deletionTimestamp"]
    api.merge(f"{maps}/held", {"metadata": {"finalizers": None}})
    eventually(lambda: api.get(core).get("code") == 404)
    # so that the fixture has something to delete
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})


@pytest.mark.slow
def test_the_pods_of_a_namespace_go_before_the_rest(
    api: Api, core: str, maps: str, pod: Make, eventually: Eventually
) -> None:
    api.create(maps, {"metadata": {"name": "a"}})
    body = pod()
    body["metadata"]["finalizers"] = [FINALIZER]
    api.create(f"{core}/pods", body)
    api.delete(core)
    eventually(lambda: "deletionTimestamp" in api.get(f"{core}/pods/p")["metadata"])
    assert api.get(f"{maps}/a")["kind"] == "ConfigMap"
    api.merge(f"{core}/pods/p", {"metadata": {"finalizers": None}})
    api.delete(f"{core}/pods/p", gracePeriodSeconds="0")
    eventually(lambda: api.get(core).get("code") == 404)
    # so that the fixture has something to delete
    api.create("/api/v1/namespaces", {"metadata": {"name": core.rpartition("/")[2]}})


def test_the_default_namespace_cannot_be_deleted(api: Api) -> None:
    said = api.delete("/api/v1/namespaces/default")
    assert (said["code"], said["reason"]) == (403, "Forbidden")
    assert said["message"] == 'namespaces "default" is forbidden: this namespace may not be deleted'
