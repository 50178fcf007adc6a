"""Shared informers: cache first, then handlers; late handlers miss nothing; waits explain themselves; all ends."""

from __future__ import annotations

import threading
import time

import pytest

from informers import (
    Event,
    EventType,
    InformerStopped,
    NotFoundError,
    ObjectKey,
    ProtocolConfig,
    Reason,
    SharedInformer,
    SyncError,
    SyncTimeout,
    Timeout,
    wait_for_sync,
)
from informers.backoff import BackoffConfig
from informers.errors import ConnectionRefused, ExpiredError, ForbiddenError, KindNotFoundError, UnauthorizedError
from informers.testing import FakeListWatch
from workqueue.testing import FakeClock

pytestmark = pytest.mark.usefixtures("no_stray_threads")

FAST = ProtocolConfig(backoff=BackoffConfig(base=0.001, cap=0.01), short_watch=0.0, gone_after=0.0, not_found_cap=0.01)


@pytest.fixture
def informers():
    """informers(source, **options) makes an informer that is stopped at the end."""
    made: list[SharedInformer] = []

    def make(source, protocol=FAST, **options):
        informer = SharedInformer(source, protocol=protocol, **options)
        made.append(informer)
        return informer

    yield make
    for informer in made:
        assert informer.stop(10), informer.status().unfinished


@pytest.fixture
def source(pod):
    return FakeListWatch([pod("a"), pod("b")])


def relist(source: FakeListWatch) -> None:
    """Make the informer list again."""
    source.drop_watches(ExpiredError("too old"))


# ---- delivery


def test_adds_updates_and_deletes_arrive_with_old_and_new(source, informers, pod):
    calls: list[tuple] = []
    informer = informers(source)
    registration = informer.add_event_handler(
        on_add=lambda obj, is_initial: calls.append(("add", obj.name, is_initial)),
        on_update=lambda old, new: calls.append(("update", old.resource_version, new.resource_version)),
        on_delete=lambda obj, unknown: calls.append(("delete", obj.resource_version, unknown)),
    )
    informer.start()
    registration.wait_for_sync(10)
    source.modify(pod("a", app="x"))
    source.add(pod("c"))
    informer.wait_for(source.delete("ns/b"), 10)
    done = threading.Event()
    informer.add_event_handler(on_add=lambda obj, is_initial: done.set())
    assert done.wait(10)
    while registration.statistics().pending:
        time.sleep(0)
    assert calls == [
        ("add", "a", True), ("add", "b", True), ("update", "1", "3"), ("add", "c", False), ("delete", "5", False),
    ]  # fmt: skip


def test_the_cache_is_ahead_of_the_handler(source, informers, pod):
    seen: list[bool] = []
    done = threading.Event()
    informer = informers(source)

    def on_event(event: Event) -> None:
        cached = informer.lister.list()
        present = event.object.key in [obj.key for obj in cached]
        seen.append(present is (event.type is not EventType.DELETE))
        if event.type is EventType.DELETE:
            done.set()

    informer.add_event_handler(on_event=on_event)
    informer.start()
    informer.wait_for_sync(10)
    source.delete("ns/a")
    assert done.wait(10)
    assert seen == [True, True, True]


def test_a_relist_delivers_only_what_changed(source, informers, pod, recorder):
    informer = informers(source)
    informer.add_event_handler(on_event=recorder)
    informer.start()
    recorder.wait(2)
    source.stall()
    source.modify(pod("b", app="x"))
    source.add(pod("c"))
    source.compact()
    source.resume()
    recorder.wait(4)
    assert recorder.lines()[2:] == ["update b@3 relist", "add c@4 relist"]


def test_a_gap_with_a_delete_gives_the_last_known_state(source, informers, recorder):
    informer = informers(source)
    informer.add_event_handler(on_event=recorder)
    informer.start()
    recorder.wait(2)
    source.stall()
    source.delete("ns/b")
    source.compact()
    source.resume()
    recorder.wait(3)
    assert recorder.lines()[2:] == ["delete b@2 relist unknown"]


def test_deleted_and_recreated_in_a_gap_is_a_delete_and_an_add_and_the_cache_holds_the_new_one(
    source, informers, pod
):
    informer = informers(source)
    cached: list[str] = []
    calls: list[str] = []
    done = threading.Event()

    def on_event(event: Event) -> None:
        calls.append(f"{event.type.value} {event.object.uid} {event.final_state_unknown}")
        cached.append(informer.lister.get("ns/a").uid)
        if event.object.uid == "uid-3":
            done.set()

    informer.start()
    informer.wait_for_sync(10)
    source.stall()
    source.delete("ns/a")
    source.add(pod("a"))
    source.compact()
    informer.add_event_handler(on_event=on_event, filter=lambda obj: obj.name == "a")
    source.resume()
    assert done.wait(10)
    assert calls == ["add uid-1 False", "delete uid-1 True", "add uid-3 False"]
    assert cached[1:] == ["uid-3", "uid-3"]


def test_time_travel_is_dropped_and_counted(informers, pod, recorder):
    class Replaying(FakeListWatch):
        """Sends the first change once more, as a lagging server behind a load balancer does."""

        def modify(self, obj):
            stored = super().modify(obj)
            for stream in self._streams:
                stream._events.append(stream._events[0])
            return stored

    source = Replaying([pod("a")])
    informer = informers(source)
    informer.add_event_handler(on_event=recorder)
    informer.start()
    recorder.wait(1)
    source.stall()
    source.modify(pod("a", app="1"))
    source.modify(pod("a", app="2"))
    source.resume()
    last = source.add(pod("b"))
    informer.wait_for(last, 10)
    recorder.wait(4)
    assert [line.split()[1] for line in recorder.lines()] == ["a@1", "a@2", "a@3", "b@4"]
    assert informer.status().time_travel == 2


# ---- handlers that come late, fail, filter, are slow, or go


def test_a_late_handler_sees_everything_and_misses_nothing(informers, pod, recorders):
    source = FakeListWatch(pod(f"p{number}") for number in range(50))
    informer = informers(source)
    informer.start()
    informer.wait_for_sync(10)
    writing = threading.Thread(target=lambda: [source.modify(pod(f"p{n % 50}", app=str(n))) for n in range(1000)])
    writing.start()
    late = [recorders() for _ in range(20)]
    registrations = [informer.add_event_handler(on_event=each, max_pending=None) for each in late]
    writing.join()
    for registration in registrations:
        registration.wait_for_sync(10)
    informer.wait_for(source.add(pod("end")), 10)
    for each in late:
        while not any(event.object.name == "end" for event in each.events):
            each.wait(len(each.events) + 1)
        last: dict[str, int] = {}
        for event in each.events:
            version = int(event.object.resource_version)
            assert (event.type is EventType.ADD) == (event.object.name not in last)
            if event.old is not None:
                assert int(event.old.resource_version) == last[event.object.name], "a gap"
            last[event.object.name] = version
        assert {obj.name: int(obj.resource_version) for obj in source.objects().values()} == last


def test_a_late_handlers_first_events_are_initial(source, informers, recorder):
    informer = informers(source)
    informer.start()
    informer.wait_for_sync(10)
    registration = informer.add_event_handler(on_event=recorder)
    registration.wait_for_sync(10)
    assert [event.reason for event in recorder.events] == [Reason.INITIAL, Reason.INITIAL]


def test_has_synced_has_two_levels(source, informers):
    go_on = threading.Event()
    informer = informers(source)
    registration = informer.add_event_handler(on_add=lambda obj, is_initial: go_on.wait(10))
    assert not informer.has_synced()
    informer.start()
    informer.wait_for_sync(10)
    assert not registration.has_synced()
    with pytest.raises(SyncTimeout, match="pending"):
        registration.wait_for_sync(0)
    go_on.set()
    registration.wait_for_sync(10)
    assert registration.has_synced()


def test_an_empty_kind_syncs(informers):
    informer = informers(FakeListWatch())
    registration = informer.add_event_handler(on_event=print)
    informer.start()
    informer.wait_for_sync(10)
    registration.wait_for_sync(10)
    assert informer.lister.list() == []


def test_an_exception_in_a_handler_is_counted_and_ends_nothing(source, informers, pod, recorder):
    informer = informers(source)

    def on_add(obj, is_initial):
        raise RuntimeError(f"cannot take {obj.name}")

    registration = informer.add_event_handler(on_add=on_add, on_event=recorder)
    informer.start()
    registration.wait_for_sync(10)
    statistics = registration.statistics()
    assert (statistics.failed, statistics.delivered) == (2, 2)
    assert statistics.last_error == "add ns/b: RuntimeError: cannot take b"
    assert len(recorder.events) == 2
    assert informer.status().handlers == (statistics,)


def test_a_failing_filter_skips_the_event(source, informers, recorder):
    informer = informers(source)
    registration = informer.add_event_handler(on_event=recorder, filter=lambda obj: 1 / (obj.name != "a"))
    informer.start()
    registration.wait_for_sync(10)
    assert recorder.lines() == ["add b@2 initial"]
    assert registration.statistics().failed == 1


def test_a_filter_turns_entering_into_add_and_leaving_into_delete_with_the_old_object(source, informers, pod, recorder):
    informer = informers(source)
    registration = informer.add_event_handler(on_event=recorder, filter=lambda obj: obj.labels.get("app") == "x")
    informer.start()
    registration.wait_for_sync(10)
    for labels in ({"app": "x"}, {"app": "x", "tier": "1"}, {"app": "y"}, {"app": "y", "tier": "2"}, {"app": "x"}):
        source.modify(pod("a", **labels))
    informer.wait_for(source.delete("ns/a"), 10)
    source.delete("ns/b")
    recorder.wait(5)
    assert recorder.lines() == [
        "add a@3 watch", "update a@4 watch", "delete a@4 watch", "add a@7 watch", "delete a@8 watch",
    ]  # fmt: skip


def test_a_slow_handler_is_bounded_and_holds_up_nobody(source, informers, pod, recorder):
    busy, go_on = threading.Event(), threading.Event()
    slow: list[Event] = []

    def on_event(event: Event) -> None:
        busy.set()
        go_on.wait(10)
        slow.append(event)

    informer = informers(source)
    registration = informer.add_event_handler(on_event=on_event, max_pending=4)
    informer.add_event_handler(on_event=recorder, max_pending=None)
    informer.start()
    assert busy.wait(10)
    for number in range(200):
        last = source.modify(pod("a", app=str(number)))
    informer.wait_for(last, 10)
    recorder.wait(202)
    statistics = registration.statistics()
    assert statistics.pending <= 5
    assert statistics.coalesced >= 190
    go_on.set()
    registration.wait_for_sync(10)
    while slow[-1].object.resource_version != last.resource_version:
        time.sleep(0)
    assert [event.type for event in slow if event.object.name == "b"] == [EventType.ADD]


def test_remove_ends_one_handler_and_leaves_the_others(source, informers, pod, recorders):
    first, second = recorders(), recorders()
    informer = informers(source)
    registration = informer.add_event_handler(on_event=first)
    informer.add_event_handler(on_event=second)
    informer.start()
    second.wait(2)
    first.wait(2)
    registration.remove(wait=True)
    registration.remove()
    source.add(pod("c"))
    second.wait(3)
    assert len(first.events) == 2
    assert len(informer.status().handlers) == 1


def test_a_handler_may_remove_itself_and_add_others(source, informers, recorder):
    removed = threading.Event()
    informer = informers(source)

    def on_event(event: Event) -> None:
        registration.remove(wait=True)
        informer.add_event_handler(on_event=recorder)
        removed.set()

    registration = informer.add_event_handler(on_event=on_event)
    informer.start()
    assert removed.wait(10)
    recorder.wait(2)


def test_one_function_registered_twice_is_called_twice(source, informers, recorder):
    informer = informers(source)
    informer.add_event_handler(on_event=recorder)
    informer.add_event_handler(on_event=recorder)
    informer.start()
    assert len(recorder.wait(4)) == 4


@pytest.mark.parametrize("options", [{}, {"on_event": print, "max_pending": 0}, {"on_event": print, "resync": -1.0}])
def test_a_handler_without_sense_is_refused(source, informers, options):
    with pytest.raises(ValueError, match=r"at least|negative"):
        informers(source).add_event_handler(**options)


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
    while not informer._waiters:
        time.sleep(0)
    informer.stop(10)
    waiting.join(10)
    assert len(errors) == 1


@pytest.mark.parametrize(
    "error",
    [UnauthorizedError("who are you"), ForbiddenError("not allowed"), KindNotFoundError("no such kind")],
    ids=lambda error: type(error).__name__,
)
def test_fail_fast_raises_what_only_a_person_can_change(source, informers, error):
    source.fail_next("watch", error, times=10**4)
    source.fail_next("list", error, times=10**4)
    informer = informers(source)
    informer.start()
    with pytest.raises(SyncError, match=error.message) as caught:
        informer.wait_for_sync(10, fail_fast=True)
    assert not isinstance(caught.value, TimeoutError)
    assert error.message in informer.status().last_error


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


# ---- cache, lister, indices, transform


def test_the_lister_finds_by_key_selector_namespace_and_index(informers, pod):
    source = FakeListWatch([pod("a", app="x"), pod("b", app="y"), pod("a", namespace="other", app="x")])
    informer = informers(source, indexers={"app": lambda obj: [obj.labels["app"]]})
    informer.start()
    informer.wait_for_sync(10)
    lister = informer.lister
    assert lister.get("ns/a").key == ObjectKey("ns", "a")
    with pytest.raises(NotFoundError, match="ns/c") as caught:
        lister.get("ns/c")
    assert caught.value.key == ObjectKey("ns", "c")
    assert len(lister.list(selector="app=x")) == 2
    assert [str(obj.key) for obj in lister.list(selector="app=x", namespace="other")] == ["other/a"]
    assert lister.list(namespace="nowhere") == []
    assert len(lister.by_index("app", "x")) == 2


def test_an_index_may_be_added_while_running(source, informers):
    informer = informers(source)
    informer.start()
    informer.wait_for_sync(10)
    informer.indexer.add_index("initial", lambda obj: [obj.name[0]])
    assert [obj.name for obj in informer.indexer.by_index("initial", "a")] == ["a"]
    assert len(informer.indexer) == 2
    assert not hasattr(informer.indexer, "add")


def test_an_index_function_that_fails_is_counted_and_the_object_kept(source, informers, pod):
    informer = informers(source, indexers={"app": lambda obj: [obj.labels["app"]]})
    informer.start()
    informer.wait_for(source.modify(pod("b", app="x")), 10)
    assert len(informer.lister.list()) == 2
    status = informer.status()
    assert status.index_errors["app"] >= 1
    assert status.last_index_error.startswith("app on ns/")
    assert [obj.name for obj in informer.lister.by_index("app", "x")] == ["b"]


def test_the_transform_is_what_cache_and_handlers_see(source, informers, pod, recorder):
    def strip(obj):
        if obj.labels.get("bad"):
            raise ValueError("bad object")
        return pod(obj.name, obj.resource_version, obj.uid, stripped="yes")

    informer = informers(source, transform=strip)
    informer.add_event_handler(on_event=recorder)
    informer.start()
    recorder.wait(2)
    source.modify(pod("a", bad="yes"))
    informer.wait_for(source.modify(pod("b")), 10)
    recorder.wait(3)
    assert all(event.object.labels == {"stripped": "yes"} for event in recorder.events)
    assert informer.lister.get("ns/a").resource_version == "1"
    assert informer.status().unreadable == 1


def test_several_namespaces_fill_one_cache(informers, pod, recorder):
    sources = {name: FakeListWatch([pod("a", namespace=name)]) for name in ("one", "two")}
    sources["two"].fail_next("watch", ConnectionRefused("nobody"), times=3)
    informer = informers(sources)
    registration = informer.add_event_handler(on_event=recorder)
    informer.start()
    registration.wait_for_sync(10)
    assert [str(obj.key) for obj in informer.lister.list(namespace="two")] == ["two/a"]
    sources["one"].stall()
    sources["one"].delete("one/a")
    sources["one"].compact()
    sources["one"].resume()
    recorder.wait(3)
    assert [str(obj.key) for obj in informer.lister.list()] == ["two/a"]
    informer.wait_for(sources["two"].add(pod("b", namespace="two")), 10)
    with pytest.raises(ValueError, match="outside the namespaces"):
        informer.wait_for(pod("x", 1, "u", namespace="three"), 0)


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
    informer.add_event_handler(on_add=lambda obj, is_initial: results.append(informer.stop(10)))
    informer.start()
    runner = threading.Thread(target=informer.run, args=(threading.Event(),))
    runner.start()
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
        except BaseException as error:
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
