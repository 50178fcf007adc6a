"""Rate limiters: client-go's tables, no overflow, bounded memory."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueue import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    WithMaxWaitRateLimiter,
    WorkQueue,
    default_controller_rate_limiter,
    default_item_based_rate_limiter,
)
from workqueue.rate_limiters import RateLimiter
from workqueue.testing import FakeClock


def delays(limiter: RateLimiter[str], item: str, count: int) -> list[float]:
    return [limiter.when(item) for _ in range(count)]


def test_exponential_doubles_per_item_until_forgotten() -> None:
    limiter: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(0.001, 1.0)
    assert delays(limiter, "one", 5) == [0.001, 0.002, 0.004, 0.008, 0.016]
    assert limiter.num_requeues("one") == 5
    assert delays(limiter, "two", 2) == [0.001, 0.002]
    assert limiter.num_requeues("two") == 2
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert limiter.when("one") == 0.001
    limiter.forget("unknown")


@pytest.mark.parametrize(
    ("base", "maximum", "nth", "expected"),
    [
        (0.001, 1000, 6, 0.032),
        (0.001, 1000, 1000, 1000),
        (60, 3_600_000, 3, 240),
        (60, 3_600_000, 1000, 3_600_000),
        (0.005, 1000, 18, 655.36),
        (0.005, 1000, 19, 1000),
        (5, 1, 1, 1),
    ],
)
def test_exponential_table(base: float, maximum: float, nth: int, expected: float) -> None:
    limiter: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(base, maximum)
    assert delays(limiter, "a", nth)[-1] == expected


@given(
    base=st.floats(0, 1e308),
    maximum=st.floats(0, 1e308),
    count=st.one_of(st.integers(0, 3000), st.integers(0, 2**70)),
)
def test_exponential_never_overflows_and_is_exact(base: float, maximum: float, count: int) -> None:
    limiter: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(base, maximum)
    limiter._failures._items["a"] = (count, 0.0)
    delay = limiter.when("a")
    if base == 0:
        assert delay == 0
    else:
        assert delay == min(Fraction(base) * 2 ** min(count, 3000), Fraction(maximum))
    assert 0 <= delay <= maximum


def test_fast_slow_goes_slow_after_the_fast_attempts_per_item() -> None:
    limiter: ItemFastSlowRateLimiter[str] = ItemFastSlowRateLimiter(0.005, 10, 3)
    assert delays(limiter, "one", 5) == [0.005, 0.005, 0.005, 10, 10]
    assert limiter.num_requeues("one") == 5
    assert delays(limiter, "two", 2) == [0.005, 0.005]
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert limiter.when("one") == 0.005


def test_max_of_asks_all_and_gives_the_longest() -> None:
    fast_slow: ItemFastSlowRateLimiter[str] = ItemFastSlowRateLimiter(0.005, 3, 3)
    exponential: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(0.001, 1)
    limiter: MaxOfRateLimiter[str] = MaxOfRateLimiter(fast_slow, exponential)
    assert delays(limiter, "one", 5) == [0.005, 0.005, 0.005, 3, 3]
    assert limiter.num_requeues("one") == 5
    assert exponential.num_requeues("one") == 5
    assert delays(limiter, "two", 2) == [0.005, 0.005]
    assert limiter.num_requeues("two") == 2
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert limiter.when("one") == 0.005
    with pytest.raises(ValueError, match="at least one"):
        MaxOfRateLimiter()


def test_with_max_wait_cuts_the_delay() -> None:
    inner: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(300, 1000)
    limiter: WithMaxWaitRateLimiter[str] = WithMaxWaitRateLimiter(inner, 500)
    assert delays(limiter, "a", 4) == [300, 500, 500, 500]
    assert limiter.num_requeues("a") == 4
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0


def test_bucket_lets_a_burst_pass_and_then_spaces_evenly(clock: FakeClock) -> None:
    limiter = BucketRateLimiter(10, 3, clock=clock)
    assert [limiter.when("a") for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    assert limiter.when("another item") == pytest.approx(0.3)
    clock.advance(0.4)
    assert limiter.when("a") == 0
    clock.advance(1000)
    assert [limiter.when("a") for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1, 1), (math.inf, 1), (math.nan, 1), (1, 0)])
def test_bucket_refuses_what_makes_no_sense(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        BucketRateLimiter(qps, burst)


@pytest.mark.parametrize("wrong", [-1.0, math.inf, math.nan])
def test_delays_must_be_finite_and_not_negative(wrong: float) -> None:
    exponential: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(1, 1)
    makers: list[Callable[[], object]] = [
        lambda: ItemExponentialFailureRateLimiter(wrong, 1),
        lambda: ItemExponentialFailureRateLimiter(1, wrong),
        lambda: ItemFastSlowRateLimiter(wrong, 1, 1),
        lambda: ItemFastSlowRateLimiter(1, wrong, 1),
        lambda: WithMaxWaitRateLimiter(exponential, wrong),
    ]
    for make in makers:
        with pytest.raises(ValueError, match="delay must be"):
            make()


def test_default_limiters(clock: FakeClock) -> None:
    controller = default_controller_rate_limiter(clock=clock)
    assert [controller.when("a") for _ in range(3)] == [0.005, 0.01, 0.02]
    for index in range(97):
        controller.when(f"other {index}")
    assert controller.when("new") == pytest.approx(0.1)  # the bucket's 100 are used up
    per_item = default_item_based_rate_limiter(clock=clock)
    assert [per_item.when("a") for _ in range(3)] == [0.001, 0.002, 0.004]
    assert [per_item.when("a") for _ in range(40)][-1] == 1000


def test_entries_idle_for_twice_max_delay_are_dropped(clock: FakeClock) -> None:
    limiter: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(1, 10, clock=clock)
    for index in range(1000):
        limiter.when(f"old {index}")
    clock.advance(20)
    limiter.when("not yet over")
    assert len(limiter) == 1001
    clock.advance(0.5)
    for index in range(1000):
        limiter.when(f"new {index}")
    assert len(limiter) == 1001  # the new ones and the one that is not idle long enough
    assert limiter.num_requeues("old 0") == 0


def test_a_wrapped_limiter_hears_what_is_in_use(clock: FakeClock) -> None:
    inner: ItemFastSlowRateLimiter[str] = ItemFastSlowRateLimiter(1, 10, 1, clock=clock)
    limiter = MaxOfRateLimiter[str](BucketRateLimiter(10, 10), WithMaxWaitRateLimiter[str](inner, 5))
    queue: WorkQueue[str] = WorkQueue(rate_limiter=limiter, clock=clock)
    limiter.when("used")
    limiter.when("idle")
    queue.add("used")
    clock.advance(21)
    limiter.when("x")
    assert (inner.num_requeues("used"), inner.num_requeues("idle"), len(inner)) == (1, 0, 2)


def test_no_failure_is_lost_between_threads() -> None:
    limiter: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(1, 10)
    threads = [threading.Thread(target=delays, args=(limiter, "a", 500)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert limiter.num_requeues("a") == 2000
