"""What a pod's status says about a worker: does it run, is it over, and what keeps it from running.

A pod that is being deleted says nothing: its containers are stopped by force, and the kubelet may well report them as
failed, or as succeeded, on the way out.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from informers import Object
from pysedna.jobs.problems import Problem

_WAITING_TROUBLE = frozenset(
    {
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "ErrImageNeverPull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    }
)


class PodState(enum.Enum):
    """Where a worker's pod is in its life."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPING = "stopping"


_PHASES = {"Running": PodState.RUNNING, "Succeeded": PodState.SUCCEEDED, "Failed": PodState.FAILED}


def pod_state(pod: Object) -> PodState:
    """The state of a pod."""
    if pod.deletion_timestamp is not None:
        return PodState.STOPPING
    return _PHASES.get(str((pod.get("status") or {}).get("phase")), PodState.WAITING)


def is_active(pod: Object) -> bool:
    """Whether the pod has, or will have, a running worker."""
    return pod_state(pod) in (PodState.WAITING, PodState.RUNNING)


def pod_trouble(pod: Object) -> Problem | None:
    """What keeps an active pod from running as it should; None if nothing is known to."""
    if not is_active(pod):
        return None
    status = pod.get("status") or {}
    for container in _containers(status):
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason")
        if reason in _WAITING_TROUBLE:
            said = _last_exit(container) or waiting.get("message") or ""
            return Problem(reason, f"pod {pod.name}: container {container.get('name')} is in {reason}{_tail(said)}")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            reason = condition.get("reason") or "Unschedulable"
            return Problem(reason, f"pod {pod.name} has no node{_tail(condition.get('message') or '')}")
    return None


def failure(pod: Object) -> str:
    """Why a pod has failed, as one sentence."""
    status = pod.get("status") or {}
    parts = [part for part in (status.get("reason"), status.get("message")) if part]
    for container in _containers(status):
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            parts.append(f"container {container.get('name')} {_exit(ended)}")
    return f"pod {pod.name} failed{_tail(', '.join(parts))}"


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _last_exit(container: Mapping[str, Any]) -> str:
    ended = (container.get("lastState") or {}).get("terminated") or {}
    return _exit(ended) if ended else ""


def _exit(ended: Mapping[str, Any]) -> str:
    reason = ended.get("reason")
    return f"ended with exit code {ended.get('exitCode')}" + (f" ({reason})" if reason and reason != "Error" else "")


def _tail(said: str) -> str:
    return f": {said}" if said else ""
