"""What a federated learning job's status says, computed from its pods alone. Pure.

A job has succeeded when every worker has ended with success, the aggregator too: with some algorithms (MistNet) it
does its main work after the trainers have ended. Jobs whose aggregator never ends by itself say so with the
annotation `sedna.io/completion-policy: TrainingWorkers`; then the trainers decide. A job has failed when a worker's
pod has failed, which with the default restart policy (OnFailure: a crash restarts the container in its pod) means
that the pod was given up. A pod that is being deleted counts as neither, whatever its phase says, and so do pods of
an older spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from informers import Object
from pysedna.jobs import labels
from pysedna.jobs.conditions import (
    COMPLETE,
    FAILED,
    PENDING,
    SPEC_CHANGED,
    TRAINING,
    Condition,
    Note,
    clear,
    find,
    is_true,
    pending,
    set_condition,
)
from pysedna.jobs.federated_learning.children import (
    COMPLETION_POLICY,
    TRAIN,
    TRAINING_WORKERS,
    FederatedJob,
    job_hash,
    worker_names,
)
from pysedna.jobs.pod_state import PodState, failure, is_active, pod_state, pod_trouble
from pysedna.jobs.problems import Problem
from pysedna.jobs.status import StatusChange

_ROUND = "DoTraining"  # the reason under which local controllers report rounds


def is_finished(conditions: Sequence[Condition]) -> bool:
    """Whether a job is over for good."""
    return is_true(conditions, COMPLETE) or is_true(conditions, FAILED)


def finishes(job: FederatedJob, pods: Iterable[Object]) -> bool:
    """Whether the pods decide that the job is over."""
    workers = _Workers.of(job, pods)
    return bool(workers.failed) or workers.complete


def status(job: FederatedJob, pods: Sequence[Object], *, problem: Problem | None, now: str) -> StatusChange:
    """The status of a job with these pods of its own. `problem`: why workers cannot be made; `now`: RFC 3339."""
    if is_finished(job.conditions):
        return _after_the_end(job, pods, now)
    workers = _Workers.of(job, pods)
    if workers.complete:
        return _succeeded(job, workers, now)
    if workers.failed:
        return _failed(job, workers, now)
    return _unfinished(job, workers, problem if workers.missing else None, now)


class _Workers:
    """The pods of the job in hand by what they say."""

    def __init__(self, names: Sequence[str], current: Mapping[str, Object], active: int, trainers_decide: bool) -> None:
        self.active = active
        self.missing = [name for name in names if name not in current]
        self.succeeded = [name for name in names if _state(current, name) is PodState.SUCCEEDED]
        self.failed = [current[name] for name in names if _state(current, name) is PodState.FAILED]
        self.running = [name for name in names if _state(current, name) is PodState.RUNNING]
        self.starting = [name for name in names if _state(current, name) in (None, PodState.WAITING)]
        self.troubles = [trouble for name in names if name in current and (trouble := pod_trouble(current[name]))]
        deciding = names[1:] if trainers_decide else names
        self.complete = len(names) > 1 and set(deciding) <= set(self.succeeded)

    @classmethod
    def of(cls, job: FederatedJob, pods: Iterable[Object]) -> _Workers:
        digest = job_hash(job.spec)
        pods = list(pods)
        current = {
            pod.name: pod
            for pod in pods
            if labels.spec_hash_of(pod, job.kind) == digest and pod_state(pod) is not PodState.STOPPING
        }
        active = sum(1 for pod in pods if is_active(pod))
        decide = job.annotations.get(COMPLETION_POLICY) == TRAINING_WORKERS
        return cls(worker_names(job), current, active, decide)

    @property
    def counts(self) -> dict[str, Any]:
        return {"active": self.active, "succeeded": len(self.succeeded), "failed": len(self.failed)}


def _state(current: Mapping[str, Object], name: str) -> PodState | None:
    pod = current.get(name)
    return pod_state(pod) if pod is not None else None


def _unfinished(job: FederatedJob, workers: _Workers, problem: Problem | None, now: str) -> StatusChange:
    started = bool(workers.running or workers.succeeded)
    fields = {
        **workers.counts,
        "phase": "Running" if started else "Pending",
        "observedGeneration": job.generation,
    }
    if not job.status.get("startTime") and problem is None:
        fields["startTime"] = now
    conditions, notes = pending(job.conditions, problem, now=now)
    return StatusChange(fields, _training(conditions, workers, now), notes)


def _training(conditions: Sequence[Condition], workers: _Workers, now: str) -> list[Condition]:
    if workers.troubles:
        message = "; ".join(trouble.message for trouble in workers.troubles)
        return _set_training(conditions, False, now=now, reason=workers.troubles[0].reason, message=message)
    if workers.starting:
        message = f"waiting for {', '.join(workers.starting)}"
        return _set_training(conditions, False, now=now, reason="WorkersStarting", message=message)
    old = find(conditions, TRAINING)
    if old is not None and old.get("status") == "True" and _is_round(old):
        return list(conditions)  # the edge has told more than we know: which round it is
    message = "the trainers have ended, the aggregator works on" if _aggregating(workers) else "all workers run"
    return _set_training(conditions, True, now=now, reason="WorkersRunning", message=message)


def _training_ended(conditions: Sequence[Condition], now: str) -> list[Condition]:
    if find(conditions, TRAINING) is None:
        return list(conditions)
    return _set_training(conditions, False, now=now)


def _set_training(
    conditions: Sequence[Condition], status: bool, *, now: str, reason: str = "", message: str = ""
) -> list[Condition]:
    """Our word on the training, as the newest of its type. The rounds that the edge has reported stay before it."""
    ours = [condition for condition in conditions if not _is_round(condition)]
    told = set_condition(ours, TRAINING, status, now=now, reason=reason, message=message)
    if len(ours) == len(conditions):
        return told
    word = find(told, TRAINING)
    if word is None or word == find(conditions, TRAINING):
        return list(conditions)
    kept = [condition for condition in conditions if condition.get("type") != TRAINING or _is_round(condition)]
    return [*kept, word]


def _is_round(condition: Condition) -> bool:
    return condition.get("type") == TRAINING and condition.get("reason") == _ROUND


def _aggregating(workers: _Workers) -> bool:
    return bool(workers.succeeded) and not any(f"-{TRAIN}-" in name for name in workers.running)


def _succeeded(job: FederatedJob, workers: _Workers, now: str) -> StatusChange:
    conditions = _training_ended(clear(job.conditions, PENDING, now=now), now)
    conditions = set_condition(
        conditions,
        COMPLETE,
        True,
        now=now,
        reason="WorkersSucceeded",
        message=f"succeeded: {', '.join(workers.succeeded)}",
        observedGeneration=job.generation,
    )
    fields = _end(job, workers, "Succeeded", now) | {"completionTime": now}
    return StatusChange(fields, conditions, [Note("Normal", "Completed", "the workers of the job have succeeded")])


def _failed(job: FederatedJob, workers: _Workers, now: str) -> StatusChange:
    message = "; ".join(failure(pod) for pod in workers.failed)
    conditions = _training_ended(clear(job.conditions, PENDING, now=now), now)
    conditions = set_condition(
        conditions,
        FAILED,
        True,
        now=now,
        reason="workerFailed",
        message=message,
        observedGeneration=job.generation,
    )
    return StatusChange(_end(job, workers, "Failed", now), conditions, [Note("Warning", "workerFailed", message)])


def _end(job: FederatedJob, workers: _Workers, phase: str, now: str) -> dict[str, Any]:
    return {
        **workers.counts,
        "phase": phase,
        "startTime": job.status.get("startTime") or now,
        "observedGeneration": job.generation,
    }


def _after_the_end(job: FederatedJob, pods: Sequence[Object], now: str) -> StatusChange:
    """What has ended stays as it was told, even if its pods go away; only what still runs is counted anew."""
    fields = {"active": sum(1 for pod in pods if is_active(pod)), "observedGeneration": job.generation}
    end = next(
        condition
        for kind in (COMPLETE, FAILED)
        if is_true(job.conditions, kind) and (condition := find(job.conditions, kind)) is not None
    )
    seen = end.get("observedGeneration")
    if not isinstance(seen, int) or job.generation <= seen:
        return StatusChange(fields, job.conditions)
    message = (
        "the job had finished when its spec was changed; the change has no effect: create a new job to run it again"
    )
    news = not is_true(job.conditions, SPEC_CHANGED)
    conditions = set_condition(job.conditions, SPEC_CHANGED, True, now=now, reason="JobFinished", message=message)
    return StatusChange(fields, conditions, [Note("Warning", "JobFinished", message)] if news else [])
