"""Watches over HTTP: one task a watcher, each with a cursor into the store's history and no queue of its own.

A write wakes the watchers of its resource; each then takes what is new and writes it. One that does not read is
waited for by its own task only, for `stall` seconds, and then cut off; what it would have read stays in the shared,
bounded history.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from informers.errors import ApiError
from informers.store import Event, Watch
from pysedna.localcluster.views import View, error_line

_BATCH = 100


class Wakeup:
    """A watcher's bell: rung when there may be something to read, or when it must end."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.ended = False
        self.dropped = False


class Hub:
    """Who waits for which resource. Belongs to the event loop."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[Wakeup]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._watchers.values()))

    @contextmanager
    def waiting(self, resource: str) -> Iterator[Wakeup]:
        wakeup = Wakeup()
        self._watchers.setdefault(resource, set()).add(wakeup)
        try:
            yield wakeup
        finally:
            self._watchers[resource].discard(wakeup)

    def committed(self, event: Event) -> None:
        """Wakes the watchers of what was written; a definition that is gone ends the watches of its objects."""
        for wakeup in self._watchers.get(event.resource.qualified, ()):
            wakeup.event.set()
        if event.type == "DELETED" and event.resource.kind == "CustomResourceDefinition":
            self.end(event.stored.key.name)

    def end(self, resource: str | None = None, *, drop: bool = False) -> None:
        """Ends the watches of a resource or all of them, properly or (`drop`) by cutting the connection."""
        for name, wakeups in self._watchers.items():
            if resource in (None, name):
                for wakeup in wakeups:
                    wakeup.ended, wakeup.dropped = True, drop
                    wakeup.event.set()


async def stream(
    request: web.Request,
    watch: Watch | ApiError,
    view: View,
    wakeup: Wakeup,
    *,
    timeout: float,
    bookmark_interval: float | None,
    stall: float,
) -> web.StreamResponse:
    """Answers a watch until it times out, ends, or fails (the failure is its last event)."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    writer = _Writer(request, response, stall)
    if isinstance(watch, ApiError):
        await writer.send(error_line(watch.to_status()))
        return response
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    bookmark_at = loop.time() + bookmark_interval if bookmark_interval else deadline
    first = True
    while not wakeup.dropped:
        wakeup.event.clear()
        ended = wakeup.ended  # what happened up to then is still shown
        try:
            items = watch.poll(_BATCH)
        except ApiError as error:
            await writer.send(error_line(error.to_status()))
            break
        lines = []
        for item in items:
            lines.append(view.line(item.type, item.stored, first=first))
            first = False
        if lines and not await writer.send(b"".join(lines)):
            break
        if len(items) >= _BATCH:
            continue
        if ended:
            break
        now = loop.time()
        if bookmark_interval and now >= min(bookmark_at, deadline):
            bookmark_at = now + bookmark_interval
            bookmark = watch.bookmark()
            if not await writer.send(view.line(bookmark.type, bookmark.stored, first=first)):
                break
        if now >= deadline:
            break
        try:
            async with asyncio.timeout_at(min(bookmark_at, deadline)):
                await wakeup.event.wait()
        except TimeoutError:
            continue
    if wakeup.dropped and request.transport is not None:
        request.transport.abort()
    return response


class _Writer:
    """Writes to one watcher and gives up on it when it does not read."""

    def __init__(self, request: web.Request, response: web.StreamResponse, stall: float) -> None:
        self._request = request
        self._response = response
        self._stall = stall

    async def send(self, data: bytes) -> bool:
        """False when the watcher is gone or was cut off."""
        try:
            async with asyncio.timeout(self._stall):
                await self._response.write(data)
        except TimeoutError:
            if self._request.transport is not None:
                self._request.transport.abort()
            return False
        except ConnectionError:
            return False
        return True
