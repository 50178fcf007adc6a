"""A watch on the store in memory: waits on the store's own condition for what comes next."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

from informers.decoder import Malformed, ObjectDecoder
from informers.errors import ApiError
from informers.source import WatchEvent
from informers.store import Stored, WatchItem
from workqueue.clock import Clock

__all__ = ["FakeStream"]


class FakeStream:
    """Implements `WatchStream`. `poll` is called with the condition held. Ends after `seconds`, as a server would."""

    def __init__(
        self,
        condition: threading.Condition,
        poll: Callable[[], Sequence[WatchItem]],
        decoder: ObjectDecoder,
        *,
        render: Callable[[Stored], bytes],
        clock: Clock,
        seconds: float | None,
        closed: Callable[[FakeStream], None],
    ) -> None:
        self._condition = condition
        self._poll = poll
        self._decoder = decoder
        self._render = render
        self._clock = clock
        self._until = None if seconds is None else clock.now() + seconds
        self._on_closed = closed
        self._ready: deque[WatchItem] = deque()
        self._ended = False
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[WatchEvent]:
        return self

    def __next__(self) -> WatchEvent:
        while True:
            item = self._take()
            line = b'{"type":"%s","object":%s}' % (item.type.encode(), self._render(item.stored))
            event = self._decoder.event(line)
            if not isinstance(event, Malformed):
                return event

    def _take(self) -> WatchItem:
        with self._condition:
            while not self._ready and not self._ended:
                try:
                    self._ready.extend(self._poll())
                except ApiError as error:  # the version that the stream stands at was compacted
                    error.verb = "watch"
                    self.end(error)
                    break
                left = None if self._until is None else self._until - self._clock.now()
                if left is not None and left <= 0:
                    self.end(None)
                elif not self._ready:
                    self._clock.wait(self._condition, left)
            if self._ready:
                return self._ready.popleft()
            failure, self._error = self._error, None
        if failure is not None:
            raise failure
        raise StopIteration

    def end(self, error: Exception | None) -> None:
        """End the stream as a server does, after what was read already. The condition is held."""
        self._ended = True
        self._error = error
        self._on_closed(self)
        self._condition.notify_all()

    def close(self) -> None:
        """See `WatchStream.close`."""
        with self._condition:
            self._ready.clear()
            self.end(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
