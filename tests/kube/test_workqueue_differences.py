"""The differences between client-go's work queue, controller-runtime's priority queue and ours, one test each.

The name of a test is a row of the table in docs/workqueue.md. Its steps are played to all three, and it asserts what
each of them does: client-go 0.37, controller-runtime 0.25, and ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [
    pytest.mark.kube,
    pytest.mark.slow,
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


Play = Callable[..., tuple[Side, Side, Side]]


@pytest.fixture
def play(play_there: Callable[..., Any], play_here: Callable[..., Any]) -> Play:
    """play(step, ...) -> the answers of client-go, of controller-runtime, and ours."""

    def play(*steps: str, limiter: dict[str, Any] = EXPONENTIAL) -> tuple[Side, Side, Side]:
        history = [(limiter, list(steps))]
        (client_go,), (runtime,) = (play_there(history, queue=name) for name in ("client-go", "controller-runtime"))
        (here,) = play_here(history)
        return Side(steps, client_go), Side(steps, runtime), Side(steps, here)

    return play


# -- what is queued


def test_add_of_a_waiting_item(play: Play) -> None:
    client_go, runtime, here = play("add_after a 5", "add a", "get", "done a", "advance 5", "get")
    assert client_go.got == ["a", "a"]
    assert runtime.got == here.got == ["a", "nothing"]


def test_add_of_an_item_in_process_that_waits_too(play: Play) -> None:
    client_go, runtime, here = play(
        "add a", "get", "add_after a 5", "add a", "done a", "get", "done a", "advance 5", "get"
    )
    assert client_go.got == ["a", "a", "a"]
    assert runtime.got == here.got == ["a", "a", "nothing"]


def test_add_after_of_a_ready_item(play: Play) -> None:
    client_go, runtime, here = play("add a", "add_after a 5", "get", "done a", "advance 5", "get")
    assert client_go.got == ["a", "a"]
    assert runtime.got == here.got == ["a", "nothing"]


def test_add_after_of_an_item_with_a_re_run_pending(play: Play) -> None:
    client_go, runtime, here = play(
        "add a", "get", "add a", "add_after a 5", "done a", "get", "done a", "advance 5", "get"
    )
    assert client_go.got == ["a", "a", "a"]
    assert runtime.got == here.got == ["a", "a", "nothing"]


def test_items_due_at_the_same_moment(play: Play) -> None:
    client_go, runtime, here = play(*(f"add_after {item} 5" for item in "abcd"), "advance 5", *["get"] * 4)
    assert client_go.got == ["a", "d", "c", "b"]
    assert runtime.got == here.got == ["a", "b", "c", "d"]


def test_an_item_in_process_that_was_added_again(play: Play) -> None:
    client_go, runtime, here = play("add a", "get", "add a", "done a")
    assert client_go.each("len") == here.each("len") == [1, 0, 0, 1]
    assert runtime.each("len") == [1, 0, 1, 1]
    assert client_go.each("depth") == runtime.each("depth") == here.each("depth") == [1, 0, 1, 1]


def test_the_place_of_a_re_run(play: Play) -> None:
    client_go, runtime, here = play("add a", "get", "add a", "add b", "done a", "get", "get")
    assert client_go.got == here.got == ["a", "b", "a"]
    assert runtime.got == ["a", "a", "b"]


def test_the_place_of_a_waiting_item_that_is_added(play: Play) -> None:
    client_go, runtime, here = play("add_after a 5", "add b", "add a", "get", "get")
    assert client_go.got == here.got == ["b", "a"]
    assert runtime.got == ["a", "b"]


# -- done


def test_done_of_what_was_not_handed_out(play: Play) -> None:
    client_go, runtime, here = play("done a")
    assert client_go.last["result"] == runtime.last["result"] == ""
    assert here.last["result"] == "not processing"


def test_done_of_a_queued_item(play: Play) -> None:
    client_go, runtime, here = play("add a", "done a", "get", "get")
    assert client_go.got == ["a", "a"]  # two workers have it at once
    assert runtime.answers[1]["result"] == ""
    assert here.answers[1]["result"] == "not processing"
    assert runtime.got == here.got == ["a", "nothing"]


def test_done_twice(play: Play) -> None:
    client_go, runtime, here = play("add a", "get", "add a", "done a", "done a", "get", "get")
    assert client_go.got == ["a", "a", "a"]
    assert runtime.answers[4]["result"] == ""
    assert here.answers[4]["result"] == "not processing"
    assert runtime.got == here.got == ["a", "a", "nothing"]


# -- the end


def test_shutdown_with_items_ready(play: Play) -> None:
    client_go, runtime, here = play("add a", "add b", "shut_down", "get", "get", "get")
    assert client_go.got == here.got == ["a", "b", "shut down"]
    assert runtime.got == ["shut down"] * 3


def test_shutdown_with_items_waiting(play: Play) -> None:
    client_go, runtime, here = play("add_after a 5", "shut_down", "advance 5", "get")
    assert client_go.got == runtime.got == here.got == ["shut down"]


def test_a_re_run_after_shutdown(play: Play) -> None:
    client_go, runtime, here = play("add a", "get", "add a", "shut_down", "get", "done a", "get")
    assert client_go.got == here.got == ["a", "shut down", "a"]
    assert runtime.got == ["a", "shut down", "shut down"]


def test_a_drain_with_items_ready(play: Play) -> None:
    client_go, runtime, here = play("add a", "shut_down_with_drain", "get", "done a")
    assert client_go.each("drained") == [0, 1, 1, 1]
    assert runtime.each("drained") == [0, 1, 1, 1]
    assert runtime.got == ["shut down"]
    assert here.each("drained") == [0, 0, 0, 1]


def test_a_drain_with_a_re_run_pending(play: Play) -> None:
    client_go, runtime, here = play("add a", "get", "add a", "shut_down_with_drain", "done a", "get", "done a")
    assert client_go.each("drained")[3:] == [0, 1, 1, 1]
    assert runtime.each("drained")[3:] == [1, 1, 1, 1]  # although the first run goes on
    assert here.each("drained")[3:] == [0, 0, 0, 1]


def test_two_drains(play: Play) -> None:
    client_go, runtime, here = play("add a", "get", "shut_down_with_drain", "shut_down_with_drain", "done a")
    assert (client_go.last["drained"], client_go.last["panicked"]) == (1, 0)  # and the other one waits for ever
    assert (runtime.last["drained"], runtime.last["panicked"]) == (1, 1)
    assert here.last["drained"] == 2


def test_a_second_shutdown_after_a_drain_began(play: Play) -> None:
    client_go, runtime, here = play("add a", "get", "shut_down", "shut_down_with_drain", "shut_down")
    assert client_go.last["drained"] == 0
    assert runtime.last["result"] == "panic"
    assert here.last["drained"] == 1


# -- retries


def test_add_rate_limited_after_shutdown(play: Play) -> None:
    client_go, runtime, here = play("add_rate_limited a", "shut_down", "add_rate_limited a")
    assert client_go.each("requeues") == [1, 0, 2]
    assert runtime.each("requeues") == here.each("requeues") == [1, 0, 1]


def test_failures_that_nobody_forgets(play: Play) -> None:
    client_go, runtime, here = play(
        "add_rate_limited a", "advance 1", "get", "done a", "advance 100", "add_rate_limited b", "add_rate_limited a"
    )
    assert client_go.last["requeues"] == runtime.last["requeues"] == 2
    assert here.last["requeues"] == 1


def test_the_default_rate_limiter(play: Play) -> None:
    items = [f"item-{number}" for number in range(150)]
    client_go, runtime, here = play(
        *(f"add_rate_limited {item}" for item in items), "advance 3", limiter={"kind": "default"}
    )
    assert client_go.last["len"] == 100  # the others wait for the bucket that all items share
    assert runtime.last["len"] == here.last["len"] == 150


# -- metrics


def test_the_count_of_retries(play: Play) -> None:
    client_go, runtime, here = play("add_after a 0", "add_after b 5", "add_rate_limited c", "add d")
    assert client_go.each("retries") == here.each("retries") == [1, 2, 3, 3]
    assert runtime.each("retries") == [0, 1, 2, 2]


def test_the_age_of_work_in_process(play: Play) -> None:
    client_go, runtime, here = play("add a", "get", "advance 10", f"advance {HALF_A_SECOND}", "done a")
    assert client_go.each("longest")[2:] == [0, (HALF_A_SECOND + 10) / 512, (HALF_A_SECOND + 10) / 512]
    assert runtime.each("longest")[2:] == [0, 0.5, 0.5]
    assert here.each("longest")[2:] == [10 / 512, (HALF_A_SECOND + 10) / 512, 0]


def test_the_time_that_a_delayed_item_was_queued(play: Play) -> None:
    client_go, runtime, here = play("add_after a 5", "advance 8", "get")
    assert client_go.last["queued"] == [0]  # its clock leaps past the due time
    assert runtime.last["queued"] == [3 / 512]  # its clock does not
    assert here.last["queued"] == [3 / 512]
