"""What a federated learning job's status says about the pods it has, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from pysedna.jobs import JobOptions
from pysedna.jobs import conditions as c
from pysedna.jobs.federated_learning.children import Children, desired
from pysedna.jobs.federated_learning.progress import finishes, is_finished, status
from pysedna.jobs.problems import Problem

NOW = "2026-01-02T03:04:05Z"
GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def pods(make: Any, *phases: str | None, **metadata: Any) -> list[Any]:
    """The pods of a job of two trainers in these phases; None for one that is missing."""
    found = make.found(make.model("model"), make.dataset("data-0"), make.dataset("data-1"))
    children = desired(make.federated_job(), found, JobOptions())
    assert isinstance(children, Children)
    return [
        make.live(manifest, status={"phase": phase}, **metadata)
        for manifest, phase in zip(children.pods.values(), phases, strict=True)
        if phase is not None
    ]


def condition(change: Any, type: str) -> dict[str, Any]:
    return dict(c.find(change.conditions, type) or {})


@pytest.mark.parametrize(
    ("phases", "phase", "active", "succeeded"),
    [
        ((None, None, None), "Pending", 0, 0),
        (("Pending", "Pending", None), "Pending", 2, 0),
        (("Running", "Pending", "Pending"), "Running", 3, 0),
        (("Running", "Running", "Running"), "Running", 3, 0),
        (("Running", "Succeeded", "Succeeded"), "Running", 1, 2),
        (("Succeeded", "Succeeded", "Running"), "Running", 1, 2),
        (("Succeeded", "Succeeded", None), "Running", 0, 2),
    ],
)
def test_counts_and_phase_of_a_job_on_its_way(make: Any, phases: Any, phase: str, active: int, succeeded: int) -> None:
    change = status(make.federated_job(), pods(make, *phases), problem=None, now=NOW)
    assert change.fields == {
        "active": active,
        "succeeded": succeeded,
        "failed": 0,
        "phase": phase,
        "startTime": NOW,
        "observedGeneration": 1,
    }
    assert not is_finished(change.conditions)


def test_a_job_has_succeeded_when_every_worker_has(make: Any) -> None:
    change = status(make.federated_job(), pods(make, *["Succeeded"] * 3), problem=None, now=NOW)
    assert (change.fields["phase"], change.fields["succeeded"], change.fields["completionTime"]) == (
        "Succeeded",
        3,
        NOW,
    )
    assert condition(change, "Complete")["status"] == "True"
    assert [(note.type, note.reason) for note in change.notes] == [("Normal", "Completed")]


def test_the_trainers_decide_if_the_job_says_so(make: Any) -> None:
    manifest = make.federated_manifest()
    manifest["metadata"]["annotations"] = {"sedna.io/completion-policy": "TrainingWorkers"}
    there = pods(make, "Running", "Succeeded", "Succeeded")
    assert not finishes(make.federated_job(), there)
    change = status(make.federated_job(manifest), there, problem=None, now=NOW)
    assert (change.fields["phase"], change.fields["active"]) == ("Succeeded", 1)


def test_a_failed_worker_fails_the_job_and_says_which_and_why(make: Any) -> None:
    there = pods(make, "Running", "Running", None)
    ended = {"name": "worker", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    lost = pods(make, None, None, "Failed")[0].to_dict()
    lost["status"].update(reason="Evicted", message="out of memory", containerStatuses=[ended])
    change = status(make.federated_job(), [*there, make.live(lost)], problem=None, now=NOW)
    assert (change.fields["phase"], change.fields["failed"], change.fields["active"]) == ("Failed", 1, 2)
    failed = condition(change, "Failed")
    assert failed["reason"] == "workerFailed"
    assert failed["message"] == (
        "pod defects-train-1 failed: Evicted, out of memory, container worker ended with exit code 137 (OOMKilled)"
    )
    assert [(note.type, note.reason) for note in change.notes] == [("Warning", "workerFailed")]
    assert "completionTime" not in change.fields


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_is_being_deleted_decides_nothing_whatever_its_phase(make: Any, phase: str) -> None:
    assert not finishes(make.federated_job(), pods(make, phase, phase, phase, **GONE))


def test_pods_of_an_older_spec_decide_nothing(make: Any) -> None:
    manifest = make.federated_manifest(generation=2)
    manifest["spec"]["trainingWorkers"][0]["dataset"]["name"] = "data-1"
    assert not finishes(make.federated_job(manifest), pods(make, "Failed", "Succeeded", "Succeeded"))


def finished(make: Any, *, generation: int = 1) -> Any:
    manifest = make.federated_manifest()
    change = status(make.federated_job(), pods(make, *["Succeeded"] * 3), problem=None, now=NOW)
    manifest["status"] = {**change.fields, "conditions": list(change.conditions)}
    manifest["metadata"]["generation"] = generation
    return make.federated_job(manifest)


def test_fault_5_what_has_ended_stays_as_told_when_its_pods_go_away(make: Any) -> None:
    job = finished(make)
    change = status(job, [], problem=None, now="later")
    assert change.fields == {"active": 0, "observedGeneration": 1}
    assert list(change.conditions) == list(job.conditions)
    assert not change.notes


def test_an_edit_of_a_finished_job_is_answered_by_a_condition_and_once_by_an_event(make: Any) -> None:
    job = finished(make, generation=2)
    change = status(job, [], problem=None, now=NOW)
    said = condition(change, "SpecChanged")
    assert (said["status"], said["reason"]) == ("True", "JobFinished")
    assert "create a new job" in said["message"]
    assert condition(change, "Complete")["status"] == "True"
    assert [note.reason for note in change.notes] == ["JobFinished"]
    again = status(job.with_status({**job.status, "conditions": change.conditions}), [], problem=None, now="later")
    assert (list(again.conditions), again.notes) == (list(change.conditions), [])


def test_a_problem_is_a_condition_and_an_event_once_and_goes_when_it_is_solved(make: Any) -> None:
    problem = Problem("ModelNotFound", "Model model does not exist")
    job = make.federated_job()
    first = status(job, [], problem=problem, now=NOW)
    assert condition(first, "Pending") == {
        "type": "Pending",
        "status": "True",
        "reason": "ModelNotFound",
        "message": "Model model does not exist",
        "lastHeartbeatTime": NOW,
        "lastTransitionTime": NOW,
    }
    assert "startTime" not in first.fields
    assert [(note.type, note.reason) for note in first.notes] == [("Warning", "ModelNotFound")]
    job = job.with_status({**first.fields, "conditions": first.conditions})
    again = status(job, [], problem=problem, now="later")
    assert (list(again.conditions), again.notes) == (list(first.conditions), [])
    solved = status(job, pods(make, *["Running"] * 3), problem=None, now="later")
    assert condition(solved, "Pending")["status"] == "False"


def test_a_problem_of_workers_that_are_all_there_is_none(make: Any) -> None:
    change = status(make.federated_job(), pods(make, *["Running"] * 3), problem=Problem("X", "y"), now=NOW)
    assert condition(change, "Pending") == {}


def test_training_says_what_is_waited_for_and_what_is_wrong(make: Any) -> None:
    job = make.federated_job()
    starting = status(job, pods(make, "Running", "Pending", None), problem=None, now=NOW)
    assert (condition(starting, "Training")["status"], condition(starting, "Training")["message"]) == (
        "False",
        "waiting for defects-train-0, defects-train-1",
    )
    crashing = pods(make, "Running", "Running", "Running")
    obj = crashing[2].to_dict()
    obj["status"]["containerStatuses"] = [
        {
            "name": "worker",
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}},
        }
    ]
    crashed = status(job, [*crashing[:2], make.live(obj)], problem=None, now=NOW)
    assert condition(crashed, "Training")["reason"] == "CrashLoopBackOff"
    assert condition(crashed, "Training")["message"] == (
        "pod defects-train-1: container worker is in CrashLoopBackOff: ended with exit code 3"
    )
    well = status(job, crashing, problem=None, now=NOW)
    assert condition(well, "Training")["status"] == "True"


def test_fault_19_a_round_that_the_edge_has_reported_is_not_overwritten(make: Any) -> None:
    reported = [
        {"type": "Training", "status": "True", "reason": "DoTraining", "message": "Round 1"},
        {"type": "Training", "status": "True", "reason": "DoTraining", "message": "Round 2"},
        {"type": "Custom", "status": "True"},
    ]
    job = make.federated_job().with_status({"conditions": reported})
    change = status(job, pods(make, *["Running"] * 3), problem=None, now=NOW)
    assert list(change.conditions) == reported


def test_fault_19_reported_rounds_outlive_a_worker_that_starts_again_and_the_end(make: Any) -> None:
    rounds = [
        {"type": "Training", "status": "True", "reason": "DoTraining", "message": f"Round {number}"}
        for number in (1, 2)
    ]
    job = make.federated_job().with_status({"conditions": rounds})
    waiting = status(job, pods(make, "Running", "Running", "Pending"), problem=None, now=NOW)
    assert list(waiting.conditions)[:2] == rounds
    assert condition(waiting, "Training")["reason"] == "WorkersStarting"
    job = job.with_status({"conditions": waiting.conditions})
    assert status(job, pods(make, "Running", "Running", "Pending"), problem=None, now="later").conditions == (
        waiting.conditions
    )
    again = status(job, pods(make, *["Running"] * 3), problem=None, now=NOW)
    assert [one["reason"] for one in again.conditions] == ["DoTraining", "DoTraining", "WorkersRunning"]
    job = job.with_status({"conditions": again.conditions})
    ended = status(job, pods(make, *["Succeeded"] * 3), problem=None, now=NOW)
    assert list(ended.conditions)[:2] == rounds
    assert condition(ended, "Training")["status"] == "False"
    assert condition(ended, "Complete")["status"] == "True"
