"""What the outcome of a reconcile means for its key: the requeue matrix."""

from __future__ import annotations

import pytest

from informers.errors import ConflictError
from pysedna.controller import Cancelled, NotLeading, Result, TerminalError
from pysedna.controller.result import Decision, Requeue, Verdict, decide

MATRIX = [
    ("nothing to do: failures forgotten, not back", None, Decision(Verdict.SUCCESS, forget=True)),
    ("an empty result is nothing", Result(), Decision(Verdict.SUCCESS, forget=True)),
    ("a priority alone asks for no run", Result(priority=5), Decision(Verdict.SUCCESS, forget=True)),
    (
        "requeue_after forgets failures and keeps the priority",
        Result(requeue_after=2.5),
        Decision(Verdict.REQUEUE_AFTER, Requeue.AFTER, 2.5, None, forget=True),
    ),
    (
        "requeue_after with a priority of its own",
        Result(requeue_after=2.5, priority=-7),
        Decision(Verdict.REQUEUE_AFTER, Requeue.AFTER, 2.5, -7, forget=True),
    ),
    (
        "requeue_after 0 is at once, not never",
        Result(requeue_after=0),
        Decision(Verdict.REQUEUE, Requeue.AFTER, 0, None, forget=True),
    ),
    (
        "an error backs off and keeps counting",
        ConflictError("changed meanwhile"),
        Decision(Verdict.ERROR, Requeue.RATE_LIMITED),
    ),
    (
        "an error of the program is one too, and counted apart",
        KeyError("spec"),
        Decision(Verdict.ERROR, Requeue.RATE_LIMITED, panic=True),
    ),
    (
        "a terminal error does not come back",
        TerminalError("no such image"),
        Decision(Verdict.ERROR, forget=True, terminal=True),
    ),
    (
        "time up is an error",
        Cancelled("time is up", overrun=True),
        Decision(Verdict.ERROR, Requeue.RATE_LIMITED, overrun=True),
    ),
    ("cut short by a stop: not counted", Cancelled("stopping"), Decision(Verdict.ABANDONED, Requeue.RATE_LIMITED)),
    ("not leading: not counted", NotLeading("lost"), Decision(Verdict.ABANDONED, Requeue.RATE_LIMITED)),
]


@pytest.mark.parametrize(("rule", "outcome", "decision"), MATRIX, ids=[row[0] for row in MATRIX])
def test_requeue_matrix(rule: str, outcome: Result | Exception | None, decision: Decision) -> None:
    assert decide(outcome) == decision


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused_where_it_is_written(seconds: float) -> None:
    with pytest.raises(ValueError, match="requeue_after"):
        Result(requeue_after=seconds)
