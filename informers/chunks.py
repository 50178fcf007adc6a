"""The chunked transfer coding of HTTP/1.1 (RFC 9112, 7.1), taken apart in pieces as large as they come.

An API server sends a chunk an event, and often a chunk a list item: a call into http.client for each would cost more
than decoding it. Pure: bytes come in, payload goes out.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Dechunker"]


class Dechunker:
    """Takes the coding apart. `feed` gives the payload of what came; raises ValueError on garbage.

    With `views` it gives memoryviews, which copy nothing and keep what they are of alive; otherwise bytes.
    """

    def __init__(self, *, views: bool = False) -> None:
        self._views = views
        self._left = 0  # bytes of the current chunk that have not come yet, its line end included
        self._head = b""
        self.finished = False
        self.rest = b""
        """What came after the last chunk: trailers and the empty line that ends them, as far as they were there."""

    def feed(self, data: bytes) -> list[Any]:
        """Take bytes as they come from the socket and give the pieces of payload among them, mostly whole chunks."""
        found: list[Any] = []
        payload: Any = memoryview(data) if self._views else data
        at, size = 0, len(data)
        while at < size and not self.finished:
            if self._left:
                end = min(at + self._left, size)
                self._left -= end - at
                # the last two bytes of what is left are the line end, of which a part may have come
                last = end - 2 if not self._left else max(at, end - max(0, 2 - self._left))
                if last > at:
                    found.append(payload[at:last])
                at = end
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._head += data[at:]
                break
            self._start_chunk(self._head + data[at:end] if self._head else data[at:end])
            self._head = b""
            at = end + 1
            if 0 < self._left <= size - at:  # all of it is here, as nearly always
                end = at + self._left
                found.append(payload[at : end - 2])
                self._left = 0
                at = end
        if self.finished:
            self.rest = data[at:]
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
            self.finished = True
