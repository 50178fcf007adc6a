"""The reflector protocol where the kind itself is not there: not yet, or not any more."""

from __future__ import annotations

import pytest

from informers.errors import ConnectionRefused, KindNotFoundError, NotFoundError
from informers.failure import FailureKind
from informers.protocol import AskList, AskWatch, Forget, Protocol, ProtocolConfig, Verdict, Wait


def watching() -> Protocol:
    """A protocol (without WatchList) that has listed, and watches."""
    core = Protocol(ProtocolConfig(watch_list=False), random=lambda: 0.0)
    assert isinstance(core.next(0), AskList)
    assert core.page(0, "10", None) is Verdict.SNAPSHOT
    assert isinstance(core.next(0), AskWatch)
    core.opened(0)
    return core


def next_request(core: Protocol, now: float) -> tuple[object, float]:
    """Skip waits; give the next request and the moment it is made."""
    step = core.next(now)
    while isinstance(step, Wait):
        now += step.seconds
        step = core.next(now)
    return step, now


@pytest.mark.parametrize("error", [NotFoundError("no"), KindNotFoundError("no such kind")], ids=str)
def test_a_kind_that_does_not_exist_yet_is_waited_for_at_a_bounded_pace(error):
    core, now = Protocol(ProtocolConfig(), random=lambda: 0.0), 0.0
    for _ in range(20):
        before = now
        step, now = next_request(core, now)
        assert not isinstance(step, Forget)
        assert now - before <= 5
        core.failed(now, error)
    assert core.failure.kind is FailureKind.NOT_FOUND


def test_a_kind_that_stays_away_is_forgotten_once_and_comes_back():
    core, now, forgotten = watching(), 1.0, 0
    core.failed(now, NotFoundError("no"))
    while now < 60:
        step = core.next(now)
        if isinstance(step, Forget):
            forgotten += 1
            assert now >= 10
        elif isinstance(step, Wait):
            now += step.seconds
        else:
            core.failed(now, NotFoundError("no"))
    assert forgotten == 1
    assert core.gone
    step, now = next_request(core, now)
    assert isinstance(step, AskList)
    assert core.page(now, "90", None) is Verdict.SNAPSHOT
    assert not core.gone


def test_404_between_other_failures_forgets_nothing():
    core, now = watching(), 1.0
    for attempt in range(60):
        core.failed(now, NotFoundError("no") if attempt % 2 else ConnectionRefused("nobody"))
        step, now = next_request(core, now)
        assert not isinstance(step, Forget)
