"""The Deployment of a service's worker: how it is made, brought up to date, and judged.

The number of replicas is never written: it is the API server's default at first, and the user's or an autoscaler's
later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from informers import Object
from pysedna.jobs import labels, names
from pysedna.jobs.job import Job


def deployment(
    job: Job[Any], worker_type: str, template: Mapping[str, Any], *, spec_hash: str, recreate: bool
) -> dict[str, Any]:
    """The Deployment of one worker. `recreate`: stop the old pod before a new one starts."""
    selector = {**labels.selector(job, worker_type), labels.APP: names.app_label(job.name, worker_type)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": names.deployment_name(job.name, worker_type),
            "namespace": job.namespace,
            "labels": {**selector, labels.hash_label(job.kind): spec_hash},
            "annotations": labels.stamp(job),
            "ownerReferences": [job.owner_reference()],
        },
        "spec": {
            "selector": {"matchLabels": selector},
            "strategy": {"type": "Recreate"} if recreate else {"type": "RollingUpdate"},
            "template": template,
        },
    }


def updated(live: Object, desired: Mapping[str, Any]) -> dict[str, Any]:
    """The live Deployment with the desired template, to be written with the live one's resourceVersion.

    Kept are the replicas, the selector (it cannot change) and what others put into its metadata.
    """
    result: dict[str, Any] = live.to_dict()
    metadata, wanted = result["metadata"], desired["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), **wanted["labels"]}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **wanted["annotations"]}
    spec = result["spec"]
    spec["template"] = desired["spec"]["template"]
    if (spec.get("strategy") or {}).get("type") != desired["spec"]["strategy"]["type"]:
        spec["strategy"] = desired["spec"]["strategy"]
    result.pop("status", None)
    return result


def available(live: Object) -> bool:
    """Whether all wanted pods of the Deployment are up to date and available, as its controller last saw it."""
    spec, status = live.get("spec") or {}, live.get("status") or {}
    wanted = spec.get("replicas", 1)
    return bool(
        status.get("observedGeneration", 0) >= live.generation
        and status.get("updatedReplicas", 0) >= wanted
        and status.get("availableReplicas", 0) >= wanted
    )


def trouble(live: Object) -> tuple[str, str] | None:
    """Why the Deployment's controller says it cannot go on: a reason and a message. None if it does not say so."""
    status = live.get("status") or {}
    if status.get("observedGeneration", 0) < live.generation:
        return None
    for condition in status.get("conditions") or ():
        kind, value = condition.get("type"), condition.get("status")
        if (kind, value) in (("ReplicaFailure", "True"), ("Progressing", "False")):
            return condition.get("reason") or kind, condition.get("message") or f"{kind} is {value}"
    return None
