"""What goes over the wire: answers whole and streamed, and the spellings that refusals have in servers of all ages."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """An answer, as the transport sends it: pieces of the body, and pauses in seconds between them.

    `end` is "length" (a Content-Length, then the connection stays open), "close" (the last chunk), "fin" and "reset"
    (the connection ends without it), or "hold" (nothing more comes). Without a `status` nothing is sent at all.
    """

    status: int
    pieces: tuple[bytes | float, ...] = ()
    end: str = "length"
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    missing: int = 0  # bytes that the Content-Length promises and that never come


def whole(body: Body, status: int = 200, **headers: str) -> Answer:
    """A body of JSON."""
    named = {"Content-Type": "application/json"} | {key.replace("_", "-"): value for key, value in headers.items()}
    return Answer(status, (encoded(body),), headers=named)


def encoded(body: Body) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def event(type_: str, body: Body) -> bytes:
    """One line of a watch."""
    return encoded({"type": type_, "object": body}) + b"\n"


def failure(code: int, reason: str | None, message: str, **details: Any) -> Body:
    """A Status that says no."""
    body: Body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason is not None:
        body["reason"] = reason
    if details:
        body["details"] = details
    return body | {"code": code}


_LARGE = "Too large resource version"
_LONG_LARGE = f"Timeout: {_LARGE}: 99, current: 9"

_STATUS = {
    "400": failure(400, "BadRequest", "no"),
    "403": failure(403, "Forbidden", "not you"),
    "404": failure(404, "NotFound", "the server could not find the requested resource"),
    "422": failure(422, "Invalid", "sendInitialEvents is forbidden for watch unless the feature gate is enabled"),
    "429": failure(429, "TooManyRequests", "slow down"),
    "500": failure(500, "InternalError", "etcdserver: leader changed"),
    "502": failure(502, None, "bad gateway"),
    "503": failure(503, "ServiceUnavailable", "apiserver is shutting down"),
    "410 expired": failure(410, "Expired", "too old resource version: 1 (9)"),
    "410 gone": failure(410, "Gone", "too old resource version: 1 (9)"),
    "410 bare": failure(410, None, "too old resource version: 1 (9)"),
    "504 too large": failure(
        504, "Timeout", _LONG_LARGE, causes=[{"reason": "ResourceVersionTooLarge", "message": ""}]
    ),
    "too large cause": failure(504, "Timeout", "wait", causes=[{"reason": "ResourceVersionTooLarge"}]),
    "too large cause message": failure(504, "Timeout", "wait", causes=[{"message": _LARGE}]),
    "too large message": failure(504, "Timeout", _LONG_LARGE, kind="configmaps"),
}


def refusal(name: str) -> Answer:
    """The answer of that name, for any request."""
    if name in ("429 retry", "503 retry"):
        return whole(_STATUS[name[:3]], int(name[:3]), Retry_After="1")
    if name == "hang up":
        return Answer(0)
    if name == "empty 200":
        return Answer(200, (b"",))
    if name == "html 200":
        return Answer(200, (b"<html>welcome</html>\n",), headers={"Content-Type": "text/html"})
    if name == "410 plain":
        return Answer(410, (b"too old resource version\n",), headers={"Content-Type": "text/plain; charset=utf-8"})
    body = _STATUS[name]
    return whole(body, body["code"])


def error_event(name: str) -> bytes:
    """An ERROR event of a watch."""
    return event("ERROR", {} if name == "without status" else _STATUS[name])


JUNK = {
    "junk line": b'{"type":"MODIFIED","object":{"kind":"ConfigMap","metadata":}\n',
    "blank line": b"\n",
    "nameless": event("ADDED", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "999"}}),
}
