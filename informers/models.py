"""Model classes of the official client as targets of `Object.decode`.

They are pydantic models since the client's version 37, and generated classes with an `openapi_types` table before it.
Kept apart from `object.py` because nothing here is needed by whoever decodes into msgspec types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

__all__ = ["model_builder"]

S = TypeVar("S")


def model_builder(cls: type[S]) -> Callable[[dict[str, Any]], S] | None:
    """Give the constructor from plain data of a model class; None for any other type."""
    validate = getattr(cls, "model_validate", None)
    if validate is not None:
        return validate  # type: ignore[no-any-return]
    if hasattr(cls, "openapi_types"):
        return lambda data: _generated(cls, data)
    return None


class _Answer:
    """The one part of an HTTP answer that the old deserializer reads."""

    def __init__(self, data: bytes) -> None:
        self.data = data


def _generated(cls: type[S], data: dict[str, Any]) -> S:
    """Build a generated model, which only the `ApiClient` of its own version can."""
    from kubernetes.client import ApiClient, Configuration

    api_client: Any = ApiClient(Configuration())
    try:
        model: S = api_client.deserialize(_Answer(msgspec.json.encode(data)), cls)
        return model
    finally:
        api_client.close()
