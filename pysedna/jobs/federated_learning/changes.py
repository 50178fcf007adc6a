"""From what a federated learning job wants and what there is to what must be done. Pure.

Names decide identity: a worker is its name, so a missing name is a worker to create, and a name that exists, in
whatever state, is a worker that is not created. A pod that is out of date is deleted, by uid, and the new one is
created when the old one is gone for good. While any pod of another spec is left, no new one starts: old and new
workers never meet.
"""

from __future__ import annotations

from collections.abc import Iterable

from informers import Object
from pysedna.jobs import labels, services
from pysedna.jobs.actions import POD, SERVICE, Action, Create, Delete
from pysedna.jobs.federated_learning.children import Children, FederatedJob
from pysedna.jobs.observed import Observed, is_newer, name_taken
from pysedna.jobs.pod_state import is_active
from pysedna.jobs.problems import Problem


def diff(desired: Children, observed: Observed, job: FederatedJob) -> list[Action]:
    """What brings the children of an unfinished job closer to what it wants. Nothing for a job that is being
    deleted."""
    if job.deleting:
        return []
    return [*services.actions(desired.services, observed, job), *_pods(desired, observed, job)]


def leftovers(pods: Iterable[Object], job: FederatedJob) -> list[Action]:
    """What a finished job does: workers that still run have no purpose any more. Ended pods stay, for their logs."""
    if job.deleting:
        return []
    return [
        Delete(POD, pod.key, pod.uid, "the job has finished")
        for pod in pods
        if is_active(pod) and not is_newer(pod, job)
    ]


def names_taken(desired: Children, observed: Observed) -> list[Problem]:
    """Names of children that others' objects have."""
    wanted = [(POD, name) for name in desired.pods] + [(SERVICE, name) for name in desired.services]
    return [name_taken(kind, observed.taken[kind, name]) for kind, name in wanted if (kind, name) in observed.taken]


def _pods(desired: Children, observed: Observed, job: FederatedJob) -> list[Action]:
    pods = observed.of(POD)
    outdated = {name: why for name, pod in pods.items() if (why := _outdated(pod, desired, job))}
    if outdated:
        return [
            Delete(POD, pod.key, pod.uid, outdated[name])
            for name, pod in pods.items()
            if name in outdated and pod.deletion_timestamp is None and not is_newer(pod, job)
        ]
    return [
        Create(POD, manifest)
        for name, manifest in desired.pods.items()
        if name not in pods and (POD, name) not in observed.taken
    ]


def _outdated(pod: Object, desired: Children, job: FederatedJob) -> str:
    """Why a pod must go; empty if it may stay."""
    manifest = desired.pods.get(pod.name)
    if manifest is None or labels.spec_hash_of(pod, job.kind) != desired.spec_hash:
        return "the spec of the job has changed"
    worker_type = manifest["metadata"]["labels"][labels.type_label(job.kind)]
    if not labels.is_selected(pod, job, worker_type):
        return "its labels were changed, so the Service of its job does not find it"
    return ""
