"""The chunked transfer coding of HTTP/1.1 (RFC 9112, 7.1), taken apart in pieces as large as they come.

An API server sends a chunk an event, and often a chunk a list item: a call into http.client for each would cost more
than decoding it. Pure: bytes come in, payload goes out.
"""

from __future__ import annotations

__all__ = ["Dechunker"]


class Dechunker:
    """Takes the chunked transfer coding apart. `feed` gives the payload of what came; raises ValueError on garbage."""

    def __init__(self) -> None:
        self._left = 0  # bytes of the current chunk that have not come yet, its line end included
        self._head = b""
        self.finished = False
        self.rest = b""
        """What came after the last chunk: trailers and the empty line that ends them, as far as they were there."""

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes as they come from the socket and give the pieces of payload among them, mostly whole chunks."""
        found: list[bytes] = []
        at, size = 0, len(data)
        while at < size and not self.finished:
            if not self._left and not self._head and (whole := _whole_chunk(data, at)):
                found.append(data[whole])  # so most of them come
                at = whole.stop + 2
                continue
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


def _whole_chunk(data: bytes, at: int) -> slice | None:
    """Where the payload of a plain chunk is that begins here and is whole; None for anything else."""
    end = data.find(b"\n", at, at + 10)
    try:
        size = int(data[at:end], 16) if end >= 0 else 0
    except ValueError:
        return None
    stop = end + 1 + size
    return slice(end + 1, stop) if size > 0 and stop + 2 <= len(data) else None
