"""The children that a federated learning job wants: an aggregator, its Service, and one pod a trainer. Pure.

A job rolls as a whole: one hash over everything that shapes its workers marks all its pods, since a trainer of the old
spec and an aggregator of the new one have nothing to say to each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pysedna.api.federated_learning import FederatedLearningJobSpec
from pysedna.jobs import labels, names, pods, problems, references, services
from pysedna.jobs.environment import Variable, variables
from pysedna.jobs.job import Job
from pysedna.jobs.options import JobOptions
from pysedna.jobs.ports import Occupant, check_ports
from pysedna.jobs.problems import Problem
from pysedna.jobs.references import Found, References
from pysedna.jobs.spec_hash import spec_hash
from pysedna.jobs.storage import Source

KIND = "FederatedLearningJob"
AGGREGATION = "aggregation"
TRAIN = "train"
AGGREGATION_PORT = 7363
COMPLETION_POLICY = "sedna.io/completion-policy"
ALL_WORKERS = "AllWorkers"
TRAINING_WORKERS = "TrainingWorkers"

FederatedJob = Job[FederatedLearningJobSpec]


@dataclass(frozen=True, slots=True)
class Children:
    """Manifests by name, in the order in which they are to be created; `spec_hash` marks the pods."""

    spec_hash: str
    pods: Mapping[str, dict[str, Any]]
    services: Mapping[str, dict[str, Any]]


def worker_names(job: FederatedJob) -> list[str]:
    """The names of the pods of a job: the aggregator's, then the trainers'."""
    return [
        names.pod_name(job.name, AGGREGATION, 0),
        *(names.pod_name(job.name, TRAIN, index) for index in range(len(job.spec.training_workers))),
    ]


def needed(spec: FederatedLearningJobSpec) -> References:
    """What the spec refers to."""
    models = [spec.aggregation_worker.model.name]
    if spec.pretrained_model is not None:
        models.append(spec.pretrained_model.name)
    secrets = []
    if spec.transmitter is not None and spec.transmitter.s3 is not None and spec.transmitter.s3.credential_name:
        secrets.append(spec.transmitter.s3.credential_name)
    return References(tuple(models), tuple(worker.dataset.name for worker in spec.training_workers), tuple(secrets))


def job_hash(spec: FederatedLearningJobSpec) -> str:
    """The hash of everything in the spec that shapes a worker; in this kind that is all of it."""
    return spec_hash(
        {
            "aggregation": {"model": spec.aggregation_worker.model.name, "template": _aggregation_template(spec)},
            "training": [
                {"dataset": worker.dataset.name, "template": template}
                for worker, template in zip(spec.training_workers, _training_templates(spec), strict=True)
            ],
            "pretrainedModel": spec.pretrained_model.name if spec.pretrained_model is not None else None,
            "transmitter": msgspec.to_builtins(spec.transmitter.s3)
            if spec.transmitter is not None and spec.transmitter.s3 is not None
            else "ws",
        }
    )


def desired(job: FederatedJob, found: Found, options: JobOptions) -> Children | Problem:
    """The children of a job, all of them or none: a part of a federation is of no use to anyone."""
    problem = _check(job)
    if problem is not None:
        return problem
    digest = job_hash(job.spec)
    made: dict[str, dict[str, Any]] = {}
    wrong: list[Problem] = []
    for worker in _workers(job, found, options):
        injected = references.storage_of(worker.sources)
        if isinstance(injected, Problem):
            wrong.append(injected)
            continue
        own = {
            **labels.selector(job, worker.type),
            labels.index_label(job.kind): str(worker.index),
            labels.hash_label(job.kind): digest,
        }
        name = names.pod_name(job.name, worker.type, worker.index)
        template = pods.pod_template(worker.template, own_labels=own, environment=worker.environment, storage=injected)
        made[name] = pods.bare_pod(job, name, template)
    service = services.service(job, AGGREGATION, AGGREGATION_PORT)
    return problems.combined(wrong) or Children(digest, made, {service["metadata"]["name"]: service})


def _check(job: FederatedJob) -> Problem | None:
    """What is wrong with the job by itself, whatever else there is."""
    if not job.spec.training_workers:
        return Problem(problems.NO_TRAINING_WORKERS, "spec.trainingWorkers is empty: add at least one training worker")
    policy = job.annotations.get(COMPLETION_POLICY, ALL_WORKERS)
    if policy not in (ALL_WORKERS, TRAINING_WORKERS):
        return Problem(
            problems.INVALID_SPEC,
            f"annotation {COMPLETION_POLICY} is {policy!r}: use {ALL_WORKERS} (the default) or {TRAINING_WORKERS}",
        )
    aggregator = Occupant("the aggregation worker", _aggregation_template(job.spec)["spec"], AGGREGATION_PORT)
    trainers = [
        Occupant(f"training worker {index}", template["spec"])
        for index, template in enumerate(_training_templates(job.spec))
    ]
    return names.check_names(
        job.name, services=[names.service_name(job.name, AGGREGATION)], labels=[job.name]
    ) or check_ports([aggregator, *trainers])


@dataclass(frozen=True, slots=True)
class _Worker:
    type: str
    index: int
    template: dict[str, Any]
    environment: list[Variable]
    sources: list[Source | Problem]


def _workers(job: FederatedJob, found: Found, options: JobOptions) -> Sequence[_Worker]:
    spec = job.spec
    model = references.model_source("MODEL_URL", spec.aggregation_worker.model.name, found, download=False)
    shared = [model, *_pretrained(spec, found), *_transmitter_source(spec, found)]
    workers = [_Worker(AGGREGATION, 0, _aggregation_template(spec), _aggregation_environment(job), shared)]
    for index, (worker, template) in enumerate(zip(spec.training_workers, _training_templates(spec), strict=True)):
        dataset = references.dataset_source("TRAIN_DATASET_URL", worker.dataset.name, found)
        environment = _training_environment(job, index, worker.dataset.name, options)
        workers.append(_Worker(TRAIN, index, template, environment, [*shared, dataset]))
    return workers


def _aggregation_environment(job: FederatedJob) -> list[Variable]:
    return variables(
        {
            "NAMESPACE": job.namespace,
            "WORKER_NAME": names.worker_name("aggworker", job.name, 0),
            "JOB_NAME": job.name,
            "AGG_BIND_PORT": str(AGGREGATION_PORT),
            "PARTICIPANTS_COUNT": str(len(job.spec.training_workers)),
            "TRANSMITTER": _transmitter(job.spec),
        }
    )


def _training_environment(job: FederatedJob, index: int, dataset: str, options: JobOptions) -> list[Variable]:
    return variables(
        {
            "AGG_PORT": str(AGGREGATION_PORT),
            "AGG_IP": names.service_host(names.service_name(job.name, AGGREGATION), job.namespace),
            "WORKER_NAME": names.worker_name("trainworker", job.name, index),
            "JOB_NAME": job.name,
            "PARTICIPANTS_COUNT": str(len(job.spec.training_workers)),
            "NAMESPACE": job.namespace,
            "MODEL_NAME": job.spec.aggregation_worker.model.name,
            "DATASET_NAME": dataset,
            "LC_SERVER": options.local_controller_server,
            "TRANSMITTER": _transmitter(job.spec),
        }
    )


def _transmitter(spec: FederatedLearningJobSpec) -> str:
    return "s3" if spec.transmitter is not None and spec.transmitter.s3 is not None else "ws"


def _transmitter_source(spec: FederatedLearningJobSpec, found: Found) -> list[Source | Problem]:
    if spec.transmitter is None or spec.transmitter.s3 is None:
        return []
    s3 = spec.transmitter.s3
    return [references.source("AGG_DATA_PATH", s3.agg_data_path, s3.credential_name, found, download=False)]


def _pretrained(spec: FederatedLearningJobSpec, found: Found) -> list[Source | Problem]:
    if spec.pretrained_model is None:
        return []
    return [references.model_source("PRETRAINED_MODEL_URL", spec.pretrained_model.name, found, download=True)]


def _aggregation_template(spec: FederatedLearningJobSpec) -> dict[str, Any]:
    return pods.with_defaults(spec.aggregation_worker.template, restart_policy="OnFailure")


def _training_templates(spec: FederatedLearningJobSpec) -> list[dict[str, Any]]:
    return [
        pods.with_defaults(worker.template, restart_policy="OnFailure", host_network=True)
        for worker in spec.training_workers
    ]
