"""The objects that the story applies: models, datasets, a federated learning job and a joint inference service.

Modelled on Sedna's own examples, cut down. The containers are `pause`, which runs for ever on any cluster, because the
story is about the controllers and not about learning. The model and dataset URLs have a scheme that needs no volume and
no download, so that a pod can start on any node.
"""

from collections.abc import Mapping, Sequence
from typing import Any

API_VERSION = "sedna.io/v1alpha1"
JOB = "surface-defects"
SERVICE = "helmet-detection"
TRAINERS = 2
IMAGE = "registry.k8s.io/pause:3.10"

Manifest = dict[str, Any]


def models(namespace: str) -> list[Manifest]:
    """Three models: the one the job trains, and the big and the little one of the service."""
    names = ("surface-defects-model", "helmet-big-model", "helmet-little-model")
    return [_sedna("Model", name, namespace, {"url": f"oci://models/{name}", "format": "pb"}) for name in names]


def datasets(namespace: str, nodes: Sequence[str]) -> list[Manifest]:
    """One dataset for each trainer, on the node that the trainer runs on."""
    return [
        _sedna(
            "Dataset",
            dataset_name(index),
            namespace,
            {"url": f"oci://datasets/{dataset_name(index)}", "format": "txt", "nodeName": nodes[index % len(nodes)]},
        )
        for index in range(TRAINERS)
    ]


def federated_learning_job(namespace: str, nodes: Sequence[str], *, batch_size: str, pin: bool) -> Manifest:
    """One aggregator and two trainers. `pin` writes node names into the templates, where no scheduler runs."""
    return _sedna(
        "FederatedLearningJob",
        JOB,
        namespace,
        {
            "aggregationWorker": {
                "model": {"name": "surface-defects-model"},
                "template": _template("aggregator", {"exit_round": "3"}, nodes[0] if pin else None),
            },
            "trainingWorkers": [
                {
                    "dataset": {"name": dataset_name(index)},
                    "template": _template(
                        "trainer",
                        {"batch_size": batch_size, "learning_rate": "0.001"},
                        nodes[(index + 1) % len(nodes)] if pin else None,
                    ),
                }
                for index in range(TRAINERS)
            ],
        },
    )


def joint_inference_service(namespace: str, nodes: Sequence[str], *, parameter: str, pin: bool) -> Manifest:
    """A big model in the cloud and a little one at the edge, with one hard example mining parameter to change."""
    return _sedna(
        "JointInferenceService",
        SERVICE,
        namespace,
        {
            "cloudWorker": {
                "model": {"name": "helmet-big-model"},
                "template": _template("big-model", {"input_shape": "544,544"}, nodes[0] if pin else None),
            },
            "edgeWorker": {
                "model": {"name": "helmet-little-model"},
                "hardExampleMining": {"name": "IBT", "parameters": [{"key": "key1", "value": parameter}]},
                "template": _template("little-model", {"input_shape": "416,736"}, nodes[-1] if pin else None),
            },
        },
    )


def dataset_name(index: int) -> str:
    """The name of the dataset of trainer `index`."""
    return f"edge{index + 1}-surface-defects"


def environment(pod: Mapping[str, Any]) -> dict[str, str]:
    """The literal environment of a pod's first container."""
    entries = pod["spec"]["containers"][0].get("env", ())
    return {entry["name"]: entry["value"] for entry in entries if "value" in entry}


def _sedna(kind: str, name: str, namespace: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def _template(container: str, env: Mapping[str, str], node: str | None) -> Manifest:
    spec: Manifest = {
        "terminationGracePeriodSeconds": 5,
        "containers": [
            {"name": container, "image": IMAGE, "env": [{"name": name, "value": value} for name, value in env.items()]}
        ],
    }
    if node is not None:
        spec["nodeName"] = node
    return {"spec": spec}
