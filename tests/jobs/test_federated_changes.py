"""What a federated learning job does about the pods it sees, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from pysedna.jobs import JobOptions
from pysedna.jobs.actions import POD, SERVICE, Create, Delete, Patch
from pysedna.jobs.federated_learning.changes import diff, leftovers, names_taken
from pysedna.jobs.federated_learning.children import Children, desired

GENERATION = "sedna.io/job-generation"


@pytest.fixture
def job(make: Any) -> Any:
    return make.federated_job()


@pytest.fixture
def children(make: Any, job: Any) -> Children:
    return wanted(make, job)


def wanted(make: Any, job: Any) -> Children:
    found = make.found(make.model("model"), *(make.dataset(f"data-{index}") for index in range(3)))
    result = desired(job, found, JobOptions())
    assert isinstance(result, Children)
    return result


def everything(make: Any, children: Children, **pod: Any) -> list[Any]:
    manifests = [*children.pods.values(), *children.services.values()]
    return [make.live(manifest, **(pod if manifest["kind"] == "Pod" else {})) for manifest in manifests]


def told(actions: list[Any]) -> list[tuple[str, str]]:
    return [
        (type(action).__name__, action.manifest["metadata"]["name"] if isinstance(action, Create) else action.key.name)
        for action in actions
    ]


def test_everything_is_created_when_nothing_is_there(make: Any, job: Any, children: Children) -> None:
    assert told(diff(children, make.observed(), job)) == [
        ("Create", "defects-aggregation"),
        ("Create", "defects-aggregation-0"),
        ("Create", "defects-train-0"),
        ("Create", "defects-train-1"),
    ]


def test_nothing_is_done_when_everything_is_there(make: Any, job: Any, children: Children) -> None:
    assert diff(children, make.observed(*everything(make, children)), job) == []


def test_fault_3_whatever_is_missing_comes_back_under_its_own_name_how_ever_often(
    make: Any, job: Any, children: Children
) -> None:
    for missing in [*children.pods, *children.services]:
        left = [child for child in everything(make, children) if child.name != missing]
        assert told(diff(children, make.observed(*left), job)) == [("Create", missing)]


def test_fault_6_each_missing_child_is_created_by_itself_whatever_else_exists(
    make: Any, job: Any, children: Children
) -> None:
    only = [child for child in everything(make, children) if child.name == "defects-aggregation-0"]
    assert told(diff(children, make.observed(*only), job)) == [
        ("Create", "defects-aggregation"),
        ("Create", "defects-train-0"),
        ("Create", "defects-train-1"),
    ]


def test_a_pod_that_is_on_its_way_out_is_waited_for(make: Any, job: Any, children: Children) -> None:
    leaving = everything(make, children, deletionTimestamp="2026-01-01T00:00:00Z")
    assert diff(children, make.observed(*leaving), job) == []


def test_fault_4_an_edit_deletes_all_pods_of_the_old_spec_and_creates_none_beside_them(
    make: Any, children: Children
) -> None:
    manifest = make.federated_manifest(generation=2)
    manifest["spec"]["trainingWorkers"][0]["template"]["spec"]["containers"][0]["env"][0]["value"] = "16"
    job = make.federated_job(manifest)
    old = everything(make, children)
    actions = diff(wanted(make, job), make.observed(*old), job)
    assert actions == [
        Delete(POD, pod.key, pod.uid, "the spec of the job has changed") for pod in old if pod.kind == "Pod"
    ]
    last = [make.live(children.pods["defects-train-1"], deletionTimestamp="2026-01-01T00:00:00Z")]
    service = [child for child in old if child.kind == "Service"]
    assert diff(wanted(make, job), make.observed(*last, *service), job) == [], "the last old pod is waited for"
    assert len(diff(wanted(make, job), make.observed(*service), job)) == 3


def test_workers_beyond_the_wanted_number_are_deleted(make: Any, job: Any) -> None:
    three = wanted(make, make.federated_job(make.federated_manifest(trainers=3)))
    actions = diff(wanted(make, job), make.observed(*everything(make, three)), job)
    assert sorted(told(actions)) == sorted(("Delete", name) for name in three.pods), "the whole job rolls"


def test_a_child_made_for_a_later_generation_is_left_alone(make: Any, job: Any, children: Children) -> None:
    manifest = make.federated_manifest(generation=2, trainers=1)
    newer = wanted(make, make.federated_job(manifest))
    assert diff(children, make.observed(*everything(make, newer)), job) == []


def test_a_job_that_is_being_deleted_creates_and_deletes_nothing(make: Any, children: Children) -> None:
    manifest = make.federated_manifest()
    manifest["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["foregroundDeletion"])
    job = make.federated_job(manifest)
    assert diff(children, make.observed(), job) == []
    assert leftovers(everything(make, children), job) == []


def test_a_name_that_somebody_else_has_is_told_and_left_alone(make: Any, job: Any, children: Children) -> None:
    foreign = make.live(children.pods["defects-train-0"], ownerReferences=[])
    seen = make.observed(
        *(child for child in everything(make, children) if child.name != foreign.name),
        taken={(POD, foreign.name): foreign},
    )
    assert diff(children, seen, job) == []
    (problem,) = names_taken(children, seen)
    assert problem.reason == "NameTaken"
    assert "Pod defects-train-0 is in the way" in problem.message


def test_a_service_that_leads_astray_is_set_right(make: Any, job: Any, children: Children) -> None:
    manifest = children.services["defects-aggregation"]
    astray = make.live({**manifest, "spec": {**manifest["spec"], "selector": {"app": "other"}}}, version=5)
    actions = diff(children, make.observed(astray, *everything(make, children)[:3]), job)
    wanted_selector = manifest["spec"]["selector"]
    assert actions == [
        Patch(
            SERVICE,
            astray.key,
            {"metadata": {"resourceVersion": "5"}, "spec": {"selector": {"app": None, **wanted_selector}}},
            "it did not lead to the workers",
        )
    ]


def test_what_the_server_adds_to_a_service_is_no_difference(make: Any, job: Any, children: Children) -> None:
    manifest = children.services["defects-aggregation"]
    spec = {**manifest["spec"], "clusterIP": "10.0.0.9", "sessionAffinity": "None"}
    spec["ports"] = [{**spec["ports"][0], "nodePort": 0}]
    stored = make.live({**manifest, "spec": spec})
    assert diff(children, make.observed(stored, *everything(make, children)[:3]), job) == []


def test_a_finished_job_stops_what_still_runs_and_keeps_what_has_ended(make: Any, job: Any, children: Children) -> None:
    aggregator, first, second = (
        make.live(manifest, status={"phase": phase})
        for manifest, phase in zip(children.pods.values(), ("Running", "Succeeded", "Failed"), strict=True)
    )
    assert told(leftovers([aggregator, first, second], job)) == [("Delete", "defects-aggregation-0")]


def test_a_stamp_that_is_no_number_is_no_stamp(make: Any, job: Any, children: Children) -> None:
    odd = [make.live(manifest, annotations={GENERATION: "soon"}) for manifest in children.pods.values()]
    service = make.live(children.services["defects-aggregation"])
    assert diff(children, make.observed(*odd, service), job) == []
