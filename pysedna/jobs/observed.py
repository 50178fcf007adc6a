"""What a reconcile sees of its children, and three questions about them that all kinds of jobs ask.

Whose a child is, is decided by the uid in its controller reference; labels and names decide nothing. A child that was
made for a later generation of the job than the one in hand belongs to a manager that knows more: it is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from informers import Object
from pysedna.jobs import labels, problems
from pysedna.jobs.actions import Kind
from pysedna.jobs.job import Job
from pysedna.jobs.problems import Problem


@dataclass(frozen=True, slots=True)
class Observed:
    """Children of a job by kind and name, and objects of others under names that the job wants for its children.

    `pods`: the pods of the job's Deployments, which are not its own children.
    """

    owned: Mapping[Kind, Mapping[str, Object]] = field(default_factory=dict)
    taken: Mapping[tuple[Kind, str], Object] = field(default_factory=dict)
    pods: Sequence[Object] = ()

    def of(self, kind: Kind) -> Mapping[str, Object]:
        """The job's children of one kind, by name."""
        return self.owned.get(kind, {})


def is_newer(child: Object, job: Job[Any]) -> bool:
    """Whether a child was made for a later generation than the job in hand.

    A mark that speaks of a generation which does not exist was changed by hand, and says nothing.
    """
    return not job.newest and labels.generation_of(child) > job.generation


def anyone_newer(observed: Observed, job: Job[Any]) -> bool:
    """Whether some child tells that the job in hand is out of date."""
    return any(is_newer(child, job) for children in observed.owned.values() for child in children.values())


def name_taken(kind: Kind, child: Object) -> Problem:
    """The problem of a child's name that somebody else's object has."""
    owner = child.controller
    if child.deletion_timestamp is not None:
        return Problem(
            problems.NAME_TAKEN, f"another {kind[1]} called {child.name} is still being deleted; it is waited for"
        )
    whose = f"belongs to {owner.kind} {owner.name}" if owner is not None else "was not made for this job"
    return Problem(
        problems.NAME_TAKEN,
        f"{kind[1]} {child.name} is in the way: it {whose}; it stays untouched, delete or rename it, or rename the job",
    )
