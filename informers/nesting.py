"""Taking JSON apart without a stack: for what is nested too deeply for a parser that has one.

One such object among many (a server may store ten thousand levels) must not keep the others from being read. Pure and
slow; the bytes are not checked beyond what is needed to find the pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

__all__ = ["elements", "members"]

# A string without an end takes the rest: to look for its end from each quote inside it would be quadratic.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[][{},]', re.DOTALL)
_MEMBER = re.compile(rb'\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*:(.*)', re.DOTALL)
_decode_name = msgspec.json.Decoder(str).decode


def elements(array: bytes) -> list[bytes]:
    """The elements of a JSON array, undecoded. Raises ValueError if the brackets do not match."""
    return [*_pieces(array)]


def members(mapping: bytes) -> dict[str, bytes]:
    """The members of a JSON object, undecoded. Raises ValueError, also (msgspec.DecodeError) for a broken name."""
    found: dict[str, bytes] = {}
    for piece in _pieces(mapping):
        match = _MEMBER.fullmatch(piece)
        if match is None:
            raise ValueError("a member without a name")
        found[_decode_name(match[1])] = match[2]
    return found


def _pieces(data: bytes) -> Iterator[bytes]:
    """What stands between the commas of the outermost brackets."""
    depth = start = 0
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token in (b"[", b"{"):
            depth += 1
            if depth == 1:
                start = match.end()
        elif token in (b"]", b"}"):
            depth -= 1
            if depth == 0:
                last = data[start : match.start()]
                if last.strip():
                    yield last
                return
        elif token == b"," and depth == 1:
            yield data[start : match.start()]
            start = match.end()
    raise ValueError("brackets that do not match")
