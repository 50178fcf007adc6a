"""How soon a watch is back after an outage, as tables: when waits start anew, how long they get, what stays said."""

from __future__ import annotations

import pytest

from informers.errors import (
    ConnectionRefused,
    ConnectionReset,
    DnsError,
    ExpiredError,
    ForbiddenError,
    InternalError,
    RequestTimeout,
    ServiceUnavailableError,
    TlsError,
    TooManyRequestsError,
)
from informers.failure import FailureKind
from informers.protocol import AskList, AskWatch, Protocol, ProtocolConfig, Wait


def watching(**options: object) -> Protocol:
    core = Protocol(ProtocolConfig(watch_list=False, **options), random=lambda: 0.999999)  # type: ignore[arg-type]
    assert isinstance(core.next(0.0), AskList)
    core.page(0.0, "10", None)
    assert isinstance(core.next(0.0), AskWatch)
    core.opened(0.0)
    return core


def wait(core: Protocol, now: float) -> float:
    """The seconds until the next request."""
    step = core.next(now)
    return step.seconds if isinstance(step, Wait) else 0.0


def outage(core: Protocol, now: float, error: Exception, until: float) -> float:
    """Let every request fail until then; the moment at which the first one after it is made."""
    while True:
        now += wait(core, now)
        if now >= until:
            return now
        core.failed(now, error)


# error: the longest time from the end of an outage, however long, to the first request
RECOVERY = [
    (ConnectionRefused("refused"), 5.0),
    (ConnectionReset("reset"), 10.0),
    (DnsError("no such name"), 5.0),
    (TlsError("a bad certificate"), 10.0),
    (RequestTimeout("no answer"), 10.0),
    (ServiceUnavailableError("starting"), 10.0),
    (TooManyRequestsError("busy"), 10.0),
    (TooManyRequestsError("busy", retry_after=20.0), 20.0),
    (InternalError("etcd"), 30.0),
]


@pytest.mark.parametrize("lasts", [3.0, 30.0, 600.0])
@pytest.mark.parametrize(("error", "longest"), RECOVERY, ids=[str(error) for error, _ in RECOVERY])
def test_a_watch_is_asked_for_soon_after_the_outage(error, longest, lasts):
    core = watching()
    core.failed(100.0, ConnectionReset("cut"))
    back = outage(core, 100.0, error, 100.0 + lasts)
    assert back - (100.0 + lasts) <= longest
    assert isinstance(core.next(back), AskList if isinstance(error, InternalError) else AskWatch)


def test_a_list_too_waits_for_nobody_longer_than_for_a_refused_connection():
    core = Protocol(ProtocolConfig(watch_list=False), random=lambda: 0.999999)
    back = outage(core, 0.0, ConnectionRefused("refused"), 100.0)
    assert back <= 105.0
    assert isinstance(core.next(back), AskList)


@pytest.mark.parametrize(
    ("error", "lasted", "anew"),
    [
        (None, 0.5, False),  # a stream that ends at once has shown nothing
        (None, 31.0, True),
        (ConnectionReset("cut"), 4.0, False),
        (ConnectionReset("cut"), 31.0, True),
        (TooManyRequestsError("busy"), 31.0, True),
        # What asks for a new list has to last longer, or the list would be asked for again and again
        (ExpiredError("old"), 31.0, False),
        (InternalError("etcd"), 31.0, False),
        (InternalError("etcd"), 61.0, True),
    ],
    ids=str,
)
def test_waits_start_anew_once_a_watch_has_lasted(error, lasted, anew):
    core = watching(short_watch=1.0)
    now = 1.0
    for _ in range(8):  # until the waits are at their longest
        core.failed(now, InternalError("etcd"))
        now += wait(core, now)
        if isinstance(core.next(now), AskList):
            core.page(now, "10", None)
            now += wait(core, now)
        core.next(now)
        core.opened(now)
    core.event(now, "MODIFIED", "11")
    now += lasted
    if error is None:
        core.closed(now)
    else:
        core.failed(now, error)
    now += wait(core, now)
    core.next(now)
    core.failed(now, InternalError("etcd"))
    waited = wait(core, now)
    assert waited <= (3.2 + 0.01 if anew else 30.0)
    assert (waited < 10.0) is anew


def test_a_stream_that_began_with_the_list_counts_from_the_end_of_the_list():
    core, now = Protocol(ProtocolConfig(), random=lambda: 0.999999), 0.0
    for _ in range(8):
        assert isinstance(core.next(now), AskWatch)
        core.failed(now, TooManyRequestsError("busy"))
        now += wait(core, now)
    core.next(now)
    core.opened(now)
    now += 60.0  # a long list
    core.event(now, "ADDED", "1")
    core.event(now, "BOOKMARK", "9", initial_events_end=True)
    core.failed(now, ConnectionReset("cut"))
    assert wait(core, now) > 10.0, "the watch itself lasted no time"


# ---- silence


def test_that_a_server_was_silent_stays_said_until_something_is_heard():
    core = watching()
    core.silent(630.0)
    assert isinstance(core.next(630.0), AskWatch)
    core.opened(630.0)
    assert core.failure is not None
    assert core.failure.kind is FailureKind.SILENT
    core.silent(1260.0)
    core.next(1260.0)
    core.opened(1260.0)
    assert "silent" in core.failure.message
    core.event(1261.0, "BOOKMARK", "12")
    assert core.failure is None


@pytest.mark.parametrize("end", ["closed", "failed"])
def test_a_server_that_ends_the_silent_watch_itself_is_alive(end):
    core = watching()
    core.silent(630.0)
    core.next(630.0)
    core.opened(630.0)
    if end == "closed":
        core.closed(1000.0)
        assert core.failure is None
    else:
        core.failed(1000.0, ForbiddenError("no more"))
        assert core.failure.kind is FailureKind.FORBIDDEN
