"""The rules of the queue, one by one, on its pure state."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from workqueue.core import QueueState
from workqueue.errors import NotProcessing, UnknownItem


def state(max_priority_age: float | None = None) -> QueueState[str]:
    return QueueState(max_priority_age=max_priority_age)


def take(core: QueueState[str], now: float = 0.0) -> str | None:
    entry = core.take(now)
    return None if entry is None else entry.item


def drain(core: QueueState[str], now: float = 0.0) -> list[str]:
    items = []
    while (item := take(core, now)) is not None:
        items.append(item)
        core.done(item, now)
    return items


# -- at most once in the queue


def test_two_adds_before_a_get_collapse_to_one() -> None:
    core = state()
    assert core.add("a", None, 0)
    assert not core.add("a", None, 0)
    assert core.ready_count() == 1
    assert drain(core) == ["a"]


def test_ready_and_waiting_count_together_so_add_makes_a_waiting_item_ready_now() -> None:
    core = state()
    core.add_after("a", 5, None, 0)
    assert core.add("a", None, 1)
    assert drain(core, 1) == ["a"]
    assert drain(core, 10) == []


def test_add_after_of_a_ready_item_does_not_queue_it_twice() -> None:
    core = state()
    core.add("a", None, 0)
    core.add_after("a", 5, None, 0)
    assert drain(core, 0) == ["a"]
    assert drain(core, 10) == []


@pytest.mark.parametrize(("first", "second", "due"), [(50, 70, 50), (50, 30, 30), (50, 50, 50)])
def test_the_earliest_due_time_wins(first: float, second: float, due: float) -> None:
    core = state()
    core.add_after("a", first, None, 0)
    core.add_after("a", second, None, 0)
    assert core.next_due() == due
    assert take(core, due - 1) is None
    assert take(core, due) == "a"
    core.done("a", due)
    assert take(core, 1000) is None


@pytest.mark.parametrize("priorities", [(1, 5), (5, 1)])
def test_the_highest_priority_wins_for_ready_items(priorities: tuple[int, int]) -> None:
    core = state()
    for priority in priorities:
        core.add("a", priority, 0)
    assert core.priority("a") == 5


@pytest.mark.parametrize("priorities", [(1, 5), (5, 1)])
def test_the_highest_priority_wins_for_waiting_items(priorities: tuple[int, int]) -> None:
    core = state()
    for priority in priorities:
        core.add_after("a", 3, priority, 0)
    assert core.priority("a") == 5
    core.add("a", 2, 0)
    assert core.priority("a") == 5


def test_an_add_without_priority_counts_as_zero_outside_of_processing() -> None:
    core = state()
    core.add("a", -100, 0)
    core.add("a", None, 0)
    assert core.priority("a") == 0


# -- never with two workers


def test_an_item_added_in_process_is_handed_out_once_more_after_done() -> None:
    core = state()
    core.add("a", None, 0)
    assert take(core) == "a"
    for _ in range(5):
        core.add("a", None, 0)
    assert take(core) is None
    assert core.ready_count() == 0
    assert core.statistics(0).pending == 1
    assert core.done("a", 0)[1]
    assert core.statistics(0).pending == 0
    assert drain(core) == ["a"]


def test_due_while_in_process_means_a_rerun() -> None:
    core = state()
    core.add("a", None, 0)
    take(core)
    core.add_after("a", 2, None, 0)
    assert take(core, 3) is None
    assert core.statistics(3).pending == 1
    core.done("a", 3)
    assert drain(core, 3) == ["a"]


def test_due_at_the_very_done_means_a_rerun() -> None:
    core = state()
    core.add("a", None, 0)
    take(core)
    core.add_after("a", 2, None, 0)
    assert core.done("a", 2)[1]


def test_not_due_in_process_goes_on_waiting_after_done() -> None:
    core = state()
    core.add("a", None, 0)
    take(core)
    core.add_after("a", 5, None, 0)
    assert not core.done("a", 1)[1]
    assert take(core, 4) is None
    assert take(core, 5) == "a"


def test_add_in_process_takes_over_what_was_waiting() -> None:
    core = state()
    core.add("a", 0, 0)
    take(core)
    core.add_after("a", 5, 7, 0)
    core.add("a", 3, 1)
    core.done("a", 1)
    assert core.priority("a") == 7
    assert drain(core, 1) == ["a"]
    assert drain(core, 100) == []


def test_add_after_with_a_pending_rerun_only_raises_its_priority() -> None:
    core = state()
    core.add("a", 0, 0)
    take(core)
    core.add("a", 1, 0)
    core.add_after("a", 5, 4, 0)
    core.done("a", 0)
    assert core.priority("a") == 4
    assert drain(core) == ["a"]
    assert drain(core, 100) == []


def test_a_retry_keeps_the_priority_of_its_run() -> None:
    core = state()
    core.add("a", 7, 0)
    take(core)
    core.add_after("a", 1, None, 0)
    core.done("a", 0)
    assert core.priority("a") == 7
    core.add("b", -3, 0)
    take(core, 0)
    core.add("b", None, 0)
    core.done("b", 0)
    assert core.priority("b") == -3


def test_a_rerun_has_the_highest_priority_given_meanwhile_not_that_of_the_run_before() -> None:
    core = state()
    core.add("a", 100, 0)
    take(core)
    core.add("a", 1, 0)
    core.add("a", 3, 0)
    core.add("a", 2, 0)
    assert core.priority("a") == 100  # of the run
    core.done("a", 0)
    assert core.priority("a") == 3


def test_done_of_what_was_not_handed_out_is_an_error() -> None:
    core = state()
    core.add("a", None, 0)
    with pytest.raises(NotProcessing, match="'a'"):
        core.done("a", 0)
    take(core)
    core.done("a", 0)
    with pytest.raises(NotProcessing):
        core.done("a", 0)


def test_priority_of_an_unknown_item_is_an_error() -> None:
    with pytest.raises(UnknownItem, match="'a' is neither queued nor in process"):
        state().priority("a")


# -- order


def test_fifo_within_one_priority() -> None:
    core = state()
    for item in "cab":
        core.add(item, None, 0)
    assert drain(core) == ["c", "a", "b"]


def test_higher_priority_first() -> None:
    core = state()
    for item, priority in (("low", -100), ("mid", 0), ("high", 5), ("mid2", 0)):
        core.add(item, priority, 0)
    assert drain(core) == ["high", "mid", "mid2", "low"]


def test_a_delayed_item_stands_where_its_due_time_puts_it() -> None:
    core = state()
    core.add_after("due at 2", 2, None, 0)
    core.add_after("due at 4", 4, None, 0)
    core.add("added at 1", None, 1)
    core.add("added at 3", None, 3)
    core.add("added at 5", None, 5)
    assert drain(core, 9) == ["added at 1", "due at 2", "added at 3", "due at 4", "added at 5"]


def test_ties_go_by_call_order() -> None:
    core = state()
    core.add_after("x", 5, None, 0)
    core.add_after("y", 4, None, 1)
    core.add("z", None, 5)
    assert drain(core, 5) == ["x", "y", "z"]


@pytest.mark.parametrize("reverse", [False, True])
def test_delayed_items_come_in_the_order_of_their_due_times(reverse: bool) -> None:
    core = state()
    for delay in sorted((1, 3, 5), reverse=reverse):
        core.add_after(str(delay), delay, None, 0)
    assert drain(core, 10) == ["1", "3", "5"]


def test_a_rise_of_priority_puts_the_item_at_the_end_of_its_new_class() -> None:
    core = state()
    core.add("a", 0, 0)
    core.add("b", 5, 1)
    core.add("c", 5, 2)
    core.add("a", 5, 3)
    assert drain(core, 3) == ["b", "c", "a"]


@pytest.mark.parametrize("priority", [5, 3, None])
def test_adding_again_at_the_same_or_a_lower_priority_keeps_the_place(priority: int | None) -> None:
    core = state()
    core.add("a", 5, 0)
    core.add("b", 5, 0)
    core.add("a", priority, 1)
    assert core.priority("a") == 5
    assert drain(core, 1) == ["a", "b"]


def test_add_after_of_a_ready_item_only_raises_its_priority() -> None:
    core = state()
    core.add("a", 0, 0)
    core.add("b", 0, 0)
    core.add_after("b", 100, 1, 0)
    assert drain(core) == ["b", "a"]


def test_a_rerun_becomes_ready_at_done() -> None:
    core = state()
    core.add("a", None, 0)
    take(core)
    core.add("a", None, 1)
    core.add("b", None, 2)
    core.done("a", 3)
    assert drain(core, 3) == ["b", "a"]


def test_a_rerun_is_as_old_as_the_done_before_it_and_was_queued_when_it_was_asked_for() -> None:
    core = state()
    core.add("a", None, 0)
    take(core)
    core.add("a", None, 1)
    core.done("a", 3)
    assert core.statistics(5).oldest_age == 2
    entry = core.take(5)
    assert entry is not None
    assert (entry.queued_at, entry.ready_at, entry.started_at) == (1, 3, 5)


@pytest.mark.parametrize("delay", [0, -1.0, -math.inf])
def test_no_delay_is_add(delay: float) -> None:
    core = state()
    assert core.add_after("a", delay, None, 0)
    assert take(core) == "a"


def test_an_endless_delay_never_comes_due_and_nan_is_refused() -> None:
    core = state()
    assert not core.add_after("a", math.inf, None, 0)
    assert take(core, 1e300) is None
    with pytest.raises(ValueError, match="NaN"):
        core.add_after("a", math.nan, None, 0)
    for wrong in ("1", None, 1j, Decimal(1)):
        with pytest.raises(TypeError):
            core.add_after("a", wrong, None, 0.0)  # type: ignore[arg-type]
    assert core.statistics(0).retries == 1


# -- cancel


def test_cancel_drops_a_ready_entry() -> None:
    core = state()
    core.add("a", None, 0)
    core.add("b", None, 0)
    assert core.cancel("a", 0)
    assert not core.cancel("a", 0)
    assert drain(core) == ["b"]
    core.add("a", None, 0)
    assert drain(core) == ["a"]


def test_cancel_drops_a_waiting_entry() -> None:
    core = state()
    core.add_after("a", 5, None, 0)
    assert core.cancel("a", 0)
    assert not core.cancel("a", 0)
    assert core.next_due() == math.inf
    assert drain(core, 10) == []


def test_what_is_due_counts_as_added_although_it_is_cancelled_before_anybody_looks() -> None:
    core = state()
    core.add_after("a", 5, None, 0)
    assert core.cancel("a", 5)
    assert core.statistics(5).adds == 1


def test_cancel_drops_a_pending_rerun_but_not_the_run() -> None:
    core = state()
    core.add("a", None, 0)
    take(core)
    assert not core.cancel("a", 0)
    core.add("a", None, 0)
    assert core.cancel("a", 0)
    assert core.statistics(0).pending == 0
    assert not core.done("a", 0)[1]
    assert drain(core) == []


def test_cancel_drops_what_waits_for_an_item_in_process() -> None:
    core = state()
    core.add("a", None, 0)
    take(core)
    core.add_after("a", 1, None, 0)
    assert core.cancel("a", 0)
    core.done("a", 5)
    assert drain(core, 5) == []


# -- shutdown


def test_adds_after_shutdown_are_ignored_and_counted() -> None:
    core = state()
    core.add("a", None, 0)
    take(core)
    core.shut_down(0)
    core.add("b", None, 0)
    core.add("a", None, 0)  # a worker's own retry
    core.add_after("c", 1, None, 0)
    assert not core.done("a", 0)[1]
    assert drain(core, 10) == []
    assert core.statistics(0).dropped == 3
    assert core.statistics(0).adds == 1


def test_shutdown_keeps_what_is_ready_or_due_and_drops_and_counts_what_waits() -> None:
    core = state()
    core.add("ready", None, 0)
    core.add_after("due", 1, None, 0)
    core.add_after("waiting", 5, None, 0)
    core.shut_down(1)
    assert drain(core, 10) == ["ready", "due"]
    assert core.statistics(10).dropped == 1
    assert core.idle


def test_a_rerun_asked_for_before_shutdown_still_comes() -> None:
    core = state()
    core.add("a", None, 0)
    take(core)
    core.add("a", None, 0)
    core.shut_down(0)
    assert not core.idle
    core.done("a", 0)
    assert drain(core) == ["a"]


# -- counting, memory


def test_statistics_count_by_state() -> None:
    core = state()
    for item in "abcd":
        core.add(item, None, 0)
    core.add_after("w", 10, None, 0)
    take(core, 1)
    take(core, 3)
    core.add("a", None, 3)
    seen = core.statistics(5)
    assert (seen.ready, seen.waiting, seen.processing, seen.pending) == (2, 1, 2, 1)
    assert (seen.adds, seen.retries, seen.gets, seen.oldest_age) == (5, 1, 2, 5)
    assert (seen.unfinished_seconds, seen.longest_processing) == (4 + 2, 4)


def test_seconds_are_floats_also_where_nothing_runs() -> None:
    idle = state().statistics(5.0)
    for seconds in (idle.oldest_age, idle.unfinished_seconds, idle.longest_processing):
        assert type(seconds) is float
        assert seconds == 0.0


def test_advanced_entries_never_outnumber_the_live_ones() -> None:
    core = state()
    for delay in range(1000, 0, -1):
        core.add_after("a", delay, None, 0)
        held, live = core.slots()["waiting"]
        assert held <= 2 * live


def test_cancelled_entries_never_outnumber_the_live_ones() -> None:
    core = state()
    for index in range(100):
        core.add_after(f"w{index}", index + 1, None, 0)
        core.add(f"r{index}", index % 3, 0)
    for index in range(100):
        core.cancel(f"w{index}", 0)
        core.cancel(f"r{index}", 0)
        for held, live in core.slots().values():
            assert held <= 2 * live


def test_a_negative_or_nan_maximum_age_is_refused() -> None:
    for wrong in (-1.0, math.nan):
        with pytest.raises(ValueError, match="max_priority_age"):
            QueueState(max_priority_age=wrong)
