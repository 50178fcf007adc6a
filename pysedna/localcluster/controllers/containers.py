"""One simulated container: the next state after its present one, as a kubelet would bring it about. Pure.

`advance` takes the container's status and the time, and returns the status it should have now and when to look again.
Times in a status have whole seconds; `Moments` remembers the exact ones (and the crashes in a row) between two looks. A
node that was restarted has none, and goes on from what the status says.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pysedna.controller import rfc3339

Json = dict[str, Any]
Moments = Mapping[str, float]
# A container that neither runs nor waits for any time would go on for ever within one look.
_STEPS = 64
KILLED = 143  # 128 + SIGTERM: what a container that does not handle the signal exits with


@dataclass(frozen=True, slots=True)
class Plan:
    """What a container is to do: start, run (None: for ever), exit; and whether and how it is restarted.

    `restart` is a pod's restartPolicy, or "Always" for a sidecar.
    """

    start_seconds: float
    run_seconds: float | None
    exit_code: int
    restart: str
    backoff_base: float
    backoff_max: float


@dataclass(frozen=True, slots=True)
class Look:
    """A container at one moment: its status, when to look again, and what to remember until then."""

    status: Json
    wake: float | None
    moments: dict[str, float]


def waiting(container: Mapping[str, Any], reason: str) -> Json:
    """The status of a container that has never run."""
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": False,
        "started": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": reason}},
        "lastState": {},
    }


def advance(status: Json, plan: Plan, now: float, moments: Moments, *, uid: str) -> Look:
    """The container at `now`: as many steps as are due."""
    remembered = dict(moments)
    for _ in range(_STEPS):
        following, wake = _step(status, plan, now, remembered, uid)
        if following is None:
            return Look(status, wake, remembered)
        status = following
    return Look(status, now + 0.05, remembered)


def stopped(status: Json, now: float) -> Json:
    """The status of a container that was told to stop: one that ran exits as if killed, one that never ran says so."""
    if "terminated" in status["state"]:
        return status
    started = status["state"].get("running", {}).get("startedAt")
    if started is None and status.get("lastState", {}).get("terminated"):
        return {**status, "state": status["lastState"], "ready": False, "started": False}
    ended = _terminated(status, KILLED, started or rfc3339(now), now)
    return {**status, "state": {"terminated": ended}, "ready": False, "started": False}


def exit_code(status: Mapping[str, Any]) -> int | None:
    """The exit code of a container that has ended and stays so; None for any other."""
    ended = status["state"].get("terminated")
    return None if ended is None else int(ended.get("exitCode", 0))


def is_running(status: Mapping[str, Any]) -> bool:
    """Whether the container runs."""
    return "running" in status["state"]


def seconds_of(stamp: str | None, default: float) -> float:
    """A time as the API writes it, in seconds of the wall clock; `default` if there is none that can be read."""
    try:
        return float(calendar.timegm(time.strptime((stamp or "")[:19], "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return default


def _step(
    status: Json, plan: Plan, now: float, moments: dict[str, float], uid: str
) -> tuple[Json | None, float | None]:
    """The next status if a step is due, else None and when it will be."""
    name, state = status["name"], status["state"]
    since = moments.setdefault(name, now if "waiting" in state else _since(state, now))
    if "running" in state:
        due = None if plan.run_seconds is None else since + plan.run_seconds
        return _when(due, now, lambda at: _exit(status, plan, at, moments))
    if "terminated" in state:
        if not _restarts(plan, int(state["terminated"].get("exitCode", 0))):
            return None, None
        return _after_exit(status, plan, now, moments, uid)
    if state["waiting"].get("reason") == "CrashLoopBackOff":
        due = since + _backoff(plan, int(_crashes(status, moments)))
        return _when(due, now, lambda at: _run(status, at, moments, uid, restarts=1))
    return _when(since + plan.start_seconds, now, lambda at: _run(status, at, moments, uid, restarts=0))


def _when(due: float | None, now: float, act: Any) -> tuple[Json | None, float | None]:
    if due is None or due > now:
        return None, due
    return act(due), None


def _since(state: Json, now: float) -> float:
    running = state.get("running")
    return seconds_of(running.get("startedAt"), now) if running else now


def _restarts(plan: Plan, code: int) -> bool:
    return plan.restart == "Always" or (plan.restart == "OnFailure" and code != 0)


def _run(status: Json, at: float, moments: dict[str, float], uid: str, *, restarts: int) -> Json:
    count = status["restartCount"] + restarts
    moments[status["name"]] = at
    return {
        **status,
        "state": {"running": {"startedAt": rfc3339(at)}},
        "ready": True,
        "started": True,
        "restartCount": count,
        "imageID": status.get("image", ""),
        "containerID": f"simulated://{uid}/{status['name']}/{count}",
    }


def _exit(status: Json, plan: Plan, at: float, moments: dict[str, float]) -> Json:
    name = status["name"]
    ran = at - moments[name]
    # A container that ran long enough is forgiven its earlier crashes, as a kubelet does after twice the longest wait.
    forgiven = ran >= 2 * plan.backoff_max
    moments[f"{name}/crashes"] = 0 if forgiven else _crashes(status, moments) + 1
    moments[name] = at
    ended = _terminated(status, plan.exit_code, status["state"]["running"]["startedAt"], at)
    return {**status, "state": {"terminated": ended}, "ready": False, "started": False}


def _after_exit(
    status: Json, plan: Plan, now: float, moments: dict[str, float], uid: str
) -> tuple[Json | None, float | None]:
    past = {**status, "lastState": {"terminated": status["state"]["terminated"]}}
    delay = _backoff(plan, int(_crashes(status, moments)))
    if delay > 0:
        message = f"back-off {delay:g}s restarting failed container={status['name']}"
        return {**past, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": message}}}, None
    due = moments[status["name"]] + plan.start_seconds
    return _when(due, now, lambda at: _run(past, at, moments, uid, restarts=1))


def _crashes(status: Json, moments: Moments) -> float:
    return moments.get(f"{status['name']}/crashes", status["restartCount"])


def _backoff(plan: Plan, crashes: int) -> float:
    if crashes <= 1:
        return 0.0
    return float(min(plan.backoff_max, plan.backoff_base * 2 ** min(crashes - 2, 30)))


def _terminated(status: Json, code: int, started: str, now: float) -> Json:
    ended = {
        "exitCode": code,
        "reason": "Completed" if code == 0 else "Error",
        "startedAt": started,
        "finishedAt": rfc3339(now),
    }
    if status.get("containerID"):
        ended["containerID"] = status["containerID"]
    return ended
