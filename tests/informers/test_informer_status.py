"""What an informer says of itself: how fresh it is, what it waits for and why, what it could not read."""

from __future__ import annotations

import logging
import threading

import pytest

from informers import ProtocolConfig, SharedInformer, SyncTimeout, wait_for_sync
from informers.errors import ConnectionRefused, ForbiddenError, InternalError
from informers.testing import FakeListWatch, Fault
from workqueue.testing import FakeClock

QUIET = ProtocolConfig(watch_timeout=(600.0, 600.0))


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def watched(clock, pod):
    """A source on the clock and its informer, synced and watching."""
    source = FakeListWatch([pod("a"), pod("b")], clock=clock)
    informer = SharedInformer(source, protocol=QUIET, clock=clock, random=lambda: 0.0)
    informer.start()
    informer.wait_for_sync(10)
    clock.wait_for_sleepers(2)  # the stream's time-out and the keeper's
    yield source, informer
    assert informer.stop(10)


def wait_until(condition):
    pause = threading.Event()
    for _ in range(10_000):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("it did not come to that")


# ---- freshness


def test_before_the_first_list_there_is_no_lag(clock):
    informer = SharedInformer(FakeListWatch(), clock=clock)
    assert informer.status().lag is None
    assert informer.status().sources[0].connected_age is None


def test_lag_grows_while_nothing_is_heard_and_ends_with_a_bookmark(watched, clock):
    source, informer = watched
    clock.advance(50.0)
    assert informer.status().lag == 50.0
    assert informer.status().sources[0].connected_age == 50.0
    source.bookmark()
    wait_until(lambda: informer.status().lag == 0.0)
    assert informer.status().sources[0].connected_age == 50.0


def test_an_event_ends_the_lag_too(watched, clock, pod):
    source, informer = watched
    clock.advance(50.0)
    informer.wait_for(source.add(pod("c")), 10)
    assert informer.status().lag == 0.0


def test_taking_a_watch_that_goes_on_shows_that_nothing_was_missed(watched, clock):
    source, informer = watched
    clock.advance(50.0)
    source.drop_watches()
    source.wait_for_requests("watch", 2)
    wait_until(lambda: informer.status().lag == 0.0)
    assert informer.status().sources[0].connected_age == 0.0


def test_a_server_that_went_silent_is_noticed_said_and_lags_until_it_speaks(watched, clock):
    source, informer = watched
    clock.advance(1.0)
    source.bookmark()
    wait_until(lambda: informer.status().lag == 0.0)
    source.inject(Fault.HALF_OPEN)
    source.fail_next("watch", ConnectionRefused("nobody"), times=10**6)
    for _ in range(20):
        clock.advance(10.0)
        threading.Event().wait(0.001)
    wait_until(lambda: informer.status().last_error == "nobody")
    status = informer.status()
    assert status.lag == 200.0
    assert status.sources[0].connected_age is None
    source.recover()
    source.bookmark()
    for _ in range(20):
        clock.advance(1.0)
        threading.Event().wait(0.001)
    wait_until(lambda: informer.status().last_error in ("", "the watch was silent for 180 s; reconnecting"))
    source.bookmark()
    wait_until(lambda: not informer.status().last_error)


def test_while_a_list_is_read_again_the_lag_goes_on(watched, clock, pod):
    source, informer = watched
    clock.advance(40.0)
    source.fail_next("watch", InternalError("etcd"), times=10**6)
    source.fail_next("list", InternalError("etcd"), times=10**6)
    source.drop_watches()
    wait_until(lambda: informer.status().last_error)
    heard = informer.status().lag
    clock.advance(5.0)
    assert informer.status().lag == heard + 5.0
    source.recover()
    wait_until(lambda: clock.advance(1.0) or not informer.status().last_error)
    assert informer.status().lag <= 1.0


# ---- what could not be read


def test_what_could_not_be_read_is_counted_and_named(watched, pod):
    source, informer = watched
    source.poison("ns/a")
    informer.wait_for(source.modify(pod("b", app="x")), 10)
    status = informer.status()
    assert (status.unreadable, status.last_unreadable) == (1, "MODIFIED ns/a")
    assert status.sources[0].last_unreadable == "MODIFIED ns/a"
    assert informer.lister.get("ns/a").resource_version == "1", "what could be read before is kept"


@pytest.mark.parametrize("watch_list", [False, True], ids=["paged", "streamed"])
def test_what_a_list_cannot_show_is_named_and_stays_cached(watch_list, pod, informers):
    source = FakeListWatch([pod("a"), pod("b")], watch_list=watch_list)
    informer = informers(source)
    informer.start()
    informer.wait_for_sync(10)
    source.poison("ns/a")
    source.delete("ns/b")
    source.inject(Fault.GONE)
    informer.wait_for_deletion("ns/b", "uid-2", 10)
    informer.wait_for(source.add(pod("c")), 10)
    assert [obj.name for obj in informer.lister.list()] == ["a", "c"]
    assert informer.status().last_unreadable == ("ADDED ns/a" if watch_list else "ns/a in a list")


def test_what_the_transform_refuses_is_named(source, informers):
    informer = informers(source, transform=lambda obj: {}[obj.name])
    informer.start()
    informer.wait_for_sync(10)
    assert informer.status().last_unreadable == "ns/b: the transform failed: KeyError: 'b'"


# ---- waiting for sync


def test_who_waits_for_sync_logs_why_every_ten_seconds_and_learns_since_when(clock, caplog):
    caplog.set_level(logging.WARNING)
    source = FakeListWatch(clock=clock)
    source.fail_next("watch", ForbiddenError("no", verb="list", resource="pods"), times=10**6)
    source.fail_next("list", ForbiddenError("no", verb="list", resource="pods"), times=10**6)
    informer = SharedInformer(source, name="v1 Pod", clock=clock, random=lambda: 0.0)
    informer.start()
    wait_until(lambda: informer.status().last_error)
    errors = []

    def wait():
        try:
            informer.wait_for_sync(35.0)
        except SyncTimeout as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_until(lambda: informer._news.waiters)
    while waiting.is_alive():
        clock.advance(0.5)
        threading.Event().wait(0.001)
    said = [record.message for record in caplog.records if record.name == "informers.shared_informer"]
    assert len(said) == 3
    assert all("v1 Pod has not synced yet: no [403 Forbidden; list pods] (for " in line for line in said)
    assert str(errors[0]).startswith("v1 Pod did not sync in 35 s: no [403 Forbidden; list pods] (for 3")
    assert errors[0].reason.startswith("no [403")
    assert informer.stop(10)


def test_that_something_failed_earlier_is_not_counted_into_the_trouble_of_now(watched, clock):
    source, informer = watched
    for _ in range(2):
        clock.advance(30.0)
        source.fail_next("watch", ConnectionRefused("nobody"), times=1)
        source.drop_watches()
        wait_until(lambda: informer.status().last_error)
        assert informer._sync_reason() == "nobody"
        count = len(source.requests("watch"))
        wait_until(lambda count=count: clock.advance(1.0) or len(source.requests("watch")) > count)
        wait_until(lambda: not informer.status().last_error)


def test_several_that_are_missing_are_logged_together(informers, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr("informers.sync.SAY_AGAIN", 0.01)
    good, bad, worse = (informers(FakeListWatch(), name=name) for name in ("good", "bad", "worse"))
    good.start()
    with pytest.raises(SyncTimeout, match=r"^bad did not sync in 0.05 s: .* not started; worse did not sync in 0.05 s"):
        wait_for_sync(good, bad, worse, timeout=0.05)
    said = [record.message for record in caplog.records if record.name == "informers.sync"]
    assert said
    assert said[-1] == "not synced yet: bad: the informer was not started; worse: the informer was not started"
