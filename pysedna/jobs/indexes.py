"""Indexes of the caches, and from an event to the jobs that it concerns.

A job is reconciled for its own events, for those of its children, of what it refers to, and of objects that sit where
its children would be. Each way is one index, so an event costs a look-up and never a walk over all jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from informers import Object, ObjectKey
from pysedna.api.common import GROUP, Base
from pysedna.jobs import labels, references
from pysedna.jobs.actions import Kind
from pysedna.jobs.job import read_job
from pysedna.jobs.problems import Problem
from pysedna.jobs.references import References
from pysedna.jobs.seams import Lister

IndexFunction = Callable[[Object], Iterable[str]]
Map = Callable[[Object], Iterable[ObjectKey]]


def owner_index(kind: str) -> str:
    """The index of children by the uid of the job that is their controller."""
    return f"{kind}/owner"


def label_index(kind: str) -> str:
    """The index of pods by the uid in their labels."""
    return f"{kind}/label"


def reference_index(kind: str) -> str:
    """The index of jobs by what their spec refers to, and of Models and Datasets by their Secret."""
    return f"{kind}/references"


def name_index(kind: str) -> str:
    """The index of jobs by the names of their children."""
    return f"{kind}/names"


def by_owner(kind: str) -> IndexFunction:
    """Children of jobs of that kind."""

    def uid(obj: Object) -> list[str]:
        owner = obj.controller
        return [owner.uid] if owner is not None and owner.kind == kind and owner.group == GROUP else []

    return uid


def by_label(kind: str) -> IndexFunction:
    """Pods that carry the labels of a job of that kind."""
    key = labels.uid_label(kind)

    def uid(obj: Object) -> list[str]:
        return [obj.labels[key]] if key in obj.labels else []

    return uid


def by_reference(spec: type[Base], needed: Callable[..., References]) -> IndexFunction:
    """Jobs by what they refer to. A job whose spec cannot be read refers to nothing."""

    def values(obj: Object) -> Iterable[str]:
        job = read_job(obj.to_dict(), spec)
        return [] if isinstance(job, Problem) else references.index_values(obj.namespace, needed(job.spec))

    return values


def by_child_name(spec: type[Base], names: Callable[..., Iterable[tuple[Kind, str]]]) -> IndexFunction:
    """Jobs by the names that their children have or would have."""

    def values(obj: Object) -> list[str]:
        job = read_job(obj.to_dict(), spec)
        return [] if isinstance(job, Problem) else [_place(kind, obj.namespace, name) for kind, name in names(job)]

    return values


def to_referring_jobs(kind: str, jobs: Lister) -> Map:
    """From a Model or Dataset to the jobs that name it."""

    def keys(obj: Object) -> list[ObjectKey]:
        value = references.index_value(obj.kind, obj.namespace, obj.name)
        return [job.key for job in jobs.by_index(reference_index(kind), value)]

    return keys


def to_jobs_of_secret(kind: str, jobs: Lister, holders: Mapping[str, Lister]) -> Map:
    """From a Secret to the jobs that name it, or that name a Model or Dataset (`holders`, by kind) that names it."""

    def keys(obj: Object) -> list[ObjectKey]:
        index, secret = reference_index(kind), references.index_value("Secret", obj.namespace, obj.name)
        values = [secret]
        for holder, lister in holders.items():
            values += [
                references.index_value(holder, found.namespace, found.name) for found in lister.by_index(index, secret)
            ]
        return [job.key for value in dict.fromkeys(values) for job in jobs.by_index(index, value)]

    return keys


def to_jobs_in_the_way(kind: str, child: Kind, jobs: Lister) -> Map:
    """From an object that is no child of a job to the jobs that want its name for a child."""

    def keys(obj: Object) -> list[ObjectKey]:
        return [job.key for job in jobs.by_index(name_index(kind), _place(child, obj.namespace, obj.name))]

    return keys


def to_job_of_label(kind: str) -> Map:
    """From a pod to the job that its labels name."""
    key = labels.name_label(kind)

    def keys(obj: Object) -> list[ObjectKey]:
        return [ObjectKey(obj.namespace, obj.labels[key])] if obj.labels.get(key) else []

    return keys


def _place(kind: Kind, namespace: str, name: str) -> str:
    return f"{kind[1]}/{namespace}/{name}"
