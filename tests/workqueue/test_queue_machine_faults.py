"""The kit finds faults: queues that are right but for one thing, each of which the machine must refuse.

The model itself, made a queue, is the one that is right; each fault is a subclass of it that breaks one rule.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from workqueue import Statistics, WorkQueue
from workqueue.aio import AsyncWorkQueue
from workqueue.testing import QueueModel, WorkQueueAdapter
from workqueue.testing.async_adapter import AsyncWorkQueueAdapter
from workqueue.testing.machine import RuleBroken, queue_machine
from workqueue.testing.model import Queued
from workqueue.testing.model_adapter import ModelAdapter

pytestmark = pytest.mark.slow  # all together; it is the kit that is tested, not the interpreter

MAX_AGE = 6.0


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
    find(queue_machine(ModelAdapter, max_priority_age=MAX_AGE, patience=0.0), 40)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_of_the_rules_is_found(fault: type[QueueModel]) -> None:
    with pytest.raises(RuleBroken):
        find(queue_machine(lambda: ModelAdapter(fault), max_priority_age=MAX_AGE, patience=0.0), 1000)


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
