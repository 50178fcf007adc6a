"""The API's MicroTime: RFC 3339 with six digits and Z, in and out of microseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

__all__ = ["format_micro_time", "parse_micro_time"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def format_micro_time(micros: int) -> str:
    """`2026-01-31T12:00:00.000001Z`: always six digits and Z."""
    moment = _EPOCH + micros * _MICROSECOND
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_micro_time(text: object) -> int | None:
    """Microseconds since 1970, of RFC 3339 with any number of digits (more than six are cut) and any offset.

    None for anything else: nothing depends on a time that another party wrote, so it need not be an error.
    """
    match = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    day, time, digits, zone = match.groups()
    fraction = (digits or "")[:6].ljust(6, "0")
    try:
        moment = datetime.fromisoformat(f"{day}T{time}.{fraction}{zone.upper().replace('Z', '+00:00')}")
    except ValueError:
        return None
    return (moment - _EPOCH) // _MICROSECOND
