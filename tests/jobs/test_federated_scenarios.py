"""A federated learning job under the production wiring, step by step, against the API server's own store."""

from __future__ import annotations

from typing import Any

import pytest

from pysedna.jobs import federated_learning
from pysedna.testing import FakeRecorder

NAMES = ["defects-aggregation-0", "defects-train-0", "defects-train-1"]
Scene = Any  # the class in `federated_scene.py`


@pytest.fixture
def scene(federated_scene: Scene) -> Scene:
    federated_scene.references()
    return federated_scene


@pytest.fixture
def running(scene: Scene) -> Scene:
    scene.job()
    scene.settle()
    assert sorted(scene.pods()) == NAMES
    return scene


def finish(scene: Scene) -> None:
    for name in NAMES:
        scene.cluster.set_phase(name, "Succeeded")
    scene.settle()
    assert scene.status()["phase"] == "Succeeded"


def test_a_job_gets_all_its_workers_and_its_status_says_so(running: Scene) -> None:
    status = running.status()
    assert (status["phase"], status["active"], status["succeeded"], status["failed"]) == ("Running", 3, 0, 0)
    assert status["observedGeneration"] == 1
    assert running.condition("Training")["status"] == "True"
    assert running.cluster.find(running.world.SERVICE, "defects-aggregation") is not None


def test_a_deleted_worker_is_created_again_with_the_index_node_and_name_of_the_old_one(running: Scene) -> None:
    old = running.pods()["defects-train-1"]
    running.cluster.delete(running.world.POD, "defects-train-1")
    running.settle()
    new = running.pods()["defects-train-1"]
    assert sorted(running.pods()) == NAMES
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert new["spec"] == old["spec"]


def test_fault_3_a_worker_deleted_twice_in_a_row_still_comes_back_once(running: Scene) -> None:
    for _ in range(2):
        running.cluster.delete(running.world.POD, "defects-train-1", grace=0)
        running.manager.pull_all()
        running.manager.drain()
    running.settle()
    assert sorted(running.pods()) == NAMES


def test_deleting_an_unknown_pod_is_no_error(running: Scene) -> None:
    running.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "ns"}})
    running.settle()
    writes = len(running.manager.client.writes)
    running.cluster.delete(running.world.POD, "x", grace=0)
    running.settle()
    assert running.manager.errors == []
    assert len(running.manager.client.writes) == writes


def test_a_worker_that_is_gone_when_it_shall_be_deleted_is_no_error(running: Scene) -> None:
    running.edit("16")
    running.manager.pull_all()
    running.cluster.delete(running.world.POD, "defects-train-0", grace=0)
    running.settle()
    assert running.manager.errors == []
    assert sorted(running.pods()) == NAMES


def test_an_updated_job_gets_workers_with_the_new_parameters_and_the_old_ones_are_gone_first(running: Scene) -> None:
    running.edit("16")
    running.manager.pull_all()
    running.manager.drain()
    for pod in running.pods().values():
        assert "deletionTimestamp" in pod["metadata"], "nothing of the new spec beside the old one"
    running.cluster.stop_pod("defects-train-0")
    running.manager.pull_all()
    running.manager.drain()
    assert sorted(running.pods()) == ["defects-aggregation-0", "defects-train-1"], "the whole job is waited for"
    running.settle()
    assert sorted(running.pods()) == NAMES
    assert {running.environment(f"defects-train-{index}", "batch_size") for index in (0, 1)} == {"16"}


def test_fault_17_a_change_made_while_no_manager_runs_is_applied(running: Scene) -> None:
    running.manager.kill()
    running.edit("16")
    running.manager.restart()
    running.settle()
    assert running.environment("defects-train-0", "batch_size") == "16"
    assert sorted(running.pods()) == NAMES


def test_changes_of_labels_status_models_and_datasets_replace_nothing(running: Scene) -> None:
    before = {name: pod["metadata"]["uid"] for name, pod in running.pods().items()}
    running.cluster.patch(running.world.FL, "defects", {"metadata": {"labels": {"a": "b"}}})
    running.cluster.patch(running.world.FL, "defects", {"status": {"active": 99}}, subresource="status")
    running.cluster.patch(running.world.MODEL, "model", {"spec": {"url": "/elsewhere/m.pb"}})
    running.cluster.patch(running.world.DATASET, "data-0", {"spec": {"url": "/elsewhere/d.csv"}})
    running.settle()
    assert {name: pod["metadata"]["uid"] for name, pod in running.pods().items()} == before
    assert running.status()["active"] == 3


def test_fault_1_an_edit_of_one_job_touches_no_pod_of_another(running: Scene) -> None:
    running.job("other")
    running.settle()
    others = {name: pod for name, pod in running.pods().items() if name.startswith("other")}
    running.edit("16")
    running.settle()
    assert len(others) == 3
    assert {name: pod for name, pod in running.pods().items() if name.startswith("other")} == others
    assert running.environment("other-train-0", "AGG_IP") == "other-aggregation.ns"


def test_fault_5_a_finished_job_is_not_run_again_when_its_pods_go_away(running: Scene) -> None:
    finish(running)
    for name in NAMES:
        running.cluster.delete(running.world.POD, name)
    running.settle()
    assert running.pods() == {}
    assert (running.status()["phase"], running.status()["succeeded"]) == ("Succeeded", 3)


def test_fault_8_an_edit_of_a_finished_job_after_a_restart_is_answered_by_a_condition(running: Scene) -> None:
    finish(running)
    running.manager.restart()
    running.edit("16")
    running.settle()
    assert running.condition("SpecChanged")["reason"] == "JobFinished"
    assert [str(event).split()[1] for event in running.recorder.events].count("JobFinished") == 1
    assert {running.environment(f"defects-train-{index}", "batch_size") for index in (0, 1)} == {"32"}
    assert running.manager.errors == []


def test_a_failed_worker_ends_the_job_and_the_other_workers_are_stopped(running: Scene) -> None:
    running.cluster.set_phase("defects-train-0", "Failed")
    running.settle()
    assert running.status()["phase"] == "Failed"
    assert list(running.pods()) == ["defects-train-0"]
    assert "defects-train-0" in running.condition("Failed")["message"]


def test_a_worker_that_the_kubelet_calls_failed_while_it_is_being_deleted_comes_back(running: Scene) -> None:
    running.cluster.delete(running.world.POD, "defects-train-0")
    running.cluster.set_phase("defects-train-0", "Failed")
    running.settle()
    assert running.status()["phase"] == "Running"
    assert sorted(running.pods()) == NAMES


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_nothing_is_created_for_a_job_that_is_being_deleted_or_gone(running: Scene, propagation: str) -> None:
    running.cluster.delete(running.world.FL, "defects", propagation=propagation)
    running.cluster.delete(running.world.POD, "defects-train-0")
    running.cluster.stop_pod("defects-train-0")
    running.manager.pull_all()
    running.manager.drain()
    assert "defects-train-0" not in running.pods()
    running.settle()
    assert running.pods() == {}
    assert running.cluster.find(running.world.FL, "defects") is None
    assert running.cluster.find(running.world.SERVICE, "defects-aggregation") is None


def test_nothing_is_created_for_a_job_that_was_deleted_a_moment_ago_although_the_cache_still_has_it(
    running: Scene,
) -> None:
    running.cluster.delete(running.world.POD, "defects-train-0", grace=0)
    running.cluster.delete(running.world.FL, "defects", propagation="Foreground")
    running.manager.pull(running.world.POD)
    running.manager.drain()
    assert "defects-train-0" not in running.pods()


def test_a_job_made_again_under_the_same_name_waits_for_the_old_ones_children_to_go(running: Scene) -> None:
    old = {pod["metadata"]["uid"] for pod in running.pods().values()}
    running.cluster.delete(running.world.FL, "defects")
    running.job()
    running.manager.pull_all()
    running.manager.drain()
    assert running.condition("Pending")["reason"] == "NameTaken"
    running.settle()
    assert sorted(running.pods()) == NAMES
    assert not old & {pod["metadata"]["uid"] for pod in running.pods().values()}


def test_fault_19_conditions_that_others_add_meanwhile_are_never_lost(running: Scene) -> None:
    running.cluster.set_phase("defects-train-0", "Pending")
    running.manager.pull_all()
    running.manager.begin()
    conditions = [*running.status()["conditions"], {"type": "Custom", "status": "True"}]
    running.cluster.patch(running.world.FL, "defects", {"status": {"conditions": conditions}}, subresource="status")
    while running.manager.step():
        pass
    assert running.condition("Custom")["status"] == "True"
    assert running.condition("Training")["status"] == "False"
    running.settle()
    assert running.manager.errors == []


def test_a_settled_job_is_left_in_peace(running: Scene) -> None:
    writes = len(running.manager.client.writes)
    running.manager.restart()
    running.settle()
    assert len(running.manager.client.writes) == writes


def test_the_edge_hears_inserts_for_each_training_node_and_deletes_when_the_job_is_gone(running: Scene) -> None:
    told = [(sent.node, sent.op) for sent in running.sink.take()]
    assert told == [("edge-0", "insert"), ("edge-1", "insert")]
    running.cluster.patch(running.world.FL, "defects", {"metadata": {"labels": {"a": "b"}}})
    running.settle()
    assert running.sink.take() == []
    found = running.cluster.find(running.world.FL, "defects")
    assert found is not None
    workers = found["spec"]["trainingWorkers"]
    workers[1]["template"]["spec"]["nodeName"] = "edge-9"
    running.cluster.patch(running.world.FL, "defects", {"spec": {"trainingWorkers": workers}})
    running.settle()
    assert [(sent.node, sent.op) for sent in running.sink.take()] == [
        ("edge-0", "insert"),
        ("edge-9", "insert"),
        ("edge-1", "delete"),
    ]
    running.cluster.delete(running.world.FL, "defects", propagation="Foreground")
    running.manager.pull_all()
    running.manager.drain()
    assert running.sink.take() == [], "the workers still stop"
    running.settle()
    last = running.sink.take()
    assert [(sent.node, sent.op) for sent in last] == [("edge-0", "delete"), ("edge-9", "delete")]
    assert last[0].obj.name == "defects"


def test_a_trainer_placed_by_the_scheduler_is_told_where_it_was_bound(scene: Scene) -> None:
    manifest = scene.make.federated_manifest(trainers=1)
    manifest["metadata"] = {"name": "defects", "namespace": "ns"}
    del manifest["spec"]["trainingWorkers"][0]["template"]["spec"]["nodeName"]
    scene.cluster.create(manifest)
    scene.settle()
    assert scene.sink.take() == []
    scene.cluster.patch(scene.world.POD, "defects-train-0", {"spec": {"nodeName": "edge-7"}})
    scene.settle()
    assert [(sent.node, sent.op) for sent in scene.sink.take()] == [("edge-7", "insert")]


def test_a_manager_that_still_sees_the_old_pods_does_not_delete_the_new_ones_under_their_names(
    running: Scene,
) -> None:
    late = running.world.HandManager(running.cluster, [federated_learning.setup], recorder=FakeRecorder())
    running.edit("16")
    running.settle()
    new = running.pods()
    late.pull(running.world.FL)
    late.drain()
    assert running.pods() == new
    assert ("delete", "Pod", "defects-train-0") in late.client.writes, "it tried, and the uid kept it from harm"


def test_a_manager_that_still_sees_the_old_job_leaves_the_new_pods_alone(running: Scene) -> None:
    late = running.world.HandManager(running.cluster, [federated_learning.setup], recorder=FakeRecorder())
    running.edit("16")
    running.settle()
    new = running.pods()
    late.pull(running.world.POD)
    late.drain()
    assert running.pods() == new
    assert late.client.writes == []
    running.cluster.delete(running.world.POD, "defects-train-0", grace=0)
    late.pull(running.world.POD)
    late.drain()
    assert "defects-train-0" not in running.pods(), "nothing of the old spec comes back"


def test_a_reconcile_of_this_harness_stops_before_each_of_its_api_calls(scene: Scene) -> None:
    scene.job()
    scene.manager.pull_all()
    calls = 0
    scene.manager.begin()
    while scene.manager.running is not None:
        assert len(scene.manager.client.writes) == max(0, calls - 1), "one read of the job, then one write a step"
        scene.manager.step()
        calls += 1
    assert calls == 6, "the job read again, a Service, three pods, the status"
