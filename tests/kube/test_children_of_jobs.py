"""Definitions, manifests and children under the strictest validation of a real API server: nothing unknown, nothing
pruned, and nothing that its defaults would make us write again and again."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from informers import Client, NotFoundError, Object, ObjectKey
from pysedna.api import FederatedLearningJobSpec, JointInferenceServiceSpec, crds
from pysedna.jobs import JobOptions
from pysedna.jobs.actions import Create, Delete, Patch, Replace, key_of
from pysedna.jobs.federated_learning import FederatedLearning
from pysedna.jobs.job import Job, read_job
from pysedna.jobs.joint_inference import JointInference
from pysedna.jobs.observed import Observed
from pysedna.jobs.problems import Problem
from pysedna.jobs.references import Found, gather
from pysedna.testing import ControlPlane

pytestmark = pytest.mark.kube

Json = dict[str, Any]
SEDNA = "sedna.io/v1alpha1"
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
CHILDREN = (("v1", "Pod"), ("v1", "Service"), ("apps/v1", "Deployment"), ("autoscaling/v2", "HorizontalPodAutoscaler"))
SAMPLES = Path(__file__).parent.parent / "api" / "samples"
BEHAVIOURS: dict[str, Any] = {
    "FederatedLearningJob": (FederatedLearning(), FederatedLearningJobSpec),
    "JointInferenceService": (JointInference(), JointInferenceServiceSpec),
}
HPA = {
    "minReplicas": 1,
    "maxReplicas": 3,
    "metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    ],
    "behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}},
}


def samples() -> Iterator[Any]:
    yaml = YAML(typ="safe", pure=True)
    for path in sorted(SAMPLES.glob("*.yaml")):
        for number, document in enumerate(yaml.load_all(path.read_text())):
            yield pytest.param(document, id=f"{path.stem}-{number}")


def rich_template(node: str | None = None) -> Json:
    """A template in which a user says much."""
    container = {
        "name": "worker",
        "image": "worker:1",
        "env": [
            {"name": "batch_size", "value": "32"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "2Gi"}},
        "volumeMounts": [{"name": "out", "mountPath": "/out/"}],
        "livenessProbe": {"tcpSocket": {"port": 80}},
    }
    spec: Json = {
        "containers": [container],
        "initContainers": [{"name": "before", "image": "init:1"}],
        "volumes": [{"name": "out", "emptyDir": {}}],
        "tolerations": [{"key": "edge", "operator": "Exists"}],
        "nodeSelector": {"zone": "a"},
    }
    if node is not None:
        spec["nodeName"] = node
    return {"metadata": {"labels": {"team": "vision"}, "annotations": {"note": "kept"}}, "spec": spec}


def rich_jobs() -> Iterator[Any]:
    """Every way by which something gets into a child: downloads, host paths, credentials, limits, transmitters."""
    for url in (
        "s3://bucket/dir/model.pb",
        "/models/big/frozen.pb",
        "/models/dir/",
        "https://store/x.bin",
        "oci://a/b",
    ):
        yield pytest.param(
            {
                "kind": "JointInferenceService",
                "spec": {
                    "edgeWorker": {
                        "model": {"name": "model"},
                        "hardExampleMining": {"name": "IBT", "parameters": [{"key": "threshold", "value": "0.5"}]},
                        "template": rich_template("edge-0"),
                    },
                    "cloudWorker": {"model": {"name": "model"}, "template": rich_template(), "hpa": HPA},
                },
            },
            url,
            id=f"service {url}",
        )
        yield pytest.param(
            {
                "kind": "FederatedLearningJob",
                "spec": {
                    "aggregationWorker": {"model": {"name": "model"}, "template": rich_template()},
                    "trainingWorkers": [
                        {"dataset": {"name": f"data-{index}"}, "template": rich_template(f"edge-{index}")}
                        for index in range(2)
                    ],
                    "pretrainedModel": {"name": "model"},
                    "transmitter": {"s3": {"aggDataPath": "s3://bucket/aggregated", "credentialName": "keys"}},
                },
            },
            url,
            id=f"job {url}",
        )


@pytest.fixture(scope="module")
def client(control_plane: ControlPlane) -> Client:
    control_plane.install_crds(crds())
    return control_plane.client


@pytest.fixture
def namespace(client: Client, request: pytest.FixtureRequest) -> Iterator[str]:
    namespaces = client.resource("v1", "Namespace")
    made = namespaces.create({"metadata": {"generateName": "children-"}})
    yield made.name
    namespaces.delete(made.name)


def lost(ours: Any, stored: Any, path: str = "$") -> Iterator[str]:
    """What of ours is not in what the server keeps. It may add to an object, and at the end of a list."""
    if isinstance(ours, Mapping) and isinstance(stored, Mapping):
        for name, value in ours.items():
            if name not in stored:
                yield f"{path}.{name}"
            else:
                yield from lost(value, stored[name], f"{path}.{name}")
    elif isinstance(ours, list) and isinstance(stored, list) and len(ours) <= len(stored):
        for index, (one, other) in enumerate(zip(ours, stored, strict=False)):
            yield from lost(one, other, f"{path}[{index}]")
    elif ours != stored:
        yield f"{path}: {ours!r} became {stored!r}"


@pytest.mark.parametrize("definition", crds(), ids=lambda definition: definition["spec"]["names"]["kind"])
def test_a_definition_is_accepted_and_kept_as_it_is(client: Client, definition: Json) -> None:
    resource = client.resource(*CRD)
    stored = resource.get(definition["metadata"]["name"]).to_dict()
    conditions = {one["type"]: one["status"] for one in stored["status"]["conditions"]}
    assert conditions["NamesAccepted"] == conditions["Established"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"
    assert list(lost(definition["spec"], stored["spec"])) == []
    version = {"resourceVersion": stored["metadata"]["resourceVersion"]}
    again = {**definition, "metadata": {**definition["metadata"], **version}}
    assert resource.replace(again, field_validation="Strict", dry_run=True).to_dict()["spec"] == stored["spec"]


@pytest.mark.parametrize("sample", list(samples()))
def test_a_manifest_of_upstream_is_accepted_and_kept_as_it_is(client: Client, namespace: str, sample: Json) -> None:
    manifest = {**sample, "metadata": {**sample["metadata"], "namespace": namespace}}
    stored = client.resource(SEDNA, sample["kind"]).create(manifest, field_validation="Strict").to_dict()
    assert list(lost(sample["spec"], stored["spec"])) == []


class Player:
    """Does for one job what a reconcile would do, each write under strict validation."""

    def __init__(self, client: Client, namespace: str, manifest: Mapping[str, Any], url: str) -> None:
        self.client, self.namespace, self.url = client, namespace, url
        self.behaviour, self.spec = BEHAVIOURS[manifest["kind"]]
        self.jobs = client.resource(SEDNA, manifest["kind"])
        body = {"apiVersion": SEDNA, **copy.deepcopy(dict(manifest))}
        body["metadata"] = {"name": "job", "namespace": namespace}
        self.key = self.jobs.create(body, field_validation="Strict").key
        self.secret("keys", {"s3-endpoint": "store:9000", "s3-usehttps": "0"})
        needed = self.behaviour.needed(self.job().spec)
        for name in dict.fromkeys(needed.models):
            self.refer("Model", name, {"url": url, "format": "pb"})
        for number, name in enumerate(needed.datasets):
            self.refer("Dataset", name, {"url": f"{url}{number}", "format": "txt", "nodeName": f"edge-{number}"})
        for name in set(needed.secrets) - {"keys"}:
            self.secret(name, {"s3-endpoint": "store:9000", "s3-usehttps": "0"})

    def refer(self, kind: str, name: str, spec: Json) -> None:
        if "s3:" in self.url:
            spec = {**spec, "credentialName": "keys"}
        body = {"apiVersion": SEDNA, "kind": kind, "metadata": {"name": name, "namespace": self.namespace}}
        self.client.resource(SEDNA, kind).create({**body, "spec": spec}, field_validation="Strict")

    def secret(self, name: str, annotations: Json) -> None:
        metadata = {"name": name, "namespace": self.namespace, "annotations": annotations}
        data = {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}
        self.client.resource("v1", "Secret").create({"metadata": metadata, "stringData": data})

    def job(self) -> Job[Any]:
        job = read_job(self.jobs.get(self.key).to_dict(), self.spec)
        assert not isinstance(job, Problem), job
        return job

    def found(self, job: Job[Any]) -> Found:
        def read(api_version: str, kind: str) -> Any:
            def one(name: str) -> Object | None:
                try:
                    return self.client.resource(api_version, kind).get(ObjectKey(self.namespace, name))
                except NotFoundError:
                    return None

            return one

        needed = self.behaviour.needed(job.spec)
        return gather(needed, model=read(SEDNA, "Model"), dataset=read(SEDNA, "Dataset"), secret=read("v1", "Secret"))

    def children(self) -> dict[tuple[str, str], dict[str, Object]]:
        return {
            kind: {
                one.name: one
                for one in self.client.resource(*kind).list(namespace=self.namespace).items
                if self.owns(one)
            }
            for kind in CHILDREN
        }

    def owns(self, child: Object) -> bool:
        return child.controller is not None and child.controller.kind == self.jobs.info().kind

    def play(self) -> list[Any]:
        """Do what is to be done until nothing is; gives it."""
        done: list[Any] = []
        for _ in range(5):
            job = self.job()
            plan = self.behaviour.plan(job, self.found(job), Observed(self.children()), JobOptions())
            assert plan.problem is None, plan.problem
            if not plan.actions:
                return done
            for action in plan.actions:
                self.carry_out(action)
                done.append(action)
        raise AssertionError(f"it never comes to an end: {done}")

    def carry_out(self, action: Create | Replace | Patch | Delete) -> None:
        resource = self.client.resource(*action.kind)
        if isinstance(action, Delete):
            resource.delete(action.key, uid=action.uid, grace_period=0)
        elif isinstance(action, Patch):
            resource.patch(action.key, action.patch, field_validation="Strict")
        else:
            write = resource.create if isinstance(action, Create) else resource.replace
            stored = write(action.manifest, field_validation="Strict").to_dict()
            assert list(lost(action.manifest["spec"], stored["spec"])) == [], key_of(action)


@pytest.mark.parametrize(("manifest", "url"), list(rich_jobs()))
def test_children_are_accepted_whole_and_then_left_alone(
    client: Client, namespace: str, manifest: Json, url: str
) -> None:
    player = Player(client, namespace, manifest, url)
    created = player.play()
    assert {type(action) for action in created} == {Create}
    assert player.play() == []
    edit = copy.deepcopy(manifest["spec"])
    workers = edit["trainingWorkers"] if "trainingWorkers" in edit else [edit["edgeWorker"], edit["cloudWorker"]]
    for worker in workers:
        worker["template"]["spec"]["containers"][0]["env"][0]["value"] = "16"
        worker.pop("hpa", None)
    unset = {"cloudWorker": {**edit["cloudWorker"], "hpa": None}} if "cloudWorker" in edit else {}
    player.jobs.patch(player.key, {"spec": {**edit, **unset}}, field_validation="Strict")
    changed = player.play()
    kinds = {type(action) for action in changed}
    assert kinds == ({Create, Delete} if "trainingWorkers" in edit else {Replace, Delete})
    assert player.play() == []


@pytest.mark.parametrize("sample", [one for one in samples() if one.values[0]["kind"] in BEHAVIOURS])
def test_the_children_of_upstreams_manifests_are_accepted(client: Client, namespace: str, sample: Json) -> None:
    manifest = copy.deepcopy({"kind": sample["kind"], "spec": sample["spec"]})
    for name, worker in manifest["spec"].items():
        spec = worker["template"]["spec"] if isinstance(worker, dict) and "template" in worker else {}
        if str(spec.get("nodeName", "")).startswith("$"):  # what a shell would have filled in
            spec["nodeName"] = name.lower()
    player = Player(client, namespace, manifest, "/models/model.pb")
    assert {type(action) for action in player.play()} == {Create}
    assert player.play() == []
