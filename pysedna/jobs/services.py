"""The Service in front of a worker: one TCP port under the name that EdgeMesh wants, and the worker's labels as
selector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from informers import Object
from pysedna.jobs import labels, names
from pysedna.jobs.actions import SERVICE, Action, Create, Patch
from pysedna.jobs.job import Job
from pysedna.jobs.observed import Observed, is_newer

PORT_NAME = "tcp-0"  # EdgeMesh needs `<protocol>-<suffix>`


def service(job: Job[Any], worker_type: str, port: int) -> dict[str, Any]:
    """The Service of the workers of one type."""
    selector = labels.selector(job, worker_type)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": names.service_name(job.name, worker_type),
            "namespace": job.namespace,
            "labels": dict(selector),
            "annotations": labels.stamp(job),
            "ownerReferences": [job.owner_reference()],
        },
        "spec": {
            "type": "ClusterIP",
            "selector": selector,
            "ports": [{"name": PORT_NAME, "protocol": "TCP", "port": port, "targetPort": port}],
        },
    }


def actions(wanted: Mapping[str, Mapping[str, Any]], observed: Observed, job: Job[Any]) -> list[Action]:
    """What brings a job's Services to what it wants: create what is missing, set right what leads astray."""
    result: list[Action] = []
    for name, manifest in wanted.items():
        live = observed.of(SERVICE).get(name)
        if live is None:
            if (SERVICE, name) not in observed.taken:
                result.append(Create(SERVICE, manifest))
        elif live.deletion_timestamp is None and not is_newer(live, job):
            patch = repair(live, manifest)
            if patch is not None:
                result.append(Patch(SERVICE, live.key, patch, "it did not lead to the workers"))
    return result


def repair(live: Object, desired: Mapping[str, Any]) -> dict[str, Any] | None:
    """The merge patch that makes a Service lead to its workers again; None if it does.

    Only what decides that is looked at: the selector and the ports. The rest belongs to the cluster and to the user.
    """
    spec, wanted = live.get("spec") or {}, desired["spec"]
    patch: dict[str, Any] = {}
    selector = spec.get("selector") or {}
    if selector != wanted["selector"]:
        patch["selector"] = {**dict.fromkeys(selector), **wanted["selector"]}
    if not _same_ports(spec.get("ports") or (), wanted["ports"]):
        patch["ports"] = wanted["ports"]
    return {"metadata": {"resourceVersion": live.resource_version}, "spec": patch} if patch else None


def _same_ports(live: Any, wanted: list[dict[str, Any]]) -> bool:
    return len(live) == len(wanted) and all(
        all(have.get(name) == value for name, value in want.items()) for have, want in zip(live, wanted, strict=True)
    )
