"""Ageing: nothing starves, and a flood of old low-priority items cannot bury fresh ones."""

from __future__ import annotations

import itertools

import pytest

from workqueue.core import AGEING_INTERVAL, QueueState


def state(max_priority_age: float | None = None) -> QueueState[str]:
    return QueueState(max_priority_age=max_priority_age)


def take(core: QueueState[str], now: float) -> str | None:
    entry = core.take(now)
    return None if entry is None else entry.item


def test_the_longest_ready_item_is_served_at_most_once_in_eight_hand_outs() -> None:
    core = state(max_priority_age=10)
    for index in range(100):
        core.add(f"old {index}", -100, 0)
    for index in range(100):
        core.add(f"fresh {index}", 0, 20)
    handed = [take(core, 21) for _ in range(80)]
    aged = [position for position, item in enumerate(handed) if item is not None and item.startswith("old")]
    assert len(aged) == 80 // AGEING_INTERVAL
    assert all(later - earlier >= AGEING_INTERVAL for earlier, later in itertools.pairwise(aged))
    assert [handed[position] for position in aged] == [f"old {index}" for index in range(10)]
    assert core.statistics(21).aged == 10


def test_nothing_starves_under_a_flood_of_higher_priority() -> None:
    core = state(max_priority_age=30)
    core.add("low", -100, 0)
    for step in range(100):
        core.add(f"flood {step}", 0, step)
        item = take(core, step)
        if item == "low":
            assert 30 < step <= 30 + AGEING_INTERVAL
            return
        assert item is not None
        core.done(item, step)
    pytest.fail("the low item starved")


@pytest.mark.parametrize(("age", "served"), [(10, False), (10.5, True)])
def test_ageing_needs_more_than_the_maximum_age(age: float, served: bool) -> None:
    core = state(max_priority_age=10)
    core.add("old", -1, 0)
    for index in range(AGEING_INTERVAL):
        core.add(f"new {index}", 0, age)
    handed = [take(core, age) for _ in range(AGEING_INTERVAL)]
    assert ("old" in handed) is served


def test_adding_again_does_not_make_younger_and_a_delay_is_no_age() -> None:
    core = state(max_priority_age=10)
    core.add("old", -1, 0)
    core.add_after("waited", 8, -1, 0)
    for now in (5, 9):
        core.add("old", -1, now)
    for index in range(20):
        core.add(f"new {index}", 0, 11)
    handed = [take(core, 11) for _ in range(2 * AGEING_INTERVAL)]
    assert "old" in handed
    assert "waited" not in handed


def test_a_rise_of_priority_does_not_make_younger() -> None:
    core = state(max_priority_age=10)
    core.add("old", -1, 0)
    for index in range(20):
        core.add(f"new {index}", 0, 8)
    core.add("old", 0, 9)
    assert "old" in [take(core, 11) for _ in range(AGEING_INTERVAL)]


def test_without_a_maximum_age_the_order_is_strict() -> None:
    core = state(max_priority_age=None)
    core.add("old", -1, 0)
    for index in range(50):
        core.add(f"new {index}", 0, 0)
    assert [take(core, 1e9) for _ in range(51)][-1] == "old"
