"""Many threads and tasks on one queue, on the real clock; afterwards the log must be one that the rules allow."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable

import pytest

from workqueue import ItemExponentialFailureRateLimiter, WorkQueue
from workqueue.aio import AsyncWorkQueue
from workqueue.errors import ShutDown
from workqueue.testing.log_checker import LogRefused, LogSummary, check_log
from workqueue.testing.work_log import AsyncWriter, WorkLog, Writer

PRODUCERS = 8
WORKERS = 8
ITEMS = 200_000
HOT = ITEMS + 4_000
"""Items from ITEMS to here are added again and again, by everybody."""
LONG = 100.0


def produce_one(writer: Writer | AsyncWriter, item: int, draw: random.Random) -> None:
    """Add `item` in one of the possible ways, and now and then disturb another one."""
    priority = draw.choice((None, None, -1, 0, 5))
    way = draw.random()
    if way < 0.7:
        writer.add(item, priority=priority)
    elif way < 0.9:
        writer.add_after(item, draw.uniform(-0.001, 0.05), priority=priority)
    else:
        writer.add_rate_limited(item, priority=priority)
    if way % 0.1 < 0.02:
        hot = draw.randrange(ITEMS, HOT)
        writer.add_after(hot, draw.choice((0.0, 0.0, 0.01)), priority=priority)
        if way % 0.02 < 0.01:
            writer.cancel(draw.choice((item, hot, draw.randrange(ITEMS, HOT))))


def work_on(writer: Writer | AsyncWriter, item: int, draw: random.Random) -> None:
    """Between `get` and `done`: fail and try again, be asked for again meanwhile, or succeed."""
    outcome = draw.random()
    if outcome < 0.03:
        writer.add_rate_limited(item)
    elif outcome < 0.05:
        writer.add(draw.choice((item, draw.randrange(ITEMS, HOT))), priority=draw.randrange(3))
    else:
        writer.forget(item)
    writer.done(item)


def limiter() -> ItemExponentialFailureRateLimiter[int]:
    return ItemExponentialFailureRateLimiter(0.001, 0.05)


def check_the_load_was_one(summary: LogSummary) -> None:
    assert summary.items >= ITEMS
    assert summary.adds + summary.retries > 1.1 * ITEMS
    assert summary.cancelled > 100
    assert summary.repeated > 1000


class Crew:
    """Named threads whose errors are the test's."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.errors: list[BaseException] = []

    def start(self, name: str, fn: Callable[[], None]) -> None:
        def run() -> None:
            try:
                fn()
            except BaseException as error:  # noqa: BLE001 - raised by `join`
                self.errors.append(error)

        self.threads.append(threading.Thread(target=run, name=name, daemon=True))
        self.threads[-1].start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(LONG)
            assert not thread.is_alive(), f"{thread.name} hangs"
        if self.errors:
            raise self.errors[0]


def play_among_threads(log: WorkLog, queue: WorkQueue[int], items: int) -> None:
    def produce(number: int) -> None:
        writer, draw = log.writer(queue), random.Random(number)
        for item in range(number, items, PRODUCERS):
            produce_one(writer, item, draw)

    def work(number: int) -> None:
        writer, draw = log.writer(queue), random.Random(-number)
        while True:
            try:
                item = writer.get()
            except ShutDown:
                return
            work_on(writer, item, draw)

    producers, workers = Crew(), Crew()
    for number in range(WORKERS):
        workers.start(f"stress-worker-{number}", lambda number=number: work(number))
    for number in range(PRODUCERS):
        producers.start(f"stress-producer-{number}", lambda number=number: produce(number))
    producers.join()
    assert log.writer(queue).shut_down_with_drain(LONG)
    workers.join()


async def play_among_tasks_and_threads(log: WorkLog, queue: AsyncWorkQueue[int], items: int) -> None:
    def produce(number: int) -> None:
        writer, draw = log.async_writer(queue), random.Random(number)
        for item in range(number, items, PRODUCERS):
            produce_one(writer, item, draw)

    async def produce_in_a_task(number: int) -> None:
        writer, draw = log.async_writer(queue), random.Random(number)
        for item in range(number, items, PRODUCERS):
            produce_one(writer, item, draw)
            if draw.random() < 0.1:
                await asyncio.sleep(0)

    async def work(number: int) -> None:
        writer, draw = log.async_writer(queue), random.Random(-number)
        while True:
            try:
                item = await writer.get()
            except ShutDown:
                return
            if draw.random() < 0.2:
                await asyncio.sleep(0)
            work_on(writer, item, draw)

    threads = Crew()
    async with asyncio.TaskGroup() as workers:
        for number in range(WORKERS):
            workers.create_task(work(number))
        for number in range(PRODUCERS // 2):
            threads.start(f"stress-producer-{number}", lambda number=number: produce(number))
        async with asyncio.TaskGroup() as producers:
            for number in range(PRODUCERS // 2, PRODUCERS):
                producers.create_task(produce_in_a_task(number))
        await asyncio.to_thread(threads.join)
        assert await log.async_writer(queue).shut_down_with_drain(LONG)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_item_is_lost_doubled_or_early_among_threads() -> None:
    log = WorkLog()
    queue: WorkQueue[int] = WorkQueue(rate_limiter=log.noting(limiter()), max_priority_age=0.05)
    play_among_threads(log, queue, ITEMS)
    check_the_load_was_one(check_log(log.events(), queue.statistics()))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_item_is_lost_doubled_or_early_among_tasks_and_threads() -> None:
    log = WorkLog()
    queue: AsyncWorkQueue[int] = AsyncWorkQueue(rate_limiter=log.noting(limiter()), max_priority_age=0.05)
    asyncio.run(play_among_tasks_and_threads(log, queue, ITEMS))
    check_the_load_was_one(check_log(log.events(), queue.statistics()))


# -- the same load finds what is wrong


class Early(WorkQueue[int]):
    def add_after(self, item: int, delay: float, *, priority: int | None = None) -> None:
        super().add_after(item, delay / 2, priority=priority)


class Repeating(WorkQueue[int]):
    """What was done comes once more, now and then."""

    def done(self, item: int) -> None:
        super().done(item)
        if item % 100 == 0:
            super().add(item)


class Forgetful(WorkQueue[int]):
    """What was added while it was in process is not handed out again."""

    def done(self, item: int) -> None:
        super().cancel(item)
        super().done(item)


@pytest.mark.parametrize(
    ("fault", "message"), [(Early, "early"), (Repeating, "without having been added"), (Forgetful, "was lost")]
)
def test_a_queue_with_a_fault_does_not_pass(fault: type[WorkQueue[int]], message: str) -> None:
    log = WorkLog()
    queue = fault(rate_limiter=log.noting(limiter()))
    play_among_threads(log, queue, 5000)
    with pytest.raises(LogRefused, match=message):
        check_log(log.events())
