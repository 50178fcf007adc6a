"""What an informer says about itself: one frozen snapshot for health endpoints, messages and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from informers.handlers import HandlerStatistics
from informers.reflector import ReflectorStatus

__all__ = ["InformerStatus", "MetricsProvider"]


@dataclass(frozen=True, slots=True)
class InformerStatus:
    """An informer at one moment.

    `state` is "new", "stopped", or the state of the source that is in the worst shape (see `ReflectorStatus.state`;
    "gone" before "waiting" before the others). `last_error` is the newest failure that has not been overcome, or "".
    `time_travel` counts events older than the cache, `unreadable` items and events that could not be taken for
    objects or that the transform refused, `index_errors` the failures of each index function, with `last_index_error`
    naming the last. `unfinished` names threads that were still inside a request when `stop` ran out of time.
    """

    name: str
    state: str
    synced: bool
    objects: int
    queued: int
    last_error: str
    time_travel: int
    unreadable: int
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
