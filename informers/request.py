"""What a client asks, before anyone decides how it is carried: a verb on a resource, with options and a body.

`Resource` builds these; a `Backend` answers them, over HTTP (`transport.py`) or from a store in memory
(`informers.testing.FakeClient`). Pure values, and the one place that knows how paths of the API are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote

from informers.decoder import ObjectDecoder
from informers.key import ObjectKey
from informers.source import WatchStream

__all__ = ["Backend", "Request", "ResourceInfo"]

_METHODS = {
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "apply": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}


@dataclass(frozen=True, slots=True)
class ResourceInfo:
    """What discovery says of one resource. `subresources` are the bare names (``status``, ``binding``)."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""
    verbs: Sequence[str] = ()
    short_names: Sequence[str] = ()
    subresources: frozenset[str] = field(default_factory=frozenset)

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version without its group."""
        return self.api_version.rpartition("/")[2]

    @property
    def qualified(self) -> str:
        """The plural with its group, as messages name a resource: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def root(self) -> str:
        """The path of the group version."""
        return group_path(self.api_version)


def group_path(api_version: str) -> str:
    """The path under which a group version is served."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `verb` is Kubernetes' word for it; an empty namespace means all of them, or none."""

    verb: str
    info: ResourceInfo
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    about: ObjectKey | None = None
    """The object that a create is about, whose name is in the body only."""

    @property
    def method(self) -> str:
        """The HTTP method."""
        return _METHODS.get(self.verb, "GET")

    @property
    def is_write(self) -> bool:
        """Whether the request can change something."""
        return self.verb in _METHODS

    @property
    def key(self) -> ObjectKey | None:
        """The object that the request is about, if it is one."""
        return ObjectKey(self.namespace, self.name) if self.name else self.about

    @property
    def resource(self) -> str:
        """The resource as messages name it, subresource included."""
        return f"{self.info.qualified}/{self.subresource}" if self.subresource else self.info.qualified

    @property
    def path(self) -> str:
        """The path on the server, without the query."""
        parts = [self.info.root]
        if self.namespace:
            parts += ["namespaces", quote(self.namespace, safe="")]
        parts.append(self.info.plural)
        parts += [quote(part, safe="") for part in (self.name, self.subresource) if part]
        return "/".join(parts)


class Backend(Protocol):
    """Answers requests. Thread-safe. `timeout` is the total time in seconds; None is no limit."""

    @property
    def server(self) -> str:
        """The server's address, for messages."""

    def resolve(self, api_version: str, *, kind: str = "", plural: str = "", timeout: float | None) -> ResourceInfo:
        """Find the resource of a kind or of a plural. Raises KindNotFoundError, which is never remembered."""

    def resources(self, timeout: float | None) -> list[ResourceInfo]:
        """Everything that the server serves, each resource in its preferred version."""

    def call(self, request: Request, timeout: float | None) -> bytes:
        """Send a request and give the body of the answer. Raises ApiError and TransportError."""

    def watch(
        self, request: Request, decoder: ObjectDecoder, *, timeout: float | None, seconds: float | None
    ) -> WatchStream:
        """Open a watch within `timeout`; the server was asked to end it after `seconds`."""

    def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
    ) -> bytes:
        """Send any request and give the body of the answer."""

    def close(self) -> None:
        """End everything in flight and release what is held."""
