"""Speaking of the failures of foreign code: handlers, filters, transforms, index functions, sources, sinks."""

from __future__ import annotations

__all__ = ["described"]


def described(error: BaseException) -> str:
    """Type and text of an exception. Never raises, though the exception's own `__str__` may."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - foreign code as well; there is nothing more to say of it
        text = "(an exception whose text cannot be had)"
    return f"{type(error).__name__}: {text}"
