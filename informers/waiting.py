"""Two loops around single requests that everybody needs: wait for a state of an object, and retry on conflict."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from informers.errors import ApiError, ConflictError, ExpiredError, GoneError, RequestError, Timeout
from informers.key import ObjectKey
from informers.object import Object
from workqueue.clock import Clock, MonotonicClock

if TYPE_CHECKING:
    from informers.resource import Resource

__all__ = ["retry_on_conflict", "wait_until"]

T = TypeVar("T")

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_WATCH_SECONDS = 300.0


def wait_until(
    resource: Resource, key: ObjectKey, predicate: Callable[[Object | None], bool], timeout: float | None
) -> Object | None:
    """See `Resource.wait_until`."""
    return _Wait(resource, key, predicate, timeout).run()


class _Wait:
    def __init__(
        self, resource: Resource, key: ObjectKey, predicate: Callable[[Object | None], bool], timeout: float | None
    ) -> None:
        self._resource = resource
        self._key = key
        self._predicate = predicate
        self._timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._failure: RequestError | None = None
        self._state: Object | None = None

    def run(self) -> Object | None:
        pause = _FIRST_PAUSE
        while True:
            try:
                version = self._look()
                while version is not None:
                    pause = _FIRST_PAUSE
                    version = self._follow(version)
                return self._state
            except (ExpiredError, GoneError):
                self._check_time()
            except RequestError as error:
                if not error.retriable:
                    raise
                self._failure = error
                asked = error.retry_after if isinstance(error, ApiError) and error.retry_after else 0.0
                self._sleep(max(asked, pause * random.uniform(1.0, 1.5)))
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _look(self) -> str | None:
        """Read the present state; None if it is the one waited for, else its version."""
        found = self._resource.list(
            namespace=self._key.namespace or None,
            field_selector=f"metadata.name={self._key.name}",
            timeout=self._left(),
        )
        self._state = next((obj for obj in found.items if obj.key == self._key), None)
        return None if self._predicate(self._state) else found.resource_version

    def _follow(self, version: str) -> str | None:
        """Watch from a version; None when the state waited for is there, else the version to go on from."""
        left = self._left()
        with self._resource.watch(
            namespace=self._key.namespace or None,
            field_selector=f"metadata.name={self._key.name}",
            resource_version=version,
            timeout_seconds=_WATCH_SECONDS,
            timeout=left,
        ) as stream:
            timer = None if left is None else threading.Timer(left, stream.close)
            try:
                if timer is not None:
                    timer.name = "informers-wait-until"
                    timer.daemon = True
                    timer.start()
                for event in stream:
                    version = event.object.resource_version or version
                    if event.type == "BOOKMARK" or event.object.key != self._key:
                        continue
                    self._state = None if event.type == "DELETED" else event.object
                    if self._predicate(self._state):
                        return None
            finally:
                if timer is not None:
                    timer.cancel()
                    timer.join()
        self._check_time()
        return version

    def _left(self) -> float | None:
        self._check_time()
        return None if self._deadline is None else self._deadline - time.monotonic()

    def _check_time(self) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            last = f"; the last failure was: {self._failure}" if self._failure is not None else ""
            state = "it does not exist" if self._state is None else f"it is at version {self._state.resource_version}"
            raise Timeout(
                f"{self._resource.description}: {self._key} did not come to the state waited for within "
                f"{self._timeout:g} s; {state}{last}"
            ) from self._failure

    def _sleep(self, seconds: float) -> None:
        left = self._left()
        time.sleep(seconds if left is None else min(seconds, left))


def retry_on_conflict(
    fn: Callable[[], T], *, attempts: int = 5, delay: float = 0.01, factor: float = 2.0, clock: Clock | None = None
) -> T:
    """Call `fn` until it raises no ConflictError, at most `attempts` times, and give what it returns.

    `fn` must read the object anew each time and change what it read. Waits `delay` seconds (up to half as much again)
    before the second call, `factor` times longer before each further one. The last ConflictError is raised.
    """
    if attempts < 1:
        raise ValueError("at least one attempt is needed")
    clock = clock or MonotonicClock()
    condition = threading.Condition()
    for attempt in range(attempts - 1):
        try:
            return fn()
        except ConflictError:
            until = clock.now() + delay * factor**attempt * random.uniform(1.0, 1.5)
            with condition:
                while (left := until - clock.now()) > 0:
                    clock.wait(condition, left)
    return fn()
