"""Waiting until caches are filled, with an answer that says which one is not, and why."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from informers.errors import SyncError, SyncTimeout
from workqueue.clock import MonotonicClock

__all__ = ["SAY_AGAIN", "Syncing", "wait_for_sync"]

_log = logging.getLogger(__name__)

SAY_AGAIN = 10.0
"""Seconds after which whoever waits for a cache logs again what it waits for."""


class Syncing(Protocol):
    """An informer, a registration, or anything else that becomes synced."""

    name: str

    def has_synced(self) -> bool: ...
    def wait_for_sync(self, timeout: float | None = None) -> None: ...


def wait_for_sync(*informers: Syncing, timeout: float | None = None) -> None:
    """Wait until all have synced, together at most `timeout` seconds; every ten seconds those missing are logged.

    Raises `SyncError` naming every one that has not, each with its reason (`SyncTimeout`, also TimeoutError, if time
    is all that was missing).
    """
    clock = MonotonicClock()
    deadline = None if timeout is None else clock.now() + timeout
    missing: Sequence[Syncing] = informers
    while True:
        left = None if deadline is None else max(0.0, deadline - clock.now())
        failures = _round(missing, SAY_AGAIN if left is None else min(left, SAY_AGAIN))
        missing = [informer for informer, _ in failures]
        if not failures:
            return
        if any(not isinstance(error, SyncTimeout) for _, error in failures) or (left is not None and left <= SAY_AGAIN):
            raise _joined([error for _, error in failures], missing, timeout)
        _log.warning("not synced yet: %s", "; ".join(f"{each.name}: {error.reason}" for each, error in failures))


def _round(informers: Sequence[Syncing], timeout: float) -> list[tuple[Syncing, SyncError]]:
    """Wait for each, together at most `timeout` seconds; those that are missing, with what they say."""
    clock = MonotonicClock()
    deadline = clock.now() + timeout
    failures: list[tuple[Syncing, SyncError]] = []
    for informer in informers:
        try:
            informer.wait_for_sync(max(0.0, deadline - clock.now()))
        except SyncError as error:
            failures.append((informer, error))
            if not isinstance(error, SyncTimeout):
                deadline = clock.now()  # nobody gains from waiting for the others
    return failures


def _joined(failures: Sequence[SyncError], informers: Sequence[Syncing], timeout: float | None) -> SyncError:
    if len(failures) == 1 and not isinstance(failures[0], SyncTimeout):
        return failures[0]
    texts = [
        f"{informer.name} did not sync in {timeout:g} s: {error.reason}" if timeout and error.reason else str(error)
        for informer, error in zip(informers, failures, strict=True)
    ]
    kind = SyncTimeout if all(isinstance(error, SyncTimeout) for error in failures) else SyncError
    return kind("; ".join(texts), "; ".join(error.reason for error in failures if error.reason))
