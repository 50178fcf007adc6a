"""An open watch on a `FakeListWatch`, with what may be wrong with it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from informers.errors import ExpiredError
from informers.key import ObjectKey
from informers.object import Object
from informers.source import WatchEvent
from workqueue.clock import Clock

__all__ = ["Entry", "FakeWatch", "bookmark"]

_SLOW = 1.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One write in the history. `object` None: the server has something there that cannot be read."""

    version: int
    type: str
    key: ObjectKey
    object: Object | None
    before: Object | None
    """What was there before, for who lags behind; None before an ADDED, and where that could not be read."""


class FakeWatch:
    """One open watch; see `informers.source.WatchStream`. Its source holds `condition` when it calls the other methods.

    `stalled` says whether nothing may be delivered now, `on_end` is called with the stream once it has ended.
    """

    def __init__(
        self,
        condition: threading.Condition,
        clock: Clock,
        *,
        deadline: float | None,
        bookmarks: bool,
        stalled: Callable[[], bool],
        on_end: Callable[[FakeWatch], None],
    ) -> None:
        self.unreadable = 0
        self.last_unreadable = ""
        self.unreadable_keys: set[ObjectKey] = set()
        self.twice = False
        self.half_open = False
        self.slow = False
        self._condition = condition
        self._clock = clock
        self._deadline = deadline
        self._bookmarks = bookmarks
        self._stalled = stalled
        self._on_end = on_end
        self._events: deque[WatchEvent] = deque()
        self._held: deque[Entry] | None = None
        self._not_before: float | None = None
        self._error: Exception | None = None
        self._ended = False
        self._closed = False

    # ---- for the source

    def push(self, event: WatchEvent) -> None:
        """Queue an event."""
        if self._ended or (event.type == "BOOKMARK" and (not self._bookmarks or self._held is not None)):
            return
        self._events.extend([event] * (2 if self.twice else 1))

    def push_entry(self, entry: Entry) -> None:
        """Queue what a write means to this watch."""
        if self._held is not None:
            self._held.append(entry)
        elif entry.object is None:
            self.push_unreadable(f"{entry.type} {entry.key}", entry.key)
        else:
            self.push(WatchEvent(entry.type, entry.object))

    def push_unreadable(self, what: str, key: ObjectKey | None = None) -> None:
        """An event comes that is no object; its key may be readable."""
        self.unreadable += 1
        self.last_unreadable = what
        if key is not None:
            self.unreadable_keys.add(key)

    def hold(self) -> None:
        """From now on keep entries back: the server stands still."""
        self._held = deque()

    def catch_up(self) -> None:
        """Deliver what was kept back, and go on at full pace."""
        self.twice = self.slow = False
        held, self._held = self._held, None
        for entry in held or ():
            self.push_entry(entry)

    def compacted(self) -> None:
        """The history is gone: a stream that had not got to its end is told so, one that is up to date is not."""
        if self._events or self._held:
            self.expire()

    def expire(self) -> None:
        """End with 410, now."""
        self.cut(ExpiredError("too old resource version"))

    def cut(self, error: Exception) -> None:
        """End with an error, now: what is queued is lost."""
        self._events.clear()
        self._ended, self._error = True, error

    def end(self, error: Exception | None) -> None:
        """What is queued is still read; nothing is queued any more. The first end counts."""
        if not self._ended:
            self._ended = True
            self._error = error

    # ---- for the reader

    def __iter__(self) -> Iterator[WatchEvent]:
        return self

    def __next__(self) -> WatchEvent:
        with self._condition:
            while True:
                wait: float | None = None
                if not self.half_open:
                    if self._events and not self._stalled():
                        wait = self._pause()
                        if wait is None:
                            return self._events.popleft()
                    elif self._ended and (self._error is None or not self._stalled()):
                        raise self._over()
                    if self._deadline is not None:
                        left = self._deadline - self._clock.now()
                        if left <= 0:
                            raise self._over()
                        wait = left if wait is None else min(wait, left)
                elif self._closed:
                    raise self._over()
                self._clock.wait(self._condition, wait)

    def read_batch(self) -> list[WatchEvent]:
        """What has come, in order; waits for the first event. Empty at the end. Raises what iteration raises."""
        with self._condition:
            first = next(self, None)
            if first is None:
                return []
            batch = [first]
            while self._events and not (self.slow or self.half_open or self._stalled()):
                batch.append(self._events.popleft())
            return batch

    def _pause(self) -> float | None:
        """How long the next event has to wait, if it has."""
        if not self.slow:
            return None
        now = self._clock.now()
        if self._not_before is None:
            self._not_before = now + _SLOW
        if now < self._not_before:
            return self._not_before - now
        self._not_before = None
        return None

    def _over(self) -> BaseException:
        error, self._error = self._error, None
        self._on_end(self)
        return StopIteration() if error is None else error

    def close(self) -> None:
        """End the stream, from any thread."""
        with self._condition:
            self._events.clear()
            self._closed = self._ended = True
            self._error = None
            self._on_end(self)
            self._condition.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def bookmark(version: int, *, initial_events_end: bool = False) -> WatchEvent:
    """A BOOKMARK event of a version; with the annotation that ends a streamed list."""
    metadata: dict[str, Any] = {"name": "", "resourceVersion": str(version)}
    if initial_events_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return WatchEvent("BOOKMARK", Object.from_dict({"metadata": metadata}))
