"""The generated CRDs: upstream's names and fields, structural, small, and strict where upstream is not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from pysedna import api
from pysedna.api import InvalidResource, crds

SAMPLES = Path(__file__).parent / "samples"
KINDS: dict[str, type[api.Resource]] = {
    "Dataset": api.Dataset,
    "Model": api.Model,
    "JointInferenceService": api.JointInferenceService,
    "FederatedLearningJob": api.FederatedLearningJob,
}
# Every field of upstream's schemas outside pod templates; a star marks a required one.
UPSTREAM = {
    "Dataset": "spec* spec.url* spec.format* spec.nodeName* spec.credentialName "
    "status.numberOfSamples* status.updateTime",
    "Model": "spec* spec.url* spec.format* spec.device_soc_versions[] spec.credentialName status.updateTime "
    "status.metrics[].key* status.metrics[].value*",
    "JointInferenceService": "spec* spec.edgeWorker* spec.edgeWorker.model* spec.edgeWorker.model.name* "
    "spec.edgeWorker.hardExampleMining* spec.edgeWorker.hardExampleMining.name* "
    "spec.edgeWorker.hardExampleMining.parameters[].key* spec.edgeWorker.hardExampleMining.parameters[].value* "
    "spec.edgeWorker.template* spec.edgeWorker.hpa spec.edgeWorker.hpa.minReplicas spec.edgeWorker.hpa.maxReplicas* "
    "spec.edgeWorker.hpa.metrics[] spec.edgeWorker.hpa.behavior spec.cloudWorker* spec.cloudWorker.model* "
    "spec.cloudWorker.model.name* spec.cloudWorker.template* spec.cloudWorker.hpa.maxReplicas* "
    "status.conditions[].type* status.conditions[].status* status.conditions[].lastHeartbeatTime "
    "status.conditions[].lastTransitionTime status.conditions[].reason status.conditions[].message "
    "status.startTime status.active status.failed status.metrics[].key* status.metrics[].value*",
    "FederatedLearningJob": "spec* spec.aggregationWorker* spec.aggregationWorker.model* "
    "spec.aggregationWorker.model.name* spec.aggregationWorker.template* spec.trainingWorkers* spec.trainingWorkers[] "
    "spec.trainingWorkers[].dataset* spec.trainingWorkers[].dataset.name* spec.trainingWorkers[].template* "
    "spec.pretrainedModel.name* spec.transmitter.s3.aggDataPath* spec.transmitter.s3.credentialName "
    "spec.transmitter.ws status.conditions[].type* status.conditions[].status* status.conditions[].lastProbeTime "
    "status.conditions[].lastHeartbeatTime status.conditions[].reason status.conditions[].message status.startTime "
    "status.completionTime status.active status.succeeded status.failed status.phase",
}


def definition(kind: str) -> dict[str, Any]:
    return next(crd for crd in crds() if crd["spec"]["names"]["kind"] == kind)


def schema(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def samples() -> Iterator[Any]:
    yaml = YAML(typ="safe", pure=True)
    for path in sorted(SAMPLES.glob("*.yaml")):
        for number, document in enumerate(yaml.load_all(path.read_text())):
            yield pytest.param(document, id=f"{path.stem}-{number}")


def unknown_fields(part: Any, schema: Mapping[str, Any], path: str = "$") -> Iterator[str]:
    """What the API server would prune, or refuse under strict validation."""
    if isinstance(part, dict):
        known = schema.get("properties", {})
        for name, value in part.items():
            if name in known:
                yield from unknown_fields(value, known[name], f"{path}.{name}")
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from unknown_fields(value, schema["additionalProperties"], f"{path}.{name}")
            elif path != "$.metadata" and not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{path}.{name}"
    elif isinstance(part, list):
        for index, item in enumerate(part):
            yield from unknown_fields(item, schema.get("items", {}), f"{path}[{index}]")


def every_part(schema: Mapping[str, Any], path: str = "$") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from every_part(part, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from every_part(schema[key], f"{path}[]")


@pytest.mark.parametrize("sample", list(samples()))
def test_a_manifest_of_upstream_is_valid_and_keeps_all_its_fields(sample: dict[str, Any]) -> None:
    jsonschema.validate(sample, schema(sample["kind"]))
    assert list(unknown_fields(sample, schema(sample["kind"]))) == []
    assert KINDS[sample["kind"]].from_dict(sample).kind == sample["kind"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_upstream_is_there_and_required_as_upstream_requires_it(kind: str) -> None:
    for entry in UPSTREAM[kind].split():
        steps = entry.rstrip("*").split(".")
        part = schema(kind)
        for step in steps:
            parent, name = part, step.removesuffix("[]")
            assert name in parent["properties"], f"{entry}: no {name}"
            part = parent["properties"][name]
            if step.endswith("[]"):
                part = part["items"]
        assert (steps[-1] in parent.get("required", ())) == entry.endswith("*"), entry


@pytest.mark.parametrize(
    ("kind", "plural", "short"),
    [
        ("Dataset", "datasets", None),
        ("Model", "models", None),
        ("JointInferenceService", "jointinferenceservices", ["ji"]),
        ("FederatedLearningJob", "federatedlearningjobs", ["fl"]),
    ],
)
def test_group_and_names_are_those_of_upstream(kind: str, plural: str, short: list[str] | None) -> None:
    crd = definition(kind)
    assert crd["metadata"]["name"] == f"{plural}.sedna.io"
    names = crd["spec"]["names"]
    assert (names["plural"], names["singular"], names["listKind"]) == (plural, kind.lower(), f"{kind}List")
    assert names.get("shortNames") == short
    assert names["categories"] == ["sedna"]
    assert (crd["spec"]["group"], crd["spec"]["scope"]) == ("sedna.io", "Namespaced")
    (version,) = crd["spec"]["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_structural(kind: str) -> None:
    for path, part in every_part(schema(kind)):
        assert isinstance(part.get("type"), str), f"{path} has no type"
        assert not {"$ref", "anyOf", "oneOf", "title", "default"} & set(part), path
        assert part.get("properties") != {}, f"{path}: a server does not keep it"
        assert not ("properties" in part and "additionalProperties" in part), path
    jsonschema.Draft202012Validator.check_schema(schema(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_a_definition_fits_the_annotation_that_kubectl_apply_writes(kind: str) -> None:
    assert len(json.dumps(definition(kind))) < 16_000


@pytest.mark.parametrize("kind", KINDS)
def test_kubectl_get_shows_more_than_a_name(kind: str) -> None:
    columns = definition(kind)["spec"]["versions"][0]["additionalPrinterColumns"]
    assert columns[-1] == {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    shown = [column["name"] for column in columns if not column.get("priority")]
    assert len(shown) >= 2
    if kind == "FederatedLearningJob":
        assert shown == ["Phase", "Active", "Succeeded", "Failed", "Age"]
    if kind == "JointInferenceService":
        assert shown == ["Running", "Active", "Failed", "Age"]


def test_the_labels_of_a_worker_template_are_kept() -> None:
    job = federated_job()
    job["spec"]["trainingWorkers"][0]["template"]["metadata"] = {
        "labels": {"team": "vision"},
        "annotations": {"note": "keep"},
        "creationTimestamp": None,
    }
    jsonschema.validate(job, schema("FederatedLearningJob"))
    assert list(unknown_fields(job, schema("FederatedLearningJob"))) == []


def federated_job() -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "worker", "image": "worker:1"}]}}
    return {
        "apiVersion": "sedna.io/v1alpha1",
        "kind": "FederatedLearningJob",
        "metadata": {"name": "job"},
        "spec": {
            "aggregationWorker": {"model": {"name": "model"}, "template": template},
            "trainingWorkers": [{"dataset": {"name": "data"}, "template": json.loads(json.dumps(template))}],
        },
        "status": {"phase": "Running", "active": 2, "conditions": [{"type": "Training", "status": "True"}]},
    }


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "aggregationWorker", "model", "name"), ""),
        (("spec", "aggregationWorker", "model", "name"), 7),
        (("spec", "aggregationWorker", "template"), {}),
        (("spec", "aggregationWorker", "template", "spec", "containers"), []),
        (("spec", "aggregationWorker", "template", "spec", "containers"), [{"image": "unnamed"}]),
        (("spec", "aggregationWorker", "template", "spec", "nodeName"), 5),
        (("spec", "trainingWorkers"), {"dataset": {"name": "data"}}),
        (("spec", "trainingWorkers"), [{"dataset": {}}]),
        (("spec", "transmitter"), {"s3": {}}),
        (("status", "phase"), "Napping"),
        (("status", "active"), -1),
        (("status", "conditions"), [{"type": "Training", "status": "yes"}]),
    ],
)
def test_a_job_that_cannot_be_meant_is_refused(path: tuple[str, ...], value: Any) -> None:
    job = federated_job()
    jsonschema.validate(job, schema("FederatedLearningJob"))
    part: Any = job
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError) as refused:
        jsonschema.validate(job, schema("FederatedLearningJob"))
    assert list(refused.value.absolute_path)[: len(path)] == list(path)


@pytest.mark.parametrize("limits", [{}, {"maxReplicas": 0}, {"maxReplicas": 2, "minReplicas": 0}, {"maxReplicas": 1.5}])
def test_limits_that_no_autoscaler_accepts_are_refused(limits: dict[str, Any]) -> None:
    part = schema("JointInferenceService")["properties"]["spec"]["properties"]["edgeWorker"]["properties"]["hpa"]
    jsonschema.validate({"maxReplicas": 2, "metrics": [{"type": "Resource"}], "behavior": {"scaleUp": {}}}, part)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(limits, part)


def test_an_empty_worker_list_passes_the_schema_so_that_a_condition_can_explain_it() -> None:
    job = federated_job()
    job["spec"]["trainingWorkers"] = []
    jsonschema.validate(job, schema("FederatedLearningJob"))


def test_reading_an_object_names_the_path_of_what_is_wrong() -> None:
    job = federated_job()
    job["spec"]["trainingWorkers"][0]["dataset"] = {"name": 5}
    with pytest.raises(InvalidResource, match=r"\$\.spec\.trainingWorkers\[0\]\.dataset\.name"):
        api.FederatedLearningJob.from_dict(job)


def test_times_of_day_stay_text_when_manifests_are_read_as_yaml_1_2() -> None:
    assert YAML(typ="safe", pure=True).load("end: 24:00") == {"end": "24:00"}


def test_a_recursive_type_has_no_structural_schema() -> None:
    with pytest.raises(TypeError, match="refers to itself"):
        api.structural_schema(Recursive)


class Recursive(api.Reference, frozen=True, kw_only=True):
    again: Recursive | None = None


ILL_FORMED = [
    ({"env": "LR=1"}, "env"),
    ({"env": [{"name": "LR", "value": 1}]}, "env[0].value"),
    ({"env": [None]}, "env[0]"),
    ({"ports": 80}, "ports"),
    ({"ports": [{"containerPort": "80"}]}, "ports[0].containerPort"),
    ({"ports": [{"containerPort": 80, "protocol": ["TCP"]}]}, "ports[0].protocol"),
    ({"volumeMounts": {"data": "/data"}}, "volumeMounts"),
    ({"name": 5}, "name"),
]


@pytest.mark.parametrize(("container", "path"), ILL_FORMED, ids=[path for _, path in ILL_FORMED])
def test_what_we_read_of_a_template_is_refused_with_its_path_where_it_is_ill_formed(
    container: dict[str, Any], path: str
) -> None:
    template = {"spec": {"containers": [{"name": "worker", "image": "worker:1", **container}]}}
    job = {
        "spec": {
            "aggregationWorker": {"model": {"name": "m"}, "template": template},
            "trainingWorkers": [],
        }
    }
    with pytest.raises(InvalidResource, match=re.escape(f"template.spec.containers[0].{path}")):
        api.FederatedLearningJob.from_dict(job)
    with pytest.raises(jsonschema.ValidationError):
        # As the API server reads it: null is no value of a type.
        jsonschema.validate(job, schema("FederatedLearningJob"))


def test_what_we_do_not_read_of_a_template_is_left_to_kubernetes() -> None:
    template = {
        "metadata": {"labels": None, "name": "kept"},
        "spec": {
            "containers": [{"name": "worker", "env": None, "resources": 7, "volumeMounts": [{"name": ["odd"]}]}],
            "hostNetwork": None,
            "tolerations": "odd",
        },
    }
    job = {"spec": {"aggregationWorker": {"model": {"name": "m"}, "template": template}, "trainingWorkers": []}}
    assert api.FederatedLearningJob.from_dict(job).spec.aggregation_worker.template == template
    assert list(unknown_fields(job, schema("FederatedLearningJob"))) == []
