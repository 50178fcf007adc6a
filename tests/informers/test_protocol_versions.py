"""Versions as the protocol takes them: how they compare, and what a list without one is worth."""

from __future__ import annotations

import pytest

from informers.errors import BadRequestError, ExpiredError
from informers.protocol import AskList, AskWatch, Protocol, ProtocolConfig, Verdict, Wait
from informers.version import is_older


def asked(core: Protocol, now: float) -> tuple[object, float]:
    """Skip waits; give the next request and the moment it is made."""
    while isinstance(step := core.next(now), Wait):
        now += step.seconds
    return step, now


def watching(version: str, **options: object) -> Protocol:
    """A protocol (without WatchList) that has listed at that version and watches."""
    core = Protocol(ProtocolConfig(watch_list=False, **options), random=lambda: 0.0)  # type: ignore[arg-type]
    assert isinstance(core.next(0), AskList)
    assert core.page(0, version, None) is Verdict.SNAPSHOT
    assert isinstance(core.next(0), AskWatch)
    core.opened(0)
    return core


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("9", "10", True),
        ("10", "9", False),
        ("10", "10", False),
        ("007", "10", True),
        ("010", "9", False),
        ("0", "00", False),
        ("1" * 5000, "2" * 5000, True),
        ("2" * 5000, "1" * 5001, True),
        ("", "5", False),
        ("abc", "abd", False),
        ("-5", "5", False),
        ("\u0661", "5", False),
    ],
)
def test_versions_compare_as_numbers_of_any_length_or_not_at_all(version, than, older):
    assert is_older(version, than) is older


@pytest.mark.parametrize("consistent", [True, False])
def test_a_list_without_a_version_after_one_with_a_version_is_not_believed(consistent):
    core = watching("10", prefer_stale=not consistent)
    core.failed(1, ExpiredError("too old"))
    step, now = asked(core, 1)
    assert isinstance(step, AskList)
    assert core.page(now, "", None) is Verdict.STALE
    assert core.failure is not None
    assert "without a version" in core.failure.message
    assert isinstance(core.next(now), Wait)
    step, now = asked(core, now)
    assert core.page(now, "12", None) is Verdict.SNAPSHOT


def test_neither_is_a_streamed_one():
    core = Protocol(ProtocolConfig(), random=lambda: 0.0)
    core.next(0)
    core.opened(0)
    assert core.event(0, "BOOKMARK", "10", initial_events_end=True) is Verdict.SNAPSHOT
    core.failed(100, ExpiredError("too old"))
    _, now = asked(core, 100)
    core.opened(now)
    assert core.event(now, "BOOKMARK", "", initial_events_end=True) is Verdict.STALE


def test_a_server_that_never_gives_versions_is_taken_as_it_is():
    core = watching("")
    core.failed(1, BadRequestError("no watch here"))
    step, now = asked(core, 1)
    assert isinstance(step, AskList)
    assert core.page(now, "", None) is Verdict.SNAPSHOT
