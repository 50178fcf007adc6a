"""What a reflector remembers of its work: counts, moments, what failed last and what could not be read."""

from __future__ import annotations

import logging

from informers.failure import Failure
from informers.source import WatchStream

__all__ = ["Journal"]

_REPEAT_LOG = 60.0


class Journal:
    """Counts and remembers. Not thread-safe: the reflector's asking thread writes, readers may see a moment between."""

    def __init__(self, name: str, log: logging.Logger) -> None:
        self.counts = dict.fromkeys(("lists", "watches", "events", "failures", "sink_errors", "unreadable"), 0)
        self.list_bytes = 0
        self.last_unreadable = ""
        self.last_error = ""
        self.last_error_at: float | None = None
        self.failing_since: float | None = None
        self.last_list_at: float | None = None
        self.last_event_at: float | None = None
        self._name = name
        self._log = log
        self._logged = ("", 0.0)

    def events(self, now: float, count: int = 1) -> None:
        """So many events were read."""
        self.counts["events"] += count
        self.last_event_at = now

    def unreadable_item(self, key: object | None) -> None:
        """An item of a list was no object; its key, if that could be read."""
        self.counts["unreadable"] += 1
        self.last_unreadable = f"{key or 'an item without a readable key'} in a list"

    def unreadable_with(self, stream: WatchStream | None) -> tuple[int, str]:
        """How much could not be read so far, and the last of it, what an open stream says of itself included."""
        return (
            self.counts["unreadable"] + int(getattr(stream, "unreadable", 0)),
            str(getattr(stream, "last_unreadable", "")) or self.last_unreadable,
        )

    def closed(self, stream: WatchStream) -> None:
        """A stream is over: take over what it counted."""
        self.counts["unreadable"], self.last_unreadable = self.unreadable_with(stream)

    def sink_failed(self, what: str, error: Exception) -> None:
        """The sink raised."""
        self.counts["sink_errors"] += 1
        self._log.error("%s: the sink refused %s", self._name, what, exc_info=error)

    def failed(self, now: float, failure: Failure) -> None:
        """A request failed. It is logged; one that goes on failing alike is said once a minute."""
        self.counts["failures"] += 1
        self.last_error = failure.message
        self.last_error_at = now
        if self.failing_since is None:
            self.failing_since = now
        message, at = self._logged
        if failure.message == message and now - at < _REPEAT_LOG:
            self._log.debug("%s: %s", self._name, failure.message)
            return
        self._logged = (failure.message, now)
        self._log.log(failure.log_level, "%s: %s", self._name, failure.message)
