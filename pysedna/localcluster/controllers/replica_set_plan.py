"""What a ReplicaSet needs: how many pods to make, which ones to delete, and its status. Pure.

Takes and gives plain dicts. The order of deletion is Kubernetes': pods that lose least go first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pysedna.localcluster.controllers.containers import seconds_of

Json = Mapping[str, Any]
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


@dataclass(frozen=True, slots=True)
class ReplicaSetPlan:
    """`create` more pods, delete these, write this status, look again at `wake` (wall clock; None: at the next
    change).
    """

    create: int
    delete: tuple[Json, ...]
    status: dict[str, Any]
    wake: float | None


def plan(replica_set: Json, pods: Sequence[Json], now: float) -> ReplicaSetPlan:
    """What to do for a ReplicaSet with these pods of its own. One that is being deleted makes and deletes nothing."""
    spec = replica_set["spec"]
    active = [pod for pod in pods if is_active(pod)]
    wanted = int(spec.get("replicas", 1))
    status, wake = _status(replica_set, active, now)
    if replica_set["metadata"].get("deletionTimestamp") is not None:
        return ReplicaSetPlan(0, (), status, None)
    surplus = max(0, len(active) - wanted)
    delete = sorted(active, key=lambda pod: deletion_rank(pod, now))[:surplus]
    return ReplicaSetPlan(max(0, wanted - len(active)), tuple(delete), status, wake)


def pod_of(replica_set: Json, owner: Json) -> dict[str, Any]:
    """The pod that the template describes. `owner` is the reference to the ReplicaSet."""
    metadata = replica_set["metadata"]
    template = replica_set["spec"]["template"]
    described = template.get("metadata") or {}
    kept = {name: described[name] for name in ("labels", "annotations", "finalizers") if described.get(name)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **kept,
            "generateName": f"{metadata['name'][:57]}-",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }


def is_active(pod: Json) -> bool:
    """Whether the pod counts: it has not ended and is not being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and pod["metadata"].get("deletionTimestamp") is None


def ready_since(pod: Json, now: float) -> float | None:
    """Since when the pod is ready, in seconds of the wall clock; None when it is not."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            return seconds_of(condition.get("lastTransitionTime"), now) if condition.get("status") == "True" else None
    return None


def deletion_rank(pod: Json, now: float) -> tuple[Any, ...]:
    """Sorts the pods that should go first to the front.

    Not on a node; pending; not ready; of a lower deletion cost; ready for a shorter time (in powers of two);
    restarted more often; younger (in powers of two).
    """
    status = pod.get("status") or {}
    since = ready_since(pod, now)
    restarts = sum(int(one.get("restartCount", 0)) for one in status.get("containerStatuses") or ())
    created = seconds_of(pod["metadata"].get("creationTimestamp"), now)
    return (
        bool(pod["spec"].get("nodeName")),
        _PHASES.get(status.get("phase", "Pending"), 1),
        since is not None,
        _cost(pod),
        0 if since is None else _power(now - since),
        -restarts,
        _power(now - created),
        pod["metadata"]["name"],
    )


def _power(seconds: float) -> int:
    return math.frexp(max(seconds, 0.0))[1] if seconds >= 1 else 0


def _cost(pod: Json) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _status(replica_set: Json, active: Sequence[Json], now: float) -> tuple[dict[str, Any], float | None]:
    spec = replica_set["spec"]
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    minimum = float(spec.get("minReadySeconds") or 0)
    since = [at for pod in active if (at := ready_since(pod, now)) is not None]
    waiting = [at + minimum for at in since if at + minimum > now]
    labelled = [pod for pod in active if labels.items() <= (pod["metadata"].get("labels") or {}).items()]
    status = {
        **(replica_set.get("status") or {}),
        "replicas": len(active),
        "fullyLabeledReplicas": len(labelled),
        "readyReplicas": len(since),
        "availableReplicas": len(since) - len(waiting),
        "observedGeneration": replica_set["metadata"].get("generation", 0),
    }
    return status, min(waiting, default=None)
