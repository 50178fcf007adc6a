"""For tests of code that uses work queues, and of work queues: a clock that a test moves, and the proof of the rules.

Needs the standard library only, except for `workqueue.testing.machine`, which needs hypothesis.
"""

from __future__ import annotations

from workqueue.testing.adapter import Call, Capabilities, QueueAdapter
from workqueue.testing.adapters import WorkQueueAdapter
from workqueue.testing.clock import FakeClock
from workqueue.testing.model import QueueModel

__all__ = ["Call", "Capabilities", "FakeClock", "QueueAdapter", "QueueModel", "WorkQueueAdapter"]
