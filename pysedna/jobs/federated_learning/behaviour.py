"""How the reconciler treats a federated learning job: the pure parts of this package, put together."""

from __future__ import annotations

from collections.abc import Sequence

from informers import Object
from pysedna.api.federated_learning import FederatedLearningJobSpec
from pysedna.jobs import labels, names, problems
from pysedna.jobs.actions import POD, SERVICE, Kind
from pysedna.jobs.behaviour import Plan
from pysedna.jobs.conditions import Condition
from pysedna.jobs.federated_learning import changes, children, progress
from pysedna.jobs.federated_learning.children import AGGREGATION, KIND, TRAIN, FederatedJob
from pysedna.jobs.observed import Observed
from pysedna.jobs.options import JobOptions
from pysedna.jobs.problems import Problem
from pysedna.jobs.references import Found, References
from pysedna.jobs.status import StatusChange


class FederatedLearning:
    """The behaviour of FederatedLearningJob."""

    kind = KIND
    spec = FederatedLearningJobSpec
    watched: Sequence[Kind] = (POD, SERVICE)

    def needed(self, spec: FederatedLearningJobSpec) -> References:
        """Models, Datasets and the transmitter's Secret."""
        return children.needed(spec)

    def child_names(self, job: FederatedJob) -> list[tuple[Kind, str]]:
        """The pods of all workers and the aggregator's Service."""
        service = names.service_name(job.name, AGGREGATION)
        return [*((POD, name) for name in children.worker_names(job)), (SERVICE, service)]

    def unwatched(self, job: FederatedJob) -> list[tuple[Kind, str]]:
        """None: all children are in caches."""
        return []

    def plan(self, job: FederatedJob, found: Found, observed: Observed, options: JobOptions) -> Plan:
        """Nothing is created for a job that is over, nor for one whose pods have just decided that it is."""
        pods = list(observed.of(POD).values())
        if progress.is_finished(job.conditions):
            return Plan(changes.leftovers(pods, job))
        if progress.finishes(job, pods):
            return Plan()
        wanted = children.desired(job, found, options)
        if isinstance(wanted, Problem):
            return Plan(problem=wanted)
        taken = problems.combined(changes.names_taken(wanted, observed))
        return Plan(changes.diff(wanted, observed, job), taken)

    def status(self, job: FederatedJob, observed: Observed, *, problem: Problem | None, now: str) -> StatusChange:
        """See `progress.status`."""
        return progress.status(job, list(observed.of(POD).values()), problem=problem, now=now)

    def over(self, conditions: Sequence[Condition]) -> bool:
        """Complete or failed."""
        return progress.is_finished(conditions)

    def nodes(self, job: FederatedJob, observed: Observed) -> list[str]:
        """The nodes of the trainers: as the templates say, else where their pods were bound."""
        result: dict[str, None] = {}
        for index, worker in enumerate(job.spec.training_workers):
            pod = observed.of(POD).get(names.pod_name(job.name, TRAIN, index))
            node = worker.template["spec"].get("nodeName") or _bound(pod, job)
            if node:
                result[node] = None
        return list(result)


def _bound(pod: Object | None, job: FederatedJob) -> str:
    if pod is None or labels.spec_hash_of(pod, job.kind) != children.job_hash(job.spec):
        return ""
    return str((pod.get("spec") or {}).get("nodeName") or "")
