"""The backend of a real client: requests become HTTP calls, kinds are found by discovery."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from informers.cancellation import Cancellation
from informers.decoder import ObjectDecoder
from informers.discovery import Discovery
from informers.errors import ApiError, KindNotFoundError, MalformedResponseError, NotFoundError
from informers.request import Request, ResourceInfo
from informers.source import StreamedLists, WatchStream
from informers.transport import Call, Transport
from informers.watch import HttpWatchStream

__all__ = ["HttpBackend"]


class HttpBackend:
    """Implements `Backend` over a `Transport`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._discovery = Discovery(self._fetch)
        self._streamed_lists: dict[str, StreamedLists] = {}

    @property
    def server(self) -> str:
        """See `Backend.server`."""
        return self._transport.server

    def streamed_lists(self, resource: str) -> StreamedLists:
        """What is known of this server's streamed lists of a resource, by any name for it; shared."""
        return self._streamed_lists.setdefault(resource, StreamedLists())

    def under(self, cancellation: Cancellation) -> AbstractContextManager[None]:
        """Put this thread's requests, those of discovery too, under a switch that another thread can turn."""
        return self._transport.under(cancellation)

    def _fetch(self, path: str, timeout: float | None) -> bytes:
        return self._transport.call(
            Call("GET", path, "discover", path, headers={"Accept": "application/json"}), timeout
        )

    def resolve(self, api_version: str, *, kind: str = "", plural: str = "", timeout: float | None) -> ResourceInfo:
        """See `Backend.resolve`."""
        return self._discovery.resolve(api_version, kind=kind, plural=plural, timeout=timeout)

    def resources(self, timeout: float | None) -> list[ResourceInfo]:
        """See `Backend.resources`."""
        return self._discovery.resources(timeout)

    def call(self, request: Request, timeout: float | None) -> bytes:
        """See `Backend.call`."""
        try:
            return self._transport.call(_call(request), timeout)
        except NotFoundError as error:
            raise self._not_served(error, request) from error

    def watch(
        self, request: Request, decoder: ObjectDecoder, *, timeout: float | None, seconds: float | None
    ) -> WatchStream:
        """See `Backend.watch`."""
        call = _call(request)
        try:
            stream = self._transport.open(call, timeout)
        except NotFoundError as error:
            raise self._not_served(error, request) from error
        if stream.headers.get("Content-Encoding", "identity") != "identity":
            self._transport.forget(stream)
            raise MalformedResponseError(f"{self.server}: the watch comes compressed", verb="watch")
        kind = stream.headers.get("Content-Type", "application/json")
        if "json" not in kind.lower():
            self._transport.forget(stream)
            raise MalformedResponseError(f"{self.server}: the watch comes as {kind}, not as JSON", verb="watch")
        return HttpWatchStream(
            stream.exchange,
            stream.headers,
            decoder,
            seconds=seconds,
            address=self.server,
            resource=request.resource,
            failure=lambda raised: self._transport.failure(raised, stream.exchange, call),
            finish=lambda: self._transport.forget(stream),
        )

    def _not_served(self, error: NotFoundError, request: Request) -> ApiError:
        """Tell an object that does not exist from a resource that is not served any more: only the first has a name."""
        if error.details.get("name") or isinstance(error, KindNotFoundError):
            return error
        self._discovery.forget(request.info)
        return KindNotFoundError(
            f"the server does not serve {request.info.kind} in {request.info.api_version} any more: {error.message}",
            verb=request.verb,
            resource=request.resource,
            key=request.key,
        )

    def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None,
    ) -> bytes:
        """See `Backend.raw`."""
        call = Call(method, path, "raw", path, query=query, body=body, headers=headers)
        return self._transport.call(call, timeout)

    def close(self) -> None:
        """See `Backend.close`."""
        self._transport.close()


def _call(request: Request) -> Call:
    headers = {"Accept": request.accept}
    if request.body is not None:
        headers["Content-Type"] = request.content_type
    return Call(
        request.method,
        request.path,
        request.verb,
        request.resource,
        request.key,
        request.query,
        request.body,
        headers,
    )
