"""The kit finds faults: queues that are right but for one thing, each of which the machine must refuse.

The model itself, made a queue, is the one that is right; each fault is a subclass of it that breaks one rule.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from workqueue import Statistics, WorkQueue
from workqueue.aio import AsyncWorkQueue
from workqueue.testing import Capabilities, QueueAdapter, QueueModel, WorkQueueAdapter
from workqueue.testing.async_adapter import AsyncWorkQueueAdapter
from workqueue.testing.machine import RuleBroken, queue_machine
from workqueue.testing.model import Queued

R = TypeVar("R")

MAX_AGE = 6.0


class Polled(Generic[R]):
    """A call that goes on whenever it is looked at. `answer` gives [] while it waits, else the result in a list."""

    def __init__(self, answer: Callable[[], list[R]]) -> None:
        self._answer = answer
        self._results = answer()

    def finished(self, timeout: float) -> bool:
        self._results = self._results or self._answer()
        return bool(self._results)

    def result(self) -> R:
        return self._results[0]


class ModelQueue(QueueAdapter):
    def __init__(self, make: Callable[..., QueueModel] = QueueModel, max_priority_age: float | None = MAX_AGE) -> None:
        self.model = make(max_priority_age=max_priority_age)
        self.shut_downs = 0

    def add(self, item: int, priority: int | None) -> None:
        self.model.add(item, priority)

    def add_after(self, item: int, delay: float, priority: int | None) -> None:
        self.model.add_after(item, delay, priority)

    def add_rate_limited(self, item: int, priority: int | None) -> None:
        self.model.add_rate_limited(item, priority)

    def get(self, limit: int) -> list[int] | None:
        items: list[int] = []
        while len(items) < limit and (item := self.model.next()) is not None:
            self.model.take(item)
            items.append(item)
        return None if not items and self.model.shutting_down else items

    def done(self, item: int) -> bool:
        if item not in self.model.running:
            return False
        self.model.done(item)
        return True

    def forget(self, item: int) -> None:
        self.model.forget(item)

    def num_requeues(self, item: int) -> int:
        return self.model.num_requeues(item)

    def priority(self, item: int) -> int | None:
        return self.model.priority(item)

    def cancel(self, item: int) -> bool:
        return self.model.cancel(item)

    def shut_down(self) -> None:
        self.shut_downs += 1
        self.model.shut_down()

    def advance(self, seconds: float) -> None:
        self.model.advance(seconds)

    def start_get(self, limit: int, timeout: float | None) -> Polled[list[int] | None]:
        over = self._over(timeout)

        def answer() -> list[list[int] | None]:
            items = self.get(limit)
            return [] if items == [] and not over() else [items]

        return Polled(answer)

    def start_drain(self, timeout: float | None) -> Polled[bool]:
        self.model.shut_down()
        over, shut_downs = self._over(timeout), self.shut_downs

        def answer() -> list[bool]:
            idle = self.model.idle
            return [idle] if idle or over() or self.shut_downs != shut_downs else []

        return Polled(answer)

    def _over(self, timeout: float | None) -> Callable[[], bool]:
        started = self.model.now
        return lambda: timeout is not None and self.model.now >= started + timeout

    def numbers(self) -> Mapping[str, float]:
        return self.model.numbers()


# -- faults of the rules


class HandedOutTwice(QueueModel):
    """An item in process is handed out to a second worker."""

    def ready(self) -> dict[int, Queued]:
        return {item: entry for item, entry in self.queued.items() if not entry.waits}


class RerunLost(QueueModel):
    def done(self, item: int) -> None:
        super().done(item)
        if item in self.queued and not self.queued[item].waits:
            del self.queued[item]


class AddWhileInProcessIgnored(QueueModel):
    def _add(self, item: int, delay: float, priority: int | None) -> None:
        if item not in self.running:
            super()._add(item, delay, priority)


class RunsTwiceForOneAdd(QueueModel):
    """client-go's: what waits still comes, although the item was added and handed out before."""

    def _add(self, item: int, delay: float, priority: int | None) -> None:
        waiting = self.waiting().get(item)
        super()._add(item, delay, priority)
        if waiting is not None and not waiting.waits:
            self.left_behind = getattr(self, "left_behind", set()) | {item}

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        for item in getattr(self, "left_behind", ()):
            super()._add(item, 0.0, None)
        self.left_behind: set[int] = set()


class LaterDueTimeWins(QueueModel):
    def _add(self, item: int, delay: float, priority: int | None) -> None:
        if item in self.waiting() and self.queued[item].due < self.now + delay:
            self.queued[item].due = self.now + delay
        super()._add(item, delay, priority)


class AddOfWhatWaitsIsIgnored(QueueModel):
    def _add(self, item: int, delay: float, priority: int | None) -> None:
        if item not in self.waiting():
            super()._add(item, delay, priority)


class EarlyByASecond(QueueModel):
    def _add(self, item: int, delay: float, priority: int | None) -> None:
        super()._add(item, delay - 1 if delay > 1 else delay, priority)


class RetryLosesPriority(QueueModel):
    def _add(self, item: int, delay: float, priority: int | None) -> None:
        super()._add(item, delay, 0 if priority is None else priority)


class RerunKeepsPriorityOfTheRun(QueueModel):
    def done(self, item: int) -> None:
        priority = self.running[item].priority
        super().done(item)
        if item in self.queued:
            self.queued[item].priority = max(self.queued[item].priority, priority)


class LastPriorityWins(QueueModel):
    def _add(self, item: int, delay: float, priority: int | None) -> None:
        super()._add(item, delay, priority)
        if item in self.queued and priority is not None:
            self.queued[item].priority = priority


class RiseKeepsItsPlace(QueueModel):
    def _add(self, item: int, delay: float, priority: int | None) -> None:
        place = self.queued[item].place if item in self.ready() else None
        super()._add(item, delay, priority)
        if place is not None:
            self.queued[item].place = place


class AddingAgainLosesThePlace(QueueModel):
    def _add(self, item: int, delay: float, priority: int | None) -> None:
        super()._add(item, delay, priority)
        if item in self.ready():
            self.queued[item].place = (self.now, self._calls)


class LastComesFirst(QueueModel):
    def _first(self) -> int:
        ready = self.ready()
        return max(ready, key=lambda item: (ready[item].priority, ready[item].place))


class AgesTooOften(QueueModel):
    """The longest-ready item has its turn after six others, not after seven."""

    def take(self, item: int) -> None:
        super().take(item)
        if self._since_aged == 6:
            self._since_aged = 7


class NeverAges(QueueModel):
    def _is_aged(self, item: int) -> bool:
        return False


class AgesTooEarly(QueueModel):
    """The age that counts is a second too low."""

    def _is_aged(self, item: int) -> bool:
        self.now += 1
        aged = super()._is_aged(item)
        self.now -= 1
        return aged


class AddingAgainResetsTheAge(QueueModel):
    def _add(self, item: int, delay: float, priority: int | None) -> None:
        super()._add(item, delay, priority)
        if item in self.ready():
            self.queued[item].ready_at = (self.now, self._calls)


class CancelLeavesTheEntry(QueueModel):
    def cancel(self, item: int) -> bool:
        return item in self.queued


class CancelForgetsTheRerun(QueueModel):
    def cancel(self, item: int) -> bool:
        return item not in self.pending() and super().cancel(item)


class CancelEndsTheRun(QueueModel):
    def cancel(self, item: int) -> bool:
        self.running.pop(item, None)
        return super().cancel(item)


class ForgetsNothing(QueueModel):
    def forget(self, item: int) -> None:
        pass


class DropsAllAtShutdown(QueueModel):
    """controller-runtime's: what is ready is not handed out any more."""

    def shut_down(self) -> None:
        super().shut_down()
        self.queued = self.pending()


class HandsOutWhatWaitsAfterShutdown(QueueModel):
    def shut_down(self) -> None:
        self.shutting_down = True


class AddsAfterShutdown(QueueModel):
    def add(self, item: int, priority: int | None = None) -> None:
        self._add(item, 0.0, priority)


class DrainForgetsWhatIsInProcess(QueueModel):
    @property
    def idle(self) -> bool:
        return not self.ready()


class DrainForgetsWhatIsReady(QueueModel):
    @property
    def idle(self) -> bool:
        return not self.running


class DrainNeverEnds(QueueModel):
    @property
    def idle(self) -> bool:
        return False


class DepthIsWithoutReruns(QueueModel):
    def numbers(self) -> dict[str, float]:
        return {**super().numbers(), "workqueue_depth": len(self.ready())}


class CountsWhatIsThereAlready(QueueModel):
    def _add(self, item: int, delay: float, priority: int | None) -> None:
        self._adds += item in self.queued
        super()._add(item, delay, priority)


FAULTS = [fault for fault in QueueModel.__subclasses__() if fault.__module__ == __name__]


def find(machine: type, examples: int) -> None:
    """Run without shrinking: only whether something is found matters, and always in the same way."""
    how = settings(max_examples=examples, stateful_step_count=80, derandomize=True, database=None, deadline=None)
    run_state_machine_as_test(machine, settings=settings(how, phases=[Phase.generate]))


def test_the_model_keeps_its_own_rules() -> None:
    find(queue_machine(ModelQueue, max_priority_age=MAX_AGE, patience=0.0), 40)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_of_the_rules_is_found(fault: type[QueueModel]) -> None:
    with pytest.raises(RuleBroken):
        find(queue_machine(lambda: ModelQueue(fault), max_priority_age=MAX_AGE, patience=0.0), 1000)


# -- faults of queues that wait


class Unwoken(WorkQueue[int]):
    """Nobody who waits is told of a new item."""

    def _wake_getter(self) -> None:
        pass


class UnwokenAtShutdown(WorkQueue[int]):
    def _wake_getters(self) -> None:
        pass


class UnwokenDrain(WorkQueue[int]):
    def _wake_drainers(self) -> None:
        pass


class NobodyKeepsTime(WorkQueue[int]):
    """Whoever waits sleeps on when something becomes due."""

    def _sleep(self, now: float, until: float) -> None:
        self._clock.wait(self._available, None if until == float("inf") else until - now)


class DrainDoesNotWait(WorkQueue[int]):
    def shut_down_with_drain(self, timeout: float | None = None) -> bool:
        self.shut_down()
        return True


class StatisticsForgetReruns(WorkQueue[int]):
    """And so do the metrics, the depth among them."""

    def statistics(self) -> Statistics:
        return replace(super().statistics(), pending=0)


class UnwokenTask(AsyncWorkQueue[int]):
    def _wake_getter(self) -> None:
        pass


class UnwokenDrainOfTasks(AsyncWorkQueue[int]):
    def _wake_drainers(self) -> None:
        pass


@pytest.mark.parametrize("fault", WorkQueue.__subclasses__(), ids=lambda fault: fault.__name__)
def test_a_fault_of_a_queue_with_threads_is_found(fault: type[WorkQueue[int]]) -> None:
    with pytest.raises(RuleBroken):
        find(queue_machine(lambda: WorkQueueAdapter(fault), max_priority_age=MAX_AGE, patience=0.2), 300)


@pytest.mark.parametrize("fault", AsyncWorkQueue.__subclasses__(), ids=lambda fault: fault.__name__)
def test_a_fault_of_an_asyncio_queue_is_found(fault: type[AsyncWorkQueue[int]]) -> None:
    with pytest.raises(RuleBroken):
        find(queue_machine(lambda: AsyncWorkQueueAdapter(fault), max_priority_age=MAX_AGE, patience=0.0), 300)


# -- what the user sees


def test_a_failure_tells_the_shortest_story() -> None:
    class Silent(ModelQueue):
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
    assert len(story) < 12


def test_an_error_of_the_queue_itself_is_told_with_the_story() -> None:
    class Failing(QueueModel):
        def cancel(self, item: int) -> bool:
            raise OSError("out of order")

    with pytest.raises(OSError, match="out of order") as failure:
        find(queue_machine(lambda: ModelQueue(Failing), patience=0.0), 100)
    assert "cancel(" in failure.value.__notes__[0]


def test_a_name_of_a_number_that_nobody_knows_is_refused() -> None:
    class Misspelt(ModelQueue):
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


def without(*methods: str) -> type[ModelQueue]:
    return type("Smaller", (ModelQueue,), {name: getattr(QueueAdapter, name) for name in methods})


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


class OneByOne(ModelQueue):
    def get(self, limit: int) -> list[int] | None:
        assert limit == 1
        return super().get(limit)


class Trusting(ModelQueue):
    def done(self, item: int) -> bool:
        super().done(item)
        return True


@pytest.mark.parametrize(
    ("make", "off", "max_age"),
    [
        (OneByOne, {"batches": False}, MAX_AGE),
        (Trusting, {"misuse": False}, MAX_AGE),
        (lambda: ModelQueue(LastComesFirst), {"order": False}, None),
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
