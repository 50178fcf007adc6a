"""Servers on loopback sockets that misbehave as told: the tests write the bytes themselves."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from informers import Client, RequestTrace


@dataclass
class Asked:
    """A request as the server read it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """One connection of the server; `send` writes raw bytes."""

    def __init__(self, sock: socket.socket, server: Server) -> None:
        self.sock = sock
        self.server = server
        self._file = sock.makefile("rb")

    def read_request(self) -> Asked | None:
        line = self._file.readline().decode()
        if not line.strip():
            return None
        method, path, _ = line.split()
        headers: dict[str, str] = {}
        while (line := self._file.readline().decode().strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = ",".join(filter(None, [headers.get(name.lower(), ""), value.strip()]))
        return Asked(method, path, headers, self._file.read(int(headers.get("content-length", 0))))

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def answer(self, body: Any, status: int = 200, *, headers: str = "") -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{headers}\r\n"
        self.send(head.encode() + data)

    def start_chunks(self) -> None:
        self.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def reset(self) -> None:
        """Close with a reset instead of an orderly end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()

    def close(self) -> None:
        self._file.close()
        self.sock.close()

    def wait_for_end(self) -> None:
        """Block until the server stops or the client closes."""
        while True:
            try:
                if not self.sock.recv(4096):
                    return
            except OSError:
                return


Handler = Callable[[Connection, Asked], None]


class Server:
    """Calls `handler(connection, request)` for each request, a thread a connection. Records what it was asked."""

    def __init__(self, handler: Handler, *, tls: ssl.SSLContext | None = None) -> None:
        self.handler = handler
        self.asked: list[Asked] = []
        self.connections = 0
        self.stopping = threading.Event()
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, name="test-server", daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.add(sock)
                thread = threading.Thread(target=self._serve, args=(sock,), name="test-connection", daemon=True)
                self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        connection: Connection | None = None
        try:
            wrapped = sock if self._tls is None else self._tls.wrap_socket(sock, server_side=True)
            with self._lock:
                self._open.add(wrapped)
            connection = Connection(wrapped, self)
            while (request := connection.read_request()) is not None:
                with self._lock:
                    self.asked.append(request)
                self.handler(connection, request)
        except (OSError, ValueError):
            pass  # the client went away, or the handler closed the connection
        finally:
            if connection is not None:
                connection.close()
            sock.close()

    def stop(self) -> None:
        if self.stopping.is_set():
            return
        self.stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            sockets = list(self._open)
        for sock in sockets:
            try:
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in list(self._threads):
            thread.join(5)


API = {
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]},
            {"name": "pods/status", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]},
            {"name": "nodes", "singularName": "node", "namespaced": False, "kind": "Node", "verbs": ["get"]},
        ],
    },
}


def discovering(handler: Handler) -> Handler:
    """Answer discovery, and leave the rest to the handler."""

    def handle(connection: Connection, request: Asked) -> None:
        if request.path in API:
            connection.answer(API[request.path])
        else:
            handler(connection, request)

    return handle


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """serve(handler, discovery=True, tls=None) -> Server"""
    servers: list[Server] = []

    def start(handler: Handler, *, discovery: bool = True, tls: ssl.SSLContext | None = None) -> Server:
        servers.append(Server(discovering(handler) if discovery else handler, tls=tls))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def traces() -> list[RequestTrace]:
    return []


@pytest.fixture
def connect(traces: list[RequestTrace]) -> Iterator[Callable[..., Client]]:
    """connect(server or url, **options) -> Client, closed at the end of the test"""
    clients: list[Client] = []

    def make(server: Server | str, **options: Any) -> Client:
        url = server if isinstance(server, str) else server.url
        clients.append(Client.from_url(url, on_request=traces.append, **options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.crt, server.crt and server.key for 127.0.0.1 by it, and other.crt of another CA."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)

    for name in ("ca", "other"):
        openssl(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.crt",
            "-subj", f"/CN=test {name}", "-days", "2", "-addext", "keyUsage=critical,keyCertSign",
        )  # fmt: skip
    (folder / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl(
        "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server"
    )
    openssl(
        "x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "ext", "-out", "server.crt",
    )  # fmt: skip
    return folder


@pytest.fixture
def server_tls(certificates: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
    return context


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Callable[..., Path]:
    """kubeconfig(server, user={}, **cluster) -> path of a file with one context"""

    def write(server: str, user: dict[str, Any] | None = None, *, name: str = "config", **cluster: Any) -> Path:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "main",
            "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
            "users": [{"name": "u", "user": user or {}}],
        }
        path = tmp_path / name
        path.write_text(json.dumps(config))
        return path

    return write
