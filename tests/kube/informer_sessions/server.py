"""Serves sessions over HTTP on loopback: real sockets, with every way to end a connection. Decides nothing.

The path of a session is ``/<id>/<side>``; under it is an API server with one kind. Runs on a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from informer_sessions.answers import Answer, Body
from informer_sessions.session import Request, Session

_RESOURCE: Body = {"name": "configmaps", "namespaced": True, "kind": "ConfigMap", "verbs": ["list", "watch"]}
_DISCOVERY = json.dumps(
    {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [_RESOURCE]}
).encode()
_COLLECTION = "/api/v1/namespaces/ns/configmaps"


class Server:
    """A context manager. `sessions` by path; what is asked elsewhere is noted in `strays`."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.strays: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="session-server")
        self._listening = threading.Event()
        self._stop: asyncio.Event | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listening.wait(30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def add(self, path: str, session: Session) -> str:
        """Serve a session; gives its URL."""
        self.sessions[path] = session
        return f"http://127.0.0.1:{self.port}{path}"

    def remove(self, path: str) -> None:
        """Forget a session."""
        del self.sessions[path]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            try:
                with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    await self._connection(reader, writer)  # until the client goes, or the tests are over
            finally:
                connections.discard(task)
                writer.transport.abort()

        server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=1000)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await self._stop.wait()
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            target = head.split(" ", 2)[1]
            answer = self._answer(target)
            await _send(answer, writer)
            if answer.end == "hold":
                await reader.read(1)  # until the client goes
            if answer.status == 0 or answer.missing or answer.end != "length":
                if answer.end == "reset":
                    linger = struct.pack("ii", 1, 0)
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                else:
                    writer.close()
                    await writer.wait_closed()
                return

    def _answer(self, target: str) -> Answer:
        url = urlsplit(target)
        path = "/".join(url.path.split("/")[:3])
        rest = url.path.removeprefix(path)
        if rest == "/api/v1":
            return Answer(200, (_DISCOVERY,))
        session = self.sessions.get(path)
        if session is None or rest != _COLLECTION:
            self.strays.append(target)
            return Answer(404, (b"",))
        query = dict(parse_qsl(url.query))
        watches = query.get("watch") in ("true", "1")
        return session.answer(
            Request(
                verb="watch" if watches else "list",
                version=query.get("resourceVersion", ""),
                stream=watches and query.get("sendInitialEvents") == "true",
                limit=int(query.get("limit", "0")),
                continue_=query.get("continue", ""),
            )
        )


async def _send(answer: Answer, writer: asyncio.StreamWriter) -> None:
    if answer.status == 0:
        return
    chunked = answer.end != "length"
    length = sum(len(piece) for piece in answer.pieces if isinstance(piece, bytes)) + answer.missing
    headers = answer.headers | ({"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(length)})
    lines = [f"HTTP/1.1 {answer.status} Said", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    for piece in answer.pieces:
        if isinstance(piece, float):
            await writer.drain()
            await asyncio.sleep(piece)
        else:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            await writer.drain()
    if answer.end == "close":
        writer.write(b"0\r\n\r\n")
    await writer.drain()
