"""A federated learning job that meets bad input, refusals, missing things, and hands on its children."""

from __future__ import annotations

from typing import Any

import pytest

from informers.errors import AlreadyExistsError, ForbiddenError, InvalidError, ServiceUnavailableError
from pysedna.controller import TemporaryError

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


@pytest.mark.parametrize("missing", ["model", "data-1"])
def test_fault_7_a_job_waits_for_what_is_missing_and_goes_on_when_it_appears(
    federated_scene: Scene, missing: str
) -> None:
    scene = federated_scene
    scene.references(missing)
    scene.job()
    scene.settle()
    assert scene.pods() == {}
    waiting = scene.condition("Pending")
    assert (waiting["status"], missing in waiting["message"]) == ("True", True)
    assert scene.status()["phase"] == "Pending"
    assert len([event for event in scene.recorder.events if event.type == "Warning"]) == 1
    scene.references(*({"model", "data-0", "data-1"} - {missing}))
    scene.settle()
    assert sorted(scene.pods()) == NAMES
    assert scene.condition("Pending")["status"] == "False"


def test_a_job_waits_for_a_secret_that_a_dataset_names_and_copies_nothing_of_it(scene: Scene) -> None:
    scene.cluster.patch(scene.world.DATASET, "data-0", {"spec": {"url": "s3://bucket/d.csv", "credentialName": "keys"}})
    scene.job()
    scene.settle()
    assert scene.condition("Pending")["reason"] == "SecretNotFound"
    secret = scene.make.secret("keys")
    scene.cluster.create({**secret, "data": {"ACCESS_KEY_ID": "czNjcmV0", "SECRET_ACCESS_KEY": "czNjcmV0"}})
    scene.settle()
    assert scene.condition("Pending")["reason"] == "SecretInvalid"
    scene.cluster.patch(scene.world.SECRET, "keys", {"metadata": {"annotations": {"s3-endpoint": "store"}}})
    scene.settle()
    assert sorted(scene.pods()) == NAMES
    assert "czNjcmV0" not in str(scene.cluster.all(scene.world.POD))
    assert "s3cret" not in str(scene.cluster.all(scene.world.POD))


def test_somebody_elses_pod_under_a_workers_name_stays_and_the_job_goes_on_when_it_is_gone(scene: Scene) -> None:
    scene.cluster.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "defects-train-0", "namespace": "ns"}}
    )
    scene.settle()
    foreign = scene.pods()["defects-train-0"]
    scene.job()
    scene.settle()
    assert scene.pods()["defects-train-0"] == foreign
    assert scene.condition("Pending")["reason"] == "NameTaken"
    scene.cluster.delete(scene.world.POD, "defects-train-0", grace=0)
    scene.settle()
    assert sorted(scene.pods()) == NAMES
    assert scene.condition("Pending")["status"] == "False"


def test_a_pod_with_a_jobs_labels_but_another_owner_is_nobodys_worker(running: Scene) -> None:
    copy = running.pods()["defects-train-0"]
    metadata = {"name": "lookalike", "namespace": "ns", "labels": copy["metadata"]["labels"]}
    running.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy["spec"]})
    lookalike = running.pods()["lookalike"]
    running.edit("16")
    running.settle(kubelets=False)
    assert running.pods()["lookalike"] == lookalike


@pytest.mark.parametrize("key", ["name", "uid", "worker-type", "spec-hash"])
def test_a_worker_whose_labels_are_taken_away_is_replaced_and_the_others_run_on(running: Scene, key: str) -> None:
    old = running.pods()
    label = f"federatedlearningjob.sedna.io/{key}"
    running.cluster.patch(running.world.POD, "defects-aggregation-0", {"metadata": {"labels": {label: None}}})
    running.settle()
    new = running.pods()
    assert sorted(new) == NAMES
    assert label in new["defects-aggregation-0"]["metadata"]["labels"]
    changed = [name for name in NAMES if new[name]["metadata"]["uid"] != old[name]["metadata"]["uid"]]
    assert changed == ["defects-aggregation-0"]


def test_a_mark_of_a_generation_that_does_not_exist_keeps_no_worker_from_being_replaced(running: Scene) -> None:
    mark = {"metadata": {"annotations": {"sedna.io/job-generation": "99"}}}
    for kind, name in ((running.world.POD, "defects-train-1"), (running.world.SERVICE, "defects-aggregation")):
        running.cluster.patch(kind, name, mark)
    running.cluster.patch(running.world.SERVICE, "defects-aggregation", {"spec": {"selector": {"app": "other"}}})
    running.edit("16")
    running.settle()
    assert [running.environment(name, "batch_size") for name in NAMES[1:]] == ["16", "16"]
    service = running.cluster.find(running.world.SERVICE, "defects-aggregation")
    assert service is not None
    assert "app" not in service["spec"]["selector"]


def test_a_pod_that_the_server_refuses_is_told_with_its_words_and_the_others_are_created(scene: Scene) -> None:
    scene.job()
    scene.manager.pull_all()
    scene.manager.fail_next = InvalidError("spec.containers[0].image: Required value")
    scene.manager.drain()
    refused = scene.condition("Pending")
    assert refused["reason"] == "WorkerRejected"
    assert "spec.containers[0].image: Required value" in refused["message"]
    assert len(scene.pods()) == 3, "the refused one was the Service"
    assert scene.manager.errors == []


def test_fault_18_a_failed_write_is_tried_again_and_never_swallowed(scene: Scene) -> None:
    scene.job()
    scene.manager.pull_all()
    scene.manager.fail_next = ServiceUnavailableError("try later")
    scene.manager.begin()
    while scene.manager.step():
        pass
    (error,) = scene.manager.errors
    assert "try later" in str(error)
    assert "observedGeneration" not in scene.status(), "the spec is not carried out yet"
    scene.settle()
    assert sorted(scene.pods()) == NAMES
    assert scene.status()["observedGeneration"] == 1


def test_a_name_that_is_taken_and_free_again_before_one_can_look_is_no_failure(running: Scene) -> None:
    running.cluster.delete(running.world.POD, "defects-train-0", grace=0)
    running.manager.pull_all()
    running.manager.fail_next = AlreadyExistsError("object is being deleted")
    running.manager.begin()
    while running.manager.step():
        pass
    assert running.manager.errors == []
    running.settle()
    assert sorted(running.pods()) == NAMES


def test_a_quota_is_told_and_tried_again(scene: Scene) -> None:
    scene.job()
    scene.manager.pull_all()
    scene.manager.fail_next = ForbiddenError("exceeded quota: pods=0")
    scene.manager.begin()
    while scene.manager.step():
        pass
    assert scene.condition("Pending")["reason"] == "WorkerRejected"
    (error,) = scene.manager.errors
    assert isinstance(error, TemporaryError), "a trace in the log would tell nobody anything"


def test_nobody_is_told_about_a_namespace_that_goes_away(scene: Scene) -> None:
    scene.job()
    scene.manager.pull_all()
    terminating = {"causes": [{"reason": "NamespaceTerminating"}]}
    scene.manager.fail_next = ForbiddenError("namespace is being terminated", details=terminating)
    scene.manager.begin()
    while scene.manager.step():
        pass
    assert scene.condition("Pending") == {}
    assert scene.manager.errors == []


def test_a_job_that_the_schema_let_pass_but_that_cannot_be_read_gets_a_condition_and_stops_nobody(
    scene: Scene,
) -> None:
    manifest = scene.make.federated_manifest("odd")
    manifest["metadata"] = {"name": "odd", "namespace": "ns"}
    manifest["spec"]["trainingWorkers"] = "all of them"
    scene.cluster.create(manifest)
    scene.job()
    scene.settle()
    assert scene.condition("Pending", "odd")["reason"] == "InvalidSpec"
    assert "$.spec.trainingWorkers" in scene.condition("Pending", "odd")["message"]
    assert sorted(scene.pods()) == NAMES
    assert scene.manager.errors == []


def test_a_template_that_an_older_definition_let_pass_gets_a_condition_and_stops_nobody(
    scene: Scene,
) -> None:
    manifest = scene.make.federated_manifest("odd")
    manifest["metadata"] = {"name": "odd", "namespace": "ns"}
    manifest["spec"]["trainingWorkers"][1]["template"]["spec"]["containers"][0]["env"] = "batch_size=32"
    scene.cluster.create(manifest)
    scene.job()
    scene.settle()
    said = scene.condition("Pending", "odd")
    assert said["reason"] == "InvalidSpec"
    assert "$.spec.trainingWorkers[1]" in said["message"]
    assert "template.spec.containers[0].env" in said["message"]
    assert sorted(scene.pods()) == NAMES
    assert scene.manager.errors == []


def test_a_job_that_becomes_invalid_keeps_the_workers_it_has(running: Scene) -> None:
    before = running.pods()
    running.cluster.patch(running.world.FL, "defects", {"spec": {"trainingWorkers": []}})
    running.settle()
    assert running.pods() == before
    assert running.condition("Pending")["reason"] == "NoTrainingWorkers"
