"""Shared informers: cache first, then handlers; late handlers miss nothing."""

from __future__ import annotations

import threading
import time

import pytest

from informers import (
    Event,
    EventType,
    NotFoundError,
    ObjectKey,
    Reason,
    SyncTimeout,
)
from informers.errors import ConnectionRefused
from informers.testing import FakeListWatch

pytestmark = pytest.mark.usefixtures("no_stray_threads")


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

    registration = informer.add_event_handler(on_event=on_event)
    informer.start()
    registration.wait_for_sync(10)
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


def test_deleted_and_recreated_in_a_gap_is_a_delete_and_an_add_and_the_cache_holds_the_new_one(source, informers, pod):
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


def test_a_cluster_scoped_kind_by_namespaces_is_said_to_be_a_mistake(informers, pod):
    informer = informers({name: FakeListWatch([pod("node", namespace="")]) for name in ("one", "two")})
    informer.start()
    with pytest.raises(SyncTimeout, match="node is cluster scoped: ask for this kind with namespace=None"):
        informer.wait_for_sync(0.2)
