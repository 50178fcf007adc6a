"""Watches over HTTP: from the bytes of an endless answer to events.

`Dechunker` and `Lines` are pure: they take bytes as they come and give what is whole. `HttpWatchStream` reads the
socket's own buffer, in pieces as large as they come, and takes the chunks of HTTP apart itself: an API server sends a
chunk an event, and a call into http.client for each would cost more than decoding it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Self

from informers.connection import Exchange
from informers.decoder import Malformed, ObjectDecoder
from informers.errors import MalformedResponseError
from informers.source import WatchEvent

__all__ = ["Dechunker", "HttpWatchStream", "Lines"]

_log = logging.getLogger(__name__)
_PIECE = 1 << 16
_GRACE = 30.0  # the server ends a watch at its timeoutSeconds; this much later it is taken for dead


class Dechunker:
    """Takes the chunked transfer coding apart. `feed` gives the payload of what came; raises ValueError on garbage."""

    def __init__(self) -> None:
        self._left = 0  # bytes of the current chunk that have not come yet, its line end included
        self._head = b""
        self.finished = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes as they come from the socket and give the pieces of payload among them, mostly whole chunks."""
        found: list[bytes] = []
        at, size = 0, len(data)
        while at < size and not self.finished:
            if self._left:
                end = min(at + self._left, size)
                self._left -= end - at
                # the last two bytes of what is left are the line end, of which a part may have come
                last = end - 2 if not self._left else max(at, end - max(0, 2 - self._left))
                if last > at:
                    found.append(data[at:last])
                at = end
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._head += data[at:]
                break
            self._start_chunk(self._head + data[at:end] if self._head else data[at:end])
            self._head = b""
            at = end + 1
        if len(self._head) > 1024:
            raise ValueError("a chunk without a size")
        return found

    def _start_chunk(self, head: bytes) -> None:
        size = int(head.partition(b";")[0] if b";" in head else head, 16)
        if size < 0:
            raise ValueError("a chunk of negative size")
        if size:
            self._left = size + 2
        else:
            self.finished = True  # trailers may follow; nobody sends any, and the connection is closed anyway


class Lines:
    """Splits bytes into lines of any length."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes and give the lines that are whole, without their ends; empty ones are left out."""
        if not self._parts and 0 < data.find(b"\n") == len(data) - 1:
            return [data]  # one line with its end, which the decoder does not mind: what servers send
        first, newline, rest = data.partition(b"\n")
        self._parts.append(first)
        if not newline:
            return []
        lines = [b"".join(self._parts), *rest.split(b"\n")]
        last = lines.pop()
        self._parts = [last] if last else []
        return [line for line in lines if line]

    @property
    def pending(self) -> bytes:
        """The beginning of a line that is not whole yet."""
        return b"".join(self._parts)


class HttpWatchStream:
    """Events of one watch, in order; ends when the server ends it or when it is closed.

    One thread iterates; `close` may be called from any, more than once, and ends a read that waits within a moment.
    Raises ApiError for an ERROR event, TransportError when the connection breaks or the server is `seconds` + 30 s past
    its time, MalformedResponseError if what comes is not what HTTP promises. An event that cannot be read is logged,
    counted in `unreadable`, and left out.
    """

    def __init__(
        self,
        exchange: Exchange,
        headers: Mapping[str, str],
        decoder: ObjectDecoder,
        *,
        seconds: float | None,
        address: str,
        resource: str,
        failure: Callable[[Exception], Exception],
        finish: Callable[[], None],
    ) -> None:
        self.unreadable = 0
        self._exchange = exchange
        self._decoder = decoder
        self._address = address
        self._resource = resource
        self._failure = failure
        self._finish = finish
        self._chunks = Dechunker() if headers.get("Transfer-Encoding", "").lower() == "chunked" else None
        self._lines = Lines()
        self._ready: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._reading = False
        self._closed = False
        self._finished = False
        if seconds is not None:
            exchange.deadline = time.monotonic() + seconds + _GRACE

    @property
    def closed(self) -> bool:
        """Whether the stream is at its end."""
        return self._closed

    def __iter__(self) -> Iterator[WatchEvent]:
        return self

    def __next__(self) -> WatchEvent:
        while not self._closed:
            if not self._ready:
                self._fill()
                continue
            found = self._decode(self._ready.popleft())
            if found is not None:
                return found
        raise StopIteration

    def _decode(self, line: bytes) -> WatchEvent | None:
        try:
            event = self._decoder.event(line)
        except Exception:
            self.close()
            raise
        if isinstance(event, Malformed):
            self.unreadable += 1
            _log.warning(
                "a %s event of %s is left out: %s", event.event_type, event.key or self._resource, event.reason
            )
            return None
        return event

    def _fill(self) -> None:
        """Read what is there, or wait for it; on the stream's end, close."""
        with self._lock:
            if self._closed:
                return
            self._reading = True
        try:
            if not self._read_piece():
                self._ended()
        except Exception as error:
            if self.closed:
                return
            self._closed = True
            if isinstance(error, MalformedResponseError):
                raise
            raise self._failure(error) from error
        finally:
            with self._lock:
                self._reading = False
                if self._closed:
                    self._release()

    def _read_piece(self) -> bool:
        reader = self._exchange.reader
        if reader is None or reader.closed or (self._chunks is not None and self._chunks.finished):
            return False
        data = reader.read1(_PIECE)
        if not data:
            return False
        if self._chunks is None:
            self._ready.extend(self._lines.feed(data))
            return True
        try:
            pieces = self._chunks.feed(data)
        except ValueError as error:
            raise MalformedResponseError(f"{self._address}: {error} in the stream", verb="watch") from error
        for piece in pieces:
            self._ready.extend(self._lines.feed(piece))
        return True

    def _ended(self) -> None:
        cut = (self._chunks is not None and not self._chunks.finished) or self._lines.pending
        if cut:
            raise ConnectionResetError("the watch was cut off")
        self._closed = True

    def close(self) -> None:
        """End the stream; events that were read but not yet taken are dropped. Never blocks."""
        with self._lock:
            self._closed = True
            self._exchange.abort()
            if not self._reading:
                self._release()

    def _release(self) -> None:
        if not self._finished:
            self._finished = True
            self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
