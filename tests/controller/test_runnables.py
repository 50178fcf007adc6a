"""Groups of runnables, and the order of a manager's life."""

from __future__ import annotations

import threading

import pytest

from pysedna.controller import Cancelled, ManagerStopped
from pysedna.controller.runnables import START, STOP, RunnableGroup, Stage

WAIT = 10.0


class Recording:
    def __init__(self, name: str) -> None:
        self.name = name
        self.running = threading.Event()

    def run(self, stop: threading.Event) -> None:
        self.running.set()
        stop.wait()


class Raising:
    name = "raising"

    def __init__(self, error: BaseException, *, when_stopped: bool = False) -> None:
        self.error = error
        self.when_stopped = when_stopped

    def run(self, stop: threading.Event) -> None:
        if self.when_stopped:
            stop.wait()
        raise self.error


class Stubborn:
    def __init__(self) -> None:
        self.release = threading.Event()

    def run(self, stop: threading.Event) -> None:
        self.release.wait(WAIT)


@pytest.fixture
def failures() -> list[tuple[str, BaseException]]:
    return []


@pytest.fixture
def group(failures: list[tuple[str, BaseException]]) -> RunnableGroup:
    return RunnableGroup("leaders", lambda name, error: failures.append((name, error)))


def test_who_asks_for_health_is_answered_first_and_nobody_leads_before_caches_are_filled() -> None:
    assert [stage.value for stage in START] == ["http", "events", "caches", "others", "election", "leaders"]


def test_the_election_is_cancelled_when_all_work_has_stopped() -> None:
    assert [stage.value for stage in STOP] == ["others", "leaders", "caches", "http", "election", "events"]
    assert set(STOP) == set(START) == set(Stage)


def test_what_is_added_before_the_start_waits_for_it(group: RunnableGroup) -> None:
    early = Recording("early")
    group.add(early)
    assert not early.running.is_set()
    group.start()
    assert early.running.wait(WAIT)
    group.begin_stop()
    assert group.join(WAIT) == []


def test_what_is_added_later_starts_at_once(group: RunnableGroup) -> None:
    group.start()
    late = Recording("late")
    group.add(late)
    assert late.running.wait(WAIT)
    group.begin_stop()
    assert group.join(WAIT) == []


def test_nothing_can_be_added_to_a_group_that_stops(group: RunnableGroup) -> None:
    group.start()
    group.begin_stop()
    with pytest.raises(ManagerStopped, match="late: leaders is stopping"):
        group.add(Recording("late"))


def test_a_group_that_was_stopped_does_not_start(group: RunnableGroup) -> None:
    waiting = Recording("waiting")
    group.add(waiting)
    group.begin_stop()
    group.start()
    assert group.join(WAIT) == []
    assert not waiting.running.is_set()


def test_a_failure_is_told_with_its_name(group: RunnableGroup, failures: list[tuple[str, BaseException]]) -> None:
    error = RuntimeError("boom")
    group.add(Raising(error))
    group.start()
    group.begin_stop()
    assert group.join(WAIT) == []
    assert failures == [("raising", error)]


def test_cancelled_by_the_stop_is_no_failure(group: RunnableGroup, failures: list[tuple[str, BaseException]]) -> None:
    group.add(Raising(Cancelled("stopping"), when_stopped=True))
    group.start()
    group.begin_stop()
    assert group.join(WAIT) == []
    assert failures == []


def test_an_early_return_is_no_failure(group: RunnableGroup, failures: list[tuple[str, BaseException]]) -> None:
    class Short:
        def run(self, stop: threading.Event) -> None:
            return

    group.add(Short())
    group.start()
    assert group.join(WAIT) == []
    assert failures == []


def test_those_that_ignore_the_stop_are_named(group: RunnableGroup) -> None:
    stubborn = Stubborn()
    group.add(stubborn)
    group.add(Recording("willing"))
    group.start()
    group.begin_stop()
    assert group.join(0.05) == ["Stubborn"]
    stubborn.release.set()
    assert group.join(WAIT) == []
