"""The queues of this package under the machine of the kit, each in every size: pure core, threads, asyncio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from workqueue.core import QueueState
from workqueue.errors import NotProcessing, UnknownItem
from workqueue.testing import WorkQueueAdapter
from workqueue.testing.adapter import Capabilities, QueueAdapter
from workqueue.testing.async_adapter import AsyncWorkQueueAdapter
from workqueue.testing.machine import queue_machine

MAX_AGE = 6.0


class StateAdapter(QueueAdapter):
    """The pure core. It has no rate limiter, nobody waits, and a drain is a question."""

    def __init__(self, max_priority_age: float | None = MAX_AGE) -> None:
        self.core: QueueState[int] = QueueState(max_priority_age=max_priority_age)
        self.now = 0.0

    def add(self, item: int, priority: int | None) -> None:
        self.core.add(item, priority, self.now)

    def add_after(self, item: int, delay: float, priority: int | None) -> None:
        self.core.add_after(item, delay, priority, self.now)

    def get(self, limit: int) -> list[int] | None:
        entries = [entry for _ in range(limit) if (entry := self.core.take(self.now)) is not None]
        return None if not entries and self.core.shutting_down else [entry.item for entry in entries]

    def done(self, item: int) -> bool:
        try:
            self.core.done(item, self.now)
        except NotProcessing:
            return False
        return True

    def cancel(self, item: int) -> bool:
        return self.core.cancel(item, self.now)

    def priority(self, item: int) -> int | None:
        try:
            return self.core.priority(item)
        except UnknownItem:
            assert not self.core.knows(item)
            return None

    def shut_down(self) -> None:
        self.core.shut_down(self.now)

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def numbers(self) -> Mapping[str, float]:
        for order, (held, live) in self.core.slots().items():
            assert live <= held <= 2 * live, f"dead slots outnumber the live ones: {order}"
        return asdict(self.core.statistics(self.now))


def test_the_core_keeps_the_rules() -> None:
    can = Capabilities(rate_limits=False, blocking=False, drain=False)
    machine = queue_machine(StateAdapter, capabilities=can, max_priority_age=MAX_AGE)
    run_state_machine_as_test(machine, settings=settings(max_examples=100, stateful_step_count=60, deadline=None))


def test_the_threads_queue_keeps_the_rules() -> None:
    machine = queue_machine(WorkQueueAdapter, max_priority_age=MAX_AGE)
    run_state_machine_as_test(machine, settings=settings(max_examples=100, stateful_step_count=60, deadline=None))


def test_the_asyncio_queue_keeps_the_rules() -> None:
    machine = queue_machine(AsyncWorkQueueAdapter, max_priority_age=MAX_AGE)
    run_state_machine_as_test(machine, settings=settings(max_examples=100, stateful_step_count=60, deadline=None))
