"""An event recorder that keeps what it is told instead of writing it to an API server."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from informers import ObjectKey
from pysedna.controller import EventRecorder
from pysedna.controller.events import Occurrence


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One event; `str()` gives "Type Reason message"."""

    kind: str
    key: ObjectKey
    type: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.type} {self.reason} {self.message}"


class FakeRecorder(EventRecorder):
    """An `EventRecorder` for tests. Thread-safe; checks its arguments like the real one; nothing is aggregated or
    dropped.
    """

    def __init__(self, component: str = "test") -> None:
        super().__init__(component, self._keep)
        self._lock = threading.Lock()
        self._events: list[RecordedEvent] = []

    @property
    def events(self) -> list[RecordedEvent]:
        """What was recorded so far, in order; a copy."""
        with self._lock:
            return list(self._events)

    def take(self) -> list[RecordedEvent]:
        """What was recorded since the last call."""
        with self._lock:
            taken, self._events = self._events, []
            return taken

    def _keep(self, what: Occurrence) -> None:
        involved = dict(what.involved)
        key = ObjectKey(involved.get("namespace", ""), involved["name"])
        with self._lock:
            self._events.append(RecordedEvent(involved["kind"], key, what.type, what.reason, what.message))
