"""The HTTP server: aiohttp on an event loop in a thread of its own, thin over the backend."""

import asyncio
import ipaddress
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import orjson
from aiohttp import web

from informers.errors import ApiError, ForbiddenError, InternalError
from pysedna.localcluster import discovery
from pysedna.localcluster.backend import Backend
from pysedna.localcluster.errors import NotRunningError, StartError
from pysedna.localcluster.handlers import MAX_BODY, Handlers
from pysedna.localcluster.persistence import StateFile
from pysedna.localcluster.watching import Hub

logger = logging.getLogger(__name__)
T = TypeVar("T")
_GRACE = 0.5


class ApiServer:
    """One API server. `start` returns when it listens; `call` runs a function on its loop.

    `first_version` is where a cluster without a past begins to count. A state file is opened by the constructor, so
    that a damaged one is refused (`StateFileError`) before a thread runs.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        state: str | Path | None,
        history_limit: int,
        bookmark_interval: float,
        stall: float,
        first_version: int = 1,
    ) -> None:
        self._host = host
        self._port = port
        self._hub = Hub()
        self._state = StateFile(state, first_version=first_version) if state is not None else None
        self.backend = Backend(
            state=self._state,
            committed=self._hub.committed,
            history_limit=history_limit,
            first_version=first_version,
        )
        self._handlers = Handlers(self.backend, self._hub, bookmark_interval=bookmark_interval, stall=stall)
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._started: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, name="localcluster-server", daemon=True)

    @property
    def address(self) -> str:
        """`http://HOST:PORT`, once started."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._started.result(timeout=0)}"

    @property
    def watchers(self) -> int:
        """How many watches are open."""
        return len(self._hub)

    def start(self) -> None:
        """Raises `StartError` if it cannot listen."""
        self._thread.start()
        self._started.result()

    def stop(self, timeout: float | None = None) -> bool:
        """Ends all requests and the thread, and closes the state file; False if that took longer than `timeout`."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def call(self, function: Callable[[], T]) -> T:
        """Runs `function` on the server's loop, between requests; raises what it raises."""
        if not self._thread.is_alive():
            raise NotRunningError("the embedded cluster is not running")
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(function())
            except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result()

    def drop_watches(self) -> None:
        """Cuts the connections of all watchers."""
        self.call(lambda: self._hub.end(drop=True))

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()
            if self._state is not None:
                self._state.close()

    async def _serve(self) -> None:
        application = web.Application(client_max_size=MAX_BODY)
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=_GRACE, handler_cancellation=True)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._host, self._port)
            await site.start()
        except OSError as error:
            await runner.cleanup()
            problem = StartError(f"cannot listen on {self._host}:{self._port}: {error.strerror or error}")
            self._started.set_exception(problem)
            return
        self._started.set_result(runner.addresses[0][1])
        await self._stop.wait()
        self._hub.end()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            self._check_origin(request)
            return await self._dispatch(request)
        except ApiError as error:
            return _failure(error)
        except web.HTTPRequestEntityTooLarge:
            return _failure(
                ApiError("the request body is larger than 3 MiB", status=413, reason="RequestEntityTooLarge")
            )
        except ConnectionError:
            raise
        except Exception as error:  # a fault of ours must not look like anything else to the client
            logger.exception("request failed", extra={"method": request.method, "path": request.path})
            return _failure(InternalError(f"{type(error).__name__}: {error}"))

    async def _dispatch(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path in ("/healthz", "/livez", "/readyz"):
            return web.Response(text="ok")
        if request.method == "GET":
            host = self.address.removeprefix("http://")
            document = discovery.document(self.backend.kinds, path, host)
            if document is not None:
                return web.Response(body=orjson.dumps(document), content_type="application/json")
            if path == "/openapi/v2":
                body, content = discovery.openapi_v2(request.headers.get("Accept", ""))
                return web.Response(body=body, headers={"Content-Type": content})
        prefix, _, rest = path.strip("/").partition("/")
        group = rest.partition("/")[0]
        if prefix == "api" or (prefix == "apis" and any(kind.resource.group == group for kind in self.backend.kinds)):
            return await self._handlers.handle(request)
        return web.Response(text="404 page not found\n", status=404)

    def _check_origin(self, request: web.Request) -> None:
        """A page in a browser must not reach the cluster: it sends an Origin, or a Host that was made to point here."""
        if "Origin" in request.headers:
            raise ForbiddenError("requests of browsers (with an Origin header) are refused")
        host = request.url.host or ""
        if _is_loopback(self._host) and not _is_loopback(host):
            raise ForbiddenError(f"the Host header names {host!r}, which is not a loopback address")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _failure(error: ApiError) -> web.Response:
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    status: dict[str, Any] = error.to_status()
    return web.Response(
        body=orjson.dumps(status), status=error.status, content_type="application/json", headers=headers
    )
