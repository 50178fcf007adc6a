"""What is asked of etcd itself, over its JSON gateway: who it is, and to forget what was."""

from __future__ import annotations

import base64
import json
from typing import Any

from pysedna.testing.http import RefusedError, fetch

_SECONDS = 10.0
_PROBE_SECONDS = 1.0
_OUT_OF_RANGE = 11  # gRPC's code: somebody has compacted that far already


def is_member(url: str, name: str) -> bool:
    """Whether the etcd of that name answers there: another one may have got the port. Raises OSError."""
    members = _ask(url, "/v3/cluster/member/list", {}, timeout=_PROBE_SECONDS).get("members", [])
    return any(member.get("name") == name for member in members)


def compact(url: str) -> int:
    """Forget all revisions before the present one, and give that one. Raises OSError.

    A revision is made first, so that every version that any client can have seen is among the forgotten.
    """
    key = base64.b64encode(b"pysedna/compacted").decode()
    revision = _ask(url, "/v3/kv/put", {"key": key, "value": ""})["header"]["revision"]
    try:
        _ask(url, "/v3/kv/compaction", {"revision": revision, "physical": True})
    except RefusedError as error:
        if json.loads(error.body).get("code") != _OUT_OF_RANGE:
            raise
    return int(revision)


def _ask(url: str, path: str, body: dict[str, Any], *, timeout: float = _SECONDS) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(fetch(url + path, body=json.dumps(body).encode(), timeout=timeout))
    return answer
