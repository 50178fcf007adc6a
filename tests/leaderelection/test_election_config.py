"""What durations are refused, and what the accepted ones guarantee."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderelection import Config, ConfigError, LeaderElector, MemoryLock


def test_the_defaults_are_those_of_client_go_and_valid() -> None:
    config = Config()
    assert (config.lease_duration, config.renew_deadline, config.retry_period) == (15, 10, 2)
    config.validate()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Config(15, 15, 2), "renew_deadline must be below lease_duration: 15 is not below 15"),
        (Config(15, 20, 2), "renew_deadline must be below lease_duration: 20 is not below 15"),
        (Config(15, 10, 10), "retry_period must be below renew_deadline: 10 is not below 10"),
        (Config(0, 10, 2), "lease_duration must be above 0"),
        (Config(15, -1, 2), "renew_deadline must be above 0"),
        (Config(15, 10, 0), "retry_period must be above 0"),
        (Config(math.nan, 10, 2), "lease_duration must be above 0 and finite, not nan"),
        (Config(math.inf, 10, 2), "lease_duration must be above 0 and finite, not inf"),
        (Config(1.9, 1.5, 1.2), "lease_duration must be whole seconds: 1.9 would be stored as 1"),
        (Config(0.5, 0.3, 0.1), "lease_duration must be whole seconds: 0.5 would be stored as 0"),
        (Config(2.0**31, 10, 2), "lease_duration must be at most 2147483647"),
        (Config(15, 10, 2, request_timeout=0), "request_timeout must be above 0"),
        (Config(15, 10, 2, request_timeout=8.5), "8.5 is not within 10 - 2"),
        (Config(15, 10, 2, request_timeout=math.nan), "request_timeout must be above 0"),
        (Config(jitter=-1), "jitter must be at least 0"),
    ],
)
def test_validate_names_the_rule_and_the_numbers(config: Config, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.validate()
    assert message in str(caught.value)


def test_the_elector_refuses_what_validate_refuses_and_an_empty_identity() -> None:
    with pytest.raises(ConfigError, match="renew_deadline"):
        LeaderElector(MemoryLock(), "a", Config(15, 20, 2), on_started_leading=lambda leadership: None)
    with pytest.raises(ConfigError, match="identity"):
        LeaderElector(MemoryLock(), "", on_started_leading=lambda leadership: None)


def test_the_default_request_timeout_lets_a_second_attempt_fit() -> None:
    assert Config(15, 10, 2).attempt_timeout == 4
    assert Config(15, 10, 2, request_timeout=1).attempt_timeout == 1


@pytest.mark.parametrize(
    ("config", "options", "margin"),
    [
        (Config(15, 10, 2), {}, 5),
        (Config(15, 10, 2), {"drift": 1e-4}, 4.9975),
        (Config(15, 10, 2), {"drift": 0.01}, 4.7505),
        (Config(15, 10, 2), {"drift": 0.2}, 0),
        (Config(60, 30, 2), {"drift": 1 / 3}, 0),
        (Config(15, 10, 2), {"stall": 5}, 0),
        (Config(15, 10, 2), {"stall": 20}, -15),
        (Config(15, 10, 2), {"stall": 3, "exit_time": 4}, -2),
        (Config(15, 10, 2), {"drift": 0.3}, -2.7472527),
        (Config(1.9, 1.5, 1.2), {}, -0.5),
    ],
)
def test_margin_and_overlap(config: Config, options: dict[str, float], margin: float) -> None:
    assert config.margin(**options) == pytest.approx(margin, abs=1e-4)
    assert config.max_overlap(**options) == pytest.approx(max(0, -margin), abs=1e-4)
    if abs(margin) > 1e-6:
        assert config.safe(**options) is (margin > 0)


@pytest.mark.parametrize("deadline", [15, 16, 20])
def test_safe_needs_the_strict_order(deadline: float) -> None:
    assert not Config(15, deadline, 2).safe()
    assert not Config(15, 10, 10).safe()
    assert Config(15, 14.999, 2).safe()


def test_failover_bound() -> None:
    assert Config().max_failover() == pytest.approx(23.8)
    assert Config().max_failover(latency=0.1) == pytest.approx(24.1)
    assert Config().max_failover(drift=0.5) == pytest.approx(47.6)


@pytest.mark.parametrize("drift", [-0.1, 1, 2, math.nan])
def test_a_drift_that_makes_no_sense_is_refused(drift: float) -> None:
    with pytest.raises(ValueError, match="drift"):
        Config().margin(drift=drift)
    with pytest.raises(ValueError, match="drift"):
        Config().max_failover(drift=drift)


@given(
    lease=st.integers(1, 1000),
    deadline=st.floats(0.01, 1000),
    retry=st.floats(0.01, 1000),
    timeout=st.one_of(st.none(), st.floats(0.01, 1000)),
)
def test_whatever_is_valid_is_safe_with_perfect_clocks(
    lease: int, deadline: float, retry: float, timeout: float | None
) -> None:
    config = Config(lease, deadline, retry, timeout)
    try:
        config.validate()
    except ConfigError:
        return
    assert config.safe()
    assert config.max_overlap() == 0
    assert config.retry_period + config.attempt_timeout <= config.renew_deadline * (1 + 1e-9)
