"""An edge sink that keeps every message."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from informers import Object
from pysedna.edge import EdgeSink
from pysedna.edge.sink import Operation


@dataclass(frozen=True, slots=True)
class Sent:
    """One message that was handed over."""

    node: str
    op: Operation
    obj: Object


class RecordingSink(EdgeSink):
    """An `EdgeSink` for tests. Thread-safe. `refuse_with` makes every later `send` raise that error; None ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: list[Sent] = []
        self._error: Exception | None = None

    @property
    def sent(self) -> list[Sent]:
        """The messages so far, in order; a copy."""
        with self._lock:
            return list(self._sent)

    def take(self) -> list[Sent]:
        """The messages since the last call."""
        with self._lock:
            taken, self._sent = self._sent, []
            return taken

    def refuse_with(self, error: Exception | None) -> None:
        """From now on raise `error` instead of taking messages."""
        with self._lock:
            self._error = error

    def send(self, node: str, op: Operation, obj: Object) -> None:
        """See `EdgeSink.send`."""
        with self._lock:
            if self._error is not None:
                raise self._error
            self._sent.append(Sent(node, op, obj))
