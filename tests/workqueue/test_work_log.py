"""The checker of logs accepts what can have happened, and refuses a log that was doctored in any of its rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from workqueue import ItemExponentialFailureRateLimiter, WorkQueue
from workqueue.errors import ShutDown
from workqueue.testing import FakeClock
from workqueue.testing.log_checker import LogRefused, check_log
from workqueue.testing.work_log import Event, Kind, WorkLog

ADD, RETRY, GET, DONE, CANCEL, SHUT_DOWN, DRAIN = Kind


def played() -> tuple[list[Event], WorkQueue[int]]:
    """A real queue, used by one thread for 20 seconds."""
    clock = FakeClock()
    log = WorkLog(clock.now)
    limiter = log.noting(ItemExponentialFailureRateLimiter(1.0, 100.0, clock=clock))
    queue: WorkQueue[int] = WorkQueue(clock=clock, rate_limiter=limiter)
    writer = log.writer(queue)
    writer.add(1)
    clock.advance(1)
    assert writer.get() == 1
    clock.advance(0.5)
    writer.add(1, priority=3)
    clock.advance(0.5)
    writer.done(1)
    assert writer.get() == 1
    clock.advance(1)
    writer.add_rate_limited(1)
    writer.add_rate_limited(1)
    writer.done(1)
    clock.advance(1)
    assert writer.get() == 1
    writer.forget(1)
    writer.done(1)
    writer.add_after(2, 5)
    assert not writer.cancel(3)
    clock.advance(5)
    assert writer.get() == 2
    writer.add(3)
    writer.done(2)
    clock.advance(1)
    assert writer.cancel(3)
    writer.add(4)
    writer.add_after(5, 100)
    clock.advance(1)
    writer.shut_down()
    clock.advance(1)
    writer.add(6)
    assert writer.get() == 4
    writer.done(4)
    clock.advance(1)
    with pytest.raises(ShutDown):
        writer.get()
    assert writer.shut_down_with_drain(0)
    return log.events(), queue


def test_a_log_as_it_happened_is_accepted() -> None:
    events, queue = played()
    summary = check_log(events, queue.statistics())
    assert (summary.items, summary.adds, summary.retries) == (6, 5, 4)
    assert (summary.gets, summary.cancelled, summary.repeated) == (5, 1, 2)


def test_the_delay_of_a_rate_limited_add_is_noted() -> None:
    events, _ = played()
    assert [event.delay for event in events if event.kind is RETRY] == [1, 2, 5, 100]


def find(events: list[Event], kind: Kind, item: int, number: int = 0) -> int:
    return [index for index, event in enumerate(events) if (event.kind, event.item) == (kind, item)][number]


def without(kind: Kind, item: int, number: int = 0) -> Callable[[list[Event]], list[Event]]:
    def doctor(events: list[Event]) -> list[Event]:
        del events[find(events, kind, item, number)]
        return events

    return doctor


def moved(kind: Kind, item: int, number: int, by: float) -> Callable[[list[Event]], list[Event]]:
    def doctor(events: list[Event]) -> list[Event]:
        index = find(events, kind, item, number)
        old = events[index]
        events[index] = old._replace(start=old.start + by, end=old.end + by)
        return events

    return doctor


def also(*more: Event) -> Callable[[list[Event]], list[Event]]:
    return lambda events: [*events, *more]


@pytest.mark.parametrize(
    ("doctor", "message"),
    [
        (moved(DONE, 1, 0, 1.5), "1 was in two workers at once"),
        (also(Event(GET, 1, 1.1, 1.2), Event(DONE, 1, 1.3, 1.4)), "1 was in two workers at once"),
        (also(Event(GET, 4, 12.1, 12.2), Event(DONE, 4, 12.3, 12.4)), "4 was handed out without having been added"),
        (without(DONE, 2), "2 was handed out 1 times and done 0 times"),
        (without(ADD, 1, 0), "1 was handed out without having been added"),
        (without(ADD, 1, 1), "1 was handed out without having been added"),
        (moved(RETRY, 2, 0, 1.0), "2 was handed out early"),
        (moved(RETRY, 1, 0, 0.5), "1 was handed out early"),
        (lambda events: [event for event in events if event.item != 4 or event.kind is ADD], "4 was lost"),
        (also(Event(ADD, 7, 3.0, 3.1)), "7 was lost"),
        (also(Event(RETRY, 7, 3.0, 3.1, delay=2.0)), "7 was lost"),
        (without(CANCEL, 3), "3 was lost"),
        (also(Event(GET, 6, 12.1, 12.2), Event(DONE, 6, 12.3, 12.4)), "6 was handed out without having been added"),
        (moved(DONE, 4, 0, 2.0), "the drain ended at"),
    ],
)
def test_a_doctored_log_is_refused(doctor: Callable[[list[Event]], list[Event]], message: str) -> None:
    events, _ = played()
    with pytest.raises(LogRefused, match=message):
        check_log(doctor(events))


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("gets", -1),
        ("adds", 3),
        ("adds", -2),
        ("cancelled", 1),
        ("retries", 1),
        ("dropped", -2),
        ("dropped", 2),
        ("ready", 1),
        ("waiting", 1),
        ("processing", 1),
        ("pending", 1),
    ],
)
def test_statistics_that_do_not_fit_the_log_are_refused(name: str, by: int) -> None:
    events, queue = played()
    true = queue.statistics()
    with pytest.raises(LogRefused, match=rf"statistics\(\)\.{name}"):
        check_log(events, replace(true, **{name: getattr(true, name) + by}))


def test_calls_at_the_same_time_may_have_happened_in_either_order() -> None:
    check_log([Event(ADD, 1, 0, 9), Event(GET, 1, 1, 2), Event(DONE, 1, 3, 4)])
    check_log([Event(ADD, 1, 0, 1), Event(GET, 1, 0, 9), Event(CANCEL, 1, 2, 3), Event(DONE, 1, 9, 9)])
    check_log([Event(RETRY, 1, 0, 1, delay=5), Event(SHUT_DOWN, 0, 5.5, 6)])
    check_log([Event(SHUT_DOWN, 0, 1, 3), Event(ADD, 1, 2, 4)])


def test_an_add_that_joined_an_earlier_one_is_no_second_reason() -> None:
    twice = [Event(ADD, 1, 0, 1), Event(RETRY, 1, 2, 3, delay=5), Event(GET, 1, 4, 5), Event(DONE, 1, 6, 7)]
    check_log(twice)
    with pytest.raises(LogRefused, match="without having been added"):
        check_log([*twice, Event(GET, 1, 8, 9), Event(DONE, 1, 10, 11)])
