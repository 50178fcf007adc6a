"""`FakeClock`: a clock that stands still until a test moves it. For testing anything that takes a `workqueue.Clock`."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from workqueue.clock import checked_timeout

if TYPE_CHECKING:
    import asyncio

__all__ = ["FakeClock"]


class _Sleeper:
    def __init__(self, since: float, timeout: float, wake: Callable[[], None]) -> None:
        self._since = since
        self._timeout = timeout
        self.wake = wake

    def is_due(self, now: float) -> bool:
        # The sum or the difference, since either may be rounded: who waits for so many seconds means the sum, and who
        # waits until a certain time passes the difference.
        return now >= self._since + self._timeout or now - self._since >= self._timeout


class FakeClock:
    """A `workqueue.Clock` that only `advance` moves. Thread-safe.

    A wait counts from what the waiting thread read since its last wait, so a test may move the clock between another
    thread's `now()` and its `wait` without making it sleep too long.

    :param start: the first reading in seconds
    """

    def __init__(self, start: float = 0.0) -> None:
        if not math.isfinite(start):
            raise ValueError(f"a clock cannot start at {start!r}")
        self._now = float(start)
        self._changed = threading.Condition(threading.Lock())
        self._sleepers: list[_Sleeper] = []
        self._last_read = threading.local()

    def now(self) -> float:
        """See `workqueue.Clock.now`."""
        with self._changed:
            self._last_read.value = self._now
            return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward and wake whoever is due by then.

        Returns when they have been told, not when they have acted. The caller must not hold a condition that somebody
        waits on.
        """
        if not 0 <= seconds < math.inf:
            raise ValueError(f"a clock goes forward by so many seconds, not backwards or by {seconds!r}")
        with self._changed:
            self._now += seconds
            due = [sleeper for sleeper in self._sleepers if sleeper.is_due(self._now)]
        for sleeper in due:  # without our lock: whoever waits holds its condition and reads the clock
            sleeper.wake()

    def sleepers(self) -> int:
        """How many wait with a time-out that has not passed."""
        with self._changed:
            return self._undue()

    def wait_for_sleepers(self, count: int, timeout: float = 10.0) -> None:
        """Block, in real time, until at least `count` wait with a time-out that has not passed.

        :raises TimeoutError: they did not within `timeout` real seconds
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._undue() >= count, timeout):
                raise TimeoutError(f"{self._undue()} wait on the fake clock after {timeout} seconds, not {count}")

    def _undue(self) -> int:
        return sum(not sleeper.is_due(self._now) for sleeper in self._sleepers)

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """See `workqueue.Clock.wait`."""
        if timeout is None:
            return condition.wait()

        def wake() -> None:
            with condition:
                condition.notify_all()

        sleeper = self._enter(timeout, wake)
        if sleeper is None:
            return False
        try:
            condition.wait()
        finally:
            reached = self._leave(sleeper)
        return not reached

    async def wait_async(self, event: asyncio.Event, timeout: float | None) -> bool:
        """See `workqueue.Clock.wait_async`."""
        import asyncio

        if timeout is None:
            return await event.wait()
        loop = asyncio.get_running_loop()
        waiting = True

        def expire() -> None:
            # Otherwise the wait ended before the loop came to this, or an earlier `advance` is about to end it.
            if waiting and not limit.expired():
                limit.reschedule(loop.time())

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # nobody waits in a loop that is closed
                loop.call_soon_threadsafe(expire)

        try:
            async with asyncio.timeout(None) as limit:
                sleeper = self._enter(timeout, wake)
                if sleeper is None:
                    return event.is_set()
                try:
                    return await event.wait()
                finally:
                    waiting = False
                    self._leave(sleeper)
        except TimeoutError:
            return event.is_set()

    def _enter(self, timeout: float, wake: Callable[[], None]) -> _Sleeper | None:
        """Start to sleep, unless the time-out has passed already."""
        with self._changed:
            read_at = self._last_read.__dict__.pop("value", self._now)  # counts for one wait only
            sleeper = _Sleeper(read_at, checked_timeout(timeout), wake)
            if sleeper.is_due(self._now):
                return None
            self._sleepers.append(sleeper)
            self._changed.notify_all()
            return sleeper

    def _leave(self, sleeper: _Sleeper) -> bool:
        """Stop sleeping; True if the time-out had passed."""
        with self._changed:
            self._sleepers.remove(sleeper)
            return sleeper.is_due(self._now)
