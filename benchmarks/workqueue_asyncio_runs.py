"""The asyncio part of what bench_workqueue.py measures; workqueue_runs.py says how the sides are kept comparable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from report import Figures
from workqueue_runs import WORKERS, measured

from workqueue import AsyncWorkQueue, ShutDown

_YIELD_EVERY = 64  # items that the producer adds before it lets the workers run


def _measured_async(operations: int, main: Callable[[], Coroutine[Any, Any, None]]) -> Figures:
    """Like `measured`; the start of the event loop, a fraction of a millisecond, is part of it."""
    return measured(operations, lambda: asyncio.run(main()))


def add_get_done(items: list[str]) -> Figures:
    """Add, get, done in one task."""

    async def main() -> None:
        work_queue: AsyncWorkQueue[str] = AsyncWorkQueue()
        add, get, done = work_queue.add, work_queue.get, work_queue.done
        for item in items:
            add(item)
            done(await get())

    return _measured_async(len(items), main)


def put_get(items: list[str]) -> Figures:
    """Put and get in one task."""

    async def main() -> None:
        plain: asyncio.Queue[str] = asyncio.Queue()
        put, get = plain.put_nowait, plain.get
        for item in items:
            put(item)
            await get()

    return _measured_async(len(items), main)


def workers(items: list[str]) -> Figures:
    """One task adds, four get and are done."""
    seen: list[int] = []

    async def main() -> None:
        work_queue: AsyncWorkQueue[str] = AsyncWorkQueue()

        async def worker() -> None:
            get, done = work_queue.get, work_queue.done
            count = 0
            try:
                while True:
                    done(await get())
                    count += 1
            except ShutDown:
                seen.append(count)

        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(worker())
            add = work_queue.add
            for number, item in enumerate(items):
                add(item)
                if number % _YIELD_EVERY == 0:
                    await asyncio.sleep(0)
            work_queue.shut_down()

    figures = _measured_async(len(items), main)
    assert sum(seen) == len(items), f"{sum(seen)} of {len(items)} items came through"
    return figures


def plain_workers(items: list[str]) -> Figures:
    """One task puts, four get."""
    seen: list[int] = []

    async def main() -> None:
        plain: asyncio.Queue[str | None] = asyncio.Queue()

        async def worker() -> None:
            get = plain.get
            count = 0
            while await get() is not None:
                count += 1
            seen.append(count)

        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(worker())
            put = plain.put_nowait
            for number, item in enumerate(items):
                put(item)
                if number % _YIELD_EVERY == 0:
                    await asyncio.sleep(0)
            for _ in range(WORKERS):
                put(None)

    figures = _measured_async(len(items), main)
    assert sum(seen) == len(items), f"{sum(seen)} of {len(items)} items came through"
    return figures
