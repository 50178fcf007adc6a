"""Waiting until caches are filled, with an answer that says which one is not, and why."""

from __future__ import annotations

from typing import Protocol

from informers.errors import SyncError, SyncTimeout
from workqueue.clock import MonotonicClock

__all__ = ["Syncing", "wait_for_sync"]


class Syncing(Protocol):
    """An informer, a registration, or anything else that becomes synced."""

    name: str

    def has_synced(self) -> bool: ...
    def wait_for_sync(self, timeout: float | None = None) -> None: ...


def wait_for_sync(*informers: Syncing, timeout: float | None = None) -> None:
    """Wait until all have synced, together at most `timeout` seconds.

    Raises `SyncError` naming every one that has not, each with its reason (`SyncTimeout`, also TimeoutError, if time
    is all that was missing).
    """
    clock = MonotonicClock()
    deadline = None if timeout is None else clock.now() + timeout
    failures: list[SyncError] = []
    for informer in informers:
        try:
            informer.wait_for_sync(None if deadline is None else max(0.0, deadline - clock.now()))
        except SyncError as error:
            failures.append(error)
            if not isinstance(error, SyncTimeout):
                deadline = clock.now()  # nobody gains from waiting for the others
    if not failures:
        return
    if len(failures) == 1:
        raise failures[0]
    message = "; ".join(str(failure) for failure in failures)
    raise (SyncTimeout if all(isinstance(failure, SyncTimeout) for failure in failures) else SyncError)(message)
