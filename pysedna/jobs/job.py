"""A Sedna job as its controller sees it: the owner's identity, the decoded spec and the plain status.

Only the spec is decoded into types. The status is read as it stands: other writers (local controllers, older managers)
put there what they like, and none of that may keep a job from being worked on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

import msgspec

from pysedna.api.common import Base
from pysedna.jobs.problems import INVALID_SPEC, Problem

S = TypeVar("S", bound=Base)


@dataclass(frozen=True, slots=True)
class Job(Generic[S]):
    """One object of a Sedna kind. `annotations` and `status` are shared with the object and must not be changed.

    `newest`: after its children were observed the server has said that there is no later generation.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    generation: int
    deleting: bool
    annotations: Mapping[str, str]
    spec: S
    status: Mapping[str, Any]
    newest: bool = False

    @property
    def conditions(self) -> Sequence[Mapping[str, Any]]:
        """The conditions of the status, in their order."""
        found = self.status.get("conditions")
        return found if isinstance(found, Sequence) else ()

    def with_status(self, status: Mapping[str, Any]) -> Self:
        """The same job with another status."""
        return replace(self, status=status)

    def owner_reference(self) -> dict[str, Any]:
        """The entry that makes an object a child of this job: by API version, kind and uid, never by a controller's
        name."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


def read_job(obj: Mapping[str, Any], spec: type[S]) -> Job[S] | Problem:
    """Read a stored object (a plain dict). A spec that its type refuses is a problem that names the path."""
    metadata = obj.get("metadata") or {}
    try:
        decoded = msgspec.convert(obj.get("spec"), spec)
    except msgspec.ValidationError as error:
        return Problem(INVALID_SPEC, f"the spec cannot be read: {str(error).replace('`$', '`$.spec')}")
    return Job(
        api_version=obj.get("apiVersion", ""),
        kind=obj.get("kind", ""),
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        generation=int(metadata.get("generation") or 0),
        deleting=metadata.get("deletionTimestamp") is not None,
        annotations=metadata.get("annotations") or {},
        spec=decoded,
        status=obj.get("status") or {},
    )
