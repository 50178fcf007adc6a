"""What a ReplicaSet needs, and which pods go first."""

from __future__ import annotations

from typing import Any

import pytest

from pysedna.localcluster.controllers.replica_set_plan import DELETION_COST, deletion_rank, plan, pod_of

NOW = 1_800_000_000.0
Json = dict[str, Any]


def replica_set(replicas: int = 2, **more: Any) -> Json:
    spec = {"replicas": replicas, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}}
    metadata = {"name": "web-abc", "namespace": "ns", "uid": "rs", "generation": 3, **more.pop("metadata", {})}
    return {"metadata": metadata, "spec": {**spec, **more}, "status": {"replicas": 0}}


def pod(name: str = "p", *, ready: str | None = "2027-01-15T07:00:00Z", **more: Any) -> Json:
    status: Json = {"phase": "Running", "conditions": []}
    if ready:
        status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}]
    metadata = {"name": name, "labels": {"app": "web"}, "creationTimestamp": "2027-01-15T06:00:00Z"}
    return {
        "metadata": {**metadata, **more.get("metadata", {})},
        "spec": {"nodeName": "n", **more.get("spec", {})},
        "status": {**status, **more.get("status", {})},
    }


DELETING = {"deletionTimestamp": "2027-01-15T08:00:00Z"}


@pytest.mark.parametrize(
    ("wanted", "pods", "create", "delete"),
    [
        (2, [], 2, 0),
        (2, [pod("a")], 1, 0),
        (2, [pod("a"), pod("b")], 0, 0),
        (1, [pod("a"), pod("b"), pod("c")], 0, 2),
        (0, [pod("a")], 0, 1),
        (1, [pod("a", metadata=DELETING)], 1, 0),
        (1, [pod("a", status={"phase": "Failed"})], 1, 0),
        (1, [pod("a", status={"phase": "Succeeded"})], 1, 0),
    ],
    ids=["none", "one missing", "enough", "surplus", "scaled to 0", "one is going", "one failed", "one ended"],
)
def test_as_many_pods_as_wanted(wanted: int, pods: list[Json], create: int, delete: int) -> None:
    found = plan(replica_set(wanted), pods, NOW)
    assert (found.create, len(found.delete)) == (create, delete)


def test_one_that_is_being_deleted_makes_and_deletes_nothing() -> None:
    found = plan(replica_set(2, metadata=DELETING), [pod("a"), pod("b"), pod("c")], NOW)
    assert (found.create, found.delete) == (0, ())
    assert plan(replica_set(2, metadata=DELETING), [], NOW).create == 0


GOING_FIRST = [
    ("not on a node", pod("x", spec={"nodeName": ""}), pod("a", status={"phase": "Pending"})),
    ("pending", pod("x", status={"phase": "Pending"}, ready=None), pod("a", ready=None)),
    ("not ready", pod("x", ready=None), pod("a", metadata={"annotations": {DELETION_COST: "-9"}})),
    ("cheaper", pod("x", metadata={"annotations": {DELETION_COST: "-1"}}), pod("a", ready="2027-01-15T07:59:59Z")),
    ("ready for a shorter time", pod("x", ready="2027-01-15T07:59:30Z"), pod("a")),
    ("restarted more", pod("x", status={"containerStatuses": [{"restartCount": 2}]}), pod("a")),
    ("younger", pod("x", metadata={"creationTimestamp": "2027-01-15T07:59:00Z"}), pod("a")),
    ("by name, should all be equal", pod("a"), pod("b")),
]


@pytest.mark.parametrize(("rule", "first", "second"), GOING_FIRST, ids=[row[0] for row in GOING_FIRST])
def test_who_goes_first(rule: str, first: Json, second: Json) -> None:
    assert deletion_rank(first, NOW) < deletion_rank(second, NOW)
    assert plan(replica_set(1), [second, first], NOW).delete == (first,)


def test_the_status_counts() -> None:
    pods = [pod("a"), pod("b", ready=None), pod("c", metadata={"labels": {}}), pod("d", metadata=DELETING)]
    status = plan(replica_set(3), pods, NOW).status
    assert status == {
        "replicas": 3,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 3,
    }


def test_a_pod_is_available_when_it_was_ready_long_enough() -> None:
    found = plan(replica_set(2, minReadySeconds=60), [pod("a"), pod("b", ready="2027-01-15T07:59:30Z")], NOW)
    assert (found.status["readyReplicas"], found.status["availableReplicas"]) == (2, 1)
    assert found.wake == NOW + 30


def test_a_pod_is_made_of_the_template() -> None:
    made = pod_of(replica_set(), {"uid": "rs"})
    assert made["metadata"] == {
        "labels": {"app": "web"},
        "generateName": "web-abc-",
        "namespace": "ns",
        "ownerReferences": [{"uid": "rs"}],
    }
    assert made["spec"] == {"containers": []}
