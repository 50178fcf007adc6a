"""From what a joint inference service wants and what there is to what must be done. Pure.

A Deployment whose spec hash differs gets the new template; one that is being deleted is waited for and then made again.
"""

from __future__ import annotations

from pysedna.jobs import autoscaling, deployments, labels, services
from pysedna.jobs.actions import AUTOSCALER, DEPLOYMENT, SERVICE, Action, Create, Kind, Replace
from pysedna.jobs.joint_inference.children import Children, InferenceService
from pysedna.jobs.observed import Observed, is_newer, name_taken
from pysedna.jobs.problems import Problem


def diff(desired: Children, observed: Observed, job: InferenceService) -> list[Action]:
    """What brings the children of a service closer to what it wants. Nothing for a service that is being deleted."""
    if job.deleting:
        return []
    return [
        *services.actions(desired.services, observed, job),
        *_deployments(desired, observed, job),
        *autoscaling.actions(desired.autoscalers, observed, job),
    ]


def names_taken(desired: Children, observed: Observed) -> list[Problem]:
    """Names of children that others' objects have."""
    wanted: list[tuple[Kind, str]] = [
        *((DEPLOYMENT, name) for name in desired.deployments),
        *((SERVICE, name) for name in desired.services),
        *((AUTOSCALER, name) for name in desired.autoscalers),
    ]
    return [name_taken(kind, observed.taken[kind, name]) for kind, name in wanted if (kind, name) in observed.taken]


def _deployments(desired: Children, observed: Observed, job: InferenceService) -> list[Action]:
    live = observed.of(DEPLOYMENT)
    result: list[Action] = []
    for name, manifest in desired.deployments.items():
        found = live.get(name)
        if found is None:
            if (DEPLOYMENT, name) not in observed.taken:
                result.append(Create(DEPLOYMENT, manifest))
        elif found.deletion_timestamp is None and not is_newer(found, job):
            wanted = manifest["metadata"]["labels"][labels.hash_label(job.kind)]
            if labels.spec_hash_of(found, job.kind) != wanted:
                whole = deployments.updated(found, manifest)
                result.append(Replace(DEPLOYMENT, whole, "the spec of the service has changed"))
    return result
