"""The queue's state against a model that is too simple to be wrong: it scans lists."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from workqueue.core import QueueState

MAX_AGE = 6
ITEMS = st.integers(0, 7)
PRIORITIES = st.one_of(st.none(), st.integers(-2, 2))


@dataclass
class Queued:
    """The queued form of an item: pending or ready if `due` is None, otherwise waiting."""

    priority: int
    due: int | None = None
    place: tuple[int, int] = (0, 0)  # within the priority: when it came there, and by which call
    ready_at: tuple[int, int] = (0, 0)


class Model:
    def __init__(self) -> None:
        self.queued: dict[int, Queued] = {}
        self.running: dict[int, int] = {}
        self.calls = 0
        self.since_aged = 0
        self.dropped = 0
        self.closed = False

    def ready(self) -> dict[int, Queued]:
        return {item: one for item, one in self.queued.items() if one.due is None and item not in self.running}

    def promote(self, now: int) -> None:
        for one in self.queued.values():
            if one.due is not None and one.due <= now:
                one.place = one.ready_at = (one.due, one.ready_at[1])
                one.due = None

    def add(self, item: int, delay: int, priority: int | None, now: int) -> None:
        self.calls += 1
        if self.closed:
            self.dropped += 1
            return
        self.promote(now)
        wanted = self.running.get(item, 0) if priority is None else priority
        one = self.queued.get(item)
        if one is None:
            one = self.queued[item] = Queued(wanted, due=now + delay, ready_at=(0, self.calls))
        else:
            if wanted > one.priority:
                one.priority = wanted
                one.place = (now, self.calls)
            if one.due is not None and now + max(delay, 0) < one.due:
                one.due, one.ready_at = now + delay, (0, self.calls)
        if one.due is not None and delay <= 0:
            one.due = None
            one.place = one.ready_at = (now, self.calls)

    def next(self, now: int) -> int | None:
        self.promote(now)
        ready = self.ready()
        if not ready:
            return None
        regular = min(ready, key=lambda item: (-ready[item].priority, ready[item].place))
        oldest = min(ready, key=lambda item: ready[item].ready_at)
        if oldest != regular and self.since_aged >= 7 and now - ready[oldest].ready_at[0] > MAX_AGE:
            self.since_aged = 0
            return oldest
        self.since_aged += 1
        return regular

    def take(self, now: int) -> int | None:
        item = self.next(now)
        if item is not None:
            self.running[item] = self.queued.pop(item).priority
        return item

    def done(self, item: int, now: int) -> None:
        self.calls += 1
        self.promote(now)
        del self.running[item]
        one = self.queued.get(item)
        if one is not None and one.due is None:
            one.place = one.ready_at = (now, self.calls)

    def close(self, now: int) -> None:
        self.promote(now)
        waiting = [item for item, one in self.queued.items() if one.due is not None]
        for item in waiting:
            del self.queued[item]
        self.dropped += len(waiting)
        self.closed = True


class CoreAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.core: QueueState[int] = QueueState(max_priority_age=MAX_AGE)
        self.model = Model()
        self.now = 0

    @rule(item=ITEMS, priority=PRIORITIES)
    def add(self, item: int, priority: int | None) -> None:
        self.core.add(item, priority, self.now)
        self.model.add(item, 0, priority, self.now)

    @rule(item=ITEMS, delay=st.integers(-1, 5), priority=PRIORITIES)
    def add_after(self, item: int, delay: int, priority: int | None) -> None:
        self.core.add_after(item, delay, priority, self.now)
        self.model.add(item, delay, priority, self.now)

    @rule()
    def take(self) -> None:
        entry = self.core.take(self.now)
        assert (None if entry is None else entry.item) == self.model.take(self.now)

    @rule(count=st.integers(1, 9))
    def take_and_finish_several(self, count: int) -> None:
        for _ in range(count):
            entry = self.core.take(self.now)
            item = self.model.take(self.now)
            assert (None if entry is None else entry.item) == item
            if item is not None:
                self.core.done(item, self.now)
                self.model.done(item, self.now)

    @precondition(lambda self: self.model.running)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(sorted(self.model.running)))
        self.core.done(item, self.now)
        self.model.done(item, self.now)

    @rule(item=ITEMS)
    def cancel(self, item: int) -> None:
        assert self.core.cancel(item) == (self.model.queued.pop(item, None) is not None)

    @rule(seconds=st.integers(0, 4))
    def advance(self, seconds: int) -> None:
        self.now += seconds

    @precondition(lambda self: self.now > 20)
    @rule()
    def shut_down(self) -> None:
        self.core.shut_down(self.now)
        self.model.close(self.now)

    @rule()  # not an invariant, because it moves what is due
    def the_counts_agree(self) -> None:
        seen = self.core.statistics(self.now)
        self.model.promote(self.now)
        waiting = [one.due for one in self.model.queued.values() if one.due is not None]
        ready = self.model.ready()
        assert seen.ready == len(ready)
        assert seen.waiting == len(waiting)
        assert seen.processing == len(self.model.running)
        assert seen.pending == len(self.model.queued) - len(ready) - len(waiting)
        assert seen.dropped == self.model.dropped
        assert self.core.next_due() == min(waiting, default=math.inf)
        assert seen.oldest_age == max([self.now - one.ready_at[0] for one in ready.values()], default=0)

    @invariant()
    def the_priorities_agree(self) -> None:
        for item in set(self.model.queued) | set(self.model.running):
            expected = self.model.running.get(item)
            assert self.core.priority(item) == (self.model.queued[item].priority if expected is None else expected)
            assert self.core.knows(item)

    @invariant()
    def dead_slots_never_outnumber_the_live_ones(self) -> None:
        for order, (held, live) in self.core.slots().items():
            assert live <= held <= 2 * live, order


TestCoreAgainstModel = CoreAgainstModel.TestCase
TestCoreAgainstModel.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
