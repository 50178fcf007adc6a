"""Single requests to the servers that were just started, before there is a client for them."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Mapping
from urllib.error import HTTPError


class RefusedError(OSError):
    """The server answered with a failure."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"status {status}: {body.decode(errors='replace')}")
        self.status = status
        self.body = body


def fetch(
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    context: ssl.SSLContext | None = None,
    timeout: float,
) -> bytes:
    """GET, or POST with a body; never through a proxy. Raises OSError, RefusedError, HTTPException."""
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    request = urllib.request.Request(url, data=body, headers=dict(headers or {}))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=timeout) as response:
            content: bytes = response.read()
            return content
    except HTTPError as error:
        with error:
            raise RefusedError(error.code, error.read()) from None
