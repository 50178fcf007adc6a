"""What a Deployment needs: which ReplicaSet is the new one, how every one is scaled, and the status. Pure.

Takes and gives plain dicts. A rolling update keeps the total below replicas + maxSurge and the available ones above
replicas - maxUnavailable; Recreate starts nothing before all old pods are gone.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pysedna.controller import rfc3339, set_condition
from pysedna.localcluster.controllers.containers import seconds_of

Json = Mapping[str, Any]
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
_PAUSED, _TIMED_OUT = "DeploymentPaused", "ProgressDeadlineExceeded"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no name becomes a word


@dataclass(frozen=True, slots=True)
class Scale:
    """Give this ReplicaSet that many replicas."""

    replica_set: Json
    replicas: int


@dataclass(frozen=True, slots=True)
class Rollout:
    """What to do now: make the new ReplicaSet (None: it is there, or must wait), scale, annotate, and remove old
    ones.
    """

    create: dict[str, Any] | None = None
    scale: tuple[Scale, ...] = ()
    revision: int = 0
    new: Json | None = None
    remove: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a rolling update in pods."""

    surge: int
    unavailable: int


def template_hash(template: Json, collisions: int = 0) -> str:
    """Ten characters that stand for a pod template; equal for equal content whatever the order of its fields."""
    text = json.dumps([template, collisions], sort_keys=True, separators=(",", ":"))
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return "".join(_ALPHABET[number // len(_ALPHABET) ** place % len(_ALPHABET)] for place in range(10))


def find_new(deployment: Json, replica_sets: Sequence[Json]) -> Json | None:
    """The ReplicaSet of the Deployment's present template: the oldest one, should there be several."""
    wanted = _bare(deployment["spec"]["template"])
    same = [one for one in replica_sets if _bare(one["spec"]["template"]) == wanted and not _deleting(one)]
    return min(
        same, key=lambda one: (one["metadata"].get("creationTimestamp", ""), one["metadata"]["name"]), default=None
    )


def bounds(deployment: Json) -> Bounds:
    """maxSurge (rounded up) and maxUnavailable (rounded down); one pod may be missing if both come to nothing."""
    spec = deployment["spec"]
    rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
    replicas = int(spec.get("replicas", 1))
    surge = _share(rolling.get("maxSurge", "25%"), replicas, math.ceil)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), replicas, math.floor)
    return Bounds(surge, min(unavailable, replicas) if surge or unavailable else 1)


def plan(deployment: Json, replica_sets: Sequence[Json], pods: Sequence[Json]) -> Rollout:
    """What to do for a Deployment with these ReplicaSets of its own and their pods."""
    if _deleting(deployment):
        return Rollout()
    new = find_new(deployment, replica_sets)
    old = [one for one in replica_sets if one is not new]
    revision = max((_revision(one) for one in old), default=0) + 1
    if new is not None:
        revision = max(revision, _revision(new))
    if deployment["spec"].get("paused"):
        known = revision if new is not None else 0
        return Rollout(scale=_paused(deployment, new, old), revision=known, new=new)
    if _is_recreate(deployment):
        return _recreate(deployment, new, old, pods, revision)
    return _rolling(deployment, new, old, revision)


def _recreate(deployment: Json, new: Json | None, old: list[Json], pods: Sequence[Json], revision: int) -> Rollout:
    down = tuple(Scale(one, 0) for one in old if _replicas(one))
    if down:
        return Rollout(scale=down, revision=revision, new=new)
    uids = {one["metadata"]["uid"] for one in old}
    running = [pod for pod in pods if _controller(pod) in uids and not _over(pod)]
    if running:
        return Rollout(revision=revision, new=new)
    wanted = int(deployment["spec"].get("replicas", 1))
    if new is None:
        return Rollout(create=new_replica_set(deployment, wanted, revision), revision=revision)
    scale = (Scale(new, wanted),) if _replicas(new) != wanted else ()
    return Rollout(scale=scale, revision=revision, new=new, remove=_history(deployment, new, old))


def _rolling(deployment: Json, new: Json | None, old: list[Json], revision: int) -> Rollout:
    wanted = int(deployment["spec"].get("replicas", 1))
    total = sum(map(_replicas, old)) + (_replicas(new) if new is not None else 0)
    room = max(0, wanted + bounds(deployment).surge - total)
    if new is None:
        return Rollout(create=new_replica_set(deployment, min(wanted, room), revision), revision=revision)
    have = _replicas(new)
    if have > wanted:
        return Rollout(scale=(Scale(new, wanted),), revision=revision, new=new)
    if have < wanted and room:
        return Rollout(scale=(Scale(new, min(wanted, have + room)),), revision=revision, new=new)
    down = _scale_down(deployment, new, old)
    return Rollout(scale=down, revision=revision, new=new, remove=() if down else _history(deployment, new, old))


def _scale_down(deployment: Json, new: Json, old: list[Json]) -> tuple[Scale, ...]:
    """Scale old ReplicaSets down as far as the available pods allow: first what is not healthy, then the oldest."""
    wanted = int(deployment["spec"].get("replicas", 1))
    least = wanted - bounds(deployment).unavailable
    total = sum(map(_replicas, old)) + _replicas(new)
    spare = total - least - max(0, _replicas(new) - _available(new))
    after = {id(one): _replicas(one) for one in old}
    by_age = sorted(old, key=lambda one: one["metadata"].get("creationTimestamp", ""))
    for one in by_age:  # pods that are not available hold nobody up
        cut = min(max(0, after[id(one)] - _available(one)), max(0, spare))
        after[id(one)] -= cut
        spare -= cut
    spare = min(spare, sum(map(_available, old)) + _available(new) - least)
    for one in by_age:
        cut = min(after[id(one)], max(0, spare))
        after[id(one)] -= cut
        spare -= cut
    return tuple(Scale(one, after[id(one)]) for one in by_age if after[id(one)] != _replicas(one))


def _paused(deployment: Json, new: Json | None, old: list[Json]) -> tuple[Scale, ...]:
    """A paused Deployment is scaled, but rolls nothing out: what differs goes to the ReplicaSet that is in use."""
    wanted = int(deployment["spec"].get("replicas", 1))
    active = [one for one in [*old, *([new] if new is not None else [])] if _replicas(one)]
    if len(active) > 1:
        return ()
    target = active[0] if active else new
    return (Scale(target, wanted),) if target is not None and _replicas(target) != wanted else ()


def new_replica_set(deployment: Json, replicas: int, revision: int) -> dict[str, Any]:
    """The ReplicaSet of the present template; its owner reference is the caller's to add."""
    spec, metadata = deployment["spec"], deployment["metadata"]
    collisions = int((deployment.get("status") or {}).get("collisionCount") or 0)
    digest = template_hash(spec["template"], collisions)
    template = spec["template"]
    described = template.get("metadata") or {}
    labels = {**(described.get("labels") or {}), HASH_LABEL: digest}
    selector = spec["selector"]
    kept = {k: v for k, v in (metadata.get("annotations") or {}).items() if not k.startswith("kubectl.kubernetes.io/")}
    fresh = {
        "replicas": replicas,
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}},
        "template": {**template, "metadata": {**described, "labels": labels}},
    }
    if spec.get("minReadySeconds"):
        fresh["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {**kept, REVISION: str(revision), DESIRED: str(spec.get("replicas", 1))},
        },
        "spec": fresh,
    }


def status(
    deployment: Json, replica_sets: Sequence[Json], now: float, *, new: Json | None
) -> tuple[dict[str, Any], float | None]:
    """The status, and when its deadline has to be looked at again (None: never)."""
    spec, before = deployment["spec"], deployment.get("status") or {}
    wanted = int(spec.get("replicas", 1))
    replicas = sum(_told(one, "replicas") for one in replica_sets)
    available = sum(_told(one, "availableReplicas") for one in replica_sets)
    after: dict[str, Any] = {
        **before,
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": replicas,
        "updatedReplicas": _told(new, "replicas") if new is not None else 0,
        "readyReplicas": sum(_told(one, "readyReplicas") for one in replica_sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, max(replicas, wanted) - available),
    }
    stamp = rfc3339(now)
    enough = available >= wanted - (0 if _is_recreate(deployment) else bounds(deployment).unavailable)
    conditions = _condition(
        before.get("conditions") or [],
        "Available",
        enough,
        "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        stamp,
        touch=False,
    )
    after["conditions"], wake = _progress(deployment, before, after, conditions, new, now)
    return after, wake


def is_complete(deployment: Json, told: Json) -> bool:
    """Whether all pods are of the present template and available, and no old one is left."""
    wanted = int(deployment["spec"].get("replicas", 1))
    return all(told.get(name, 0) == wanted for name in ("updatedReplicas", "replicas", "availableReplicas"))


def _progress(
    deployment: Json, before: Json, after: Json, conditions: list[dict[str, Any]], new: Json | None, now: float
) -> tuple[list[dict[str, Any]], float | None]:
    stamp, name = rfc3339(now), deployment["metadata"]["name"]
    what = f'ReplicaSet "{new["metadata"]["name"]}"' if new is not None else f'Deployment "{name}"'
    present = next((one for one in conditions if one["type"] == "Progressing"), None)
    if deployment["spec"].get("paused"):
        if present is None or present.get("reason") != _TIMED_OUT:
            text = "Deployment is paused"
            conditions = _condition(conditions, "Progressing", "Unknown", _PAUSED, text, stamp, touch=False)
        return conditions, None
    if is_complete(deployment, after) and new is not None:
        text = f"{what} has successfully progressed."
        return _condition(conditions, "Progressing", True, "NewReplicaSetAvailable", text, stamp, touch=False), None
    deadline = deployment["spec"].get("progressDeadlineSeconds")
    moved = any(
        after[field] > before.get(field, 0) for field in ("updatedReplicas", "readyReplicas", "availableReplicas")
    ) or (after["replicas"] - after["updatedReplicas"]) < (before.get("replicas", 0) - before.get("updatedReplicas", 0))
    if present is None or moved or present.get("reason") in ("NewReplicaSetAvailable", _PAUSED):
        first = present is None and new is not None
        reason = "NewReplicaSetCreated" if first else "ReplicaSetUpdated"
        text = f"Created new {what}" if first else f"{what} is progressing."
        found = _condition(conditions, "Progressing", True, reason, text, stamp, touch=True)
        return found, None if deadline is None else now + float(deadline)
    if deadline is None or present.get("status") == "False":
        return conditions, None
    due = seconds_of(present.get("lastUpdateTime"), now) + float(deadline)
    if now < due:
        return conditions, due
    text = f"{what} has timed out progressing."
    return _condition(conditions, "Progressing", False, _TIMED_OUT, text, stamp, touch=True), None


def _condition(
    conditions: Sequence[Json],
    type: str,
    holds: bool | Literal["Unknown"],
    reason: str,
    message: str,
    stamp: str,
    *,
    touch: bool,
) -> list[dict[str, Any]]:
    """Set one condition; lastUpdateTime moves when it says something else than before, or with `touch`."""
    before = next((one for one in conditions if one.get("type") == type), {})
    same = (before.get("status"), before.get("reason"), before.get("message")) == (str(holds), reason, message)
    after = set_condition(conditions, type, holds, reason=reason, message=message, now=stamp)
    kept = before.get("lastUpdateTime") if same and not touch else None
    return [{**one, "lastUpdateTime": kept or stamp} if one["type"] == type else one for one in after]


def _history(deployment: Json, new: Json, old: list[Json]) -> tuple[Json, ...]:
    limit = deployment["spec"].get("revisionHistoryLimit")
    if limit is None:
        return ()
    idle = [one for one in old if not _replicas(one) and not _told(one, "replicas") and not _deleting(one)]
    idle = [one for one in idle if (one.get("status") or {}).get("observedGeneration", 0) >= _generation(one)]
    return tuple(sorted(idle, key=_revision)[: max(0, len(idle) - int(limit))])


def _share(value: object, replicas: int, rounded: Any) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return int(rounded(replicas * int(value[:-1]) / 100))
    return int(str(value))


def _bare(template: Json) -> Json:
    metadata = template.get("metadata") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _is_recreate(deployment: Json) -> bool:
    return bool((deployment["spec"].get("strategy") or {}).get("type") == "Recreate")


def _replicas(replica_set: Json) -> int:
    return int(replica_set["spec"].get("replicas", 1))


def _available(replica_set: Json) -> int:
    return min(_told(replica_set, "availableReplicas"), _replicas(replica_set))


def _told(replica_set: Json, name: str) -> int:
    return int((replica_set.get("status") or {}).get(name) or 0)


def _revision(replica_set: Json) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def _generation(replica_set: Json) -> int:
    return int(replica_set["metadata"].get("generation") or 0)


def _deleting(obj: Json) -> bool:
    return obj["metadata"].get("deletionTimestamp") is not None


def _controller(obj: Json) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((str(one["uid"]) for one in owners if one.get("controller")), "")


def _over(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
