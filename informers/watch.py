"""Watches over HTTP: from the bytes of an endless answer to events.

`Lines` is pure: it takes bytes as they come and gives what is whole. `HttpWatchStream` reads the socket's own buffer,
in pieces as large as they come.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Self

from informers.chunks import Dechunker
from informers.connection import Exchange
from informers.decoder import Malformed, ObjectDecoder
from informers.errors import MalformedResponseError
from informers.key import ObjectKey
from informers.source import WatchEvent

__all__ = ["HttpWatchStream", "Lines"]

_log = logging.getLogger(__name__)
_PIECE = 1 << 18
_LONGEST_LINE = 32 << 20  # some ten times the largest object that a server takes
_GRACE = 30.0  # the server ends a watch at its timeoutSeconds; this much later it is taken for dead


class Lines:
    """Splits bytes into lines. ValueError for one that is longer than any event: a server may never end it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes and give the lines that are whole, without their ends; empty ones are left out."""
        if not self._parts and 0 < data.find(b"\n") == len(data) - 1:
            return [data]  # one line with its end, which the decoder does not mind: what servers send
        first, newline, rest = data.partition(b"\n")
        self._parts.append(first)
        self._size += len(first)
        if self._size > _LONGEST_LINE:
            self._parts.clear()  # the error keeps this alive
            raise ValueError(f"a line of more than {_LONGEST_LINE} bytes")
        if not newline:
            return []
        lines = [b"".join(self._parts), *rest.split(b"\n")]
        last = lines.pop()
        self._parts = [last] if last else []
        self._size = len(last)
        return [line for line in lines if line]

    @property
    def pending(self) -> bytes:
        """The beginning of a line that is not whole yet."""
        return b"".join(self._parts)


class HttpWatchStream:
    """Events of one watch, in order; ends when the server ends it or when it is closed.

    One thread iterates; `close` may be called from any, more than once, and ends a read that waits within a moment.
    Raises ApiError for an ERROR event, TransportError when the connection breaks or the server is `seconds` + 30 s past
    its time, MalformedResponseError if what comes is not what HTTP promises (what came in one piece with that is lost).
    An event that cannot be read is logged, counted in `unreadable`, named in `last_unreadable`, and left out, but for a
    deletion: that is a MalformedResponseError, since only a new list can make up for it. `unreadable_keys` has the keys
    that could be read.
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
        self.last_unreadable = ""
        self.unreadable_keys: set[ObjectKey] = set()
        self._exchange = exchange
        self._decoder = decoder
        self._address = address
        self._resource = resource
        self._failure = failure
        self._finish = finish
        self._chunks = Dechunker() if headers.get("Transfer-Encoding", "").lower() == "chunked" else None
        length = headers.get("Content-Length", "") if self._chunks is None else ""
        # No API server gives one, but the connection may stay open after an answer that has.
        self._left = int(length) if length.isdecimal() and len(length) < 20 else None
        self._lines = Lines()
        self._ready: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._raised: Exception | None = None
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

    def read_batch(self) -> list[WatchEvent]:
        """What iteration gives, as many events at once as have come, in order; waits for the first. Empty at the end.

        Raises what iteration raises, once the events before it were given.
        """
        if self._raised is not None:
            raise self._raised
        found: list[WatchEvent] = []
        while not self._closed and not found:
            if not self._ready:
                self._fill()
            found = self._decoder.events(self._ready) or []
            if found:
                self._ready.clear()
            while self._ready:
                try:
                    event = self._decode(self._ready.popleft())
                except Exception as error:
                    if not found:
                        raise
                    self._raised = error  # the stream is closed; what came before is still good
                    break
                if event is not None:
                    found.append(event)
        return found

    def _decode(self, line: bytes) -> WatchEvent | None:
        try:
            event = self._decoder.event(line)
        except Exception:
            self.close()
            raise
        if isinstance(event, Malformed):
            if event.event_type == "DELETED":  # left out, it would leave the object behind for ever
                self.close()
                what = event.key or "an object without a readable key"
                message = f"{self._address}: the deletion of {what} cannot be read: {event.reason}"
                raise MalformedResponseError(message, verb="watch", resource=self._resource, key=event.key)
            self.unreadable += 1
            self.last_unreadable = f"{event.event_type} {event.key or 'of something without a readable key'}"
            if event.key is not None:
                self.unreadable_keys.add(event.key)
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
        if reader is None or reader.closed or self._left == 0 or (self._chunks is not None and self._chunks.finished):
            return False
        data = reader.read1(_PIECE if self._left is None else min(_PIECE, self._left))
        if not data:
            return False
        if self._left is not None:
            self._left -= len(data)
        try:
            for piece in (data,) if self._chunks is None else self._chunks.feed(data):
                self._ready.extend(self._lines.feed(piece))
        except ValueError as error:
            raise MalformedResponseError(f"{self._address}: {error} in the stream", verb="watch") from error
        return True

    def _ended(self) -> None:
        cut = (self._chunks is not None and not self._chunks.finished) or self._left or self._lines.pending
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
