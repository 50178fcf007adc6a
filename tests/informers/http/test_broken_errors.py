"""Errors whose bodies are hard to read are still errors of the API."""

from __future__ import annotations

import pytest

from informers import InternalError


def test_an_error_nested_too_deeply_is_told_by_its_code(serve, connect):
    body = b'{"kind":"Status","details":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(InternalError) as caught:
        connect(serve(lambda connection, request: connection.answer(body, 500))).raw("GET", "/x", timeout=5)
    assert caught.value.status == 500
