"""The clock of an election: it goes on while the machine is suspended, so a leader that wakes up knows it is late.

Waits run on a clock that stands still in suspend. Whoever waits for a moment of this clock therefore waits in short
steps (`WAKE_INTERVAL`) and reads it again.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

__all__ = ["WAKE_INTERVAL", "BootClock", "Clock"]

WAKE_INTERVAL = 0.25
"""Seconds after which a wait on this clock is over at the latest, to read the clock again."""


class Clock(Protocol):
    """What an elector needs of a clock; `workqueue.testing.FakeClock` is one."""

    def now(self) -> float:
        """Seconds since some fixed moment; never goes backwards, and never stands still."""

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Wait on `condition`, which the caller holds, at most `timeout` seconds. False if they passed."""


class BootClock:
    """`CLOCK_BOOTTIME` where there is one (Linux), else `time.monotonic`."""

    def now(self) -> float:
        """See `Clock.now`."""
        boottime = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boottime is None else time.clock_gettime(boottime)

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """See `Clock.wait`."""
        return condition.wait(timeout)
