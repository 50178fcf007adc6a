"""Conditions of a Sedna status: set one, leave the others as they are.

A job's conditions have several writers (local controllers report rounds and metrics there), so only the types that a
controller owns are ever touched, and a condition that says the same again keeps its times: writing it would wake
everyone who watches the job for nothing. Times are written under upstream's name too (lastHeartbeatTime), for
programs that read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pysedna.jobs.problems import Problem

PENDING = "Pending"
RUNNING = "Running"
TRAINING = "Training"
COMPLETE = "Complete"
FAILED = "Failed"
SPEC_CHANGED = "SpecChanged"

Condition = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    """An event to record when the change has been written."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def find(conditions: Sequence[Condition], type: str) -> Condition | None:
    """The newest condition of a type. Upstream appends without end; the last one counts."""
    return next((condition for condition in reversed(conditions) if condition.get("type") == type), None)


def is_true(conditions: Sequence[Condition], type: str) -> bool:
    """Whether the newest condition of that type is True."""
    found = find(conditions, type)
    return found is not None and found.get("status") == "True"


def set_condition(
    conditions: Sequence[Condition],
    type: str,
    status: bool,
    *,
    now: str,
    reason: str = "",
    message: str = "",
    **extra: Any,
) -> list[Condition]:
    """The conditions with one of them set (and further ones of that type removed); `extra` are further fields of it.

    Nothing changes when the condition says the same already. lastTransitionTime moves only when the status does.
    """
    old = find(conditions, type)
    fresh: dict[str, Any] = {"type": type, "status": str(status), **extra}
    if reason:
        fresh["reason"] = reason
    if message:
        fresh["message"] = message
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    if old is not None and old.get("status") == fresh["status"]:
        if _without_times(old) == fresh:
            times = {name: old[name] for name in old if name.endswith("Time")}
        else:
            times["lastTransitionTime"] = old.get("lastTransitionTime", now)
    result: list[Condition] = []
    for condition in conditions:
        if condition is old:
            result.append({**fresh, **times})
        elif condition.get("type") != type:
            result.append(condition)
    return result if old is not None else [*result, {**fresh, **times}]


def clear(conditions: Sequence[Condition], type: str, *, now: str) -> list[Condition]:
    """The conditions with that type set to False, if there is one; a job that never had it does not get it."""
    if find(conditions, type) is None:
        return list(conditions)
    return set_condition(conditions, type, False, now=now)


def tell(
    conditions: Sequence[Condition], type: str, *, reason: str, message: str, now: str
) -> tuple[list[Condition], list[Note]]:
    """Set a condition that warns, and a note for an event if it does not say the same already."""
    old = find(conditions, type) or {}
    told = set_condition(conditions, type, True, now=now, reason=reason, message=message)
    known = (old.get("status"), old.get("reason"), old.get("message")) == ("True", reason, message)
    return told, [] if known else [Note("Warning", reason, message)]


def pending(
    conditions: Sequence[Condition], problem: Problem | None, *, now: str
) -> tuple[list[Condition], list[Note]]:
    """The condition that says what a job waits for, and a note if that is news."""
    if problem is None:
        return clear(conditions, PENDING, now=now), []
    return tell(conditions, PENDING, reason=problem.reason, message=problem.message, now=now)


def _without_times(condition: Condition) -> dict[str, Any]:
    return {name: value for name, value in condition.items() if not name.endswith("Time")}
