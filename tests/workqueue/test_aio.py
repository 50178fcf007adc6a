"""`AsyncWorkQueue` from the outside: awaiting, waking, shutting down. The rules of the core have tests of their own."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest

from workqueue import AsyncWorkQueue, NotProcessing, ShutDown, Timeout, WorkQueue
from workqueue.testing import FakeClock


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a test in a loop of its own, in debug mode: it tells of callbacks from wrong threads and unawaited tasks."""
    with asyncio.Runner(debug=True) as runner:
        runner.get_loop().slow_callback_duration = 60.0
        runner.run(main)


async def settle() -> None:
    """Let every task run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def start(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return asyncio.create_task(coroutine)


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# -- the surface


def test_it_has_the_methods_of_the_blocking_queue() -> None:
    def public(queue: type) -> set[str]:
        return {name for name in dir(queue) if not name.startswith("_")}

    assert public(AsyncWorkQueue) == public(WorkQueue)


def test_a_queue_needs_no_loop_to_be_made_and_fed() -> None:
    queue: AsyncWorkQueue[str] = AsyncWorkQueue("q", clock=FakeClock())
    queue.add("a", priority=2)
    queue.add_after("b", 5.0)
    queue.add_rate_limited("c")
    assert queue.cancel("c")
    assert queue.num_requeues("c") == 1
    queue.forget("c")
    assert (len(queue), queue.priority("a"), queue.num_requeues("c")) == (1, 2, 0)
    assert queue.statistics().waiting == 1
    queue.shut_down()
    assert queue.shutting_down


def test_the_blocking_queue_does_without_asyncio() -> None:
    code = (
        "import sys, workqueue; workqueue.WorkQueue(); assert 'asyncio' not in sys.modules; workqueue.AsyncWorkQueue()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# -- waiting


def test_get_polls_with_a_timeout_of_zero() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue("q")
        with pytest.raises(Timeout, match="'q'"):
            await queue.get(timeout=0)
        with pytest.raises(TimeoutError):
            await queue.get_batch(3, timeout=-1)
        queue.add("a")
        assert await queue.get(timeout=0) == "a"

    run(main())


def test_get_waits_until_something_is_added() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        task = start(queue.get())
        await settle()
        assert not task.done()
        queue.add("a")
        assert await task == "a"

    run(main())


def test_get_times_out_on_the_clock_of_the_queue() -> None:
    async def main() -> None:
        clock = FakeClock()
        queue: AsyncWorkQueue[str] = AsyncWorkQueue("q", clock=clock)
        task = start(queue.get(timeout=5))
        await settle()
        clock.advance(4.9)
        await settle()
        assert not task.done()
        clock.advance(0.1)
        with pytest.raises(Timeout, match="'q' in 5 seconds"):
            await task
        assert clock.sleepers() == 0

    run(main())


def test_get_waits_for_a_delayed_item_and_no_longer() -> None:
    async def main() -> None:
        clock = FakeClock()
        queue: AsyncWorkQueue[str] = AsyncWorkQueue(clock=clock)
        queue.add_after("a", 3)
        task = start(queue.get(timeout=100))
        await settle()
        clock.advance(2.9)
        await settle()
        assert not task.done()
        clock.advance(0.1)
        assert await task == "a"

    run(main())


def test_a_sooner_delay_wakes_whoever_waits() -> None:
    async def main() -> None:
        clock = FakeClock()
        queue: AsyncWorkQueue[str] = AsyncWorkQueue(clock=clock)
        queue.add_after("later", 10)
        task = start(queue.get())
        await settle()
        queue.add_after("sooner", 2)
        await settle()
        clock.advance(2)
        assert await task == "sooner"

    run(main())


def test_whoever_leaves_passes_the_time_keeping_on() -> None:
    async def main() -> None:
        clock = FakeClock()
        queue: AsyncWorkQueue[str] = AsyncWorkQueue(clock=clock)
        queue.add_after("a", 3)
        queue.add_after("b", 5)
        tasks = [start(queue.get()) for _ in range(3)]
        await settle()
        assert clock.sleepers() == 1  # one keeps the time for all
        clock.advance(3)
        await settle()
        assert clock.sleepers() == 1
        clock.advance(2)
        await settle()
        queue.add("c")
        assert [await task for task in tasks] == ["a", "b", "c"]

    run(main())


def test_several_due_at_once_wake_several() -> None:
    async def main() -> None:
        clock = FakeClock()
        queue: AsyncWorkQueue[int] = AsyncWorkQueue(clock=clock)
        for item in range(4):
            queue.add_after(item, 1)
        tasks = [start(queue.get()) for _ in range(4)]
        await settle()
        clock.advance(1)
        assert sorted([await task for task in tasks]) == [0, 1, 2, 3]

    run(main())


def test_get_batch_waits_for_the_first_item_and_never_for_more() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        task = start(queue.get_batch(10))
        await settle()
        queue.add("a")
        assert await task == ["a"]

    run(main())


def test_get_batch_gives_the_order_of_get_up_to_its_limit() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        for item, priority in (("low", -1), ("a", 0), ("b", 0), ("high", 1)):
            queue.add(item, priority=priority)
        assert await queue.get_batch(3) == ["high", "a", "b"]
        assert queue.statistics().processing == 3
        assert await queue.get_batch(3) == ["low"]
        with pytest.raises(ValueError, match="limit"):
            await queue.get_batch(0)

    run(main())


def test_get_batch_wakes_the_next_for_what_it_left() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[int] = AsyncWorkQueue()
        tasks = [start(queue.get_batch(2)) for _ in range(3)]
        await settle()
        queue.add(0)
        for item in range(1, 6):
            queue.add(item)
        assert [await task for task in tasks] == [[0, 1], [2, 3], [4, 5]]

    run(main())


def test_whoever_waits_longest_is_woken_first() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[int] = AsyncWorkQueue()
        tasks = [start(queue.get()) for _ in range(5)]
        await settle()
        for item in range(5):
            queue.add(item)
        assert [await task for task in tasks] == [0, 1, 2, 3, 4]

    run(main())


def test_an_item_wakes_one_task_and_no_more() -> None:
    class Counting(FakeClock):
        waits = 0

        async def wait_async(self, event: asyncio.Event, timeout: float | None) -> bool:
            self.waits += 1
            return await super().wait_async(event, timeout)

    async def main() -> None:
        clock = Counting()
        queue: AsyncWorkQueue[int] = AsyncWorkQueue(clock=clock)
        tasks = [start(queue.get()) for _ in range(50)]
        await settle()
        for item in range(50):
            queue.add(item)
        await asyncio.gather(*tasks)
        assert clock.waits == 50

    run(main())


# -- done


def test_done_of_what_was_not_handed_out_raises() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue("q")
        queue.add("a")
        with pytest.raises(NotProcessing, match="'a' is not in process in work queue 'q'"):
            queue.done("a")
        queue.done(await queue.get())
        with pytest.raises(NotProcessing):
            queue.done("a")

    run(main())


def test_done_wakes_whoever_waits_for_the_rerun() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        queue.add("a")
        await queue.get()
        queue.add("a")
        task = start(queue.get())
        await settle()
        assert not task.done()
        queue.done("a")
        assert await task == "a"

    run(main())


def test_processing_is_get_and_done_however_the_block_ends() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        queue.add("a")
        async with queue.processing() as item:
            assert item == "a"
            assert queue.statistics().processing == 1
        queue.add("a")
        with pytest.raises(RuntimeError):
            async with queue.processing(timeout=0):
                raise RuntimeError
        queue.add("a")
        started = asyncio.Event()

        async def work() -> None:
            async with queue.processing():
                started.set()
                await asyncio.Event().wait()

        task = start(work())
        await started.wait()
        await cancelled(task)
        assert queue.statistics().processing == 0
        with pytest.raises(Timeout):
            async with queue.processing(timeout=0):
                pytest.fail("there was nothing to process")

    run(main())


def test_the_queue_keeps_no_item_it_has_handed_out() -> None:
    class Item:
        pass

    async def main() -> None:
        queue: AsyncWorkQueue[Item] = AsyncWorkQueue()
        task = start(queue.get())
        await settle()
        item = Item()
        reference = weakref.ref(item)
        queue.add(item)
        queue.done(await task)
        del item, task
        await settle()  # the loop's handle of our own wake-up held the task
        assert reference() is None

    run(main())


# -- the end


def test_shut_down_hands_out_what_is_ready_and_then_raises() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue("q")
        queue.add("a")
        queue.add_after("late", 100)
        queue.shut_down()
        queue.add("never")
        assert await queue.get() == "a"
        with pytest.raises(ShutDown, match="'q'"):
            await queue.get()
        with pytest.raises(ShutDown):
            await queue.get_batch(3)
        assert queue.statistics().dropped == 2

    run(main())


def test_shut_down_wakes_all_that_wait() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        queue.add_after("late", 100)
        tasks = [start(queue.get()) for _ in range(4)]
        await settle()
        queue.shut_down()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [ShutDown] * 4

    run(main())


def test_drain_returns_true_when_everything_ready_and_in_process_is_done() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        queue.add("running")
        await queue.get()
        queue.add("running")  # a re-run
        queue.add("ready")
        drains = [start(queue.shut_down_with_drain()) for _ in range(2)]
        await settle()
        queue.done("running")
        assert await queue.get() == "ready"
        queue.done("ready")
        assert await queue.get() == "running"
        await settle()
        assert not any(drain.done() for drain in drains)
        queue.done("running")
        assert [await drain for drain in drains] == [True, True]

    run(main())


def test_drain_gives_false_on_timeout_and_can_be_asked_again() -> None:
    async def main() -> None:
        clock = FakeClock()
        queue: AsyncWorkQueue[str] = AsyncWorkQueue(clock=clock)
        queue.add("a")
        await queue.get()
        assert await queue.shut_down_with_drain(timeout=0) is False
        drain = start(queue.shut_down_with_drain(timeout=3))
        await settle()
        clock.advance(3)
        assert await drain is False
        queue.done("a")
        assert await queue.shut_down_with_drain(timeout=0) is True

    run(main())


def test_a_later_shut_down_ends_a_drain() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        queue.add("a")
        await queue.get()
        drain = start(queue.shut_down_with_drain())
        await settle()
        queue.shut_down()
        assert await drain is False

    run(main())


def test_cancel_of_the_last_item_ends_a_drain() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        queue.add("a")
        drain = start(queue.shut_down_with_drain())
        await settle()
        assert queue.cancel("a")
        assert await drain is True

    run(main())


def test_a_drain_that_is_cancelled_leaves_the_queue_shut_down_and_others_draining() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        queue.add("a")
        await queue.get()
        first, second = start(queue.shut_down_with_drain()), start(queue.shut_down_with_drain())
        await settle()
        await cancelled(first)
        assert queue.shutting_down
        queue.done("a")
        assert await second is True

    run(main())


def test_a_timeout_of_nan_is_refused_instead_of_spinning() -> None:
    async def main() -> None:
        queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        nan = math.nan
        for wait in (queue.get(nan), queue.get_batch(1, nan), queue.shut_down_with_drain(nan)):
            with pytest.raises(ValueError, match="NaN"):
                await wait
        assert not queue.shutting_down

    run(main())


def test_no_task_is_left_when_the_last_caller_returned() -> None:
    async def main() -> None:
        clock = FakeClock()
        queue: AsyncWorkQueue[str] = AsyncWorkQueue(clock=clock)
        queue.add_after("a", 1)
        task = start(queue.get(timeout=9))
        await settle()
        clock.advance(1)
        queue.done(await task)
        assert await queue.shut_down_with_drain(timeout=9)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert clock.sleepers() == 0

    run(main())
