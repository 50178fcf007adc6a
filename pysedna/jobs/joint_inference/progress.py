"""What a joint inference service's status says, computed from its Deployments and pods alone. Pure.

A worker is active when its Deployment has the current spec and all wanted pods of it are available. It has failed
when something keeps it from running that time alone will not cure: a crash loop, an image that cannot be pulled, a
rollout that is stuck. Neither is final: both are computed anew each time, so a service gets well when its workers do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from informers import Object
from pysedna.jobs import deployments, labels, names
from pysedna.jobs.conditions import FAILED, RUNNING, Condition, Note, clear, pending, set_condition, tell
from pysedna.jobs.joint_inference.children import WORKERS, InferenceService, worker_hash
from pysedna.jobs.pod_state import pod_trouble
from pysedna.jobs.problems import Problem
from pysedna.jobs.status import StatusChange


@dataclass(frozen=True, slots=True)
class _Worker:
    kind: str
    active: bool
    trouble: tuple[str, str] | None


def status(
    job: InferenceService,
    live: Mapping[str, Object],
    pods: Sequence[Object],
    *,
    problem: Problem | None,
    now: str,
) -> StatusChange:
    """The status of a service.

    `live` are its Deployments by name, `pods` those of its Deployments; `problem` says why a worker cannot be made,
    `now` is RFC 3339.
    """
    workers = [_judge(job, kind, live, pods) for kind in WORKERS]
    troubled = [worker for worker in workers if worker.trouble is not None]
    fields: dict[str, Any] = {
        "active": sum(1 for worker in workers if worker.active),
        "failed": len(troubled),
        "observedGeneration": job.generation,
    }
    if not job.status.get("startTime") and (live or problem is None):
        fields["startTime"] = now
    conditions, notes = pending(job.conditions, problem, now=now)
    conditions = _running(conditions, workers, now)
    conditions, more = _failed(conditions, troubled, now)
    return StatusChange(fields, conditions, [*notes, *more])


def _judge(job: InferenceService, kind: str, live: Mapping[str, Object], pods: Sequence[Object]) -> _Worker:
    found = live.get(names.deployment_name(job.name, kind))
    if found is None or found.deletion_timestamp is not None:
        return _Worker(kind, False, None)
    digest = labels.spec_hash_of(found, job.kind)
    troubles = [
        (trouble.reason, trouble.message)
        for pod in pods
        if pod.labels.get(labels.type_label(job.kind)) == kind
        and labels.spec_hash_of(pod, job.kind) == digest
        and (trouble := pod_trouble(pod)) is not None
    ]
    stuck = deployments.trouble(found)
    if stuck is not None:
        troubles.append((stuck[0], f"Deployment {found.name}: {stuck[1]}"))
    said = (troubles[0][0], "; ".join(message for _, message in troubles)) if troubles else None
    return _Worker(kind, digest == worker_hash(job.spec, kind) and deployments.available(found), said)


def _running(conditions: Sequence[Condition], workers: Sequence[_Worker], now: str) -> list[Condition]:
    missing = [worker.kind for worker in workers if not worker.active]
    if not missing:
        return set_condition(
            conditions, RUNNING, True, now=now, reason="WorkersAvailable", message="both workers are available"
        )
    message = f"not available: the {' and the '.join(missing)} worker"
    return set_condition(conditions, RUNNING, False, now=now, reason="WorkersUnavailable", message=message)


def _failed(
    conditions: Sequence[Condition], troubled: Sequence[_Worker], now: str
) -> tuple[list[Condition], list[Note]]:
    said = [(worker.kind, worker.trouble) for worker in troubled if worker.trouble is not None]
    if not said:
        return clear(conditions, FAILED, now=now), []
    message = "; ".join(f"{kind} worker: {trouble[1]}" for kind, trouble in said)
    told, notes = tell(conditions, FAILED, reason=said[0][1][0], message=message, now=now)
    return told, [Note("Warning", "workerFailed", note.message) for note in notes]
