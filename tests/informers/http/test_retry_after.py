"""The wish that a server may send with a refusal: seconds, or the moment from which to ask again."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from informers import ServiceUnavailableError


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("7", 7, 7),
        ("9" * 400, 86_400, 86_400),
        (formatdate(time.time() + 3000, usegmt=True), 2000, 3000),
        (formatdate(time.time() + 3000), 2000, 3000),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0, 0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 0, 0),
        ("Sun Nov  6 08:49:37 1994", 0, 0),
    ],
)
def test_retry_after_is_seconds_or_a_date(serve, connect, header, least, most):
    server = serve(lambda connection, request: connection.answer(b"", 503, headers=f"Retry-After: {header}\r\n"))
    with pytest.raises(ServiceUnavailableError) as caught:
        connect(server).raw("GET", "/x", timeout=0.05)
    assert least <= caught.value.retry_after <= most


@pytest.mark.parametrize("header", ["soon", "-5", "1.5", "", "\u0667", "99 Foo 2020", "1 Jan 2030 1:1:1 99999999999"])
def test_a_retry_after_that_says_nothing_is_no_wish(serve, connect, header):
    text = f"Retry-After: {header}\r\n".encode()
    head = b"HTTP/1.1 503 X\r\n" + text + b"Content-Length: 0\r\n\r\n"
    with pytest.raises(ServiceUnavailableError) as caught:
        connect(serve(lambda connection, request: connection.send(head))).raw("GET", "/x", timeout=5)
    assert caught.value.retry_after is None
