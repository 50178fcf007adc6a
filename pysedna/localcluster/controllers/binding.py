"""Which simulated node a pod goes to. Pure.

Not a scheduler: resources, taints and affinities are not looked at. Node selectors are, since people use them to
tell edge nodes from cloud nodes, and `spec.schedulerName`, since a pod of another scheduler is not ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DEFAULT_SCHEDULER = "default-scheduler"


def is_ours(pod: Mapping[str, Any]) -> bool:
    """Whether the pod waits to be bound by us."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and spec.get("schedulerName", DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        and metadata.get("deletionTimestamp") is None
        and status.get("phase", "Pending") == "Pending"
    )


def choose(pod: Mapping[str, Any], nodes: Sequence[tuple[str, Mapping[str, str]]], turn: int) -> str | None:
    """The node for a pod: those (name, labels) that its selector matches take turns; None when there is none."""
    wanted = (pod["spec"].get("nodeSelector") or {}).items()
    fitting = [name for name, labels in nodes if all(labels.get(key) == value for key, value in wanted)]
    return fitting[turn % len(fitting)] if fitting else None
