"""The clock that everything timed in these packages reads: a small protocol and its real implementation.

Pure cores are handed `now`; only shells read a clock, and they read one that was injected, so that tests replace it
with `workqueue.testing.FakeClock`. A clock also does the waiting, since a fake one must know who waits and until when.
"""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["Clock", "MonotonicClock", "checked_timeout"]


class Clock(Protocol):
    """A monotonic clock in seconds, with the two ways to wait on it.

    Its zero is arbitrary: only differences mean something. All methods may be called from any thread.
    """

    def now(self) -> float:
        """The current reading in seconds; never goes backwards."""

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Wait on `condition`, which the caller holds, until it is notified (True) or `timeout` seconds passed (False).

        None waits without a limit; NaN raises ValueError. The time-out counts from the `now()` that the caller read
        just before, if it did. Like any wait on a condition it may return early, so callers wait in a loop over what
        they wait for.
        """

    async def wait_async(self, event: asyncio.Event, timeout: float | None) -> bool:
        """Wait until `event` is set (True) or `timeout` seconds passed (False), in the running asyncio loop."""


def checked_timeout(timeout: float) -> float:
    """Give `timeout`. Raises ValueError for NaN, which never passes: whoever waits in a loop would spin for ever."""
    if math.isnan(timeout):
        raise ValueError("a timeout cannot be NaN")
    return timeout


class MonotonicClock:
    """The machine's monotonic clock (`time.monotonic`). It stands still while the machine is suspended."""

    # The builtin itself, not a method around it: a queue reads the clock on every operation.
    now = staticmethod(time.monotonic)

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """See `Clock.wait`."""
        if timeout is None:
            return condition.wait()
        return condition.wait(min(max(checked_timeout(timeout), 0.0), threading.TIMEOUT_MAX))

    async def wait_async(self, event: asyncio.Event, timeout: float | None) -> bool:
        """See `Clock.wait_async`."""
        import asyncio  # here, because most users of a queue never need asyncio, and it is slow to import

        if timeout is None:
            return await event.wait()
        try:
            async with asyncio.timeout(checked_timeout(timeout)):
                return await event.wait()
        except TimeoutError:
            return event.is_set()
