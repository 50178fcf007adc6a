"""Leader election on a Lease, judged by local clocks, with computed safety bounds.

`LeaderElector` runs a worker while its process leads; `Config` says what its durations guarantee; `LeaseLock` keeps
the record in a Kubernetes Lease, as client-go does. The rules themselves are in `leaderelection.core`, which has
neither I/O nor threads.
"""

from __future__ import annotations

from leaderelection.clock import BootClock, Clock
from leaderelection.config import Config
from leaderelection.core import FencingToken, Record, Version
from leaderelection.elector import LeaderElector
from leaderelection.errors import (
    AlreadyRunning,
    ConfigError,
    ElectionError,
    LockConflict,
    LockError,
    NotLeading,
    NotRenewed,
    WorkerFailed,
    WorkerStuck,
)
from leaderelection.leadership import ElectionEvent, EventType, Leadership
from leaderelection.lock import LeaseLock, Lock, MemoryLock

__all__ = [
    "AlreadyRunning",
    "BootClock",
    "Clock",
    "Config",
    "ConfigError",
    "ElectionError",
    "ElectionEvent",
    "EventType",
    "FencingToken",
    "LeaderElector",
    "Leadership",
    "LeaseLock",
    "Lock",
    "LockConflict",
    "LockError",
    "MemoryLock",
    "NotLeading",
    "NotRenewed",
    "Record",
    "Version",
    "WorkerFailed",
    "WorkerStuck",
]
