"""How simulated pods behave: the options of the simulated nodes, and what a pod's annotations change about them.

A pod says otherwise with annotations `simulate.pysedna.io/start-seconds`, `run-seconds`, `exit-code`, `stop-seconds`,
`init-seconds` and `init-exit-code`. A value that cannot be read is ignored: a simulated node has nobody to tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

PREFIX = "simulate.pysedna.io/"


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How the containers of a simulated node behave. Durations are seconds.

    `start_seconds`: from being created, or restarted, to running. `run_seconds`: from running to the exit with
    `exit_code`; None runs for ever. `init_seconds`, `init_exit_code`: the same for init containers.
    `stop_seconds`: from the wish to delete a pod to its end, if its grace period is not shorter. `backoff_base`,
    `backoff_max`: the wait before the second restart, doubled for each further one, as a kubelet does it (the
    first restart does not wait). `heartbeat_seconds`: how often a node says that it is ready.
    """

    start_seconds: float = 0.05
    run_seconds: float | None = None
    exit_code: int = 0
    stop_seconds: float = 0.05
    init_seconds: float = 0.0
    init_exit_code: int = 0
    backoff_base: float = 10.0
    backoff_max: float = 300.0
    heartbeat_seconds: float = 10.0

    def for_pod(self, annotations: Mapping[str, str]) -> NodeOptions:
        """These options with what the pod's annotations say."""
        changes: dict[str, float | int] = {}
        for name in ("start-seconds", "run-seconds", "stop-seconds", "init-seconds"):
            seconds = _number(annotations.get(PREFIX + name))
            if seconds is not None and seconds >= 0:
                changes[name.replace("-", "_")] = seconds
        for name in ("exit-code", "init-exit-code"):
            code = _number(annotations.get(PREFIX + name))
            if code is not None and 0 <= code <= 255 and code == int(code):
                changes[name.replace("-", "_")] = int(code)
        return replace(self, **changes) if changes else self  # type: ignore[arg-type]


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
