"""Labels and annotations of children: whose they are, what they do, and what they were made of.

Name, uid and worker type are upstream's labels and select a worker's pods. Beside them a child carries the hash of
the spec parts that shaped it (a child of another hash is out of date) and the generation of the job that it was made
for (a manager that has not yet seen that generation leaves the child alone). Labels say what a child is; whose it is,
is decided by its controller reference only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from informers import Object
from pysedna.api.common import GROUP
from pysedna.jobs.job import Job

GENERATION = f"{GROUP}/job-generation"
APP = "app.sedna.io"


def prefix(kind: str) -> str:
    """What the label keys of a kind's children begin with."""
    return f"{kind.lower()}.{GROUP}/"


def name_label(kind: str) -> str:
    """The key of the label with the job's name."""
    return prefix(kind) + "name"


def uid_label(kind: str) -> str:
    """The key of the label with the job's uid."""
    return prefix(kind) + "uid"


def type_label(kind: str) -> str:
    """The key of the label with the worker's type."""
    return prefix(kind) + "worker-type"


def hash_label(kind: str) -> str:
    """The key of the label with the spec hash."""
    return prefix(kind) + "spec-hash"


def index_label(kind: str) -> str:
    """The key of the label with the worker's index."""
    return prefix(kind) + "worker-index"


def selector(job: Job[Any], worker_type: str) -> dict[str, str]:
    """The labels that select the pods of one worker type."""
    return {
        name_label(job.kind): job.name,
        uid_label(job.kind): job.uid,
        type_label(job.kind): worker_type.lower(),
    }


def is_selected(child: Object, job: Job[Any], worker_type: str) -> bool:
    """Whether a child carries the labels that select the pods of that worker type."""
    return all(child.labels.get(key) == value for key, value in selector(job, worker_type).items())


def stamp(job: Job[Any]) -> dict[str, str]:
    """The annotation that says which generation of the job a child was made for."""
    return {GENERATION: str(job.generation)}


def spec_hash_of(child: Object, kind: str) -> str:
    """The spec hash that a child was made with; empty if it has none."""
    return _text(child.labels, hash_label(kind))


def generation_of(child: Object) -> int:
    """The generation that a child was made for; 0 when it does not say."""
    text = _text(child.annotations, GENERATION)
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _text(mapping: Mapping[str, str], key: str) -> str:
    value = mapping.get(key)
    return value if isinstance(value, str) else ""
