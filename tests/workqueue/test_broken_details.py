"""Rounded times, None as an item, numbers of other types, names that are taken, and what the garbage collector ends."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from workqueue import AsyncWorkQueue, ItemExponentialFailureRateLimiter, Timeout, WorkQueue
from workqueue.metrics import PrometheusMetricsProvider
from workqueue.testing import FakeClock
from workqueue.testing.machine import queue_machine


def test_the_fake_clock_wakes_whoever_waits_until_the_time_that_it_reads(clock: FakeClock, background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 0.9)
    clock.advance(0.3)
    got = background.start(queue.get)
    clock.wait_for_sleepers(1)
    assert 0.3 + (0.9 - 0.3) > 0.9
    clock.advance(0.2)
    clock.advance(0.4)
    assert clock.now() == 0.9
    assert got() == "a"


def test_the_fake_clock_wakes_whoever_waits_for_so_many_seconds_as_it_moves() -> None:
    clock = FakeClock(1e9)
    assert (1e9 + 0.3) - 1e9 < 0.3
    clock.now()
    clock.advance(0.3)
    assert asyncio.run(clock.wait_async(asyncio.Event(), 0.3)) is False  # would block for ever otherwise


@pytest.mark.parametrize("turns", range(4))
def test_the_fake_clock_may_move_on_while_a_task_that_is_due_has_not_run(turns: int, clock: FakeClock) -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        task = asyncio.create_task(AsyncWorkQueue[str](clock=clock).get(1))
        await asyncio.sleep(0)
        clock.advance(1)
        for _ in range(turns):
            await asyncio.sleep(0)
        clock.advance(1)
        with pytest.raises(Timeout):
            await task

    failures: list[dict[str, Any]] = []
    asyncio.run(main())
    assert not failures


def test_none_is_an_item_like_any_other_to_a_limiter(clock: FakeClock) -> None:
    limiter: ItemExponentialFailureRateLimiter[int | None] = ItemExponentialFailureRateLimiter(1, 10, clock=clock)
    for item in (None, 1, 2, 3):
        limiter.when(item)
        clock.advance(21)
    limiter.when(4)
    assert len(limiter) == 1


class Three:
    def __index__(self) -> int:
        return 3


def test_a_limit_may_be_whatever_stands_for_an_integer(clock: FakeClock) -> None:
    queue: WorkQueue[int] = WorkQueue(clock=clock)
    for item in range(9):
        queue.add(item)
    assert queue.get_batch(Three()) == [0, 1, 2]  # type: ignore[arg-type]


def test_a_scrape_may_ask_for_metrics_by_their_names() -> None:
    provider = PrometheusMetricsProvider()
    queue: WorkQueue[str] = WorkQueue("q", metrics=provider)
    queue.add("a")
    scraped = generate_latest(provider.registry.restricted_registry(["workqueue_depth"]))
    assert b'workqueue_depth{name="q"} 1.0' in scraped
    assert b"workqueue_adds" not in scraped


def test_names_that_somebody_else_has_registered_are_refused() -> None:
    registry = CollectorRegistry()
    Gauge("workqueue_depth", "somebody else's", registry=registry)
    with pytest.raises(ValueError, match="workqueue_depth"):
        PrometheusMetricsProvider(registry)
    assert [metric.name for metric in registry.collect()] == ["workqueue_depth"]


def test_a_provider_is_unregistered_with_all_its_names() -> None:
    provider = PrometheusMetricsProvider()
    queue: WorkQueue[str] = WorkQueue("q", metrics=provider)
    queue.add("a")
    queue.done(queue.get())
    assert len(list(provider.registry.collect())) == 7
    provider.registry.unregister(provider)
    assert not list(provider.registry.collect())
    PrometheusMetricsProvider(provider.registry)


class Collecting:
    """Has the garbage collector run while the queue's lock is held, as any allocation may."""

    def __hash__(self) -> int:
        gc.collect()
        return 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("method", ["get", "shut_down_with_drain"])
def test_the_garbage_collector_may_end_a_task_of_a_closed_loop_while_the_queue_is_locked(
    method: str, background: Any
) -> None:
    queue: AsyncWorkQueue[object] = AsyncWorkQueue()
    queue.add("in process")
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, context: None)  # that a task was destroyed while it was pending

    async def waits(tasks: list[asyncio.Task[object]]) -> None:  # a cycle, for `tasks` has this one
        await getattr(queue, method)()

    async def leave_a_task_that_waits() -> weakref.ref[asyncio.Task[object]]:
        await queue.get()
        tasks: list[asyncio.Task[object]] = []
        tasks.append(asyncio.create_task(waits(tasks)))
        await asyncio.sleep(0)
        return weakref.ref(tasks[0])

    gc.disable()
    try:
        left = loop.run_until_complete(leave_a_task_that_waits())
        if method == "get":
            queue.add("a")
        else:
            queue.shut_down()
        loop.call_soon(loop.stop)
        loop.run_forever()  # one turn: the task is told, and does not come to run
        loop.close()
        assert left() is not None
        background.start(lambda: queue.cancel(Collecting()))()
        assert left() is None
    finally:
        gc.enable()
    assert len(queue) == (method == "get")


def test_an_adapter_of_another_class_is_told_what_it_lacks() -> None:
    with pytest.raises(TypeError, match=r"object has no priority\(\)"):
        queue_machine(object)()  # type: ignore[arg-type]
