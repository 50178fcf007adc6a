"""What makes one kind of job different from another, for the one reconciler that serves them all.

A behaviour is pure: it says what a job refers to, which names its children have, and, given what was found and seen,
what to do and what to say. The reconciler reads, carries out and writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pysedna.api.common import Base
from pysedna.jobs.actions import Action, Kind
from pysedna.jobs.conditions import Condition
from pysedna.jobs.job import Job
from pysedna.jobs.observed import Observed
from pysedna.jobs.options import JobOptions
from pysedna.jobs.problems import Problem
from pysedna.jobs.references import Found, References
from pysedna.jobs.status import StatusChange

S = TypeVar("S", bound=Base)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, and why something else cannot be done."""

    actions: Sequence[Action] = ()
    problem: Problem | None = None


class Behaviour(Protocol[S]):
    """One kind of job."""

    kind: str
    spec: type[S]
    watched: Sequence[Kind]
    """Kinds of children that are in caches."""

    def needed(self, spec: S) -> References:
        """What the spec refers to."""

    def child_names(self, job: Job[S]) -> Sequence[tuple[Kind, str]]:
        """The names of the children in caches that the job has or would have."""

    def unwatched(self, job: Job[S]) -> Sequence[tuple[Kind, str]]:
        """Children in no cache, to be read from the server for this plan."""

    def plan(self, job: Job[S], found: Found, observed: Observed, options: JobOptions) -> Plan:
        """What to do for a job that is not being deleted."""

    def status(self, job: Job[S], observed: Observed, *, problem: Problem | None, now: str) -> StatusChange:
        """What the status of the job should say."""

    def over(self, conditions: Sequence[Condition]) -> bool:
        """Whether a job with these conditions is over for good."""

    def nodes(self, job: Job[S], observed: Observed) -> Sequence[str]:
        """The nodes at the edge that the job concerns."""
