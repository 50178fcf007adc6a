"""The children that a joint inference service wants: two Deployments, the Service of the cloud worker, autoscalers.
Pure.

Each worker has a hash of its own: a new parameter for the edge does not restart the big model in the cloud. A worker
whose Model is missing does not hold back the other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pysedna.api.joint_inference import CloudWorker, EdgeWorker, JointInferenceServiceSpec
from pysedna.jobs import autoscaling, deployments, labels, names, pods, references, services
from pysedna.jobs.environment import Variable, variables
from pysedna.jobs.job import Job
from pysedna.jobs.options import JobOptions
from pysedna.jobs.ports import Occupant, check_ports
from pysedna.jobs.problems import Problem
from pysedna.jobs.references import Found, References
from pysedna.jobs.spec_hash import spec_hash

KIND = "JointInferenceService"
CLOUD = "cloud"
EDGE = "edge"
WORKERS = (CLOUD, EDGE)
BIG_MODEL_PORT = 5000

InferenceService = Job[JointInferenceServiceSpec]


@dataclass(frozen=True, slots=True)
class Children:
    """Manifests by name, in the order in which they are to be created, and the workers that cannot be made yet."""

    deployments: Mapping[str, dict[str, Any]]
    services: Mapping[str, dict[str, Any]]
    autoscalers: Mapping[str, dict[str, Any]]
    problems: Mapping[str, Problem]


def needed(spec: JointInferenceServiceSpec) -> References:
    """What the spec refers to."""
    return References(models=(spec.cloud_worker.model.name, spec.edge_worker.model.name))


def worker(spec: JointInferenceServiceSpec, worker_type: str) -> CloudWorker | EdgeWorker:
    """The part of the spec for one worker."""
    return spec.cloud_worker if worker_type == CLOUD else spec.edge_worker


def worker_hash(spec: JointInferenceServiceSpec, worker_type: str) -> str:
    """The hash of what shapes one worker; the limits for its number do not."""
    part = worker(spec, worker_type)
    parts: dict[str, Any] = {"model": part.model.name, "template": pods.with_defaults(part.template)}
    if isinstance(part, EdgeWorker):
        parts["hardExampleMining"] = {"name": part.hard_example_mining.name, "parameters": _parameters(part)}
    return spec_hash(parts)


def autoscaler_names(job: InferenceService) -> list[str]:
    """The names that autoscalers of this service have or would have."""
    return [names.autoscaler_name(names.deployment_name(job.name, kind)) for kind in WORKERS]


def desired(job: InferenceService, found: Found, options: JobOptions) -> Children | Problem:
    """The children of a service; a problem if it cannot work at all, whatever else there is."""
    problem = _check(job)
    if problem is not None:
        return problem
    made: dict[str, dict[str, Any]] = {}
    scalers: dict[str, dict[str, Any]] = {}
    wrong: dict[str, Problem] = {}
    for kind in WORKERS:
        template = _template(job, kind, found, options)
        if isinstance(template, Problem):
            wrong[kind] = template
            continue
        manifest = deployments.deployment(
            job, kind, template, spec_hash=worker_hash(job.spec, kind), recreate=_recreate(kind, template)
        )
        made[manifest["metadata"]["name"]] = manifest
        scaling = worker(job.spec, kind).hpa
        if scaling is not None:
            scaler = autoscaling.autoscaler(job, kind, scaling)
            scalers[scaler["metadata"]["name"]] = scaler
    service = services.service(job, CLOUD, BIG_MODEL_PORT)
    return Children(made, {service["metadata"]["name"]: service}, scalers, wrong)


def _check(job: InferenceService) -> Problem | None:
    return (
        names.check_names(
            job.name,
            services=[names.service_name(job.name, CLOUD)],
            labels=[names.app_label(job.name, kind) for kind in WORKERS],
        )
        or check_ports(
            [
                Occupant("the cloud worker", job.spec.cloud_worker.template["spec"], BIG_MODEL_PORT),
                Occupant("the edge worker", job.spec.edge_worker.template["spec"]),
            ]
        )
        or autoscaling.check("cloudWorker", job.spec.cloud_worker.hpa)
        or autoscaling.check("edgeWorker", job.spec.edge_worker.hpa)
    )


def _template(job: InferenceService, kind: str, found: Found, options: JobOptions) -> dict[str, Any] | Problem:
    part = worker(job.spec, kind)
    injected = references.storage_of([references.model_source("MODEL_URL", part.model.name, found, download=True)])
    if isinstance(injected, Problem):
        return injected
    own = {
        **labels.selector(job, kind),
        labels.APP: names.app_label(job.name, kind),
        labels.hash_label(job.kind): worker_hash(job.spec, kind),
    }
    return pods.pod_template(
        pods.with_defaults(part.template),
        own_labels=own,
        environment=_environment(job, kind, options),
        storage=injected,
    )


def _environment(job: InferenceService, kind: str, options: JobOptions) -> list[Variable]:
    common = {
        "NAMESPACE": job.namespace,
        "SERVICE_NAME": job.name,
        "WORKER_NAME": names.worker_name(f"{kind}worker", job.name),
    }
    if kind == CLOUD:
        return variables({"BIG_MODEL_BIND_PORT": str(BIG_MODEL_PORT), **common})
    edge = job.spec.edge_worker
    return variables(
        {
            "BIG_MODEL_IP": names.service_host(names.service_name(job.name, CLOUD), job.namespace),
            "BIG_MODEL_PORT": str(BIG_MODEL_PORT),
            "HEM_NAME": edge.hard_example_mining.name,
            "HEM_PARAMETERS": msgspec.json.encode(_parameters(edge)).decode(),
            "LC_SERVER": options.local_controller_server,
            **common,
        }
    )


def _parameters(edge: EdgeWorker) -> list[dict[str, str]]:
    return [{"key": pair.key, "value": pair.value} for pair in edge.hard_example_mining.parameters or ()]


def _recreate(kind: str, template: Mapping[str, Any]) -> bool:
    """Whether two pods of a worker may not run at once, not even while one replaces the other.

    Two edge workers would read one camera and report under one name; two pods on the host network want the same ports.
    """
    return kind == EDGE or bool(template["spec"].get("hostNetwork"))
