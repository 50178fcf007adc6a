"""Carries out what a reconcile wants done to the children of a job.

Each action is tried, whatever became of the one before; only a cache that turns out to lag stops creating for this
time. What the API server says is sorted here: that an object is
gone or has moved on is no failure, since the caches will show it and the next reconcile decides anew; that it refuses
an object is a problem for the job's conditions; anything else is a failure to be retried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from informers.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InformersError,
    InvalidError,
    KindNotFoundError,
    NotFoundError,
)
from pysedna.jobs import problems
from pysedna.jobs.actions import AUTOSCALER, Action, Create, Delete, Patch, Replace, key_of
from pysedna.jobs.job import Job
from pysedna.jobs.observed import name_taken
from pysedna.jobs.problems import Problem
from pysedna.jobs.seams import Client, Recorder, Writes


@dataclass(slots=True)
class Outcome:
    """What became of the actions. `behind`: the caches lag; what is missing here will be done when they have caught
    up."""

    problems: list[Problem] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    behind: bool = False


def carry_out(
    actions: Sequence[Action], *, client: Client, recorder: Recorder, job: Job[Any], about: Mapping[str, Any]
) -> Outcome:
    """Do it, in order; `about` is the job's object, for events. Raises only what says that this run may not act."""
    outcome = Outcome()
    for action in actions:
        if outcome.behind and isinstance(action, Create):
            continue  # what looks missing may be there; the next run, with a newer cache, will know
        resource = client.resource(*action.kind)
        try:
            done = _act(action, resource, job, outcome)
        except NotFoundError as error:
            _not_found(action, error, outcome)
        except ConflictError:
            outcome.behind = True
        except InformersError as error:
            _refused(action, error, outcome)
        else:
            if done:
                recorder.event(about, "Normal", "Successful" + _VERBS[type(action)], done)
    return outcome


_VERBS: Mapping[type, str] = {Create: "Create", Replace: "Update", Patch: "Update", Delete: "Delete"}


def _act(action: Action, resource: Writes, job: Job[Any], outcome: Outcome) -> str:
    """Do one action; returns what to say of it, empty if there was nothing to do."""
    key = key_of(action)
    what = f"{action.kind[1]} {key.name}"
    if isinstance(action, Create):
        try:
            resource.create(action.manifest)
        except AlreadyExistsError:
            _already_there(action, resource, job, outcome)
            return ""
        return f"created {what}"
    if isinstance(action, Replace):
        resource.replace(action.manifest)
        return f"updated {what}: {action.why}"
    if isinstance(action, Patch):
        resource.patch(key, action.patch)
        return f"updated {what}: {action.why}"
    resource.delete(key, uid=action.uid)
    return f"deleted {what}: {action.why}"


def _already_there(action: Create, resource: Writes, job: Job[Any], outcome: Outcome) -> None:
    """The name exists: our own child that the cache does not show yet, or somebody else's object."""
    outcome.behind = True
    try:
        live = resource.get(key_of(action))
    except NotFoundError:
        return  # gone again meanwhile
    if live.controller is None or live.controller.uid != job.uid:
        outcome.problems.append(name_taken(action.kind, live))


def _not_found(action: Action, error: NotFoundError, outcome: Outcome) -> None:
    if isinstance(error, KindNotFoundError) and action.kind == AUTOSCALER:
        outcome.problems.append(
            Problem(
                problems.AUTOSCALING_UNAVAILABLE,
                f"this cluster does not serve {action.kind[0]}, so {key_of(action).name} cannot be made: remove hpa",
            )
        )
    elif isinstance(action, Create):
        outcome.failures.append(error)  # the namespace, or the kind, is gone
    else:
        outcome.behind = True


def _refused(action: Action, error: InformersError, outcome: Outcome) -> None:
    if isinstance(error, ForbiddenError) and error.has_cause("NamespaceTerminating"):
        return  # everything in there goes away; there is nobody to tell
    if isinstance(error, ForbiddenError | InvalidError | BadRequestError):
        said = error.message if isinstance(error, ApiError) else str(error)
        outcome.problems.append(
            Problem(problems.REJECTED, f"{action.kind[1]} {key_of(action).name} was refused by the API server: {said}")
        )
    if not isinstance(error, InvalidError | BadRequestError):
        outcome.failures.append(error)  # a quota or a permission may change, and nobody would wake us
