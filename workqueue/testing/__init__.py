"""For tests of code that uses work queues: a clock that a test moves. Needs the standard library only."""

from __future__ import annotations

from workqueue.testing.clock import FakeClock

__all__ = ["FakeClock"]
