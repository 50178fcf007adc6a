"""Programs of ours on client-go, in the Go module `clientgo`, and what is played to them and to ourselves.

A history of a work queue is a list of lines such as ``add_after a 5`` or ``add a @-100``: a step, its item, a number of
units of 1/512 of a second, and a priority after an @. The unit is exact both in Go's nanoseconds and in a float of
seconds, so answers are compared for equality, rates and durations too.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from pysedna.testing.binaries import WITHOUT_GO
from pysedna.testing.build import GoMissingError, find_go
from workqueue import (
    AsyncWorkQueue,
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    NotProcessing,
    RateLimiter,
    ShutDown,
    Timeout,
    WithMaxWaitRateLimiter,
    WorkQueue,
)
from workqueue.core import Statistics
from workqueue.metrics import QueueMetrics
from workqueue.testing import FakeClock

MODULE = Path(__file__).parent / "clientgo"
UNITS_PER_SECOND = 512
NANOSECONDS = 10**9 // UNITS_PER_SECOND
NO_ITEMS = (NOTHING, SHUT_DOWN, NOT_PROCESSING) = ("nothing", "shut down", "not processing")

T = TypeVar("T")
Build = Callable[..., Path]
Limiter = dict[str, Any]
Answer = dict[str, Any]
Play = Callable[..., list[list[Answer]]]


@pytest.fixture(scope="session")
def build_program(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """build_program("build" or "test", "-c" ..., package="./name") -> its path; skips where there is no Go."""
    folder = tmp_path_factory.mktemp("clientgo")

    def build(*command: str, package: str) -> Path:
        try:
            go = find_go()
        except GoMissingError:
            pytest.skip(f"a program on client-go is to be built: {WITHOUT_GO}")
        path = folder / Path(package).name
        arguments = [go, *command, "-trimpath", "-buildvcs=false", "-o", str(path), package]
        done = subprocess.run(arguments, cwd=MODULE, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return path

    return build


@pytest.fixture(scope="session")
def play_there(build_program: Build) -> Play:
    """Plays histories to client-go's typed rate limiting queue, or to controller-runtime's priority queue if asked to.

    Gives the answers to the steps of each history.
    """
    program = build_program("test", "-c", package="./workqueue")

    def play(histories: Iterable[tuple[Limiter, list[str]]], *, queue: str = "client-go") -> list[list[Answer]]:
        lines = [
            json.dumps(
                {"queue": queue, "limiter": _limiter_there(limiter), "steps": [_step_there(step) for step in steps]}
            )
            for limiter, steps in histories
        ]
        command = [str(program), "-test.timeout=100s"]
        done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr
        *answers, verdict = done.stdout.splitlines()
        assert verdict == "PASS"
        assert len(answers) == len(lines)
        return [json.loads(line) for line in answers]

    return play


@pytest.fixture(scope="session", params=[WorkQueue, AsyncWorkQueue])
def play_here(request: pytest.FixtureRequest) -> Iterator[Play]:
    """Plays histories to `WorkQueue`, in another run to `AsyncWorkQueue`; the answers have the same fields."""

    def play(histories: Iterable[tuple[Limiter, list[str]]]) -> list[list[Answer]]:
        answers = []
        for limiter, steps in histories:
            player = _Player(limiter, request.param, loop)
            answers.append([player.play(step) for step in steps])
        return answers

    loop = asyncio.new_event_loop()
    yield play
    loop.close()


@pytest.fixture(scope="session")
def limiter_here() -> Callable[[Limiter, FakeClock], RateLimiter[str]]:
    """Builds a rate limiter of ours from its description, whose durations are in units."""
    return _limiter_here


class _Step(NamedTuple):
    operation: str
    item: str
    units: int
    priority: int | None


def _parse(step: str) -> _Step:
    operation, *rest = step.split()
    priority = int(rest.pop().removeprefix("@")) if "@" in step else None
    units = int(rest.pop()) if operation in ("add_after", "advance") else 0
    return _Step(operation, rest[0] if rest else "", units, priority)


def _step_there(step: str) -> dict[str, Any]:
    operation, item, units, priority = _parse(step)
    return {"op": operation, "item": item, "for": units * NANOSECONDS, "priority": priority}


def _limiter_there(limiter: Limiter) -> dict[str, Any]:
    described = dict(limiter)
    for duration in ("base", "fast", "slow", "max"):
        if duration in limiter:
            described[duration] = limiter[duration] * NANOSECONDS
    described["of"] = [_limiter_there(one) for one in limiter.get("of", ())]
    return described


def _limiter_here(limiter: Limiter, clock: FakeClock) -> RateLimiter[str]:
    seconds = {name: limiter[name] / UNITS_PER_SECOND for name in ("base", "fast", "slow", "max") if name in limiter}
    inner = [_limiter_here(one, clock) for one in limiter.get("of", ())]
    match limiter["kind"]:
        case "exponential":
            return ItemExponentialFailureRateLimiter(seconds["base"], seconds["max"], clock=clock)
        case "fast slow":
            return ItemFastSlowRateLimiter(seconds["fast"], seconds["slow"], limiter["attempts"], clock=clock)
        case "bucket":
            return BucketRateLimiter(limiter["qps"], limiter["burst"], clock=clock)
        case "max wait":
            return WithMaxWaitRateLimiter(inner[0], seconds["max"])
        case "max of":
            return MaxOfRateLimiter(*inner)
    raise ValueError(f"no limiter of kind {limiter['kind']!r}")


class _Durations:
    """The metrics of one queue: what it reported since the last look."""

    def __init__(self) -> None:
        self._queued: list[float] = []
        self._worked: list[float] = []

    def queue(self, name: str, statistics: Callable[[], Statistics]) -> QueueMetrics:
        return self

    def observe_queue_duration(self, seconds: float) -> None:
        self._queued.append(seconds)

    def observe_work_duration(self, seconds: float) -> None:
        self._worked.append(seconds)

    def take(self) -> tuple[list[float], list[float]]:
        taken = self._queued, self._worked
        self._queued, self._worked = [], []
        return taken


class _Player:
    """A queue with its clock and what it reports. A drain is asked again after each step instead of waited for."""

    def __init__(
        self,
        limiter: Limiter,
        make: Callable[..., WorkQueue[str] | AsyncWorkQueue[str]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._loop = loop
        self._clock = FakeClock()
        self._durations = _Durations()
        self._queue = make(
            "replay",
            rate_limiter=None if limiter["kind"] == "default" else _limiter_here(limiter, self._clock),
            clock=self._clock,
            metrics=self._durations,
        )
        self._drains = 0
        self._drained = 0

    def play(self, step: str) -> Answer:
        parsed = _parse(step)
        result = self._do(parsed)
        if self._drains and self._wait(self._queue.shut_down_with_drain(timeout=0)):
            self._drained, self._drains = self._drained + self._drains, 0
        seen = self._queue.statistics()
        queued, worked = self._durations.take()
        return {
            "result": result,
            "priority": self._queue.priority(result) if result and result not in NO_ITEMS else 0,
            "len": len(self._queue),
            "shutting_down": self._queue.shutting_down,
            "drained": self._drained,
            "panicked": 0,
            "requeues": self._queue.num_requeues(parsed.item),
            "depth": seen.ready + seen.pending,
            "adds": seen.adds,
            "retries": seen.retries,
            "queued": queued,
            "worked": worked,
            "unfinished": seen.unfinished_seconds,
            "longest": seen.longest_processing,
        }

    def _wait(self, result: T | Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(result) if isinstance(result, Coroutine) else result

    def _do(self, step: _Step) -> str:
        item, seconds = step.item, step.units / UNITS_PER_SECOND
        match step.operation:
            case "add":
                self._queue.add(item, priority=step.priority)
            case "add_after":
                self._queue.add_after(item, seconds, priority=step.priority)
            case "add_rate_limited":
                self._queue.add_rate_limited(item, priority=step.priority)
            case "forget":
                self._queue.forget(item)
            case "advance":
                self._clock.advance(seconds)
            case "shut_down":
                self._queue.shut_down()
                self._drained, self._drains = self._drained + self._drains, 0
            case "shut_down_with_drain":
                self._drains += 1
            case "get" | "done":
                return self._take_or_end(step)
            case _:
                raise ValueError(f"no step {step.operation!r}")
        return ""

    def _take_or_end(self, step: _Step) -> str:
        try:
            if step.operation == "get":
                return self._wait(self._queue.get(timeout=0))
            self._queue.done(step.item)
        except Timeout:
            return NOTHING
        except ShutDown:
            return SHUT_DOWN
        except NotProcessing:
            return NOT_PROCESSING
        return ""
