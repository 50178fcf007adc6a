"""Errors of this package.

ElectionError
├── ConfigError          durations or names that make no sense or are not safe (also ValueError)
├── AlreadyRunning       `run` was called while it runs
├── NotLeading           an act was about to happen without the right to it (`Leadership.guard`)
├── NotRenewed           the health check: leading, but for too long without a renewal
├── WorkerFailed         the worker raised; its exception is the cause
├── WorkerStuck          the worker did not return in time after it was told to stop
└── LockError            an attempt to read or write the lock failed
    └── LockConflict     the write was refused, and certainly not done: the lock has changed or is gone
"""

from __future__ import annotations

__all__ = [
    "AlreadyRunning",
    "ConfigError",
    "ElectionError",
    "LockConflict",
    "LockError",
    "NotLeading",
    "NotRenewed",
    "WorkerFailed",
    "WorkerStuck",
]


class ElectionError(Exception):
    """Base of all errors of this package."""


class ConfigError(ElectionError, ValueError):
    """A configuration that cannot be used. The message names the rule that is broken and the numbers."""


class AlreadyRunning(ElectionError):
    """One elector runs one campaign at a time."""


class NotLeading(ElectionError):
    """This process may not act now: its term is over or could not be renewed in time."""


class NotRenewed(ElectionError):
    """Leading, but the last acknowledged renewal is older than the lease: something is wedged."""


class WorkerFailed(ElectionError):
    """The worker raised an exception, which is the cause of this one. Its term is over."""


class WorkerStuck(ElectionError):
    """The worker goes on although it was told to stop and its time is up. The process should exit."""


class LockError(ElectionError):
    """The lock could not be read or written; whether a write was done may be unknown."""


class LockConflict(LockError):
    """A write was refused and not done, since the lock is not as expected: changed, created meanwhile, or gone."""
