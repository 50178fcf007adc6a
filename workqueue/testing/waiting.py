"""Calls that wait, for adapters: started on a thread, and known to wait before the test goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from workqueue.testing.adapter import Call
from workqueue.testing.clock import FakeClock

__all__ = ["ThreadCall", "WatchedClock", "wait_until_finished"]

T = TypeVar("T")

LOOK = 0.001
"""Real seconds between two looks at calls of which any may end first."""


class WatchedClock(FakeClock):
    """A `FakeClock` that knows which threads have begun to wait on it, with a time-out or without."""

    def __init__(self) -> None:
        super().__init__()
        self._watch = threading.Condition(threading.Lock())
        self._seen: set[int] = set()

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """See `workqueue.Clock.wait`."""
        with self._watch:
            self._seen.add(threading.get_ident())
            self._watch.notify_all()
        return super().wait(condition, timeout)

    def wait_for_thread(self, thread: threading.Thread, timeout: float) -> None:
        """Block, in real time, until `thread` has begun to wait, or is over."""
        deadline = time.monotonic() + timeout
        with self._watch:
            while thread.ident not in self._seen and thread.is_alive():
                if not time.monotonic() < deadline:
                    raise TimeoutError(f"{thread.name} neither waits nor ends after {timeout} seconds")
                self._watch.wait(LOOK)
            self._seen.discard(thread.ident or 0)


class ThreadCall(Generic[T]):
    """A `Call` on a thread of its own, for a queue that waits by `clock`. Returns when `fn` waits or is over.

    The thread ends with the call; it is a daemon, so a queue that never answers does not hold up the process.
    """

    def __init__(self, clock: WatchedClock, fn: Callable[[], T], *, timeout: float = 10.0) -> None:
        self._fn = fn
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="queue-machine-call", daemon=True)
        self._thread.start()
        clock.wait_for_thread(self._thread, timeout)

    def _run(self) -> None:
        try:
            self._results.append(self._fn())
        except BaseException as error:  # noqa: BLE001 - it is the caller's, see `result`
            self._error = error

    def finished(self, timeout: float) -> bool:
        """See `Call.finished`."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def result(self) -> T:
        """See `Call.result`."""
        if self._error is not None:
            raise self._error
        return self._results[0]


def wait_until_finished(calls: Sequence[Call[Any]], count: int, patience: float) -> list[Call[Any]]:
    """Wait up to `patience` real seconds until `count` of the calls are finished; gives all that are."""
    deadline = time.monotonic() + patience
    while True:
        finished = [call for call in calls if call.finished(0)]
        if len(finished) >= count or time.monotonic() >= deadline:
            return finished
        next(call for call in calls if call not in finished).finished(LOOK)
