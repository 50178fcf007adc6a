"""Waiting for something that other threads bring about, at no cost to them while nobody waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

from informers.errors import Timeout
from workqueue.clock import Clock

__all__ = ["News"]


class News:
    """Lets threads wait until a predicate holds; whoever may have changed that calls `tell`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._condition = threading.Condition()
        self._waiters = 0

    @property
    def waiters(self) -> int:
        """How many threads wait now."""
        return self._waiters

    def tell(self) -> None:
        """Let those who wait look again. To be called after the change."""
        # Reading the number first is safe: a waiter counts itself before it looks, so it saw the change or is seen.
        if self._waiters:
            with self._condition:
                self._condition.notify_all()

    def wait(self, done: Callable[[], bool], timeout: float | None) -> None:
        """Wait until `done()`, which may raise to give up. Raises `Timeout` after `timeout` seconds."""
        deadline = None if timeout is None else self._clock.now() + timeout
        with self._condition:
            self._waiters += 1
            try:
                while not done():
                    left = None if deadline is None else deadline - self._clock.now()
                    if left is not None and left <= 0:
                        raise Timeout(f"waited {timeout:g} s")
                    self._clock.wait(self._condition, left)
            finally:
                self._waiters -= 1
