"""How the reconciler treats a joint inference service: the pure parts of this package, put together."""

from __future__ import annotations

from collections.abc import Sequence

from pysedna.api.joint_inference import JointInferenceServiceSpec
from pysedna.jobs import labels, names, problems
from pysedna.jobs.actions import AUTOSCALER, DEPLOYMENT, SERVICE, Kind
from pysedna.jobs.behaviour import Plan
from pysedna.jobs.conditions import Condition
from pysedna.jobs.joint_inference import changes, children, progress
from pysedna.jobs.joint_inference.children import CLOUD, EDGE, KIND, WORKERS, InferenceService
from pysedna.jobs.observed import Observed
from pysedna.jobs.options import JobOptions
from pysedna.jobs.problems import Problem
from pysedna.jobs.references import Found, References
from pysedna.jobs.status import StatusChange


class JointInference:
    """The behaviour of JointInferenceService."""

    kind = KIND
    spec = JointInferenceServiceSpec
    watched: Sequence[Kind] = (DEPLOYMENT, SERVICE)

    def needed(self, spec: JointInferenceServiceSpec) -> References:
        """The Models of both workers."""
        return children.needed(spec)

    def child_names(self, job: InferenceService) -> list[tuple[Kind, str]]:
        """Both Deployments and the Service of the cloud worker."""
        deployments = [names.deployment_name(job.name, kind) for kind in WORKERS]
        return [*((DEPLOYMENT, name) for name in deployments), (SERVICE, names.service_name(job.name, CLOUD))]

    def unwatched(self, job: InferenceService) -> list[tuple[Kind, str]]:
        """The autoscalers, if the spec asks for one or has been changed since they were last looked at."""
        asked = any(children.worker(job.spec, kind).hpa is not None for kind in WORKERS)
        if not asked and job.status.get("observedGeneration") == job.generation:
            return []
        return [(AUTOSCALER, name) for name in children.autoscaler_names(job)]

    def plan(self, job: InferenceService, found: Found, observed: Observed, options: JobOptions) -> Plan:
        """A worker that cannot be made does not keep the other one from being made."""
        wanted = children.desired(job, found, options)
        if isinstance(wanted, Problem):
            return Plan(problem=wanted)
        waiting = [
            Problem(problem.reason, f"{kind} worker: {problem.message}")
            for kind, problem in wanted.problems.items()
            if not _is_current(job, kind, observed)
        ]
        problem = problems.combined([*waiting, *changes.names_taken(wanted, observed)])
        return Plan(changes.diff(wanted, observed, job), problem)

    def status(self, job: InferenceService, observed: Observed, *, problem: Problem | None, now: str) -> StatusChange:
        """See `progress.status`."""
        return progress.status(job, observed.of(DEPLOYMENT), observed.pods, problem=problem, now=now)

    def over(self, conditions: Sequence[Condition]) -> bool:
        """Never: a service ends when it is deleted."""
        return False

    def nodes(self, job: InferenceService, observed: Observed) -> list[str]:
        """The node of the edge worker: as its template says, else where its pods were bound."""
        named = job.spec.edge_worker.template["spec"].get("nodeName")
        if named:
            return [named]
        digest = children.worker_hash(job.spec, EDGE)
        bound = [
            (pod.get("spec") or {}).get("nodeName")
            for pod in observed.pods
            if pod.labels.get(labels.type_label(job.kind)) == EDGE and labels.spec_hash_of(pod, job.kind) == digest
        ]
        return sorted({node for node in bound if node})


def _is_current(job: InferenceService, kind: str, observed: Observed) -> bool:
    """Whether a worker is there as the spec wants it, so that nothing it was made of is needed now."""
    live = observed.of(DEPLOYMENT).get(names.deployment_name(job.name, kind))
    return (
        live is not None
        and live.deletion_timestamp is None
        and labels.spec_hash_of(live, job.kind) == children.worker_hash(job.spec, kind)
    )
