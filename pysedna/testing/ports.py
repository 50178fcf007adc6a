"""Loopback ports that are likely to stay free while a server is away for a restart.

A port that the kernel gives out (bind to 0) may be taken by any outgoing connection a moment later. Those below that
range are taken only by somebody who asks for them by number.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence

_FIRST, _LAST = 15_000, 29_999  # below the kernel's range of 32768..60999 and below Kubernetes' node ports
_TRIES = 200


def free_ports(count: int) -> Sequence[int]:
    """Different TCP ports of 127.0.0.1 on which nobody listens now. Raises OSError if it finds none."""
    chosen: list[int] = []
    generator = random.SystemRandom()  # tests that seed `random` alike would otherwise all try the same ports
    for _ in range(_TRIES):
        port = generator.randint(_FIRST, _LAST)
        if port not in chosen and _is_free(port):
            chosen.append(port)
            if len(chosen) == count:
                return chosen
    raise OSError(f"no {count} free ports between {_FIRST} and {_LAST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # as the servers do it: what is left of closed connections does not count
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
