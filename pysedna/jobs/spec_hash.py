"""The hash that decides whether a worker is up to date: over the parts of the job's own spec that shape it.

It is taken of the decoded spec with our defaults filled in, as canonical JSON: the order of fields, a null in place
of an absent field and a default written out make no difference. What is not in the spec (labels of the job, its
status, the URL of a Model or Dataset) is not in the hash, so it replaces no worker.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

LENGTH = 16  # hex digits; fits a label


def spec_hash(parts: Any) -> str:
    """The hash of plain JSON data as hex digits. Equal data give equal hashes on every machine and Python version."""
    text = json.dumps(_canonical(parts), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _canonical(part) for key, part in value.items() if part is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_canonical(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
