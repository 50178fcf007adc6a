"""`AsyncWorkQueueAdapter`: an `AsyncWorkQueue` for `queue_machine`, on an event loop that runs on the test's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from workqueue.aio import AsyncWorkQueue
from workqueue.errors import ShutDown, Timeout
from workqueue.testing.adapters import CommonAdapter
from workqueue.testing.clock import FakeClock

__all__ = ["AsyncWorkQueueAdapter", "TaskCall"]

T = TypeVar("T")

ROUNDS = 20
"""Turns of an event loop within which a task that nothing holds up has acted."""


class TaskCall(Generic[T]):
    """A `Call` as a task of `loop`, which runs only while something is asked of it. Returns when the task waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> None:
        self._loop = loop
        self._task = loop.create_task(work)
        self.finished(0)

    def finished(self, timeout: float) -> bool:
        """See `Call.finished`."""
        self._loop.run_until_complete(self._settle(timeout))
        return self._task.done()

    async def _settle(self, timeout: float) -> None:
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        if timeout > 0 and not self._task.done():
            await asyncio.wait([self._task], timeout=timeout)

    def result(self) -> T:
        """See `Call.result`."""
        return self._task.result()


class AsyncWorkQueueAdapter(CommonAdapter):
    """An `AsyncWorkQueue`, or what `make` makes when it is called as the class is.

    It has an event loop of its own, which runs on the calling thread while something is asked of the queue.
    """

    queue: AsyncWorkQueue[int]

    def __init__(
        self, make: Callable[..., AsyncWorkQueue[int]] = AsyncWorkQueue, *, max_priority_age: float | None = 6.0
    ) -> None:
        super().__init__(make, FakeClock(), max_priority_age)
        self._loop = asyncio.new_event_loop()

    def get(self, limit: int) -> list[int] | None:
        return self._loop.run_until_complete(self._get(limit, 0.0))

    async def _get(self, limit: int, timeout: float | None) -> list[int] | None:
        try:
            return [await self.queue.get(timeout)] if limit == 1 else await self.queue.get_batch(limit, timeout)
        except Timeout:
            return []
        except ShutDown:
            return None

    def start_get(self, limit: int, timeout: float | None) -> TaskCall[list[int] | None]:
        return TaskCall(self._loop, self._get(limit, timeout))

    def start_drain(self, timeout: float | None) -> TaskCall[bool]:
        return TaskCall(self._loop, self.queue.shut_down_with_drain(timeout))

    def close(self) -> None:
        self.queue.shut_down()
        self._loop.run_until_complete(_cancel_all())
        self._loop.close()


async def _cancel_all() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
