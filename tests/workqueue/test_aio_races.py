"""`AsyncWorkQueue` where it is hard: cancelled tasks, other threads, several loops."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from workqueue import AsyncWorkQueue, ShutDown, Timeout
from workqueue.testing import FakeClock

LONG = 20.0


async def settle() -> None:
    """Let every task run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def start(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return asyncio.create_task(coroutine)


# -- cancellation


def test_a_task_cancelled_when_it_was_told_to_look_has_taken_nothing_and_tells_the_next() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        first, second = start(queue.get()), start(queue.get())
        await settle()
        queue.add("a")
        first.cancel()  # it was told, and has not run since
        assert await second == "a"
        assert first.cancelled()
        assert queue.statistics().processing == 1

    asyncio.run(main())


def test_without_another_task_the_item_of_a_cancelled_one_stays_ready() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        task = start(queue.get())
        await settle()
        queue.add("a")
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        seen = queue.statistics()
        assert (seen.ready, seen.processing, seen.gets) == (1, 0, 0)
        assert await queue.get(timeout=0) == "a"

    asyncio.run(main())


def test_a_cancelled_time_keeper_passes_its_duty_on() -> None:
    async def main() -> None:
        clock = FakeClock()
        queue: AsyncWorkQueue[str] = AsyncWorkQueue(clock=clock)
        queue.add_after("a", 3)
        keeper, other = start(queue.get()), start(queue.get())
        await settle()
        keeper.cancel()
        await settle()
        assert clock.sleepers() == 1
        clock.advance(3)
        assert await other == "a"

    asyncio.run(main())


@pytest.mark.parametrize("added_first", [True, False])
def test_a_timeout_of_asyncio_that_fires_as_an_item_comes_loses_no_item(added_first: bool) -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        loop = asyncio.get_running_loop()
        item = None
        try:
            async with asyncio.timeout(None) as limit:
                steps = [lambda: queue.add("a"), lambda: limit.reschedule(loop.time())]
                for step in steps if added_first else reversed(steps):
                    loop.call_soon(step)
                item = await queue.get()
        except TimeoutError:
            assert item is None
            assert queue.statistics().ready == 1
        else:
            assert item == "a"
            assert queue.statistics().processing == 1

    asyncio.run(main())


def test_wait_for_that_gives_up_leaves_nothing_in_process() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 0.001)
        queue.add("a")
        assert await asyncio.wait_for(queue.get(), LONG) == "a"

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_cancelled_when_each_item_is_handed_to_one_task(seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        clock = FakeClock()
        queue: AsyncWorkQueue[int] = AsyncWorkQueue(clock=clock)
        got: list[int] = []

        async def take() -> None:
            got.extend(await queue.get_batch(chance.randint(1, 2), timeout=chance.choice([None, 1.0, 2.0])))

        tasks: list[asyncio.Task[None]] = []
        for item in range(200):
            tasks += [start(take()) for _ in range(chance.randint(0, 2))]
            if chance.random() < 0.5:
                await asyncio.sleep(0)
            if chance.random() < 0.5:
                queue.add(item)
            else:
                queue.add_after(item, chance.choice([0.5, 1.0]))
            if tasks and chance.random() < 0.5:
                chance.choice(tasks).cancel()
            if chance.random() < 0.2:
                clock.advance(0.5)
        clock.advance(5)
        await settle()
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(one) for one in outcomes} <= {type(None), asyncio.CancelledError, Timeout}
        assert queue.statistics().processing == len(got)
        left = await queue.get_batch(200, timeout=0) if len(queue) else []
        assert sorted(got + left) == list(range(200))
        assert clock.sleepers() == 0

    asyncio.run(main())


# -- threads and loops


def test_a_thread_wakes_the_task_that_waits() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        for step in (lambda: queue.add("a"), lambda: queue.add_after("a", 0.001), lambda: queue.add_rate_limited("a")):
            task = start(queue.get())
            await settle()
            await asyncio.to_thread(step)
            async with asyncio.timeout(LONG):
                assert await task == "a"
            await asyncio.to_thread(queue.done, "a")
        task = start(queue.get())
        await settle()
        await asyncio.to_thread(queue.shut_down)
        async with asyncio.timeout(LONG):
            with pytest.raises(ShutDown):
                await task

    asyncio.run(main())


def test_a_thread_that_is_done_or_cancels_ends_a_drain() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        queue.add("running")
        await queue.get()
        queue.add("ready")
        drain = start(queue.shut_down_with_drain())
        await settle()
        await asyncio.to_thread(queue.done, "running")
        await asyncio.to_thread(queue.cancel, "ready")
        async with asyncio.timeout(LONG):
            assert await drain is True

    asyncio.run(main())


def test_tasks_of_several_loops_share_a_queue(background: Any) -> None:
    queue: AsyncWorkQueue[int] = AsyncWorkQueue()

    async def work() -> list[int]:
        seen = []
        try:
            while True:
                async with queue.processing() as item:
                    seen.append(item)
                    await asyncio.sleep(0)
        except ShutDown:
            return seen

    async def team() -> list[int]:
        return [item for seen in await asyncio.gather(work(), work()) for item in seen]

    results = [background.start(lambda: asyncio.run(team())) for _ in range(3)]
    for item in range(500):
        queue.add(item)
    assert asyncio.run(queue.shut_down_with_drain(timeout=LONG))
    assert sorted(item for result in results for item in result()) == list(range(500))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_a_loop_closed_with_a_task_that_waits_costs_the_others_nothing() -> None:
    clock = FakeClock()
    queue: AsyncWorkQueue[str] = AsyncWorkQueue(clock=clock)
    queue.add_after("b", 1)
    careless = asyncio.new_event_loop()
    left = careless.create_task(queue.get())
    careless.run_until_complete(settle())
    left._log_destroy_pending = False  # type: ignore[attr-defined]  # the carelessness is the point
    careless.close()

    async def main() -> None:
        tasks = [start(queue.get()) for _ in range(2)]
        await settle()
        queue.add("a")  # tells the closed loop, in vain, and the next one instead
        assert await tasks[0] == "a"
        await settle()  # the other keeps the time now
        clock.advance(1)
        assert await tasks[1] == "b"

    asyncio.run(main())
    del left
    gc.collect()
    assert queue.statistics().processing == 2


@pytest.fixture
def hectic() -> Iterator[None]:
    """Switch threads far more often than usual."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("hectic")
def test_stress_threads_add_while_tasks_take_time_out_and_are_cancelled() -> None:
    """The last add of each item is seen by a run that begins after it, and no item runs twice at once."""
    queue: AsyncWorkQueue[int] = AsyncWorkQueue("stress")
    version: Counter[int] = Counter()
    last_seen: dict[int, int] = {}
    running: set[int] = set()
    trouble: list[str] = []
    guard = threading.Lock()

    def produce(seed: int) -> None:
        for step in range(1500):
            item = (seed * 7 + step * 13) % 40
            with guard:
                version[item] += 1
            if step % 3 == 0:
                queue.add_after(item, (step % 5) / 10000, priority=step % 4)
            else:
                queue.add(item, priority=step % 4)

    async def consume(chance: random.Random) -> None:
        while True:
            try:
                async with asyncio.timeout(chance.choice([None, 0.0, 0.0001])):
                    items = await queue.get_batch(chance.randint(1, 3))
            except ShutDown:
                return
            except TimeoutError:
                await asyncio.sleep(0)
                continue
            for item in items:
                if item in running:
                    trouble.append(f"{item} runs twice at once")
                running.add(item)
                with guard:
                    last_seen[item] = version[item]
            await asyncio.sleep(0)
            for item in items:
                running.discard(item)
                queue.done(item)

    async def main() -> None:
        workers = [start(consume(random.Random(seed))) for seed in range(6)]
        producers = [threading.Thread(target=produce, args=(seed,), name=f"producer-{seed}") for seed in range(4)]
        for thread in producers:
            thread.start()
        async with asyncio.timeout(3 * LONG):
            while any(thread.is_alive() for thread in producers) or queue.statistics().waiting:
                victim = start(queue.get())  # cancelled before, while or after it is told
                await asyncio.sleep(0)
                victim.cancel()
                await asyncio.wait([victim])
                if not victim.cancelled():
                    with guard:
                        last_seen[victim.result()] = version[victim.result()]
                    queue.done(victim.result())
                await asyncio.sleep(0.001)
            assert await queue.shut_down_with_drain(timeout=LONG)
            await asyncio.gather(*workers)
        for thread in producers:
            thread.join(LONG)

    asyncio.run(main())
    assert not trouble
    assert last_seen == version
    seen = queue.statistics()
    assert seen.adds == seen.gets
    assert (seen.ready, seen.waiting, seen.processing, seen.pending) == (0, 0, 0, 0)
