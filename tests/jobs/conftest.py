"""Jobs, children and references as plain data, made with few words."""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from informers import Object
from pysedna.api import Dataset, FederatedLearningJobSpec, JointInferenceServiceSpec, Model
from pysedna.jobs.actions import POD, SERVICE, Kind
from pysedna.jobs.job import Job, read_job
from pysedna.jobs.observed import Observed
from pysedna.jobs.problems import Problem
from pysedna.jobs.references import Found

UID = "uid-1"


def container(name: str = "worker", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "worker:1", **more}


def template(*, node: str | None = None, **spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"spec": {"containers": [container()], **spec}}
    if node is not None:
        made["spec"]["nodeName"] = node
    return made


def federated_manifest(
    name: str = "defects", *, trainers: int = 2, uid: str = UID, generation: int = 1
) -> dict[str, Any]:
    return {
        "apiVersion": "sedna.io/v1alpha1",
        "kind": "FederatedLearningJob",
        "metadata": {"name": name, "namespace": "ns", "uid": uid, "generation": generation, "resourceVersion": "7"},
        "spec": {
            "aggregationWorker": {"model": {"name": "model"}, "template": template(node="cloud")},
            "trainingWorkers": [
                {
                    "dataset": {"name": f"data-{index}"},
                    "template": template(
                        node=f"edge-{index}", containers=[container(env=[{"name": "batch_size", "value": "32"}])]
                    ),
                }
                for index in range(trainers)
            ],
        },
    }


def inference_manifest(name: str = "helmets", *, uid: str = UID, generation: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "sedna.io/v1alpha1",
        "kind": "JointInferenceService",
        "metadata": {"name": name, "namespace": "ns", "uid": uid, "generation": generation, "resourceVersion": "7"},
        "spec": {
            "edgeWorker": {
                "model": {"name": "little"},
                "hardExampleMining": {"name": "IBT", "parameters": [{"key": "threshold_img", "value": "0.9"}]},
                "template": template(node="edge-0"),
            },
            "cloudWorker": {"model": {"name": "big"}, "template": template(node="cloud")},
        },
    }


def model(name: str, url: str = "/models/m.pb", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "sedna.io/v1alpha1",
        "kind": "Model",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"url": url, "format": "pb", **spec},
    }


def dataset(name: str, url: str = "/data/d.csv", node: str = "edge-0", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "sedna.io/v1alpha1",
        "kind": "Dataset",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"url": url, "format": "csv", "nodeName": node, **spec},
    }


def secret(name: str, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "ns", "annotations": annotations},
    }


def found(*manifests: Mapping[str, Any]) -> Found:
    models = {m["metadata"]["name"]: Model.from_dict(m) for m in manifests if m["kind"] == "Model"}
    datasets = {d["metadata"]["name"]: Dataset.from_dict(d) for d in manifests if d["kind"] == "Dataset"}
    secrets = {s["metadata"]["name"]: s["metadata"]["annotations"] for s in manifests if s["kind"] == "Secret"}
    return Found(models, datasets, secrets)


def federated_job(manifest: Mapping[str, Any] | None = None, **more: Any) -> Job[FederatedLearningJobSpec]:
    job = read_job(manifest if manifest is not None else federated_manifest(**more), FederatedLearningJobSpec)
    assert not isinstance(job, Problem), job
    return job


def inference_service(manifest: Mapping[str, Any] | None = None, **more: Any) -> Job[JointInferenceServiceSpec]:
    job = read_job(manifest if manifest is not None else inference_manifest(**more), JointInferenceServiceSpec)
    assert not isinstance(job, Problem), job
    return job


def live(
    manifest: Mapping[str, Any], *, version: int = 1, uid: str = "", status: Any = None, **metadata: Any
) -> Object:
    """A manifest as the server stores it."""
    obj = copy.deepcopy(dict(manifest))
    obj["metadata"].update({"uid": uid or f"uid-of-{obj['metadata']['name']}", "resourceVersion": str(version)})
    obj["metadata"].update(metadata)
    if status is not None:
        obj["status"] = status
    return Object.from_dict(obj)


def observed(*children: Object, taken: Mapping[tuple[Kind, str], Object] | None = None) -> Observed:
    owned: dict[Kind, dict[str, Object]] = {POD: {}, SERVICE: {}}
    for child in children:
        owned.setdefault((child.api_version, child.kind), {})[child.name] = child
    return Observed(owned, taken or {})


class Make:
    """All of the above under one name, for tests that take it as a fixture."""

    UID = UID
    container = staticmethod(container)
    template = staticmethod(template)
    federated_manifest = staticmethod(federated_manifest)
    inference_manifest = staticmethod(inference_manifest)
    model = staticmethod(model)
    dataset = staticmethod(dataset)
    secret = staticmethod(secret)
    found = staticmethod(found)
    federated_job = staticmethod(federated_job)
    inference_service = staticmethod(inference_service)
    live = staticmethod(live)
    observed = staticmethod(observed)
    problem: Callable[..., Problem] = Problem


@pytest.fixture(scope="session")
def make() -> type[Make]:
    return Make


def _load(name: str) -> ModuleType:
    """A module of this folder, which is no package."""
    loaded = f"jobs_{name}"
    if loaded not in sys.modules:
        spec = importlib.util.spec_from_file_location(loaded, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[loaded] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[loaded])
    return sys.modules[loaded]


@pytest.fixture(scope="session")
def world() -> ModuleType:
    """`world.py` of this folder."""
    return _load("world")


@pytest.fixture
def federated_scene(world: ModuleType) -> Any:
    """A new scene of `federated_scene.py`, with nothing in it."""
    return _load("federated_scene").Scene(Make, world)
