"""Priorities against the original: drawn histories are played to our queue and to controller-runtime's priority queue.

They are drawn from what the two have in common, which excludes re-runs (they stand elsewhere), adds of waiting items
(likewise) and shutdown (which drops what is ready): see docs/workqueue.md. Every add has a priority of its own.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

Answer = dict[str, Any]
Play = Callable[..., list[list[Answer]]]

pytestmark = pytest.mark.slow

HISTORIES = 1000
LENGTH = 60
ITEMS = "abcdefgh"
PRIORITIES = (-100, -1, 0, 0, 1, 7)
LONGEST_DELAY = 64  # units
LIMITER = {"kind": "exponential", "base": 1, "max": LONGEST_DELAY}
LONGEST = 2 * LONGEST_DELAY  # after that, the limiter here forgets idle items
WEIGHTS = {"add": 30.0, "add_after": 24.0, "add_rate_limited": 10.0, "get": 26.0, "done": 22.0, "advance": 16.0}
ONLY_AT_HALF_SECONDS = ("unfinished", "longest")


class Common:
    """What the queues hold, as far as it must be known to stay within what both have in common."""

    def __init__(self) -> None:
        self._now = 0
        self._failures: Counter[str] = Counter()
        self._ready: dict[str, tuple[int, int]] = {}  # the lowest is handed out next
        self._processing: list[str] = []
        self._waiting: dict[str, tuple[int, int]] = {}  # due, priority
        self._counter = 0

    def draw(self, source: random.Random) -> str:
        """A step that is allowed now."""
        while True:
            operation = source.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            item, priority = source.choice(ITEMS), source.choice(PRIORITIES)
            match operation:
                case "add" if item not in self._processing and item not in self._waiting:
                    return f"add {item} @{priority}"
                case "add_after" if self._allows_delay(item, delay := source.randint(1, 30)):
                    return f"add_after {item} {delay} @{priority}"
                case "add_rate_limited" if self._allows_delay(item, self._delay(item)):
                    return f"add_rate_limited {item} @{priority}"
                case "get":
                    return "get"
                case "done" if self._processing:
                    return f"done {source.choice(self._processing)}"
                case "advance" if self._allows_advance(units := source.choice((1, 1, 3, source.randint(0, 20)))):
                    return f"advance {units}"

    def _allows_delay(self, item: str, delay: int) -> bool:
        return all(due != self._now + delay for other, (due, _) in self._waiting.items() if other != item)

    def _allows_advance(self, units: int) -> bool:
        then = self._now + units
        return then <= LONGEST and all(self._waiting.get(item, (math.inf,))[0] > then for item in self._processing)

    def _delay(self, item: str) -> int:
        return min(2 ** self._failures[item], LONGEST_DELAY)

    def take(self, step: str) -> None:
        """Take a step that was drawn."""
        operation, *words = step.replace("@", "").split()
        match operation, words:
            case "add", (item, priority):
                self._make_ready(item, int(priority))
            case "add_after", (item, delay, priority):
                self._delay_until(item, self._now + int(delay), int(priority))
            case "add_rate_limited", (item, priority):
                self._delay_until(item, self._now + self._delay(item), int(priority))
                self._failures[item] += 1
            case "get", () if self._ready:
                self._processing.append(min(self._ready, key=self._ready.__getitem__))
                del self._ready[self._processing[-1]]
            case "done", (item,):
                self._processing.remove(item)
            case "advance", (units,):
                self._now += int(units)
                for item, (due, priority_then) in sorted(self._waiting.items(), key=lambda entry: entry[1]):
                    if due <= self._now:
                        del self._waiting[item]
                        self._make_ready(item, priority_then)

    def _make_ready(self, item: str, priority: int) -> None:
        if item not in self._ready or -priority < self._ready[item][0]:
            self._counter += 1
            self._ready[item] = (-priority, self._counter)

    def _delay_until(self, item: str, due: int, priority: int) -> None:
        if item in self._ready:
            self._make_ready(item, priority)
        else:
            earlier, higher = self._waiting.get(item, (due, priority))
            self._waiting[item] = (min(due, earlier), max(priority, higher))


@pytest.fixture(scope="module")
def histories() -> list[list[str]]:
    """The same ones in every run."""
    drawn = []
    for number in range(HISTORIES):
        source, common = random.Random(number), Common()
        steps = []
        for _ in range(LENGTH):
            steps.append(common.draw(source))
            common.take(steps[-1])
        drawn.append(steps)
    return drawn


def comparable(answer: Answer) -> Answer:
    """Only what must be equal: controller-runtime writes two gauges every half second."""
    return {name: value for name, value in answer.items() if name not in ONLY_AT_HALF_SECONDS}


@pytest.mark.kube
@pytest.mark.timeout(900)  # the first build compiles controller-runtime
def test_a_thousand_histories_are_answered_as_controller_runtime_does(
    histories: list[list[str]], play_there: Play, play_here: Play
) -> None:
    played = [(LIMITER, steps) for steps in histories]
    there, here = play_there(played, queue="controller-runtime"), play_here(played)
    for steps, answers, ours in zip(histories, there, here, strict=True):
        for number, (answer, our) in enumerate(zip(answers, ours, strict=True)):
            if comparable(answer) != comparable(our):
                story = "\n".join(f"    {step}" for step in steps[: number + 1])
                pytest.fail(f"the last step has different answers\n{story}\ncontroller-runtime: {answer}\nhere: {our}")


def test_the_histories_reach_what_they_are_for(histories: list[list[str]], play_here: Play) -> None:
    seen: Counter[str] = Counter()
    for steps, answers in zip(histories, play_here([(LIMITER, steps) for steps in histories]), strict=True):
        seen.update(step.split()[0] for step in steps)
        seen.update(f"a run of priority {answer['priority']}" for answer in answers if answer["queued"])
        for step, before, answer in zip(steps[1:], answers[:-1], answers[1:], strict=True):
            seen["several due at once"] += step.startswith("advance") and answer["len"] - before["len"] > 1
            seen["several to choose from"] += bool(answer["queued"]) and before["len"] > 3
    assert {name: count for name, count in seen.items() if count < 100} == {}
    assert len(seen) == len(WEIGHTS) + len(set(PRIORITIES)) + 2
