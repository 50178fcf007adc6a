"""What a worker is handed with a term: when to stop, whether it may still act, and a token to prove it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import StrEnum

from leaderelection.clock import Clock
from leaderelection.core import FencingToken, Term
from leaderelection.errors import NotLeading

__all__ = ["ElectionEvent", "EventType", "Leadership"]


class EventType(StrEnum):
    """What happened to an elector."""

    STARTED_LEADING = "StartedLeading"
    STOPPED_LEADING = "StoppedLeading"
    """The worker has returned, of itself or because it was asked to."""
    LOST = "Lost"
    """The term ended against our will; the worker was told to stop."""
    RELEASED = "Released"
    NEW_LEADER = "NewLeader"
    ATTEMPT_FAILED = "AttemptFailed"
    """The lock could not be read or written."""


@dataclass(frozen=True, slots=True)
class ElectionEvent:
    """One thing that happened. `term` is the number of the term that it is about, or -1; `message` is for people."""

    type: EventType
    identity: str
    term: int
    message: str


class Leadership:
    """One term, as its worker sees it. Thread-safe.

    The worker runs until `stop` is set, and checks `guard()` right before each act that nobody else may do at the same
    time. That shrinks the window to the time between check and effect; only a resource that compares `token` closes it.
    """

    def __init__(self, term: Term, clock: Clock) -> None:
        self.stop = threading.Event()
        """Set when the worker shall return: the term is lost, or the elector was asked to stop."""
        self.number = term.number
        self._clock = clock
        self._token = term.token
        self._deadline = term.deadline
        self._over = ""
        self._lost = ""

    @property
    def token(self) -> FencingToken:
        """Proves the term to resources that refuse older ones. Changes if the Lease was deleted and made anew."""
        return self._token

    @property
    def deadline(self) -> float:
        """Until when we lead for certain, on the elector's clock; moves with each acknowledged renewal."""
        return self._deadline

    @property
    def lost(self) -> str:
        """Why the term ended against our will; empty as long as it did not."""
        return self._lost

    def guard(self) -> None:
        """Raise `NotLeading` unless we may act at this moment. Reads the clock itself; never blocks."""
        if self._over:
            raise NotLeading(f"term {self.number} is over: {self._over}")
        late = self._clock.now() - self._deadline
        if late >= 0:
            raise NotLeading(f"term {self.number} ended {late:.3f} s ago: not renewed in time")

    # What follows is for the elector.

    def renewed(self, term: Term) -> None:
        """Take over deadline and token after an acknowledged renewal."""
        self._token = term.token
        self._deadline = term.deadline

    @property
    def over(self) -> bool:
        """True once the term has ended in whatever way."""
        return bool(self._over)

    def end(self, why: str, *, lost: bool) -> None:
        """Let `guard` refuse from now on. If the term was lost the worker is told to stop."""
        if self._over:
            return
        self._over = why
        if lost:
            self._lost = why
            self.stop.set()
