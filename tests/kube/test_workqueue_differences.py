"""The differences between client-go's work queue and ours, one test each, played to both.

The name of a test is a row of the table in docs/workqueue.md; it asserts what client-go 0.37 does and what we do.
Some rows are differences from controller-runtime only: there, the two answer alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [
    pytest.mark.kube,
    pytest.mark.timeout(900),  # the first build compiles client-go
]

EXPONENTIAL = {"kind": "exponential", "base": 1, "max": 8}
HALF_A_SECOND = 256


class Side:
    """The answers of one queue."""

    def __init__(self, steps: tuple[str, ...], answers: list[dict[str, Any]]) -> None:
        self.got = [answer["result"] for step, answer in zip(steps, answers, strict=True) if step == "get"]
        self.answers = answers
        self.last = answers[-1]

    def each(self, field: str) -> list[Any]:
        """One field of the answers to all steps."""
        return [answer[field] for answer in self.answers]


Both = Callable[..., tuple[Side, Side]]


@pytest.fixture
def both(play_there: Callable[..., Any], play_here: Callable[..., Any]) -> Both:
    """both(step, ...) -> the answers there, the answers here."""

    def play(*steps: str, limiter: dict[str, Any] = EXPONENTIAL) -> tuple[Side, Side]:
        (there,), (here,) = (play([(limiter, list(steps))]) for play in (play_there, play_here))
        return Side(steps, there), Side(steps, here)

    return play


# -- what is queued


def test_add_of_a_waiting_item(both: Both) -> None:
    there, here = both("add_after a 5", "add a", "get", "done a", "advance 5", "get")
    assert there.got == ["a", "a"]
    assert here.got == ["a", "nothing"]


def test_add_of_an_item_in_process_that_waits_too(both: Both) -> None:
    there, here = both("add a", "get", "add_after a 5", "add a", "done a", "get", "done a", "advance 5", "get")
    assert there.got == ["a", "a", "a"]
    assert here.got == ["a", "a", "nothing"]


def test_add_after_of_a_ready_item(both: Both) -> None:
    there, here = both("add a", "add_after a 5", "get", "done a", "advance 5", "get")
    assert there.got == ["a", "a"]
    assert here.got == ["a", "nothing"]


def test_add_after_of_an_item_with_a_re_run_pending(both: Both) -> None:
    there, here = both("add a", "get", "add a", "add_after a 5", "done a", "get", "done a", "advance 5", "get")
    assert there.got == ["a", "a", "a"]
    assert here.got == ["a", "a", "nothing"]


def test_items_due_at_the_same_moment(both: Both) -> None:
    there, here = both(*(f"add_after {item} 5" for item in "abcd"), "advance 5", *["get"] * 4)
    assert there.got == ["a", "d", "c", "b"]
    assert here.got == ["a", "b", "c", "d"]


def test_an_item_in_process_that_was_added_again(both: Both) -> None:
    there, here = both("add a", "get", "add a", "done a")
    assert there.each("len") == here.each("len") == [1, 0, 0, 1]
    assert there.each("depth") == here.each("depth") == [1, 0, 1, 1]


def test_the_place_of_a_re_run(both: Both) -> None:
    there, here = both("add a", "get", "add a", "add b", "done a", "get", "get")
    assert there.got == here.got == ["a", "b", "a"]


# -- done


def test_done_of_what_was_not_handed_out(both: Both) -> None:
    there, here = both("done a")
    assert there.last["result"] == ""
    assert here.last["result"] == "not processing"


def test_done_of_a_queued_item(both: Both) -> None:
    there, here = both("add a", "done a", "get", "get")
    assert there.got == ["a", "a"]  # two workers have it at once
    assert here.answers[1]["result"] == "not processing"
    assert here.got == ["a", "nothing"]


def test_done_twice(both: Both) -> None:
    there, here = both("add a", "get", "add a", "done a", "done a", "get", "get")
    assert there.got == ["a", "a", "a"]
    assert here.answers[4]["result"] == "not processing"
    assert here.got == ["a", "a", "nothing"]


# -- the end


def test_shutdown_with_items_ready(both: Both) -> None:
    there, here = both("add a", "add b", "shut_down", "get", "get", "get")
    assert there.got == here.got == ["a", "b", "shut down"]


def test_shutdown_with_items_waiting(both: Both) -> None:
    there, here = both("add_after a 5", "shut_down", "advance 5", "get")
    assert there.got == here.got == ["shut down"]


def test_a_re_run_after_shutdown(both: Both) -> None:
    there, here = both("add a", "get", "add a", "shut_down", "get", "done a", "get")
    assert there.got == here.got == ["a", "shut down", "a"]


def test_a_drain_with_items_ready(both: Both) -> None:
    there, here = both("add a", "shut_down_with_drain", "get", "done a")
    assert there.each("drained") == [0, 1, 1, 1]
    assert here.each("drained") == [0, 0, 0, 1]


def test_a_drain_with_a_re_run_pending(both: Both) -> None:
    there, here = both("add a", "get", "add a", "shut_down_with_drain", "done a", "get", "done a")
    assert there.each("drained")[3:] == [0, 1, 1, 1]
    assert here.each("drained")[3:] == [0, 0, 0, 1]


def test_two_drains(both: Both) -> None:
    there, here = both("add a", "get", "shut_down_with_drain", "shut_down_with_drain", "done a")
    assert there.last["drained"] == 1  # and the other one waits for ever
    assert here.last["drained"] == 2


def test_a_second_shutdown_after_a_drain_began(both: Both) -> None:
    there, here = both("add a", "get", "shut_down", "shut_down_with_drain", "shut_down")
    assert there.last["drained"] == 0
    assert here.last["drained"] == 1


# -- retries


def test_add_rate_limited_after_shutdown(both: Both) -> None:
    there, here = both("add_rate_limited a", "shut_down", "add_rate_limited a")
    assert there.each("requeues") == [1, 0, 2]
    assert here.each("requeues") == [1, 0, 1]


def test_failures_that_nobody_forgets(both: Both) -> None:
    there, here = both(
        "add_rate_limited a", "advance 1", "get", "done a", "advance 100", "add_rate_limited b", "add_rate_limited a"
    )
    assert there.last["requeues"] == 2
    assert here.last["requeues"] == 1


def test_the_default_rate_limiter(both: Both) -> None:
    items = [f"item-{number}" for number in range(150)]
    there, here = both(*(f"add_rate_limited {item}" for item in items), "advance 3", limiter={"kind": "default"})
    assert there.last["len"] == 100  # the others wait for the bucket that all items share
    assert here.last["len"] == 150


# -- metrics


def test_the_count_of_retries(both: Both) -> None:
    there, here = both("add_after a 0", "add_after b 5", "add_rate_limited c", "add d")
    assert there.each("retries") == here.each("retries") == [1, 2, 3, 3]


def test_the_age_of_work_in_process(both: Both) -> None:
    there, here = both("add a", "get", "advance 10", f"advance {HALF_A_SECOND}", "done a")
    assert there.each("longest")[2:] == [0, (HALF_A_SECOND + 10) / 512, (HALF_A_SECOND + 10) / 512]
    assert here.each("longest")[2:] == [10 / 512, (HALF_A_SECOND + 10) / 512, 0]


def test_the_time_that_a_delayed_item_was_queued(both: Both) -> None:
    there, here = both("add_after a 5", "advance 8", "get")
    assert there.last["queued"] == [0]
    assert here.last["queued"] == [3 / 512]
