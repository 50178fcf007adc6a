"""The reconciler of a kind of job: reads caches, lets the kind's behaviour decide, carries out, writes the status.

There is no memory between runs but what the edge was told, no timer and no flag: whatever happened while nobody
looked, a run sees what there is and does what is missing. Before it changes children it reads the job itself once
more, so a run with an old copy of the job does nothing, and nothing is created for a job that has been deleted or has
finished meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from informers import NotFoundError, Object, ObjectKey
from informers.errors import ForbiddenError
from pysedna.api.common import API_VERSION, Base
from pysedna.controller import Result
from pysedna.edge import EdgeSink
from pysedna.jobs.actions import POD, Kind
from pysedna.jobs.behaviour import Behaviour
from pysedna.jobs.conditions import pending
from pysedna.jobs.edge_notices import EdgeNotices
from pysedna.jobs.errors import ChildrenNotWritten
from pysedna.jobs.executor import Outcome, carry_out
from pysedna.jobs.indexes import label_index, owner_index
from pysedna.jobs.job import Job, read_job
from pysedna.jobs.observed import Observed, anyone_newer
from pysedna.jobs.options import JobOptions
from pysedna.jobs.problems import Problem, combined
from pysedna.jobs.references import Found, gather
from pysedna.jobs.seams import Listers, Recorder, Run, look_up
from pysedna.jobs.status import StatusChange
from pysedna.jobs.status_writer import write_status

S = TypeVar("S", bound=Base)

# What the caches lack is on its way and wakes us when it comes; asking again costs little and trusts nobody.
_BEHIND = Result(requeue_after=1.0)


class JobReconciler(Generic[S]):
    """Reconciles the jobs of one kind. `now` gives the wall clock's time as RFC 3339, for timestamps only."""

    def __init__(
        self,
        behaviour: Behaviour[S],
        listers: Listers,
        recorder: Recorder,
        sink: EdgeSink,
        *,
        options: JobOptions,
        now: Callable[[], str],
    ) -> None:
        self._behaviour = behaviour
        self._listers = listers
        self._recorder = recorder
        self._edge = EdgeNotices(sink)
        self._options = options
        self._now = now

    def reconcile(self, key: ObjectKey, run: Run) -> Result | None:
        """Bring one job a step closer to what it wants. What this changes, or waits for, comes back as events.

        A run that finds its caches behind the server does what it safely can and asks to be run again. Raises
        `ChildrenNotWritten` (and errors of the client) to be tried again; what can be done without is done before.
        """
        seen = look_up(self._listers.jobs, *key)
        if seen is None:
            self._edge.gone(key)
            return None
        job = read_job(seen.to_dict(), self._behaviour.spec)
        if isinstance(job, Problem):
            if seen.deletion_timestamp is None:
                self._write(run, seen, self._unreadable(seen, job))
            return None
        if job.deleting:
            return None
        observed = self._observe(job, run)
        if anyone_newer(observed, job):
            if not self._is_current(job, run):
                return _BEHIND
            job = replace(job, newest=True)
        found = self._gather(job)
        plan = self._behaviour.plan(job, found, observed, self._options)
        outcome = Outcome()
        if plan.actions:
            if not self._is_current(job, run):
                return _BEHIND
            outcome = carry_out(plan.actions, client=run.client, recorder=self._recorder, job=job, about=seen)
        problem = combined([*([plan.problem] if plan.problem else []), *outcome.problems])
        self._write(run, seen, self._status(job, observed, problem, outcome))
        self._edge.present(seen, self._behaviour.nodes(job, observed))
        if outcome.failures:
            raise ChildrenNotWritten(f"{job.kind} {key}", outcome.failures)
        return _BEHIND if outcome.behind else None

    def _observe(self, job: Job[S], run: Run) -> Observed:
        index = owner_index(job.kind)
        owned: dict[Kind, dict[str, Object]] = {}
        for kind in self._behaviour.watched:
            children = self._listers.children[kind].by_index(index, job.uid)
            here = [child for child in children if child.namespace == job.namespace]
            # In one order: that of a cache is its own history, and two managers would correct each other's words.
            owned[kind] = {child.name: child for child in sorted(here, key=_name)}
        taken: dict[tuple[Kind, str], Object] = {}
        for kind, name in self._behaviour.child_names(job):
            if name not in owned[kind]:
                other = look_up(self._listers.children[kind], job.namespace, name)
                if other is not None:
                    taken[kind, name] = other
        for kind, name in self._behaviour.unwatched(job):
            live = self._read(kind, ObjectKey(job.namespace, name), run)
            if live is None:
                continue
            if live.controller is not None and live.controller.uid == job.uid:
                owned.setdefault(kind, {})[name] = live
            else:
                taken[kind, name] = live
        return Observed(owned, taken, self._pods_of_deployments(job))

    def _pods_of_deployments(self, job: Job[S]) -> list[Object]:
        if POD in self._behaviour.watched or POD not in self._listers.children:
            return []
        pods = self._listers.children[POD].by_index(label_index(job.kind), job.uid)
        return sorted((pod for pod in pods if pod.namespace == job.namespace and _of_replica_set(pod)), key=_name)

    def _read(self, kind: Kind, key: ObjectKey, run: Run) -> Object | None:
        try:
            return run.client.resource(*kind).get(key)
        except (NotFoundError, ForbiddenError):
            return None

    def _gather(self, job: Job[S]) -> Found:
        namespace = job.namespace
        return gather(
            self._behaviour.needed(job.spec),
            model=lambda name: look_up(self._listers.models, namespace, name),
            dataset=lambda name: look_up(self._listers.datasets, namespace, name),
            secret=lambda name: look_up(self._listers.secrets, namespace, name),
        )

    def _is_current(self, job: Job[S], run: Run) -> bool:
        """Whether the job in hand is the one at the server: the same object and spec, neither being deleted nor
        over."""
        try:
            live = run.client.resource(API_VERSION, job.kind).get(ObjectKey(job.namespace, job.name))
        except NotFoundError:
            return False
        if live.uid != job.uid or live.generation != job.generation or live.deletion_timestamp:
            return False
        status: Mapping[str, Any] = live.to_dict().get("status") or {}
        return self._behaviour.over(status.get("conditions") or ()) == self._behaviour.over(job.conditions)

    def _status(
        self, job: Job[S], observed: Observed, problem: Problem | None, outcome: Outcome
    ) -> Callable[[Mapping[str, Any]], StatusChange]:
        now = self._now()

        def compute(status: Mapping[str, Any]) -> StatusChange:
            change = self._behaviour.status(job.with_status(status), observed, problem=problem, now=now)
            if not outcome.failures and not outcome.behind:
                return change
            # The spec of this generation is not carried out yet, so the status must not say that it is.
            fields = {name: value for name, value in change.fields.items() if name != "observedGeneration"}
            return StatusChange(fields, change.conditions, change.notes)

        return compute

    def _unreadable(self, seen: Object, problem: Problem) -> Callable[[Mapping[str, Any]], StatusChange]:
        now = self._now()

        def compute(status: Mapping[str, Any]) -> StatusChange:
            told, notes = pending(status.get("conditions") or (), problem, now=now)
            return StatusChange({"observedGeneration": seen.generation}, told, notes)

        return compute

    def _write(self, run: Run, seen: Object, compute: Callable[[Mapping[str, Any]], StatusChange]) -> None:
        write_status(run.client.resource(API_VERSION, self._behaviour.kind), seen, compute, self._recorder)


def _name(obj: Object) -> str:
    return obj.name


def _of_replica_set(pod: Object) -> bool:
    return pod.controller is not None and pod.controller.kind == "ReplicaSet"
