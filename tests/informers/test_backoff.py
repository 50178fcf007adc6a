"""How long a reflector waits, and what errors mean to it."""

from __future__ import annotations

import logging

import pytest

from informers.backoff import Backoff, BackoffConfig
from informers.errors import (
    ApiError,
    ConnectionRefused,
    ConnectionReset,
    DnsError,
    ExpiredError,
    ForbiddenError,
    InternalError,
    ServerTimeoutError,
    TlsError,
    UnauthorizedError,
)
from informers.failure import FailureKind, classify


def test_the_wait_doubles_from_base_to_cap_and_stays_there():
    backoff = Backoff(BackoffConfig(), random=lambda: 0.0)
    assert [backoff.next(0) for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 15, 15, 15]
    backoff = Backoff(BackoffConfig(), random=lambda: 0.999999)
    waits = [backoff.next(0) for _ in range(2000)]
    assert waits[0] == pytest.approx(1.6, rel=1e-3)
    assert max(waits) <= 30


def test_two_quiet_minutes_reset_the_wait():
    backoff = Backoff(BackoffConfig(), random=lambda: 0.0)
    for _ in range(5):
        backoff.next(0)
    assert backoff.next(119) == 15
    assert backoff.next(119 + 121) == 0.8
    assert backoff.failures == 1


@pytest.mark.parametrize(("worked", "next_wait"), [(0.0, 6.4), (3.2, 6.4), (3.3, 0.8), (60.0, 0.8)])
def test_what_worked_for_longer_than_the_last_wait_ends_the_row(worked, next_wait):
    backoff = Backoff(BackoffConfig(), random=lambda: 0.0)
    assert [backoff.next(0) for _ in range(3)][-1] == 3.2
    backoff.worked(worked)
    assert backoff.next(0) == next_wait


@pytest.mark.parametrize("lasts", [0.1, 1.0, 5.0, 20.0])
def test_what_fails_again_and_again_after_a_while_is_asked_for_at_a_bounded_pace(lasts):
    backoff, now, asked = Backoff(BackoffConfig(), random=lambda: 0.0), 0.0, 0
    while now < 600.0:
        now += lasts
        backoff.worked(lasts)
        now += backoff.next(now)
        asked += 1
    assert asked <= 600.0 / (lasts + min(lasts, 0.8)) + 1


@pytest.mark.parametrize(("base", "cap"), [(0, 1), (-1, 1), (2, 1)])
def test_a_backoff_without_sense_is_refused(base, cap):
    with pytest.raises(ValueError, match="base"):
        BackoffConfig(base=base, cap=cap)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnauthorizedError("no"), FailureKind.UNAUTHORIZED),
        (ApiError("no", status=418, reason="Teapot"), FailureKind.OTHER),
        (InternalError("no"), FailureKind.OTHER),
        (ValueError("no"), FailureKind.OTHER),
        (ConnectionReset("no"), FailureKind.CONNECTION),
        (ConnectionRefused("no"), FailureKind.REFUSED),
        (DnsError("no such name"), FailureKind.REFUSED),
        (TlsError("a bad certificate"), FailureKind.TLS),
        (ServerTimeoutError("etcd was slow"), FailureKind.OTHER),
    ],
    ids=str,
)
def test_errors_are_sorted_by_what_they_mean(error, kind):
    assert classify(error).kind is kind


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (TlsError("a bad certificate"), logging.WARNING),
        (DnsError("no such name"), logging.WARNING),
        (ConnectionRefused("nobody"), logging.WARNING),
        (ForbiddenError("no"), logging.WARNING),
        (ConnectionReset("cut"), logging.INFO),
        (ExpiredError("old"), logging.INFO),
    ],
    ids=str,
)
def test_what_happens_to_every_watch_now_and_then_is_no_warning_and_what_needs_a_person_is(error, level):
    assert classify(error).log_level == level
