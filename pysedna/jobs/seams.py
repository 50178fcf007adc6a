"""What the reconcilers need of the outside: caches to read, a client to write with, someone to tell.

Each is a narrow protocol, so the reconcilers run unchanged under a manager, and without threads in a test that moves
the caches by hand. `informers.Lister`, `pysedna.controller.Context` and `EventRecorder` fit as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from informers import NotFoundError, Object, ObjectKey
from pysedna.jobs.actions import Kind


class Lister(Protocol):
    """A cache of one kind."""

    def get(self, key: ObjectKey | str) -> Object: ...
    def by_index(self, name: str, value: str) -> list[Object]: ...


class Writes(Protocol):
    """One kind at the API server."""

    def get(self, key: ObjectKey | str) -> Object: ...
    def create(self, obj: Any) -> Object: ...
    def replace(self, obj: Any) -> Object: ...
    def patch(self, key: ObjectKey | str, patch: Any, *, subresource: str | None = None) -> Object: ...
    def delete(self, key: ObjectKey | str, *, uid: str | None = None) -> Object | None: ...


class Client(Protocol):
    """The API server."""

    def resource(self, api_version: str, kind: str) -> Writes: ...


class Run(Protocol):
    """One run of a reconcile."""

    @property
    def client(self) -> Client: ...


class Recorder(Protocol):
    """Writes events."""

    def event(self, obj: Mapping[str, Any], type: str, reason: str, message: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Listers:
    """The caches that a job's reconciler reads. `secrets` may hold metadata only."""

    jobs: Lister
    models: Lister
    secrets: Lister
    children: Mapping[Kind, Lister]
    datasets: Lister | None = None


def look_up(lister: Lister | None, namespace: str, name: str) -> Object | None:
    """An object from a cache, None if it is not there."""
    if lister is None:
        return None
    try:
        return lister.get(ObjectKey(namespace, name))
    except NotFoundError:
        return None
