"""What a reconcile says, and what that means for the queue.

`decide` is the whole requeue rule as a pure function: the outcome of a run goes in, what to do with the key comes out.
`Controller` carries it out and counts it.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from pysedna.controller.errors import Cancelled, NotLeading, TerminalError

# What Go would call a panic: the code is wrong, not the world. Counted apart, retried like any other error.
PROGRAMMING_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RecursionError,
    TypeError,
)


@dataclass(frozen=True, slots=True)
class Result:
    """What should happen after a run that went well.

    `requeue_after`: seconds until the key is reconciled again; 0 means at once, None that the next change will do.
    `priority`: the priority of that next run; None keeps the priority of this one.
    """

    requeue_after: float | None = None
    priority: int | None = None

    def __post_init__(self) -> None:
        if self.requeue_after is not None and not (math.isfinite(self.requeue_after) and self.requeue_after >= 0):
            raise ValueError(f"requeue_after must be a finite number of seconds, 0 or more: {self.requeue_after!r}")


class Verdict(enum.Enum):
    """How a run ended; the value is the `result` label of controller_runtime_reconcile_total."""

    SUCCESS = "success"
    ERROR = "error"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"
    ABANDONED = "abandoned"  # never counted: the run did not happen, or was cut short by a stop or a lost lease


class Requeue(enum.Enum):
    """How the key goes back into the queue."""

    NO = "no"
    RATE_LIMITED = "rate limited"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with the key: back into the queue or not (and when), and whether its failures are forgotten."""

    verdict: Verdict
    requeue: Requeue = Requeue.NO
    delay: float = 0.0
    priority: int | None = None
    forget: bool = False
    terminal: bool = False
    panic: bool = False
    overrun: bool = False


def decide(outcome: Result | Exception | None) -> Decision:
    """What the outcome of a reconcile (what it returned, or raised) means for its key.

    - an error: back with the backoff of the key's failures, which are kept; `TerminalError`: not back, failures
      forgotten;
    - time up: an error; stopped or not leading: back, without counting (a stopped queue ignores it);
    - `requeue_after`: failures forgotten, back after that time, at the priority it had or the one given;
    - nothing, or an empty `Result`: failures forgotten, not back."""
    if isinstance(outcome, Exception):
        return _after_error(outcome)
    if outcome is None or outcome.requeue_after is None:
        return Decision(Verdict.SUCCESS, forget=True)
    verdict = Verdict.REQUEUE_AFTER if outcome.requeue_after > 0 else Verdict.REQUEUE
    return Decision(verdict, Requeue.AFTER, outcome.requeue_after, outcome.priority, forget=True)


def _after_error(error: Exception) -> Decision:
    if isinstance(error, TerminalError):
        return Decision(Verdict.ERROR, forget=True, terminal=True)
    if isinstance(error, NotLeading) or (isinstance(error, Cancelled) and not error.overrun):
        return Decision(Verdict.ABANDONED, Requeue.RATE_LIMITED)
    overrun = isinstance(error, Cancelled)
    return Decision(Verdict.ERROR, Requeue.RATE_LIMITED, panic=isinstance(error, PROGRAMMING_ERRORS), overrun=overrun)
