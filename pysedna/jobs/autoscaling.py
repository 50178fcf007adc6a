"""The HorizontalPodAutoscaler of a service's worker: made, replaced and deleted as the spec says.

Many clusters (and the embedded one) do not serve autoscaling, and most services do not ask for it, so autoscalers are
not watched. They are read where the spec asks for one, and once after each change of the spec, since that may have
taken one away. A cluster that cannot scale says so in the service's conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from informers import Object
from pysedna.api import HorizontalPodAutoscaling
from pysedna.jobs import labels, names, problems
from pysedna.jobs.actions import AUTOSCALER, Action, Create, Delete, Replace
from pysedna.jobs.job import Job
from pysedna.jobs.observed import Observed, is_newer
from pysedna.jobs.problems import Problem
from pysedna.jobs.spec_hash import spec_hash


def check(worker: str, scaling: HorizontalPodAutoscaling | None) -> Problem | None:
    """Whether the limits can be met."""
    if scaling is None or scaling.min_replicas is None or scaling.min_replicas <= scaling.max_replicas:
        return None
    return Problem(
        problems.INVALID_SPEC,
        f"spec.{worker}.hpa: minReplicas {scaling.min_replicas} is more than maxReplicas {scaling.max_replicas}",
    )


def autoscaler(job: Job[Any], worker_type: str, scaling: HorizontalPodAutoscaling) -> dict[str, Any]:
    """The autoscaler of one worker's Deployment."""
    deployment = names.deployment_name(job.name, worker_type)
    limits = msgspec.to_builtins(scaling)
    return {
        "apiVersion": AUTOSCALER[0],
        "kind": AUTOSCALER[1],
        "metadata": {
            "name": names.autoscaler_name(deployment),
            "namespace": job.namespace,
            "labels": {**labels.selector(job, worker_type), labels.hash_label(job.kind): spec_hash(limits)},
            "annotations": labels.stamp(job),
            "ownerReferences": [job.owner_reference()],
        },
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment}, **limits},
    }


def actions(wanted: Mapping[str, Mapping[str, Any]], observed: Observed, job: Job[Any]) -> list[Action]:
    """What brings a job's autoscalers to what it wants."""
    live = observed.of(AUTOSCALER)
    result: list[Action] = []
    for name, manifest in wanted.items():
        found = live.get(name)
        if found is None:
            if (AUTOSCALER, name) not in observed.taken:
                result.append(Create(AUTOSCALER, manifest))
        elif _changed(found, manifest, job):
            metadata = {**manifest["metadata"], "resourceVersion": found.resource_version}
            result.append(Replace(AUTOSCALER, {**manifest, "metadata": metadata}, "its limits have changed"))
    result.extend(
        Delete(AUTOSCALER, found.key, found.uid, "the spec has no limits for this worker any more")
        for name, found in live.items()
        if name not in wanted and found.deletion_timestamp is None and not is_newer(found, job)
    )
    return result


def _changed(found: Object, manifest: Mapping[str, Any], job: Job[Any]) -> bool:
    if found.deletion_timestamp is not None or is_newer(found, job):
        return False
    wanted: str = manifest["metadata"]["labels"][labels.hash_label(job.kind)]
    return labels.spec_hash_of(found, job.kind) != wanted
