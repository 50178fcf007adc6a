"""How two resourceVersions compare: as numbers of any length, or not at all (pure)."""

from __future__ import annotations

__all__ = ["is_number", "is_older"]


def is_older(version: str, than: str) -> bool:
    """Whether both versions are numeric and the first is the lower one; others only compare for equality."""
    return is_number(version) and is_number(than) and _order(version) < _order(than)


def is_number(version: str) -> bool:
    """Whether a version can be compared with others of its kind."""
    return version.isdecimal() and version.isascii()


def _order(version: str) -> tuple[int, str]:
    # Compared as text, since a server may send any number of digits and int() refuses some thousands of them.
    digits = version.lstrip("0")
    return len(digits), digits
