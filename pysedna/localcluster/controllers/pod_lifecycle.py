"""The life of a pod on a simulated node, as a kubelet would report it. Pure.

`look` takes the pod as the API has it and the time, and says which status it should have, when to look again, and
whether it is to be removed. Init containers run first, one after the other; phase and conditions follow from the
containers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pysedna.controller import rfc3339, set_condition
from pysedna.localcluster.controllers import containers as c
from pysedna.localcluster.controllers.containers import Json, Moments
from pysedna.localcluster.controllers.node_options import NodeOptions


@dataclass(frozen=True, slots=True)
class PodLook:
    """A pod at one moment. `wake` is a time of the wall clock; `remove`: delete it now, its grace is over."""

    status: Json
    wake: float | None = None
    remove: bool = False
    moments: Mapping[str, float] = field(default_factory=dict)


def look(
    pod: Mapping[str, Any], now: float, options: NodeOptions, *, moments: Moments, pod_ip: str, host_ip: str
) -> PodLook:
    """The pod at `now`. `pod` is a plain dict as the API has it, bound to a node; `moments` is what the last look
    gave.
    """
    metadata, spec = pod["metadata"], pod["spec"]
    options = options.for_pod(metadata.get("annotations") or {})
    if is_over(pod.get("status") or {}):
        return PodLook(dict(pod["status"]), None, _removable(metadata), moments)
    status = _begun(pod, now, pod_ip=pod_ip, host_ip=host_ip)
    deleting = metadata.get("deletionTimestamp") is not None
    if deleting:
        moments = {"stop": now, **moments}
        until = _grace_over(pod, now, options, moments)
        if until <= now:
            return PodLook(_ended(status, spec, now), None, _removable(metadata), moments)
    else:
        until = None
    status, wake, moments = _containers(status, pod, now, options, moments)
    status = _summary(status, spec, now)
    if is_over(status) and deleting:
        return PodLook(status, None, _removable(metadata), moments)
    times = [at for at in (wake, until) if at is not None]
    return PodLook(status, min(times, default=None), False, moments)


def is_over(status: Mapping[str, Any]) -> bool:
    """Whether the pod has ended for good."""
    return status.get("phase") in ("Succeeded", "Failed")


def _removable(metadata: Mapping[str, Any]) -> bool:
    # With grace 0 it has been removed as far as the node is concerned; what is left waits for its finalizers.
    return metadata.get("deletionTimestamp") is not None and metadata.get("deletionGracePeriodSeconds") != 0


def _grace_over(pod: Mapping[str, Any], now: float, options: NodeOptions, moments: Moments) -> float:
    grace = pod["metadata"].get("deletionGracePeriodSeconds")
    seconds = options.stop_seconds if grace is None else min(options.stop_seconds, float(grace))
    return moments.get("stop", now) + seconds


def _begun(pod: Mapping[str, Any], now: float, *, pod_ip: str, host_ip: str) -> Json:
    """The status with all that a node sets when it first sees the pod."""
    status: Json = dict(pod.get("status") or {})
    spec = pod["spec"]
    status.setdefault("phase", "Pending")
    status.setdefault("qosClass", "BestEffort")
    status.setdefault("startTime", rfc3339(now))
    if not status.get("hostIP"):
        status["hostIP"], status["hostIPs"] = host_ip, [{"ip": host_ip}]
    if not status.get("podIP"):
        address = host_ip if spec.get("hostNetwork") else pod_ip
        status["podIP"], status["podIPs"] = address, [{"ip": address}]
    inits = spec.get("initContainers") or []
    if inits:
        status["initContainerStatuses"] = _statuses(inits, status.get("initContainerStatuses"), "PodInitializing")
    reason = "PodInitializing" if inits else "ContainerCreating"
    status["containerStatuses"] = _statuses(spec["containers"], status.get("containerStatuses"), reason)
    return status


def _statuses(specs: Sequence[Mapping[str, Any]], present: Sequence[Json] | None, reason: str) -> list[Json]:
    known = {one["name"]: one for one in present or ()}
    return [known.get(spec["name"]) or c.waiting(spec, reason) for spec in specs]


def _containers(
    status: Json, pod: Mapping[str, Any], now: float, options: NodeOptions, moments: Moments
) -> tuple[Json, float | None, dict[str, float]]:
    """Let the containers whose turn it is go on."""
    spec, uid = pod["spec"], pod["metadata"].get("uid", "")
    policy = spec.get("restartPolicy", "Always")
    remembered, wakes = dict(moments), list[float]()
    changed: Json = {**status}

    def go_on(name: str, index: int, plan: c.Plan) -> Json:
        found = c.advance(changed[name][index], plan, now, remembered, uid=uid)
        remembered.update(found.moments)
        if found.wake is not None:
            wakes.append(found.wake)
        changed[name] = [*changed[name][:index], found.status, *changed[name][index + 1 :]]
        return found.status

    for index, container in enumerate(spec.get("initContainers") or ()):
        sidecar = container.get("restartPolicy") == "Always"
        # An init container that succeeded is done, whatever the pod's policy is.
        again = "Always" if sidecar else "Never" if policy == "Never" else "OnFailure"
        run = None if sidecar else options.init_seconds
        plan = _plan(options, start=options.start_seconds, run=run, code=options.init_exit_code, restart=again)
        one = go_on("initContainerStatuses", index, plan)
        if not (c.is_running(one) if sidecar else c.exit_code(one) == 0):
            return changed, min(wakes, default=None), remembered
    for index in range(len(spec["containers"])):
        plan = _plan(
            options, start=options.start_seconds, run=options.run_seconds, code=options.exit_code, restart=policy
        )
        go_on("containerStatuses", index, plan)
    return changed, min(wakes, default=None), remembered


def _plan(options: NodeOptions, *, start: float, run: float | None, code: int, restart: str) -> c.Plan:
    return c.Plan(start, run, code, restart, options.backoff_base, options.backoff_max)


def _ended(status: Json, spec: Mapping[str, Any], now: float) -> Json:
    """The status of a pod whose containers were told to stop."""
    for name in ("initContainerStatuses", "containerStatuses"):
        if name in status:
            status = {**status, name: [c.stopped(one, now) for one in status[name]]}
    codes = [c.exit_code(one) for one in status["containerStatuses"]]
    phase = "Failed" if any(codes) else "Succeeded"
    return _conditions({**status, "phase": phase}, spec, now)


def _summary(status: Json, spec: Mapping[str, Any], now: float) -> Json:
    return _conditions({**status, "phase": _phase(status, spec.get("restartPolicy", "Always"))}, spec, now)


def _phase(status: Json, policy: str) -> str:
    inits = status.get("initContainerStatuses") or []
    if policy == "Never" and any(c.exit_code(one) for one in inits):
        return "Failed"
    ones = status["containerStatuses"]
    codes = [c.exit_code(one) for one in ones]
    if all(code is not None for code in codes):
        if policy == "Always":
            return "Running"
        if not any(codes):
            return "Succeeded"
        return "Failed" if policy == "Never" else "Running"
    # One that waits for its next start has run before: the pod stays Running.
    began = [
        c.is_running(one) or one.get("lastState") or code is not None for one, code in zip(ones, codes, strict=True)
    ]
    return "Running" if any(began) else "Pending"


def _conditions(status: Json, spec: Mapping[str, Any], now: float) -> Json:
    stamp = rfc3339(now)
    over = is_over(status)
    unready = [one["name"] for one in status["containerStatuses"] if not one["ready"]]
    uninitialized = [] if over else _uninitialized(status, spec)
    conditions = status.get("conditions") or []
    facts = [
        ("PodReadyToStartContainers", not over, "", ""),
        ("Initialized", *_all(uninitialized, "ContainersNotInitialized", "containers with incomplete status")),
        ("Ready", *_readiness(unready, over)),
        ("ContainersReady", *_readiness(unready, over)),
        ("PodScheduled", True, "", ""),
    ]
    for type, holds, reason, message in facts:
        conditions = set_condition(conditions, type, holds, reason=reason, message=message, now=stamp)
    return {**status, "conditions": [_tidy(condition) for condition in conditions]}


def _uninitialized(status: Json, spec: Mapping[str, Any]) -> list[str]:
    sidecars = {one["name"] for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"}
    return [
        one["name"]
        for one in status.get("initContainerStatuses") or ()
        if not (c.is_running(one) if one["name"] in sidecars else c.exit_code(one) == 0)
    ]


def _readiness(unready: list[str], over: bool) -> tuple[bool, str, str]:
    if over:
        return False, "PodCompleted", ""
    return _all(unready, "ContainersNotReady", "containers with unready status")


def _all(missing: list[str], reason: str, what: str) -> tuple[bool, str, str]:
    return (False, reason, f"{what}: [{' '.join(missing)}]") if missing else (True, "", "")


def _tidy(condition: Json) -> Json:
    return {name: value for name, value in condition.items() if value != ""}
