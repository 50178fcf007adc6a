"""When ready items stand in classes by priority, when not, and that the order is the same; also taken in batches."""

from __future__ import annotations

import pytest

from workqueue.core import QueueState


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


def test_emptied_priority_classes_do_not_pile_up() -> None:
    core = state()
    core.add("stays", -1, 0)
    for priority in range(1000):
        core.add("raised", priority, 0)
        core.add("passes", priority + 1, 0)
        core.add("cancelled", priority, 0)
        assert take(core) == "passes"
        core.done("passes", 0)
        core.cancel("cancelled", 0)
    assert sorted(core._classes) == core._priorities == [-1, 999]


def test_only_a_queue_with_two_priorities_at_once_has_classes() -> None:
    core = state()
    for priority in (0, 7, -3):
        for item in "ab":
            core.add(item, priority, 0)
        assert not core._classes
        assert drain(core) == ["a", "b"]
    core.add("a", 1, 0)
    core.add("b", 2, 0)
    assert len(core._classes) == 2
    assert drain(core) == ["b", "a"]
    assert not core._classes


@pytest.mark.parametrize("raised", ["a", "b", "c"])
def test_a_rise_of_priority_is_what_opens_classes(raised: str) -> None:
    core = state()
    for item in "abc":
        core.add(item, 4, 0)
    core.add(raised, 5, 0)
    rest = [item for item in "abc" if item != raised]
    assert drain(core) == [raised, *rest]


def test_a_batch_is_what_as_many_takes_would_give() -> None:
    def filled() -> QueueState[str]:
        core = state(max_priority_age=10)
        for number in range(30):
            core.add(f"old {number}", -(number % 3), 0)
        core.add_after("due", 15, 1, 0)
        for number in range(30):
            core.add(f"new {number}", number % 4, 12)
        return core

    one, other = filled(), filled()
    entries = one.take_batch(40, 20)
    assert [entry.item for entry in entries] == [take(other, 20) for _ in range(40)]
    assert {entry.started_at for entry in entries} == {20}
    assert one.statistics(20) == other.statistics(20)
    assert one.statistics(20).aged
    assert len(one.take_batch(99, 20)) == 21
    assert one.take_batch(99, 20) == []
