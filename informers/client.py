"""`Client`: access to one API server.

It is a thin face over a `Backend`, so that the very same client, resources and argument checks work over HTTP and over
the store in memory of `informers.testing.FakeClient`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, Unpack
from urllib.parse import quote

from informers.config import ApiClientSource, InClusterSource, KubeconfigSource, Source, UrlSource
from informers.http_backend import HttpBackend
from informers.object import MemberCache
from informers.request import Backend, ResourceInfo
from informers.resource import Resource
from informers.transport import RequestTrace, Transport

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

__all__ = ["Client", "ClientOptions", "Impersonation"]

OnRequest = Callable[[RequestTrace], None]


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom to act as; the server checks that the client's own user may do that."""

    user: str
    groups: Sequence[str] = ()
    uid: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    def headers(self) -> dict[str, str]:
        """The headers that say it."""
        found = {"Impersonate-User": self.user}
        if self.uid:
            found["Impersonate-Uid"] = self.uid
        found |= {f"Impersonate-Extra-{quote(name, safe='')}": value for name, value in self.extra.items()}
        return found


class ClientOptions(TypedDict, total=False):
    """What every way to make a client takes; `Client.from_kubeconfig` says what each means."""

    timeout: float | None
    qps: float | None
    burst: int | None
    user_agent: str | None
    impersonate: str | Impersonation | None
    managed_fields: bool
    on_request: OnRequest | None


class Client:
    """REST access to one API server. Thread-safe; a context manager. Made by one of its `from_` methods.

    `resource` gives access to a kind. The decoded parts of all objects that come through a client share one bounded
    cache, which goes with it. `close` ends what is in flight with ClientClosed.
    """

    def __init__(self, backend: Backend, *, timeout: float | None = 30.0, managed_fields: bool = False) -> None:
        self._backend = backend
        self._timeout = timeout
        self._managed_fields = managed_fields
        self._cache = MemberCache()

    @classmethod
    def from_kubeconfig(
        cls,
        path: str | os.PathLike[str] | None = None,
        context: str | None = None,
        *,
        timeout: float | None = 30.0,
        qps: float | None = None,
        burst: int | None = None,
        user_agent: str | None = None,
        impersonate: str | Impersonation | None = None,
        managed_fields: bool = False,
        on_request: OnRequest | None = None,
    ) -> Self:
        """Read a kubeconfig as kubectl does ($KUBECONFIG or ~/.kube/config without a path). Raises ConfigError.

        Runs the credential plugin that the kubeconfig names (at most 60 s); no other I/O but the files.
        `timeout`: the total time of each call that does not say its own, in seconds (None: no limit).
        `qps`, `burst`: the client's own rate limit (`burst` is twice `qps` if not given); none by default.
        `impersonate`: a user name, or an `Impersonation`. `managed_fields`: keep that part of the metadata.
        `on_request`: called with a `RequestTrace` after each attempt of a request, on the thread that made it; must
        not block. When the server refuses the credentials, or they expire, the file is read again.
        """
        return cls._over(
            KubeconfigSource(path, context),
            timeout=timeout,
            qps=qps,
            burst=burst,
            user_agent=user_agent,
            impersonate=impersonate,
            managed_fields=managed_fields,
            on_request=on_request,
        )

    @classmethod
    def in_cluster(cls, **options: Unpack[ClientOptions]) -> Self:
        """Use the service account that a pod finds in its files. Raises ConfigError. Tokens are read again in time."""
        return cls._over(InClusterSource(), **options)

    @classmethod
    def from_url(cls, url: str, **options: Unpack[ClientOptions]) -> Self:
        """Speak to a server without credentials, such as ``http://127.0.0.1:8001`` (kubectl proxy, a local cluster)."""
        return cls._over(UrlSource(url), **options)

    @classmethod
    def from_api_client(cls, api_client: ApiClient, **options: Unpack[ClientOptions]) -> Self:
        """Use the configuration of an official client, with connections of our own; `api_client` is only read.

        Where its configuration came from is unknown, so a refusal (401) is final: nothing is loaded again, beyond what
        the configuration's own refresh hook does.
        """
        return cls._over(ApiClientSource(api_client), **options)

    @classmethod
    def _over(
        cls,
        source: Source,
        *,
        timeout: float | None = 30.0,
        qps: float | None = None,
        burst: int | None = None,
        user_agent: str | None = None,
        impersonate: str | Impersonation | None = None,
        managed_fields: bool = False,
        on_request: OnRequest | None = None,
    ) -> Self:
        headers = {"User-Agent": user_agent or _user_agent()}
        groups: Sequence[str] = ()
        if impersonate is not None:
            whom = Impersonation(impersonate) if isinstance(impersonate, str) else impersonate
            headers |= whom.headers()
            groups = whom.groups
        transport = Transport(source, qps=qps, burst=burst, headers=headers, groups=groups, on_request=on_request)
        return cls(HttpBackend(transport), timeout=timeout, managed_fields=managed_fields)

    @property
    def server(self) -> str:
        """The address of the server, for messages. Holds no credentials."""
        return self._backend.server

    def resource(self, api_version: str, kind: str) -> Resource:
        """Give access to a kind. No I/O: the first call finds out how the server serves it."""
        return self._resource(api_version, kind=kind)

    def resource_by_plural(self, api_version: str, plural: str) -> Resource:
        """Give access to a resource by its plural, as it stands in paths and RBAC rules. No I/O."""
        return self._resource(api_version, plural=plural)

    def _resource(self, api_version: str, *, kind: str = "", plural: str = "") -> Resource:
        return Resource(
            self._backend,
            api_version,
            kind=kind,
            plural=plural,
            timeout=self._timeout,
            cache=self._cache,
            managed_fields=self._managed_fields,
        )

    def resources(self, *, timeout: float | None = None) -> list[ResourceInfo]:
        """Ask the server for everything that it serves: each resource once, in the preferred version of its group.

        Groups that do not answer (of aggregated API servers) are logged and left out. Nothing is remembered.
        """
        return self._backend.resources(self._timeout if timeout is None else timeout)

    def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> bytes:
        """Send any request (``/version``, ``/readyz``, ``/openapi/v3``) and give the body of the answer.

        Raises as the calls of `Resource` do. `headers` are added to those of the client.
        """
        return self._backend.raw(
            method,
            path,
            query=query,
            body=body,
            headers=headers,
            timeout=self._timeout if timeout is None else timeout,
        )

    def close(self) -> None:
        """End what is in flight and close all connections. Idempotent; may be called from any thread."""
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.server}>"


def _user_agent() -> str:
    program = os.path.basename(sys.argv[0] if sys.argv and sys.argv[0] else "python")
    name = "".join(char if char.isalnum() or char in "-._" else "-" for char in program) or "python"
    return f"{name} (pysedna informers)"
