"""A joint inference service under the production wiring, step by step, against the API server's own store."""

from __future__ import annotations

import json
from typing import Any

import pytest

from informers.errors import ServiceUnavailableError
from pysedna.jobs import joint_inference
from pysedna.testing import FakeRecorder, RecordingSink

CLOUD, EDGE = "helmets-deployment-cloud", "helmets-deployment-edge"


class Scene:
    def __init__(self, make: Any, world: Any) -> None:
        self.make, self.world = make, world
        self.cluster = world.Cluster()
        self.recorder, self.sink = FakeRecorder(), RecordingSink()
        self.manager = world.HandManager(self.cluster, [joint_inference.setup], recorder=self.recorder, sink=self.sink)

    def service(self, **spec: Any) -> None:
        manifest = self.make.inference_manifest()
        manifest["metadata"] = {"name": "helmets", "namespace": "ns"}
        manifest["spec"].update(spec)
        self.cluster.create(manifest)

    def settle(self) -> None:
        self.world.settle(self.cluster, self.manager)

    def work(self) -> None:
        """The manager alone; nothing else in the cluster moves."""
        self.manager.pull_all()
        self.manager.drain()

    def deployments(self) -> dict[str, Any]:
        return {found["metadata"]["name"]: found for found in self.cluster.all(self.world.DEPLOYMENT)}

    def status(self) -> dict[str, Any]:
        found = self.cluster.find(self.world.JI, "helmets")
        assert found is not None
        return dict(found.get("status") or {})

    def condition(self, type: str) -> dict[str, Any]:
        return next((c for c in self.status().get("conditions", []) if c["type"] == type), {})

    def parameters(self) -> Any:
        (container,) = self.deployments()[EDGE]["spec"]["template"]["spec"]["containers"]
        (value,) = (variable["value"] for variable in container["env"] if variable["name"] == "HEM_PARAMETERS")
        return json.loads(value)

    def edit(self, value: str) -> None:
        parameters = [{"key": "threshold_img", "value": value}]
        self.cluster.patch(
            self.world.JI, "helmets", {"spec": {"edgeWorker": {"hardExampleMining": {"parameters": parameters}}}}
        )


@pytest.fixture
def scene(make: Any, world: Any) -> Scene:
    scene = Scene(make, world)
    for name in ("little", "big"):
        scene.cluster.create(make.model(name))
    return scene


@pytest.fixture
def running(scene: Scene) -> Scene:
    scene.service()
    scene.settle()
    assert list(scene.deployments()) == [CLOUD, EDGE]
    return scene


def test_a_service_gets_its_workers_and_its_status_says_so(running: Scene) -> None:
    assert (running.status()["active"], running.status()["failed"]) == (2, 0)
    assert running.condition("Running")["status"] == "True"
    assert running.cluster.find(running.world.SERVICE, "helmets-cloud") is not None


def test_fault_13_a_service_whose_deployments_have_no_status_yet_has_not_failed(scene: Scene) -> None:
    scene.service()
    scene.work()
    scene.work()
    assert (scene.status()["active"], scene.status()["failed"]) == (0, 0)
    assert scene.condition("Failed") == {}
    scene.settle()
    assert scene.condition("Running")["status"] == "True"


def test_an_updated_service_gets_the_new_hard_example_parameter_and_the_cloud_worker_runs_on(running: Scene) -> None:
    before = running.deployments()
    running.edit("0.5")
    running.settle()
    assert running.parameters() == [{"key": "threshold_img", "value": "0.5"}]
    assert running.deployments()[CLOUD] == before[CLOUD]
    assert running.deployments()[EDGE]["metadata"]["uid"] == before[EDGE]["metadata"]["uid"]
    assert running.condition("Running")["status"] == "True"


def test_fault_17_a_change_made_while_no_manager_runs_is_applied(running: Scene) -> None:
    running.manager.kill()
    running.edit("0.5")
    running.manager.restart()
    running.settle()
    assert running.parameters() == [{"key": "threshold_img", "value": "0.5"}]


def test_fault_17_and_18_a_change_that_the_server_could_not_take_is_tried_again(running: Scene) -> None:
    running.edit("0.5")
    running.manager.pull_all()
    running.manager.fail_next = ServiceUnavailableError("not now")
    running.settle()
    assert running.parameters() == [{"key": "threshold_img", "value": "0.5"}]
    assert len(running.manager.errors) == 1


@pytest.mark.parametrize("name", [CLOUD, EDGE])
def test_a_deleted_deployment_comes_back(running: Scene, name: str) -> None:
    old = running.deployments()[name]["metadata"]["uid"]
    running.cluster.delete(running.world.DEPLOYMENT, name, propagation="Foreground")
    running.work()
    assert running.deployments()[name]["metadata"]["uid"] == old, "it is waited for"
    running.settle()
    assert running.deployments()[name]["metadata"]["uid"] != old
    assert running.condition("Running")["status"] == "True"


@pytest.mark.parametrize("name", ["helmets-deployment-x", "helmets", "other-deployment-edge"])
def test_fault_16_somebody_elses_deployment_is_nothing_to_us_whatever_its_name(running: Scene, name: str) -> None:
    foreign = {**running.deployments()[EDGE], "metadata": {"name": name, "namespace": "ns"}}
    running.cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", **foreign})
    running.settle()
    writes = len(running.manager.client.writes)
    running.cluster.delete(running.world.DEPLOYMENT, name)
    running.settle()
    assert name not in running.deployments()
    assert len(running.manager.client.writes) == writes


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_fault_16_nothing_comes_back_while_the_service_is_being_deleted(running: Scene, propagation: str) -> None:
    running.cluster.delete(running.world.JI, "helmets", propagation=propagation)
    running.cluster.delete(running.world.DEPLOYMENT, EDGE)
    running.work()
    assert EDGE not in running.deployments()
    running.settle()
    assert running.deployments() == {}
    assert running.cluster.find(running.world.SERVICE, "helmets-cloud") is None
    assert running.cluster.all(running.world.POD) == []


def test_fault_14_a_service_whose_model_comes_late_gets_well(make: Any, world: Any) -> None:
    scene = Scene(make, world)
    scene.cluster.create(make.model("big"))
    scene.service()
    scene.settle()
    assert list(scene.deployments()) == [CLOUD]
    assert scene.condition("Pending")["reason"] == "ModelNotFound"
    assert "edge worker: Model little" in scene.condition("Pending")["message"]
    assert (scene.status()["active"], scene.condition("Running")["status"]) == (1, "False")
    scene.cluster.create(make.model("little"))
    scene.settle()
    assert list(scene.deployments()) == [CLOUD, EDGE]
    assert (scene.condition("Pending")["status"], scene.condition("Running")["status"]) == ("False", "True")


def test_a_model_that_goes_away_matters_only_when_a_worker_must_be_made(running: Scene) -> None:
    running.cluster.delete(running.world.MODEL, "little")
    running.settle()
    assert running.condition("Pending") == {}
    running.edit("0.5")
    running.settle()
    assert running.condition("Pending")["reason"] == "ModelNotFound"
    assert running.condition("Running")["status"] == "False", "the worker of the old spec runs on, and is not counted"
    assert list(running.deployments()) == [CLOUD, EDGE]


def test_a_crash_looping_edge_worker_shows_in_the_status_through_its_pod(running: Scene) -> None:
    (pod,) = (
        found["metadata"]["name"]
        for found in running.cluster.all(running.world.POD)
        if found["metadata"]["name"].startswith(EDGE)
    )
    crash = {"name": "worker", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    running.cluster.patch(running.world.POD, pod, {"status": {"containerStatuses": [crash]}}, subresource="status")
    running.settle()
    assert running.status()["failed"] == 1
    assert running.condition("Failed")["reason"] == "CrashLoopBackOff"
    well = {"name": "worker", "state": {"running": {}}}
    running.cluster.patch(running.world.POD, pod, {"status": {"containerStatuses": [well]}}, subresource="status")
    running.settle()
    assert running.status()["failed"] == 0
    assert running.condition("Failed")["status"] == "False"


def test_two_managers_say_the_same_in_whatever_order_they_came_to_know_the_pods(running: Scene) -> None:
    template = next(
        found for found in running.cluster.all(running.world.POD) if found["metadata"]["name"].startswith(CLOUD)
    )
    owner = template["metadata"]["ownerReferences"]
    crash = {"name": "worker", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    for name in ("z", "m", "a"):
        metadata = {"name": name, "namespace": "ns", "labels": template["metadata"]["labels"], "ownerReferences": owner}
        running.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
        running.cluster.patch(running.world.POD, name, {"status": {"containerStatuses": [crash]}}, subresource="status")
        running.work()
    other = running.world.HandManager(running.cluster, [joint_inference.setup], recorder=running.recorder)
    for manager in (running.manager, other) * 3:
        manager.pull_all()
        manager.drain()
    writes = [len(manager.client.writes) for manager in (running.manager, other)]
    for manager in (running.manager, other) * 3:
        manager.pull_all()
        manager.drain()
    assert [len(manager.client.writes) for manager in (running.manager, other)] == writes
    assert "pod a" in running.condition("Failed")["message"]


def test_an_edge_worker_deleted_by_hand_is_the_deployments_matter(running: Scene) -> None:
    writes = [write for write in running.manager.client.writes if write[1] != "JointInferenceService"]
    for pod in running.cluster.all(running.world.POD):
        running.cluster.delete(running.world.POD, pod["metadata"]["name"], grace=0)
    running.settle()
    assert len(running.cluster.all(running.world.POD)) == 2
    assert [write for write in running.manager.client.writes if write[1] != "JointInferenceService"] == writes


def test_limits_on_a_cluster_without_autoscaling_are_told(scene: Scene) -> None:
    scene.manager.unserved.add(scene.world.AUTOSCALER)
    cloud = scene.make.inference_manifest()["spec"]["cloudWorker"]
    scene.service(cloudWorker={**cloud, "hpa": {"maxReplicas": 3}})
    scene.settle()
    assert scene.condition("Pending")["reason"] == "AutoscalingUnavailable"
    assert scene.condition("Running")["status"] == "True"
    assert scene.manager.errors == []
    scene.cluster.patch(scene.world.JI, "helmets", {"spec": {"cloudWorker": {"hpa": None}}})
    scene.settle()
    assert scene.condition("Pending")["status"] == "False"


def test_limits_on_a_cluster_with_autoscaling_make_change_and_unmake_an_autoscaler(scene: Scene) -> None:
    kind, name = scene.world.AUTOSCALER, f"hpa-{CLOUD}"
    cloud = scene.make.inference_manifest()["spec"]["cloudWorker"]
    scene.service(cloudWorker={**cloud, "hpa": {"maxReplicas": 3}})
    scene.settle()
    made = scene.cluster.find(kind, name)
    assert made is not None
    assert made["spec"]["scaleTargetRef"]["name"] == CLOUD
    before = scene.deployments()[CLOUD]
    scene.cluster.patch(scene.world.JI, "helmets", {"spec": {"cloudWorker": {"hpa": {"maxReplicas": 5}}}})
    scene.settle()
    changed = scene.cluster.find(kind, name)
    assert changed is not None
    assert changed["spec"]["maxReplicas"] == 5
    scene.cluster.patch(scene.world.JI, "helmets", {"spec": {"cloudWorker": {"hpa": None}}})
    scene.settle()
    assert scene.cluster.find(kind, name) is None
    assert scene.deployments()[CLOUD] == before, "limits roll no worker"


def test_fault_15_the_edge_hears_a_change_as_an_insert(running: Scene) -> None:
    assert [(sent.node, sent.op) for sent in running.sink.take()] == [("edge-0", "insert")]
    running.edit("0.5")
    running.settle()
    (sent,) = running.sink.take()
    assert (sent.node, sent.op, sent.obj.generation) == ("edge-0", "insert", 2)
    running.cluster.delete(running.world.JI, "helmets")
    running.settle()
    assert [(sent.node, sent.op) for sent in running.sink.take()] == [("edge-0", "delete")]


def test_a_message_that_the_sink_refuses_is_sent_again(scene: Scene) -> None:
    from pysedna.edge import SinkUnavailable

    scene.sink.refuse_with(SinkUnavailable("no connection"))
    scene.service()
    scene.manager.pull_all()
    scene.manager.begin()
    while scene.manager.step():
        pass
    assert list(scene.deployments()) == [CLOUD, EDGE], "the workers do not wait for the edge"
    assert len(scene.manager.errors) == 1
    scene.sink.refuse_with(None)
    scene.settle()
    assert [(sent.node, sent.op) for sent in scene.sink.take()] == [("edge-0", "insert")]


def test_a_settled_service_is_left_in_peace(running: Scene) -> None:
    writes = len(running.manager.client.writes)
    running.manager.restart()
    running.settle()
    assert len(running.manager.client.writes) == writes
