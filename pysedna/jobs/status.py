"""A change of a job's status as a value: the owned fields, the conditions, and what is worth an event.

Only fields that a controller owns are in it. Conditions are a list, which a merge patch replaces whole, so the patch
carries the resourceVersion that the list was read at: what another writer added meanwhile is never lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pysedna.jobs.conditions import Condition, Note


@dataclass(frozen=True, slots=True)
class StatusChange:
    """What the status should say. `fields` with the value None are removed."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    conditions: Sequence[Condition] = ()
    notes: Sequence[Note] = ()


def patch_of(change: StatusChange, status: Mapping[str, Any], resource_version: str) -> dict[str, Any] | None:
    """The merge patch from `status`, as stored at `resource_version`, to the change; None if nothing differs."""
    fields = {name: value for name, value in change.fields.items() if status.get(name) != value}
    conditions = [dict(condition) for condition in change.conditions]
    if conditions != [dict(condition) for condition in status.get("conditions") or ()]:
        fields["conditions"] = conditions
    return {"metadata": {"resourceVersion": resource_version}, "status": fields} if fields else None
