"""The kit as its users see it: what a failure tells, and queues that can do less."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from workqueue.testing import Capabilities, QueueAdapter, QueueModel
from workqueue.testing.machine import RuleBroken, queue_machine
from workqueue.testing.model import Queued
from workqueue.testing.model_adapter import ModelAdapter

MAX_AGE = 6.0


class HandedOutTwice(QueueModel):
    """An item in process is handed out to a second worker."""

    def ready(self) -> dict[int, Queued]:
        return {item: entry for item, entry in self.queued.items() if not entry.waits}


class LastComesFirst(QueueModel):
    def _first(self) -> int:
        ready = self.ready()
        return max(ready, key=lambda item: (ready[item].priority, ready[item].place))


def find(machine: type, examples: int) -> None:
    """Run without shrinking: only whether something is found matters, and always in the same way."""
    how = settings(max_examples=examples, stateful_step_count=80, derandomize=True, database=None, deadline=None)
    run_state_machine_as_test(machine, settings=settings(how, phases=[Phase.generate]))


# -- what the user sees


def test_a_failure_tells_a_short_story() -> None:
    class Silent(ModelAdapter):
        def numbers(self) -> Mapping[str, float]:
            return {}

    can = Capabilities(priorities=False, delays=False, rate_limits=False, cancel=False, blocking=False, drain=False)
    machine = queue_machine(lambda: Silent(HandedOutTwice, None), capabilities=can)
    how = settings(stateful_step_count=20, derandomize=True, database=None, deadline=None)
    with pytest.raises(RuleBroken) as failure:
        run_state_machine_as_test(machine, settings=settings(how, phases=[Phase.generate, Phase.shrink]))
    story = str(failure.value).splitlines()
    assert "0 was handed out to two workers at once" in story[0]
    assert "   1  t=0  add(0)" in story
    assert any("get(1) -> [0]" in line for line in story)
    assert "0 in process since t=0, priority 0" in story
    assert len(story) < 20


def test_an_error_of_the_queue_itself_is_told_with_the_story() -> None:
    class Failing(QueueModel):
        def cancel(self, item: int) -> bool:
            raise OSError("out of order")

    with pytest.raises(OSError, match="out of order") as failure:
        find(queue_machine(lambda: ModelAdapter(Failing), patience=0.0), 100)
    assert "cancel(" in failure.value.__notes__[0]


def test_a_name_of_a_number_that_nobody_knows_is_refused() -> None:
    class Misspelt(ModelAdapter):
        def numbers(self) -> Mapping[str, float]:
            return {"redy": 0}

    with pytest.raises(TypeError, match="redy"):
        find(queue_machine(Misspelt, patience=0.0), 50)


# -- what a queue cannot do


NEEDS = {
    "priorities": ["priority"],
    "delays": ["add_after"],
    "rate_limits": ["add_rate_limited", "forget", "num_requeues"],
    "cancel": ["cancel"],
    "blocking": ["start_get"],
    "drain": ["start_drain"],
}


def without(*methods: str) -> type[ModelAdapter]:
    return type("Smaller", (ModelAdapter,), {name: getattr(QueueAdapter, name) for name in methods})


@pytest.mark.parametrize("capability", NEEDS)
def test_what_is_switched_off_is_never_called(capability: str) -> None:
    can = replace(Capabilities(), **{capability: False})
    smaller = without(*NEEDS[capability])
    find(queue_machine(smaller, capabilities=can, max_priority_age=MAX_AGE, patience=0.0), 12)


@pytest.mark.parametrize("method", [name for names in NEEDS.values() for name in names])
def test_a_method_that_is_missing_is_named_at_once(method: str) -> None:
    with pytest.raises(TypeError, match=rf"Smaller has no {method}\(\)"):
        find(queue_machine(without(method), patience=0.0), 1)


def test_a_queue_without_time_needs_no_advance() -> None:
    timeless = without("advance", "add_after", "add_rate_limited", "forget", "num_requeues")
    can = Capabilities(delays=False, rate_limits=False)
    find(queue_machine(lambda: timeless(max_priority_age=None), capabilities=can, patience=0.0), 30)
    with pytest.raises(TypeError, match="no advance"):
        find(queue_machine(timeless, capabilities=can, max_priority_age=MAX_AGE, patience=0.0), 1)


class OneByOne(ModelAdapter):
    def get(self, limit: int) -> list[int] | None:
        assert limit == 1
        return super().get(limit)


class Trusting(ModelAdapter):
    def done(self, item: int) -> bool:
        super().done(item)
        return True


@pytest.mark.parametrize(
    ("make", "off", "max_age"),
    [
        (OneByOne, {"batches": False}, MAX_AGE),
        (Trusting, {"misuse": False}, MAX_AGE),
        (lambda: ModelAdapter(LastComesFirst), {"order": False}, None),
    ],
    ids=["batches", "misuse", "order"],
)
def test_a_smaller_queue_passes_only_with_its_capability_off(
    make: Callable[[], QueueAdapter], off: dict[str, bool], max_age: float | None
) -> None:
    can = replace(Capabilities(), **off)
    find(queue_machine(make, capabilities=can, max_priority_age=max_age, patience=0.0), 15)
    with pytest.raises(AssertionError):
        find(queue_machine(make, max_priority_age=max_age, patience=0.0), 300)


def test_without_hypothesis_only_the_machine_is_missing() -> None:
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import workqueue.testing\n"
        "try: import workqueue.testing.machine\n"
        "except ImportError as error: print(error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "workqueue.testing.machine needs hypothesis" in shown
    assert "pip install hypothesis" in shown
