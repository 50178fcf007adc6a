"""The client's token bucket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from informers.ratelimit import TokenBucket


def test_a_burst_goes_at_once_then_the_rate_holds():
    bucket = TokenBucket(10, 3)
    assert [bucket.reserve(0.0, None) for _ in range(3)] == pytest.approx([0.0, 0.0, 0.0])
    assert bucket.reserve(0.0, None) == pytest.approx(0.1)
    assert bucket.reserve(0.0, None) == pytest.approx(0.2)


def test_idle_time_fills_the_bucket_and_no_more_than_that():
    bucket = TokenBucket(10, 2)
    for _ in range(4):
        bucket.reserve(0.0, None)
    assert [bucket.reserve(100.0, None) for _ in range(2)] == pytest.approx([0.0, 0.0])
    assert bucket.reserve(100.0, None) == pytest.approx(0.1)


def test_who_cannot_wait_takes_no_token():
    bucket = TokenBucket(1, 1)
    assert bucket.reserve(0.0, 0.0) == 0.0
    assert bucket.reserve(0.0, 0.5) is None
    assert bucket.reserve(0.0, 2.0) == pytest.approx(1.0)


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_limits_that_let_nothing_through_are_refused(qps, burst):
    with pytest.raises(ValueError, match="rate limit"):
        TokenBucket(qps, burst)


@given(st.integers(1, 50), st.integers(1, 20), st.lists(st.floats(0, 2), max_size=60))
def test_no_window_sees_more_than_the_burst_and_the_rate(qps, burst, gaps):
    bucket, now, used = TokenBucket(qps, burst), 0.0, []
    for gap in gaps:
        now += gap
        wait = bucket.reserve(now, None)
        assert wait is not None
        used.append(now + wait)
    for start in used:
        for window in (0.1, 1.0, 5.0):
            inside = sum(1 for moment in used if start <= moment < start + window)
            assert inside <= burst + qps * window + 1e-6
