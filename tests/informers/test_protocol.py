"""The reflector protocol as tables: what was answered, what is asked next."""

from __future__ import annotations

import pytest

from informers.errors import (
    ApiError,
    BadRequestError,
    ConnectionRefused,
    ConnectionReset,
    ExpiredError,
    ForbiddenError,
    GoneError,
    InternalError,
    InvalidError,
    ServerTimeoutError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from informers.failure import FailureKind
from informers.protocol import AskList, AskWatch, Phase, Protocol, ProtocolConfig, Verdict, Wait


def protocol(**options: object) -> Protocol:
    return Protocol(ProtocolConfig(**options), random=lambda: 0.0)  # type: ignore[arg-type]


def listed(version: str = "10", now: float = 0.0, **options: object) -> Protocol:
    """A protocol (without WatchList) that has listed and asks for a watch next."""
    core = protocol(watch_list=False, **options)
    assert isinstance(core.next(now), AskList)
    assert core.page(now, version, None) is Verdict.SNAPSHOT
    return core


def watching(version: str = "10", now: float = 0.0, **options: object) -> Protocol:
    core = listed(version, now, **options)
    assert isinstance(core.next(now), AskWatch)
    core.opened(now)
    return core


def streaming(now: float = 0.0, **options: object) -> Protocol:
    core = protocol(**options)
    assert isinstance(core.next(now), AskWatch)
    core.opened(now)
    return core


def next_request(core: Protocol, now: float) -> tuple[object, float]:
    """Skip waits; give the next request and the moment it is made."""
    step = core.next(now)
    for _ in range(5):
        if not isinstance(step, Wait):
            break
        now += step.seconds
        step = core.next(now)
    return step, now


# ---- where a list starts


def test_the_initial_list_is_streamed_consistently_first():
    assert protocol().next(0) == AskWatch("", 300, True, "NotOlderThan")


def test_a_plain_list_is_consistent_and_paged():
    assert protocol(watch_list=False).next(0) == AskList("", None, 500, None)


def test_a_list_that_accepts_stale_answers_is_unpaged_and_goes_on_from_the_last_version():
    core = protocol(watch_list=False, prefer_stale=True)
    assert core.next(0) == AskList("0", None, None, None)
    core.page(0, "10", None)
    core.next(0)
    core.failed(0, InternalError("no"))
    step, _ = next_request(core, 0)
    assert step == AskList("10", "NotOlderThan", None, None)


def test_page_size_zero_lists_in_one_piece():
    assert protocol(watch_list=False, page_size=0).next(0) == AskList("", None, None, None)


def test_pages_follow_each_other_without_a_version_until_the_last():
    core = protocol(watch_list=False, page_size=2)
    core.next(0)
    assert core.page(0, "7", "token") is Verdict.COLLECT
    assert core.next(0) == AskList("", None, 2, "token")
    assert core.page(0, "7", None) is Verdict.SNAPSHOT
    assert core.version == "7"


def test_an_expired_continue_token_restarts_the_list_once_unpaged():
    core = protocol(watch_list=False)
    core.next(0)
    core.page(0, "7", "token")
    core.next(0)
    core.failed(0, ExpiredError("old token"))
    assert core.next(0) == AskList("", None, None, None)
    core.page(0, "8", "another token")  # a server that pages all the same
    core.next(0)
    core.failed(0, ExpiredError("old token"))
    assert isinstance(core.next(0), Wait)


def test_a_page_that_failed_in_passing_is_asked_again_with_its_token():
    core = protocol(watch_list=False)
    core.next(0)
    core.page(0, "7", "token")
    core.next(0)
    core.failed(0, ServiceUnavailableError("later"))
    step, _ = next_request(core, 0)
    assert step == AskList("", None, 500, "token")


# ---- 410 and versions from the future

TOO_OLD = [
    ExpiredError("too old resource version"),
    GoneError("gone"),
    ApiError("gone", status=410, reason=""),
    ApiError("too old", status=200, reason="Expired"),
]
TOO_LARGE = [
    ServerTimeoutError("x", details={"causes": [{"reason": "ResourceVersionTooLarge"}]}),
    ServerTimeoutError("x", details={"causes": [{"message": "Too large resource version"}]}),
    ServerTimeoutError("Timeout: Too large resource version: 30, current: 20"),
]


@pytest.mark.parametrize("error", TOO_OLD + TOO_LARGE, ids=str)
def test_a_version_of_no_use_to_the_server_makes_the_next_list_consistent_at_once(error):
    core = listed("10", prefer_stale=True)
    core.next(0)
    core.failed(0, InternalError("drop the watch"))
    step, now = next_request(core, 0)
    assert step == AskList("10", "NotOlderThan", None, None)
    core.failed(now, error)
    assert core.next(now) == AskList("", None, 500, None)
    core.page(now, "20", None)
    core.next(now)
    core.failed(now, InternalError("drop the watch"))
    step, _ = next_request(core, now)
    assert step == AskList("20", "NotOlderThan", None, None), "success makes versions good again"


def test_a_version_from_the_future_is_asked_again_after_the_time_the_server_named():
    core = listed("10", prefer_stale=True)
    core.next(0)
    core.failed(0, InternalError("drop the watch"))
    _, now = next_request(core, 0)
    core.failed(now, ServerTimeoutError("Too large resource version", retry_after=1.0))
    assert core.next(now) == Wait(1.0, core.failure.message)


@pytest.mark.parametrize("established", [False, True])
@pytest.mark.parametrize("error", TOO_OLD, ids=str)
def test_410_relists_whether_it_comes_on_connect_or_in_the_stream(error, established):
    core = listed("10")
    core.next(100)
    if established:
        core.opened(100)
    core.failed(100, error)
    assert isinstance(core.next(100), AskList), "the first one after a quiet time at once"


def test_410_after_410_backs_off():
    core, now, lists = listed("10"), 0.0, 0
    while now < 60:
        step, now = next_request(core, now)
        if isinstance(step, AskList):
            lists += 1
            core.page(now, "10", None)
        else:
            core.opened(now)
            core.failed(now, ExpiredError("too old"))
    assert lists <= 8


@pytest.mark.parametrize("error", TOO_LARGE, ids=str)
def test_a_watch_from_the_future_relists_consistently(error):
    core = watching("10", prefer_stale=True)
    core.failed(1, error)
    step, _ = next_request(core, 1)
    assert step == AskList("", None, 500, None)


# ---- lists and time travel


def test_a_stale_list_older_than_what_was_seen_is_asked_again_consistently():
    core = listed("10", prefer_stale=True)
    core.next(0)
    core.failed(0, InternalError("drop the watch"))
    _, now = next_request(core, 0)
    assert core.page(now, "9", None) is Verdict.STALE
    step, now = next_request(core, now)
    assert step == AskList("", None, 500, None)


def test_a_consistent_list_may_go_back_because_etcd_was_restored():
    core = watching("10")
    core.failed(100, ExpiredError("too old"))
    core.next(100)
    assert core.page(100, "3", None) is Verdict.SNAPSHOT
    assert core.version == "3"


def test_versions_that_are_not_numbers_are_not_compared():
    core = listed("a", prefer_stale=True)
    core.next(0)
    core.failed(0, InternalError("drop the watch"))
    _, now = next_request(core, 0)
    assert core.page(now, "b", None) is Verdict.SNAPSHOT


# ---- the streamed list


def test_the_streamed_list_is_complete_at_the_annotated_bookmark_and_the_stream_goes_on():
    core = streaming()
    assert core.event(0, "ADDED", "50") is Verdict.COLLECT
    assert core.event(0, "BOOKMARK", "52") is Verdict.IGNORE
    assert core.event(0, "MODIFIED", "55") is Verdict.COLLECT
    assert core.version == ""
    assert core.event(0, "BOOKMARK", "60", initial_events_end=True) is Verdict.SNAPSHOT
    assert core.phase is Phase.WATCHING
    assert core.event(0, "ADDED", "61") is Verdict.APPLY
    core.closed(10)
    assert core.next(10) == AskWatch("61", 300, False, None)


@pytest.mark.parametrize("error", [InvalidError("sendInitialEvents is forbidden"), BadRequestError("unknown")], ids=str)
def test_a_server_without_watch_list_is_listed_at_once_and_for_ever(error):
    core = protocol()
    core.next(0)
    core.failed(0, error)
    assert isinstance(core.next(0), AskList)
    core.page(0, "1", None)
    core.next(0)
    core.failed(50, ExpiredError("old"))
    assert isinstance(core.next(50), AskList)


@pytest.mark.parametrize("alive", [False, True], ids=["silent", "busy"])
def test_a_streamed_list_without_its_end_is_given_up_and_remembered(alive):
    core, now = streaming(), 0.0
    while core.deadline() > now:
        now += 10
        if alive:
            core.event(now, "ADDED", str(now))
    assert now == (300 if alive else 30)
    core.silent(now)
    assert isinstance(core.next(now), AskList)
    assert not core.watch_list


def test_modifications_do_not_keep_an_endless_streamed_list_alive():
    core = streaming()
    for now in range(0, 40, 5):
        core.event(now, "MODIFIED", "1")
    assert core.deadline() == 30


def test_a_streamed_list_cut_three_times_is_not_tried_again():
    core, now = protocol(), 0.0
    for attempt in range(3):
        step, now = next_request(core, now)
        assert isinstance(step, AskWatch), attempt
        core.opened(now)
        core.event(now, "ADDED", "1")
        core.closed(now + 5)
        step, now = next_request(core, now + 5)
        assert isinstance(step, AskList)
        core.page(now, "2", None)
        step, now = next_request(core, now)
        core.failed(now, InternalError("no watch"))
    step, now = next_request(core, now)
    assert isinstance(step, AskList)


@pytest.mark.parametrize(
    "error", [TooManyRequestsError("slow down"), ConnectionRefused("nobody"), ServiceUnavailableError("later")], ids=str
)
def test_a_streamed_list_is_tried_again_after_a_passing_failure(error):
    core = protocol()
    core.next(0)
    core.failed(0, error)
    step, now = next_request(core, 0)
    assert isinstance(step, AskWatch)
    assert now >= 0.8


def test_a_streamed_list_that_expired_is_asked_again_consistently():
    core = listed("10", prefer_stale=True)
    core.watch_list = True
    core.next(0)
    core.failed(0, InternalError("drop the watch"))
    step, now = next_request(core, 0)
    assert step == AskWatch("10", 300, True, "NotOlderThan")
    core.failed(now, ExpiredError("old"))
    assert core.next(now) == AskWatch("", 300, True, "NotOlderThan")


def test_without_the_watch_verb_it_is_the_list_that_says_what_is_missing():
    core = protocol()
    core.next(0)
    core.failed(0, ForbiddenError("cannot watch"))
    assert core.failure is None, "who waits for the list need not despair yet"
    assert isinstance(core.next(0), AskList)
    core.failed(0, ForbiddenError("cannot list"))
    assert core.failure.kind is FailureKind.FORBIDDEN
    assert isinstance(core.next(0), Wait)


# ---- versions while watching


def test_the_version_is_that_of_the_last_event_not_the_highest():
    core = watching("10")
    for version in ("55", "32"):
        assert core.event(0, "MODIFIED", version) is Verdict.APPLY
    assert core.version == "32"


def test_a_bookmark_moves_the_version_only():
    core = watching("10")
    assert core.event(0, "BOOKMARK", "40") is Verdict.BOOKMARK
    assert core.version == "40"


def test_an_unknown_event_is_ignored_but_moves_the_version():
    core = watching("10")
    assert core.event(0, "SOMETHING", "41") is Verdict.IGNORE
    assert core.version == "41"


@pytest.mark.parametrize("start", ["", "0"])
def test_synthetic_added_events_do_not_move_the_version(start):
    core = watching(start)
    assert core.event(0, "ADDED", "30") is Verdict.APPLY
    assert core.event(0, "ADDED", "20") is Verdict.APPLY
    assert core.version == start
    core.event(0, "MODIFIED", "31")
    assert core.version == "31"
    core.event(0, "ADDED", "32")
    assert core.version == "32"


def test_a_watch_asks_for_a_random_time_between_five_and_ten_minutes():
    draws = iter([0.0, 0.5, 0.999])
    for expected in (300, 450, 599):
        core = Protocol(ProtocolConfig(), random=lambda: next(draws))
        assert core.next(0).timeout_seconds == expected


# ---- the end of a watch


@pytest.mark.parametrize("event", [None, "11"])
def test_a_watch_that_ended_normally_is_resumed_at_once_without_a_list(event):
    core = watching("10")
    if event:
        core.event(1, "ADDED", event)
    core.closed(300)
    assert core.next(300) == AskWatch(event or "10", 300, False, None)


def test_a_very_short_watch_without_events_relists_after_a_wait():
    core = watching("10")
    core.closed(0.5)
    assert isinstance(core.next(0.5), Wait)
    step, now = next_request(core, 0.5)
    assert isinstance(step, AskList)
    assert now >= 1.3


@pytest.mark.parametrize("event", [None, "BOOKMARK", "ADDED"])
@pytest.mark.parametrize("watch_list", [False, True])
def test_a_server_that_ends_each_answer_at_once_is_never_asked_in_a_loop(event, watch_list):
    core, now, requests = protocol(watch_list=watch_list), 0.0, 0
    version = 10
    while now < 60:
        step, now = next_request(core, now)
        requests += 1
        if isinstance(step, AskList):
            core.page(now, str(version), None)
            continue
        core.opened(now)
        if event:
            version += event == "ADDED"
            core.event(now, event, str(version))
        core.closed(now)
    assert requests <= 40


@pytest.mark.parametrize(
    "error", [ConnectionRefused("nobody"), TooManyRequestsError("slow"), ConnectionReset("cut")], ids=str
)
def test_a_watch_that_cannot_be_opened_is_tried_again_without_a_list(error):
    core, now = listed("10"), 0.0
    for _ in range(5):
        step, now = next_request(core, now)
        assert step == AskWatch("10", 300, False, None)
        core.failed(now, error)
    assert now > 0.8


def test_a_watch_that_opens_again_has_overcome_the_failure():
    core = listed("10")
    core.next(0)
    core.failed(0, ConnectionRefused("nobody"))
    assert core.failure.message == "nobody"
    _, now = next_request(core, 0)
    core.opened(now)
    assert core.failure is None


def test_429_in_the_stream_waits_and_goes_on():
    core = watching("10")
    core.event(0, "ADDED", "11")
    core.failed(5, TooManyRequestsError("slow", retry_after=7.0))
    assert core.next(5) == Wait(7.0, core.failure.message)
    assert core.next(12) == AskWatch("11", 300, False, None)


def test_a_connection_that_broke_after_a_while_is_resumed_at_once():
    core = watching("10")
    core.failed(20, ConnectionReset("cut"))
    assert core.next(20) == AskWatch("10", 300, False, None)


def test_another_error_in_the_stream_relists_after_a_wait():
    core = watching("10")
    core.failed(5, InternalError("etcd"))
    assert isinstance(core.next(5), Wait)
    step, _ = next_request(core, 5)
    assert isinstance(step, AskList)


# ---- liveness


def test_a_watch_may_be_silent_for_its_time_out_and_a_grace():
    assert watching("10").deadline() == 330


def test_after_bookmarks_silence_of_three_times_the_longest_gap_reconnects():
    core = watching("10")
    core.event(60, "BOOKMARK", "11")
    assert core.deadline() == 60 + 180
    core.event(140, "BOOKMARK", "12")
    assert core.deadline() == 140 + 240
    core.silent(400)
    assert core.next(400) == AskWatch("12", 300, False, None)
    assert "silent" in core.failure.message


def test_without_a_stream_there_is_no_deadline():
    assert protocol().deadline() is None
    assert listed().deadline() is None
