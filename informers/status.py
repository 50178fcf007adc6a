"""What an informer and its sources say about themselves: frozen snapshots for health endpoints, messages, metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from informers.handlers import HandlerStatistics

__all__ = ["InformerStatus", "MetricsProvider", "ReflectorStatus"]


@dataclass(frozen=True, slots=True)
class ReflectorStatus:
    """A reflector at one moment. Ages are seconds, None for what has not happened yet.

    `state`: "new", "listing", "streaming" (reading the list from a watch), "watching", "waiting" (before the next
    attempt), "gone" (the kind was deleted from the server) or "stopped". `connected_age` is the age of the stream that
    is open, None without one. `lag` is the time since the source last showed that the sink has all there is: by a list,
    an event, a bookmark, or by taking or ending a watch. A healthy API server keeps it at about a minute, one without
    bookmarks at the time of a watch (ten minutes); what is silent or cannot be reached lets it grow. `list_bytes` is
    the size of the largest body among the pages of the last list, which is held in memory once while it is split.
    `unreadable` counts list items and events that were no objects; `last_unreadable` names the last.
    """

    source: str
    state: str
    resource_version: str
    listed: bool
    last_error: str
    last_error_age: float | None
    last_list_age: float | None
    last_event_age: float | None
    connected_age: float | None
    lag: float | None
    lists: int
    watches: int
    snapshots: int
    events: int
    failures: int
    sink_errors: int
    unreadable: int
    last_unreadable: str
    list_bytes: int
    watch_list: bool


@dataclass(frozen=True, slots=True)
class InformerStatus:
    """An informer at one moment.

    `state` is "new", "stopped", or the state of the source that is in the worst shape (see `ReflectorStatus.state`;
    "gone" before "waiting" before the others), `lag` that of the source which lags most (None until all were listed).
    `last_error` is the newest failure that has not been overcome, or "". `time_travel` counts events older than the
    cache, `unreadable` items and events that could not be taken for objects or that the transform refused, with
    `last_unreadable` naming the last, `index_errors` the failures of each index function, with `last_index_error`
    naming the last. `unfinished` names threads that were still inside a request when `stop` ran out of time.
    """

    name: str
    state: str
    synced: bool
    objects: int
    queued: int
    last_error: str
    lag: float | None
    time_travel: int
    unreadable: int
    last_unreadable: str
    internal_errors: int
    index_errors: Mapping[str, int]
    last_index_error: str
    sources: tuple[ReflectorStatus, ...]
    handlers: tuple[HandlerStatistics, ...]
    unfinished: tuple[str, ...]


class MetricsProvider(Protocol):
    """What an informer registers with when it is made."""

    def informer(self, status: Callable[[], InformerStatus]) -> None:
        """Start reporting an informer. `status` is its method: keep it weakly or not for long."""
