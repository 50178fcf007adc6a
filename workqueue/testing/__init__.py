"""For tests of code that uses work queues, and of work queues themselves. Needs the standard library only.

`FakeClock` is a clock that a test moves. `WorkLog` and `check_log` prove from a log that a queue, used by many at once,
kept its rules. `workqueue.testing.machine`, which is not imported here for it needs hypothesis, holds any queue to the
rules of `QueueModel` through a `QueueAdapter`.
"""

from __future__ import annotations

from workqueue.testing.adapter import Call, Capabilities, QueueAdapter
from workqueue.testing.adapters import WorkQueueAdapter
from workqueue.testing.clock import FakeClock
from workqueue.testing.log_checker import LogRefused, LogSummary, check_log
from workqueue.testing.model import QueueModel
from workqueue.testing.work_log import WorkLog

__all__ = [
    "Call",
    "Capabilities",
    "FakeClock",
    "LogRefused",
    "LogSummary",
    "QueueAdapter",
    "QueueModel",
    "WorkLog",
    "WorkQueueAdapter",
    "check_log",
]
