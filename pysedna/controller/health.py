"""/healthz, /readyz and /metrics over plain HTTP.

`answer` decides what a path says (pure, apart from the checks it calls); `HealthServer` is a small threaded server
around it. As Kubernetes does: `/readyz` runs all checks, `/readyz/<name>` one, `?exclude=name` leaves some out
(repeatable), `?verbose` lists them; a failure is status 500 and always lists them. A check raises to say no; what
it says is shown.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from pysedna.controller.errors import AddressUnavailable
from pysedna.controller.metrics import CollectorRegistry, exposition

Check = Callable[[], None]
_log = logging.getLogger(__name__)
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    body: bytes
    content_type: str = _TEXT


def answer(target: str, groups: Mapping[str, Mapping[str, Check]]) -> Answer | None:
    """What a request for `target` (path and query) is told by the checks in `groups` ("healthz", "readyz"); None:
    no such path.
    """
    parts = urlsplit(target)
    group, _, name = parts.path.strip("/").partition("/")
    if group not in groups:
        return None
    checks = groups[group]
    query = parse_qs(parts.query, keep_blank_values=True)
    verbose = "verbose" in query
    if name:
        if name not in checks:
            return None
        return _run(f"{group}/{name}", {name: checks[name]}, frozenset(), verbose)
    return _run(group, checks, frozenset(query.get("exclude", ())), verbose)


def _run(title: str, checks: Mapping[str, Check], excluded: frozenset[str], verbose: bool) -> Answer:
    lines: list[str] = []
    failed = False
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
            continue
        try:
            check()
        except Exception as error:  # noqa: BLE001 - whatever a check raises is its way to say no
            failed = True
            lines.append(f"[-]{name} failed: {error or type(error).__name__}")
        else:
            lines.append(f"[+]{name} ok")
    lines += [
        f"warn: some health checks cannot be excluded: no matches for {name!r}"
        for name in sorted(excluded - checks.keys())
    ]
    if not failed and not verbose:
        return Answer(200, b"ok")
    lines.append(f"{title} check {'failed' if failed else 'passed'}")
    return Answer(500 if failed else 200, ("\n".join(lines) + "\n").encode())


def parse_address(text: str) -> tuple[str, int]:
    """`host:port` as a pair; an IPv6 host stands in brackets. ValueError when it is not one."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"not an address of the form host:port: {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


class HealthServer:
    """Serves the checks and a metrics registry from a thread of its own, a thread a request.

    `groups` is read at each request, so checks may be added while it serves. The address is bound by `start`,
    which raises `AddressUnavailable`.
    """

    def __init__(self, address: str, groups: Mapping[str, Mapping[str, Check]], registry: CollectorRegistry) -> None:
        self._host, self._port = parse_address(address)
        self._groups = groups
        self._registry = registry
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str | None:
        """`host:port` as bound, None when it does not serve."""
        if self._server is None:
            return None
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def start(self) -> None:
        """Bind and serve."""
        try:
            self._server = _server_class(self._host)((self._host, self._port), self._handler())
        except OSError as error:
            raise AddressUnavailable(f"{self._host}:{self._port}", error.strerror or str(error)) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="health-http", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and close the socket; returns when the thread has ended."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = self._thread = None

    def respond(self, target: str, accept: str = "") -> Answer:
        """The answer to a GET of `target`."""
        if urlsplit(target).path == "/metrics":
            return Answer(200, *exposition(self._registry, accept))
        return answer(target, self._groups) or Answer(404, b"404 page not found\n")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        respond = self.respond

        class Handler(BaseHTTPRequestHandler):
            timeout = 5  # a client that sends nothing holds its thread no longer than this
            server_version = "pysedna"
            sys_version = ""

            def do_GET(self) -> None:
                self._send(respond(self.path, self.headers.get("Accept", "")), body=True)

            def do_HEAD(self) -> None:
                self._send(respond(self.path, self.headers.get("Accept", "")), body=False)

            def _send(self, reply: Answer, *, body: bool) -> None:
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.content_type)
                self.send_header("Content-Length", str(len(reply.body)))
                self.send_header("X-Content-Type-Options", "nosniff")
                self.end_headers()
                if body:
                    self.wfile.write(reply.body)

            def log_message(self, format: str, *args: object) -> None:
                _log.debug("%s %s", self.client_address[0], format % args)

        return Handler


def _server_class(host: str) -> type[ThreadingHTTPServer]:
    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        daemon_threads = True
        block_on_close = False  # a slow client must not hold up the stop; its thread is a daemon and timed

        def server_bind(self) -> None:
            # Not HTTPServer's: that one resolves the host's full name, which may ask a DNS server.
            socket_server_bind(self)

        def handle_error(self, request: object, client_address: object) -> None:
            _log.debug("request from %s failed", client_address, exc_info=True)

    return Server


def socket_server_bind(server: ThreadingHTTPServer) -> None:
    """Bind without looking up the name of the host."""
    server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.socket.bind(server.server_address)
    server.server_address = server.socket.getsockname()
    server.server_name = str(server.server_address[0])
    server.server_port = int(server.server_address[1])
