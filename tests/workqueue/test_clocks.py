"""The real clock and the fake one."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from workqueue import Clock, MonotonicClock
from workqueue.testing import FakeClock


def waiting(clock: Clock, condition: threading.Condition, timeout: float | None) -> bool:
    with condition:
        return clock.wait(condition, timeout)


def test_the_real_clock_is_monotonic_and_waits() -> None:
    clock = MonotonicClock()
    before = time.monotonic()
    assert before <= clock.now() <= time.monotonic()
    condition = threading.Condition()
    assert waiting(clock, condition, 0.01) is False
    assert clock.now() - before >= 0.01
    assert waiting(clock, condition, -5) is False


def test_the_real_clock_takes_waits_longer_than_the_platform_does(background: Any) -> None:
    condition = threading.Condition()
    result = background.start(lambda: waiting(MonotonicClock(), condition, 1e300))
    while background.threads[0].is_alive():
        with condition:
            condition.notify_all()
    assert result() is True


def test_the_real_clock_waits_in_asyncio() -> None:
    async def main() -> None:
        event = asyncio.Event()
        assert await MonotonicClock().wait_async(event, 0.001) is False
        asyncio.get_running_loop().call_soon(event.set)
        assert await MonotonicClock().wait_async(event, None) is True

    asyncio.run(main())


def test_the_fake_clock_only_moves_when_told(clock: FakeClock) -> None:
    assert FakeClock(start=5).now() == 5
    assert clock.now() == clock.now() == 0
    clock.advance(2.5)
    assert clock.now() == 2.5
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)


def test_advance_wakes_whoever_is_due_and_nobody_else(clock: FakeClock, background: Any) -> None:
    conditions = [threading.Condition(), threading.Condition()]
    soon = background.start(lambda: waiting(clock, conditions[0], 1))
    late = background.start(lambda: waiting(clock, conditions[1], 2))
    clock.wait_for_sleepers(2)
    clock.advance(1)
    assert soon() is False
    assert background.threads[1].is_alive()
    clock.advance(1)
    assert late() is False
    assert clock.sleepers() == 0


def test_a_notification_ends_a_wait_on_the_fake_clock(clock: FakeClock, background: Any) -> None:
    condition = threading.Condition()
    result = background.start(lambda: waiting(clock, condition, 10))
    clock.wait_for_sleepers(1)
    with condition:
        condition.notify()
    assert result() is True


def test_a_wait_counts_from_what_the_thread_read_before(clock: FakeClock) -> None:
    clock.now()
    clock.advance(5)
    assert waiting(clock, threading.Condition(), 5) is False  # would block for ever otherwise


def test_a_reading_counts_for_one_wait_only(clock: FakeClock, background: Any) -> None:
    def twice() -> float:
        clock.now()
        clock.advance(5)
        waiting(clock, threading.Condition(), 5)
        waiting(clock, threading.Condition(), 5)
        return clock.now()

    result = background.start(twice)
    clock.wait_for_sleepers(1)
    clock.advance(5)
    assert result() == 10


def test_no_timeout_has_passed_at_once_and_none_waits_for_a_notification(clock: FakeClock, background: Any) -> None:
    condition = threading.Condition()
    assert waiting(clock, condition, 0) is False
    result = background.start(lambda: waiting(clock, condition, None))
    while background.threads[0].is_alive():
        with condition:
            condition.notify_all()
    assert result() is True


def test_wait_for_sleepers_gives_up(clock: FakeClock) -> None:
    with pytest.raises(TimeoutError, match="0 wait"):
        clock.wait_for_sleepers(1, timeout=0.01)


def test_the_fake_clock_waits_in_asyncio(clock: FakeClock) -> None:
    async def main() -> None:
        event = asyncio.Event()
        task = asyncio.ensure_future(clock.wait_async(event, 3))
        await asyncio.sleep(0)
        assert clock.sleepers() == 1
        clock.advance(3)
        assert await task is False
        assert await clock.wait_async(event, 0) is False
        task = asyncio.ensure_future(clock.wait_async(event, 3))
        await asyncio.sleep(0)
        event.set()
        assert await task is True
        assert await clock.wait_async(event, None) is True

    asyncio.run(main())
    assert clock.sleepers() == 0
