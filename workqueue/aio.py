"""`AsyncWorkQueue`: the queue for asyncio, a thin layer around `workqueue.core.QueueState`.

There is no helper task: a task that waits in `get` also keeps the time for the first delayed item. At most one of the
waiting tasks needs to do so; which deadline is covered is `_timer_at`, and whoever leaves `get` passes the duty on.

Nobody is handed an item while it sleeps. A task is only told to look, and takes the item itself once it runs; one that
is cancelled instead has taken nothing, and tells the next one to look.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from workqueue.core import Entry
from workqueue.errors import ShutDown, Timeout
from workqueue.shell import QueueShell, checked_limit, deadline

__all__ = ["AsyncWorkQueue"]

T = TypeVar("T", bound=Hashable)


class _Sleeper:
    """A task that waits, in the loop that runs it. Made by that task; everything else with the queue's lock held."""

    __slots__ = ("due", "event", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.event = asyncio.Event()
        self.due = math.inf  # the due time of the queue that it wakes up for

    def wake(self) -> bool:
        """Tell the task to look, from any thread. False if its loop is closed, so that it never will."""
        try:
            if asyncio.get_running_loop() is self.loop:
                self.event.set()
                return True
        except RuntimeError:
            pass  # a thread without a loop
        try:
            self.loop.call_soon_threadsafe(self.event.set)
        except RuntimeError:
            return False
        return True

    def is_collected(self) -> bool:
        """For the task that ends: whether it is the garbage collector that ends it, since its loop resumes nobody.

        That may happen in a thread that holds the queue's lock.
        """
        return not self.loop.is_running()


class AsyncWorkQueue(QueueShell[T]):
    """`WorkQueue` for asyncio: the same methods on the same rules, of which those that wait are awaited.

    `get`, `get_batch`, `processing` and `shut_down_with_drain` belong to a running event loop. All others, `add` and
    `done` above all, are plain calls that any thread may make, the loop's own too: they hold a lock for microseconds.

    A task that is cancelled in `get`, also by `asyncio.timeout`, has taken nothing: no item is lost or left in process.
    `get` does not yield to the loop while something is ready; a worker that never awaits anything else starves others.

    A queue needs no loop to be made, and is not bound to one: tasks of several loops, in as many threads, may share it.
    Cancel the tasks that wait before their loop is closed, as `asyncio.run` does; whoever is left is never woken, which
    costs no item but may cost the others a wake-up for what is due.

    :param name: for error messages, and the label of the metrics
    :param rate_limiter: what `add_rate_limited` asks; by default exponential per item, 5 ms .. 1000 s
    :param metrics: where a queue with a name reports to; None costs nothing
    :param max_priority_age: seconds; None means strictly by priority
    """

    def _make_rooms(self) -> None:
        self._available: OrderedDict[_Sleeper, None] = OrderedDict()  # as many as `_getters`, longest asleep first
        self._drained: list[_Sleeper] = []

    async def get(self, timeout: float | None = None) -> T:
        """Hand out the next item; `done` must follow. Waits until there is one.

        :param timeout: seconds; None waits without limit, 0 or less does not wait
        :raises ShutDown: the queue was shut down and nothing is ready, even if an item in process has a re-run pending:
            that is for the worker that calls `done`
        :raises Timeout: nothing became ready in time
        """
        self._acquire()
        try:
            entry = self._core.take(self._now())
        finally:
            self._release()
        if entry is None:
            entry = (await self._wait(1, timeout))[0]
        if self._metrics is not None:
            self._observe_queueing(self._metrics, entry)
        return entry.item

    async def get_batch(self, limit: int, timeout: float | None = None) -> list[T]:
        """Hand out up to `limit` items in the order of `get`. Waits for the first one like `get`, never for more."""
        limit = checked_limit(limit)
        entries = await self._wait(limit, timeout)
        if self._metrics is not None:
            for entry in entries:
                self._observe_queueing(self._metrics, entry)
        return [entry.item for entry in entries]

    @asynccontextmanager
    async def _process(self, timeout: float | None) -> AsyncIterator[T]:
        item = await self.get(timeout)
        try:
            yield item
        finally:
            self.done(item)

    def processing(self, timeout: float | None = None) -> AbstractAsyncContextManager[T]:
        """`get` on entry, which gives the item, and `done` on exit, however the block ends. Use with `async with`."""
        return self._process(timeout)

    async def _wait(self, limit: int, timeout: float | None) -> list[Entry[T]]:
        """Wait for an entry, then take up to `limit`."""
        me = _Sleeper()
        until: float | None = None
        try:
            while True:
                with self._lock:
                    now = self._now()
                    self._get_up(me)
                    entries = self._core.take_batch(limit, now)
                    if entries:
                        return entries
                    if self._core.shutting_down:
                        raise ShutDown(f"work queue {self.name!r} is shut down")
                    if until is None:
                        until = deadline(now, timeout)
                    if now >= until:
                        raise Timeout(f"nothing became ready in work queue {self.name!r} in {timeout} seconds")
                    self._lie_down(me)
                    wake_at = min(me.due, until)
                await self._clock.wait_async(me.event, None if wake_at == math.inf else wake_at - now)
        finally:
            if not me.is_collected():
                with self._lock:
                    self._get_up(me)
                    self._pass_on()

    def _lie_down(self, me: _Sleeper) -> None:
        me.event.clear()
        self._available[me] = None
        self._getters += 1
        due = self._core.next_due()
        if due < self._timer_at:
            self._timer_at = me.due = due

    def _get_up(self, me: _Sleeper) -> None:
        if me in self._available:  # nobody told it to
            del self._available[me]
            self._getters -= 1
        self._give_up_time(me)

    def _give_up_time(self, sleeper: _Sleeper) -> None:
        if self._timer_at == sleeper.due:
            self._timer_at = math.inf
        sleeper.due = math.inf

    async def shut_down_with_drain(self, timeout: float | None = None) -> bool:
        """Like `shut_down`, then wait until everything that is ready or in process, re-runs too, is done.

        The workers must go on with `get` and `done`. True when all is done, False if `timeout` seconds passed before or
        `shut_down` was called meanwhile.
        """
        me = _Sleeper()
        with self._lock:
            until = deadline(self._now(), timeout)
            self._close()
            shut_downs = self._shut_downs
            self._drained.append(me)
        try:
            while True:
                with self._lock:
                    now = self._now()
                    if self._core.idle:
                        return True
                    if self._shut_downs != shut_downs or now >= until:
                        return False
                await self._clock.wait_async(me.event, None if until == math.inf else until - now)
        finally:
            if not me.is_collected():
                with self._lock:
                    self._drained.remove(me)

    def _wake_getter(self) -> None:
        while self._available:
            sleeper, _ = self._available.popitem(False)
            self._getters -= 1
            if sleeper.wake():
                return
            self._give_up_time(sleeper)

    def _wake_getters(self) -> None:
        for sleeper in self._available:
            sleeper.wake()
        self._available.clear()
        self._getters = 0

    def _wake_drainers(self) -> None:
        for sleeper in self._drained:
            sleeper.wake()
