"""The work queue against the original: histories are played to `WorkQueue` and to client-go's, which must answer alike.

The histories are drawn from what the two have in common: no priorities, no `cancel`, and nothing that
docs/workqueue.md names as a difference. Those differences are cases of their own, in test_workqueue_differences.py.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workqueue import RateLimiter
from workqueue.testing import FakeClock

Limiter = dict[str, Any]
Answer = dict[str, Any]
History = tuple[Limiter, list[str]]
Play = Callable[[list[History]], list[list[Answer]]]
BuildLimiter = Callable[[Limiter, FakeClock], RateLimiter[str]]

HISTORIES = 1000
LENGTH = 60
ITEMS = "abcdef"
UNITS_PER_SECOND = 512
WEIGHTS = {
    "add": 22.0,
    "add_after": 18.0,
    "add_rate_limited": 14.0,
    "get": 30.0,
    "done": 26.0,
    "forget": 3.0,
    "advance": 16.0,
    "shut_down": 0.5,
    "shut_down_with_drain": 2.0,
}
EXPONENTIAL = {"kind": "exponential", "base": 1, "max": 4096}
FAST_SLOW = {"kind": "fast slow", "fast": 2, "slow": 4096, "attempts": 3}
BUCKET = {"kind": "bucket", "qps": 64, "burst": 4}
LIMITERS: list[Limiter] = [
    EXPONENTIAL,
    FAST_SLOW,
    BUCKET,
    {"kind": "max wait", "max": 12, "of": [EXPONENTIAL]},
    {"kind": "max of", "of": [BUCKET, EXPONENTIAL, {"kind": "max wait", "max": 90, "of": [FAST_SLOW]}]},
]
LONGEST = 2 * 4096  # units: twice the longest delay; after that, the limiters here forget idle items


class Common:
    """What client-go's queue holds, as far as it must be known to stay within what both queues have in common."""

    def __init__(self, limiter: Limiter, leaps: bool, build_limiter: BuildLimiter) -> None:
        self._limiter = limiter
        self._leaps = leaps  # may time pass the moment at which something is due, or only reach it?
        self._build_limiter = build_limiter
        self._limited: list[tuple[int, str, str]] = []  # what the limiter was told, and when
        self._now = 0
        self._queued: list[str] = []
        self._dirty: set[str] = set()
        self._processing: list[str] = []
        self._waiting: dict[str, int] = {}
        self._shut_down = self._drained = False

    def draw(self, source: random.Random) -> str:
        """A step that is allowed now."""
        while True:
            operation = source.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            step = self._fill_in(operation, source)
            if self.allows(step):
                return step

    def _fill_in(self, operation: str, source: random.Random) -> str:
        match operation:
            case "add" | "add_rate_limited" | "forget":
                return f"{operation} {source.choice(ITEMS)}"
            case "add_after":
                return f"add_after {source.choice(ITEMS)} {source.choice((-1, 0, 1, 3, 8, source.randint(1, 500)))}"
            case "done":
                return f"done {source.choice(self._processing or [ITEMS[0]])}"
            case "advance":
                to_the_next = self._next_due() - self._now if self._waiting else 1
                return f"advance {source.choice((1, to_the_next, to_the_next, source.randint(0, 300)))}"
        return operation

    def allows(self, step: str) -> bool:
        """True if the two queues have this step in common, as things are."""
        match step.split():
            case "add", item:
                return item not in self._waiting
            case "add_after", item, delay:
                return self._allows_delay(item, int(delay))
            case "add_rate_limited", item:
                return not self._shut_down and self._allows_delay(item, self._delay(item))
            case "done", item:
                return item in self._processing
            case "advance", units:
                then = self._now + int(units)
                return then <= LONGEST and (self._leaps or then <= self._next_due())
            case ["shut_down"]:
                return not self._shut_down or self._drained
            case ["shut_down_with_drain"]:
                return not (self._queued or self._dirty or self._shut_down)
        return True

    def _allows_delay(self, item: str, delay: float) -> bool:
        if delay <= 0:
            return item not in self._waiting
        due = self._now + delay
        # Who is due at the same moment comes in no certain order in client-go.
        return item not in self._dirty and all(due != other for one, other in self._waiting.items() if one != item)

    def take(self, step: str) -> None:
        """Take a step that is allowed."""
        match step.split():
            case "add", item:
                self._add(item)
            case "add_after", item, delay:
                self._add_after(item, int(delay))
            case "add_rate_limited", item:
                delay_of_item = self._delay(item)
                self._limited.append((self._now, "when", item))
                self._add_after(item, delay_of_item)
            case "forget", item:
                self._limited.append((self._now, "forget", item))
            case ["get"] if self._queued:
                self._processing.append(self._queued.pop(0))
                self._dirty.discard(self._processing[-1])
            case "done", item:
                self._processing.remove(item)
                if item in self._dirty:
                    self._queued.append(item)
            case "advance", units:
                self._now += int(units)
                for item in sorted(self._waiting, key=self._waiting.__getitem__):
                    if self._waiting[item] <= self._now:
                        del self._waiting[item]
                        self._add(item)
            case [("shut_down" | "shut_down_with_drain") as operation]:
                self._drained = operation == "shut_down_with_drain"
                self._shut_down = True
                self._waiting.clear()

    def _add(self, item: str) -> None:
        if self._shut_down or item in self._dirty:
            return
        self._dirty.add(item)
        if item not in self._processing:
            self._queued.append(item)

    def _add_after(self, item: str, delay: float) -> None:
        if delay <= 0:
            self._add(item)
        elif not self._shut_down:
            self._waiting[item] = min(self._waiting.get(item, self._now + int(delay)), self._now + int(delay))

    def _delay(self, item: str) -> float:
        """What the limiter would say, in units."""
        clock = FakeClock()
        limiter = self._build_limiter(self._limiter, clock)
        for when, operation, other in [*self._limited, (self._now, "when", item)]:
            clock.advance(when / UNITS_PER_SECOND - clock.now())
            delay = limiter.forget(other) if operation == "forget" else limiter.when(other)
        assert delay is not None
        return delay * UNITS_PER_SECOND

    def _next_due(self) -> float:
        return min(self._waiting.values(), default=math.inf)


def leaps(number: int) -> bool:
    """Whether time leaps in the history of that number: in every second one."""
    return number % 2 == 0


@pytest.fixture(scope="module")
def histories(limiter_here: BuildLimiter) -> list[History]:
    """The same ones in every run."""
    drawn = []
    for number in range(HISTORIES):
        source = random.Random(number)
        limiter = LIMITERS[number % len(LIMITERS)]
        common = Common(limiter, leaps(number), limiter_here)
        steps = []
        for _ in range(LENGTH):
            steps.append(common.draw(source))
            common.take(steps[-1])
        drawn.append((limiter, steps))
    return drawn


def comparable(steps: list[str], answers: list[Answer], leaping: bool) -> list[Answer]:
    """Only what must be equal.

    client-go adds an item when its loop is woken, which a clock that leaps does later than the item was due: so how
    long an item was queued is compared where time does not leap. And client-go writes the two gauges every half second
    of its clock, until shutdown.
    """
    now, kept = 0, []
    for step, answer in zip(steps, answers, strict=True):
        ignored = {"queued"} if leaping else set()
        before = now
        if step.startswith("advance"):
            now += int(step.split()[1])
        half = UNITS_PER_SECOND // 2
        if before // half == now // half or answer["shutting_down"]:
            ignored |= {"unfinished", "longest"}
        kept.append({name: value for name, value in answer.items() if name not in ignored})
    return kept


def first_difference(steps: list[str], there: list[Answer], here: list[Answer], leaping: bool) -> int | None:
    both = zip(comparable(steps, there, leaping), comparable(steps, here, leaping), strict=True)
    return next((number for number, (one, other) in enumerate(both) if one != other), None)


class Comparison:
    """Plays to both and looks for differences."""

    def __init__(self, play_there: Play, play_here: Play, limiter_here: BuildLimiter) -> None:
        self._play_there = play_there
        self._play_here = play_here
        self._limiter_here = limiter_here

    def differing(self, histories: list[tuple[Limiter, list[str], bool]]) -> list[tuple[Limiter, list[str], bool]]:
        """Those in which the answers differ, cut off after the first difference."""
        plain = [(limiter, steps) for limiter, steps, _ in histories]
        found = []
        for (limiter, steps, leaping), there, here in zip(
            histories, self._play_there(plain), self._play_here(plain), strict=True
        ):
            number = first_difference(steps, there, here, leaping)
            if number is not None:
                found.append((limiter, steps[: number + 1], leaping))
        return found

    def shortest(self, limiter: Limiter, steps: list[str], leaping: bool) -> list[str]:
        """Leave out one step after the other as long as the answers still differ."""
        while True:
            shorter = [steps[:number] + steps[number + 1 :] for number in range(len(steps))]
            allowed = [(limiter, one, leaping) for one in shorter if self._allowed(limiter, one, leaping)]
            found = self.differing(allowed)
            if not found:
                return steps
            steps = min((one for _, one, _ in found), key=len)

    def _allowed(self, limiter: Limiter, steps: list[str], leaping: bool) -> bool:
        common = Common(limiter, leaping, self._limiter_here)
        for step in steps:
            if not common.allows(step):
                return False
            common.take(step)
        return True

    def report(self, limiter: Limiter, steps: list[str], leaping: bool) -> str:
        """The shortest history with the difference, and what the two sides answered to its last step."""
        steps = self.shortest(limiter, steps, leaping)
        (there,), (here,) = self._play_there([(limiter, steps)]), self._play_here([(limiter, steps)])
        lines = [f"    {step}" for step in steps]
        answers = [f"client-go: {there[-1]}", f"here:      {here[-1]}"]
        return "\n".join([f"with the limiter {limiter}", *lines, "the last step has different answers", *answers])


@pytest.mark.kube
@pytest.mark.slow
@pytest.mark.timeout(900)  # the first build compiles client-go
def test_a_thousand_histories_are_answered_as_client_go_does(
    histories: list[History], play_there: Play, play_here: Play, limiter_here: BuildLimiter
) -> None:
    comparison = Comparison(play_there, play_here, limiter_here)
    found = comparison.differing([(limiter, steps, leaps(n)) for n, (limiter, steps) in enumerate(histories)])
    if found:
        pytest.fail(f"{len(found)} of {len(histories)} histories differ, the first one {comparison.report(*found[0])}")


@pytest.mark.slow
def test_the_histories_reach_what_they_are_for(histories: list[History], play_here: Play) -> None:
    seen: Counter[str] = Counter()
    for (_, steps), answers in zip(histories, play_here(histories), strict=True):
        seen.update(step.split()[0] for step in steps)
        before: Answer = {"len": 0, "depth": 0, "drained": 0, "shutting_down": False}
        for step, answer in zip(steps, answers, strict=True):
            seen["an item"] += answer["result"] in ITEMS if answer["result"] else 0
            seen["nothing"] += answer["result"] == "nothing"
            seen["shut down"] += answer["result"] == "shut down"
            seen["an item after shutdown"] += bool(answer["queued"]) and answer["shutting_down"]
            seen["a re-run"] += step.startswith("done") and answer["len"] > before["len"]
            seen["due while in process"] += step.startswith("advance") and answer["depth"] - answer["len"] > (
                before["depth"] - before["len"]
            )
            seen["several due at once"] += step.startswith("advance") and answer["len"] - before["len"] > 1
            seen["a drain that waited"] += answer["drained"] > before["drained"] and before["shutting_down"]
            seen["many requeues"] += answer["requeues"] >= 4
            before = answer
    assert {name: count for name, count in seen.items() if count < 50} == {}
    assert len(seen) == len(WEIGHTS) + 9


def test_each_row_of_the_guide_s_table_is_a_case_of_its_own() -> None:
    here = Path(__file__)
    guide = (here.parent.parent.parent / "docs/workqueue.md").read_text()
    table = guide.split("## Differences from client-go")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?!what happens|---)([^|]+?) \|", table, re.MULTILINE)
    cases = re.findall(r"^def test_(\w+)", (here.parent / "test_workqueue_differences.py").read_text(), re.MULTILINE)
    assert sorted(re.sub(r"[ -]", "_", row.replace("`", "").lower()) for row in rows) == sorted(cases)
