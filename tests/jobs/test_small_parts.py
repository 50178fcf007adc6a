"""Conditions, ports, pod states, status patches and notices to the edge, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from informers import Object, ObjectKey
from informers.errors import ConflictError
from informers.testing import FakeClient
from pysedna.api import crds
from pysedna.edge import NullSink, SinkUnavailable
from pysedna.jobs import conditions as c
from pysedna.jobs.edge_notices import EdgeNotices
from pysedna.jobs.pod_state import PodState, failure, pod_state, pod_trouble
from pysedna.jobs.ports import Occupant, check_ports
from pysedna.jobs.problems import Problem, combined
from pysedna.jobs.status import StatusChange, patch_of
from pysedna.jobs.status_writer import write_status
from pysedna.testing import FakeRecorder, RecordingSink

KEY = ObjectKey("ns", "defects")

# Conditions


def test_a_condition_that_says_the_same_again_is_not_changed() -> None:
    first = c.set_condition([], "A", True, now="t1", reason="R", message="m")
    assert c.set_condition(first, "A", True, now="t2", reason="R", message="m") == first


def test_the_transition_time_moves_with_the_status_only() -> None:
    first = c.set_condition([], "A", True, now="t1", reason="R")
    (said,) = c.set_condition(first, "A", True, now="t2", reason="S")
    assert (said["lastTransitionTime"], said["lastHeartbeatTime"], said["reason"]) == ("t1", "t2", "S")
    (turned,) = c.set_condition(first, "A", False, now="t3")
    assert (turned["lastTransitionTime"], turned["status"], "reason" in turned) == ("t3", "False", False)


def test_conditions_of_other_types_keep_their_place_and_older_ones_of_this_type_go() -> None:
    old: list[Any] = [{"type": "A", "status": "False"}, {"type": "B", "status": "x"}, {"type": "A", "status": "True"}]
    assert [condition["type"] for condition in c.set_condition(old, "A", False, now="t")] == ["B", "A"]
    assert c.set_condition(old, "C", True, now="t")[:3] == old


def test_clearing_what_was_never_said_says_nothing() -> None:
    assert c.clear([], "A", now="t") == []
    assert c.clear([{"type": "A", "status": "True"}], "A", now="t")[0]["status"] == "False"


def test_several_problems_are_told_as_one() -> None:
    assert combined([]) is None
    assert combined([Problem("A", "one"), Problem("B", "two"), Problem("A", "one")]) == Problem("A", "one; two")


# Ports


def worker(name: str, *ports: dict[str, Any], listens: int | None = None, **spec: Any) -> Occupant:
    return Occupant(name, {"containers": [{"name": "c", "ports": list(ports)}], **spec}, listens)


@pytest.mark.parametrize(
    ("workers", "clash"),
    [
        ([worker("a", {"containerPort": 80}, nodeName="n"), worker("b", {"containerPort": 80}, nodeName="n")], None),
        (
            [
                worker("a", {"containerPort": 80}, nodeName="n", hostNetwork=True),
                worker("b", {"containerPort": 1, "hostPort": 80}, nodeName="n"),
            ],
            "a and b both need TCP port 80 of node n",
        ),
        (
            [
                worker("a", {"containerPort": 80}, nodeName="n", hostNetwork=True),
                worker("b", {"containerPort": 80, "protocol": "UDP"}, nodeName="n", hostNetwork=True),
            ],
            None,
        ),
        (
            [
                worker("a", {"containerPort": 80}, hostNetwork=True),
                worker("b", {"containerPort": 80}, hostNetwork=True),
            ],
            None,
        ),
        (
            [
                worker("a", nodeName="n", hostNetwork=True, listens=7363),
                worker("b", {"hostPort": 7363}, nodeName="n"),
            ],
            "a and b both need TCP port 7363 of node n",
        ),
        ([worker("a", {"containerPort": 7363}, hostNetwork=True, listens=7363)], None),
        ([worker("a", nodeName="n", listens=7363), worker("b", {"hostPort": 7363}, nodeName="n")], None),
        ([worker("a", {"hostPort": 80}, {"hostPort": 80})], "a needs TCP port 80 of its node twice"),
    ],
)
def test_workers_pinned_to_one_node_may_not_want_one_port_of_it(workers: list[Occupant], clash: str | None) -> None:
    problem = check_ports(workers)
    assert (problem is None) == (clash is None)
    assert problem is None or (clash or "") in problem.message


# Pods


def pod(**parts: Any) -> Object:
    metadata = {"name": "p", "namespace": "ns", **parts.pop("metadata", {})}
    return Object.from_dict({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **parts})


@pytest.mark.parametrize(
    ("phase", "state"),
    [
        (None, PodState.WAITING),
        ("Pending", PodState.WAITING),
        ("Unknown", PodState.WAITING),
        ("Running", PodState.RUNNING),
        ("Succeeded", PodState.SUCCEEDED),
        ("Failed", PodState.FAILED),
    ],
)
def test_the_phase_of_a_pod_counts_until_it_is_being_deleted(phase: str | None, state: PodState) -> None:
    assert pod_state(pod(status={"phase": phase})) is state
    assert pod_state(pod(status={"phase": phase}, metadata={"deletionTimestamp": "t"})) is PodState.STOPPING


def test_a_pod_that_finds_no_node_and_an_init_container_that_cannot_start_are_told() -> None:
    unbound = {
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}]
    }
    assert pod_trouble(pod(status=unbound)) == Problem("Unschedulable", "pod p has no node: full")
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    init = {"initContainerStatuses": [{"name": "storage-initializer", "state": waiting}]}
    assert pod_trouble(pod(status=init)) == Problem(
        "ImagePullBackOff", "pod p: container storage-initializer is in ImagePullBackOff: no such image"
    )
    creating = {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}]}
    assert pod_trouble(pod(status=creating)) is None
    assert pod_trouble(pod()) is None


def test_a_failure_without_words_still_names_the_pod() -> None:
    assert failure(pod(status={"phase": "Failed"})) == "pod p failed"


# Status


def test_a_patch_holds_owned_fields_that_differ_and_the_version_of_what_was_read() -> None:
    change = StatusChange({"active": 2, "failed": 0}, [{"type": "A", "status": "True"}])
    status = {"active": 1, "failed": 0, "metrics": [1], "conditions": [{"type": "A", "status": "True"}]}
    assert patch_of(change, status, "7") == {"metadata": {"resourceVersion": "7"}, "status": {"active": 2}}
    assert patch_of(change, {**status, "active": 2}, "7") is None


@pytest.fixture
def client(make: Any) -> FakeClient:
    manifest = make.federated_manifest()
    manifest["metadata"] = {"name": "defects", "namespace": "ns"}
    return FakeClient(manifest, kinds=crds())


def jobs(client: FakeClient) -> Any:
    return client.resource("sedna.io/v1alpha1", "FederatedLearningJob")


def active(number: int) -> Any:
    return lambda status: StatusChange({"active": number}, status.get("conditions") or [])


def test_fault_19_a_status_is_computed_anew_on_top_of_what_others_wrote(client: FakeClient) -> None:
    seen = jobs(client).get(KEY)
    theirs = [{"type": "Custom", "status": "True"}]
    jobs(client).patch(KEY, {"status": {"conditions": theirs}}, subresource="status")

    def compute(status: Any) -> StatusChange:
        return StatusChange({}, c.set_condition(status.get("conditions") or [], "Ours", True, now="t"))

    write_status(jobs(client), seen, compute, FakeRecorder())
    (stored,) = client.stored("sedna.io/v1alpha1", "FederatedLearningJob", KEY)
    assert [condition["type"] for condition in stored["status"]["conditions"]] == ["Custom", "Ours"]


@pytest.mark.parametrize("how", ["edited", "gone", "another", "leaving"])
def test_a_status_that_is_about_an_older_job_is_dropped(client: FakeClient, make: Any, how: str) -> None:
    seen = jobs(client).get(KEY)
    if how == "edited":
        jobs(client).patch(KEY, {"spec": {"trainingWorkers": []}})
    elif how == "leaving":
        jobs(client).delete(KEY, propagation="Foreground")
    else:
        jobs(client).delete(KEY)
    if how == "another":
        jobs(client).create({**seen.to_dict(), "metadata": {"name": "defects", "namespace": "ns"}})
    write_status(jobs(client), seen, active(9), FakeRecorder())
    assert all("status" not in obj for obj in client.stored("sedna.io/v1alpha1", "FederatedLearningJob"))


def test_a_status_that_always_meets_a_faster_writer_is_given_back_to_be_tried_later(client: FakeClient) -> None:
    client.fail_next("patch", "FederatedLearningJob", ConflictError("busy"), times=9)
    with pytest.raises(ConflictError):
        write_status(jobs(client), jobs(client).get(KEY), active(9), FakeRecorder())


def test_an_event_is_recorded_only_when_the_status_was_written(client: FakeClient) -> None:
    recorder = FakeRecorder()

    def compute(status: Any) -> StatusChange:
        return StatusChange({"active": 1}, [], [c.Note("Warning", "R", "m")])

    for _ in range(2):
        write_status(jobs(client), jobs(client).get(KEY), compute, recorder)
    assert [str(event) for event in recorder.events] == ["Warning R m"]


# The edge


def job_object(*, uid: str = "u1", generation: int = 1, version: int = 1) -> Object:
    metadata = {"name": "j", "namespace": "ns", "uid": uid, "generation": generation, "resourceVersion": str(version)}
    return Object.from_dict({"apiVersion": "sedna.io/v1alpha1", "kind": "FederatedLearningJob", "metadata": metadata})


def told(sink: RecordingSink) -> list[tuple[str, str]]:
    return [(sent.node, sent.op) for sent in sink.take()]


def test_a_node_hears_of_a_spec_once_and_of_each_change_once() -> None:
    sink = RecordingSink()
    notices = EdgeNotices(sink)
    notices.present(job_object(), ["a", "b", "a"])
    assert told(sink) == [("a", "insert"), ("b", "insert")]
    notices.present(job_object(version=2), ["a", "b"])
    assert told(sink) == []
    notices.present(job_object(version=3), ["c"])
    assert told(sink) == [("c", "insert")], "a worker that is not bound at the moment is not gone"
    notices.present(job_object(generation=2), ["b"])
    assert told(sink) == [("b", "insert"), ("a", "delete"), ("c", "delete")]
    notices.gone(ObjectKey("ns", "j"))
    assert told(sink) == [("b", "delete")]
    assert len(notices) == 0
    notices.gone(ObjectKey("ns", "j"))
    assert told(sink) == []


def test_a_job_made_again_under_its_name_is_told_anew() -> None:
    sink = RecordingSink()
    notices = EdgeNotices(sink)
    notices.present(job_object(), ["a", "b"])
    sink.take()
    notices.present(job_object(uid="u2"), ["b"])
    (insert, delete) = sink.take()
    assert (insert.node, insert.op, insert.obj.uid) == ("b", "insert", "u2")
    assert (delete.node, delete.op, delete.obj.uid) == ("a", "delete", "u1")


@pytest.mark.parametrize("op", ["present", "gone"])
def test_what_the_sink_refused_is_sent_when_it_is_called_again_and_nothing_twice(op: str) -> None:
    sink = RecordingSink()
    notices = EdgeNotices(sink)
    if op == "gone":
        notices.present(job_object(), ["a"])
        sink.take()
    sink.refuse_with(SinkUnavailable("no"))

    def again() -> None:
        if op == "present":
            notices.present(job_object(), ["a"])
        else:
            notices.gone(ObjectKey("ns", "j"))

    with pytest.raises(SinkUnavailable):
        again()
    sink.refuse_with(None)
    again()
    again()
    assert told(sink) == [("a", "insert" if op == "present" else "delete")]


def test_a_cluster_without_an_edge_tells_nobody() -> None:
    NullSink().send("a", "insert", job_object())
