"""Shared informers: resyncs, waits that explain themselves, kinds that come and go, and how all of it ends."""

from __future__ import annotations

import threading
import time

import pytest

from informers import (
    InformerStopped,
    ObjectKey,
    ProtocolConfig,
    Reason,
    SyncError,
    SyncTimeout,
    Timeout,
    wait_for_sync,
)
from informers.errors import ConnectionRefused, ForbiddenError, KindNotFoundError, ScopeError, UnauthorizedError
from informers.testing import FakeListWatch
from workqueue.testing import FakeClock

pytestmark = pytest.mark.usefixtures("no_stray_threads")


# ---- resync


def test_each_handler_is_resynced_at_its_own_period(source, informers, recorders):
    clock = FakeClock()
    informer = informers(source, clock=clock, random=lambda: 0.5)
    often, seldom, never = recorders(), recorders(), recorders()
    for recorder, period in ((often, 10.0), (seldom, 25.0), (never, None)):
        informer.add_event_handler(on_event=recorder, resync=period)
    informer.start()
    for recorder in (often, seldom, never):
        recorder.wait(2)
    for expected in ((2, 0), (4, 0), (6, 2), (8, 2), (10, 4)):
        clock.wait_for_sleepers(2)
        clock.advance(5)
        clock.wait_for_sleepers(2)
        clock.advance(5)
        often.wait(2 + expected[0])
        seldom.wait(2 + expected[1])
    assert {event.reason for event in often.events[2:]} == {Reason.RESYNC}
    assert len(never.events) == 2


def test_a_handler_may_ask_for_resync_where_the_informer_does_not_and_late(source, informers, recorder):
    clock = FakeClock()
    informer = informers(source, clock=clock, random=lambda: 0.5)
    informer.start()
    informer.wait_for_sync(10)
    informer.add_event_handler(on_event=recorder, resync=0.5)
    recorder.wait(2)
    clock.wait_for_sleepers(2)
    clock.advance(1)
    assert recorder.wait(4)[-1].reason is Reason.RESYNC


# ---- waiting


def test_wait_for_reads_your_writes(source, informers, pod):
    informer = informers(source)
    informer.start()
    for number in range(50):
        written = source.modify(pod("a", app=str(number)))
        informer.wait_for(written, 10)
        assert int(informer.lister.get("ns/a").resource_version) >= int(written.resource_version)


def test_wait_for_an_object_that_was_deleted_since_or_never_matched_ends_with_a_later_version(source, informers, pod):
    informer = informers(source)
    informer.start()
    written = source.modify(pod("a", app="x"))
    source.delete("ns/a")
    informer.wait_for(written, 10)
    hidden = pod("elsewhere", source.resource_version, "u")
    informer.wait_for(hidden, 10)


def test_wait_for_ends_with_a_bookmark(source, informers, pod):
    informer = informers(source)
    informer.start()
    informer.wait_for_sync(10)
    source._version += 5  # another kind was written to
    hidden = pod("filtered-out", source.resource_version, "u")
    with pytest.raises(Timeout, match=r"waited 0 s for ns/filtered-out at version 7"):
        informer.wait_for(hidden, 0)
    waiting = threading.Thread(target=informer.wait_for, args=(hidden, 10))
    waiting.start()
    source.bookmark()
    waiting.join(10)
    assert not waiting.is_alive()


def test_wait_for_is_not_content_with_what_is_only_queued(source, informers, pod):
    inside, go_on, returned = threading.Event(), threading.Event(), threading.Event()

    def slow_index(obj):
        if obj.labels.get("slow"):
            inside.set()
            go_on.wait(10)
        return [obj.name]

    informer = informers(source, indexers={"slow": slow_index})
    informer.start()
    informer.wait_for_sync(10)
    written = source.modify(pod("a", slow="yes"))
    assert inside.wait(10)
    source.bookmark()
    while informer._sinks[None].version != written.resource_version:
        time.sleep(0)

    def wait() -> None:
        informer.wait_for(written, 10)
        assert informer.lister.get("ns/a").resource_version == written.resource_version
        returned.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not returned.wait(0.05)
    go_on.set()
    waiting.join(10)
    assert returned.is_set()


def test_wait_for_deletion_waits_for_that_uid_only(source, informers, pod):
    informer = informers(source)
    informer.start()
    informer.wait_for_sync(10)
    uid = informer.lister.get("ns/a").uid
    with pytest.raises(Timeout):
        informer.wait_for_deletion("ns/a", uid, 0)
    source.delete("ns/a")
    source.add(pod("a"))
    informer.wait_for_deletion("ns/a", uid, 10)
    informer.wait_for_deletion(ObjectKey("ns", "never"), "u", 0)


def test_waiting_ends_when_the_informer_is_stopped(source, informers, pod):
    informer = informers(source)
    informer.start()
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            informer.wait_for(pod("never", 10**6, "u"))
        except InformerStopped as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not informer._news.waiters:
        time.sleep(0)
    informer.stop(10)
    waiting.join(10)
    assert len(errors) == 1


@pytest.mark.parametrize(
    "error",
    [
        UnauthorizedError("who are you"),
        ForbiddenError("not allowed"),
        KindNotFoundError("no such kind"),
        ScopeError("nodes are cluster scoped"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_fail_fast_raises_what_only_a_person_can_change(source, informers, error):
    source.fail_next("watch", error, times=10**4)
    source.fail_next("list", error, times=10**4)
    informer = informers(source)
    informer.start()
    with pytest.raises(SyncError, match=str(error).partition(" [")[0]) as caught:
        informer.wait_for_sync(10, fail_fast=True)
    assert not isinstance(caught.value, TimeoutError)
    assert str(error) in informer.status().last_error


def test_fail_fast_does_not_despair_of_a_list_that_may_not_be_streamed(source, informers):
    source.fail_next("watch", ForbiddenError("cannot watch"), times=10**4)
    informer = informers(source)
    informer.start()
    informer.wait_for_sync(10, fail_fast=True)
    source.wait_for_requests("watch", 3)
    assert "cannot watch" in informer.status().sources[0].last_error
    informer.wait_for_sync(10, fail_fast=True)


def test_a_sync_that_takes_too_long_says_why(source, informers):
    source.fail_next("watch", ConnectionRefused("nobody listens at http://127.0.0.1:1"), times=10**4)
    informer = informers(source, name="v1 Pod")
    informer.start()
    source.wait_for_requests("watch", 2)
    with pytest.raises(SyncTimeout, match=r"v1 Pod did not sync in 0.01 s: nobody listens at http://127.0.0.1:1"):
        informer.wait_for_sync(0.01)
    source.clear_failures()
    informer.wait_for_sync(10)
    assert informer.status().last_error == ""


def test_an_informer_that_was_not_started_says_so(source, informers):
    with pytest.raises(SyncTimeout, match="was not started"):
        informers(source).wait_for_sync(0)


def test_wait_for_sync_of_several_names_all_that_are_missing(source, informers):
    good, bad, worse = (informers(FakeListWatch(), name=name) for name in ("good", "bad", "worse"))
    good.start()
    with pytest.raises(SyncTimeout, match=r"bad .* not started; worse .* not started"):
        wait_for_sync(good, bad, worse, timeout=0.05)
    wait_for_sync(good, timeout=10)
    wait_for_sync()


# ---- kinds that come and go


def test_a_kind_that_does_not_exist_yet_is_waited_for(source, informers):
    source.fail_next("watch", KindNotFoundError("no such kind"), times=3)
    informer = informers(source)
    informer.start()
    informer.wait_for_sync(10)
    assert len(informer.lister.list()) == 2


def test_a_kind_that_was_deleted_empties_the_cache_and_comes_back(source, informers, recorder, pod):
    informer = informers(source)
    informer.add_event_handler(on_event=recorder)
    informer.start()
    recorder.wait(2)
    source.fail_next("watch", KindNotFoundError("no such kind"), times=10**6)
    source.drop_watches()
    recorder.wait(4)
    assert recorder.lines()[2:] == ["delete a@1 relist unknown", "delete b@2 relist unknown"]
    assert informer.status().state == "gone"
    assert informer.has_synced()
    source.clear_failures()
    recorder.wait(6)
    assert len(informer.lister.list()) == 2


# ---- life


def test_stop_is_quick_idempotent_and_final(source, informers):
    informer = informers(source)
    informer.add_event_handler(on_event=print)
    informer.start()
    informer.start()
    informer.wait_for_sync(10)
    assert informer.stop(1)
    assert informer.stop(1)
    assert informer.status().state == "stopped"
    assert len(informer.lister.list()) == 2, "the cache stays readable"
    with pytest.raises(InformerStopped):
        informer.start()
    with pytest.raises(InformerStopped):
        informer.add_event_handler(on_event=print)
    stopped = informers(source)
    stopped.stop()
    with pytest.raises(SyncError, match="stopped"):
        stopped.wait_for_sync(10)


def test_stop_while_waiting_between_failures_is_immediate(informers):
    clock = FakeClock()
    source = FakeListWatch(clock=clock)
    source.fail_next("watch", ConnectionRefused("nobody"), times=100)
    informer = informers(source, protocol=ProtocolConfig(), clock=clock)
    informer.start()
    clock.wait_for_sleepers(1)
    assert informer.stop(1)


def test_a_handler_may_stop_its_informer(source, informers):
    results: list[bool] = []
    informer = informers(source)
    runner = threading.Thread(target=informer.run, args=(threading.Event(),))
    runner.start()
    informer.wait_for_sync(10)
    informer.add_event_handler(on_add=lambda obj, is_initial: results.append(informer.stop(10)))
    runner.join(10)
    assert results == [True]


def test_a_handler_that_does_not_return_is_named(source, informers):
    go_on = threading.Event()
    inside = threading.Event()

    def stuck(obj, is_initial):
        inside.set()
        go_on.wait(10)

    informer = informers(source, name="pods")
    informer.add_event_handler(on_add=stuck)
    informer.start()
    assert inside.wait(10)
    assert not informer.stop(0.05)
    assert any("stuck" in name for name in informer.status().unfinished)
    go_on.set()


def test_run_blocks_until_told(source, informers):
    informer, stop = informers(source), threading.Event()
    runner = threading.Thread(target=informer.run, args=(stop,))
    runner.start()
    informer.wait_for_sync(10)
    stop.set()
    runner.join(10)
    assert not runner.is_alive()


def test_the_start_race_no_handler_is_lost(source, informers, recorders):
    informer = informers(source)
    found = [recorders() for _ in range(20)]
    adding = threading.Thread(target=lambda: [informer.add_event_handler(on_event=each) for each in found])
    adding.start()
    informer.start()
    adding.join()
    for each in found:
        each.wait(2)


def test_handlers_may_come_and_go_while_events_flow(source, informers, pod):
    informer = informers(source)
    informer.start()
    informer.wait_for_sync(10)
    errors: list[BaseException] = []

    def churn() -> None:
        try:
            for _ in range(30):
                registration = informer.add_event_handler(on_event=lambda event: None, max_pending=2)
                registration.remove(wait=True)
        except Exception as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    threads = [threading.Thread(target=churn) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(300):
        last = source.modify(pod("a", app=str(number)))
    for thread in threads:
        thread.join(30)
    informer.wait_for(last, 10)
    assert errors == []
    assert informer.status().handlers == ()
