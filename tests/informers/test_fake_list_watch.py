"""The shipped source behaves as an API server does where informers can tell."""

from __future__ import annotations

import threading

import pytest

from informers.errors import (
    ConnectionReset,
    ExpiredError,
    InternalError,
    InvalidError,
    MalformedResponseError,
    NotFoundError,
    ServerTimeoutError,
)
from informers.testing import FakeListWatch, Fault
from workqueue.testing import FakeClock


def take(stream, count: int) -> list[str]:
    events = [next(stream) for _ in range(count)]
    return [f"{event.type} {event.object.name}@{event.object.resource_version}" for event in events]


@pytest.fixture
def source(pod):
    return FakeListWatch([pod("a"), pod("b")])


def test_writes_count_versions_and_keep_uids(source, pod):
    changed = source.modify(pod("a", app="x"))
    assert (changed.resource_version, changed.uid, changed.labels) == ("3", "uid-1", {"app": "x"})
    assert source.delete("ns/a").resource_version == "4"
    assert source.add(pod("a")).uid == "uid-3"
    assert source.resource_version == "5"
    with pytest.raises(ValueError, match="exists"):
        source.add(pod("a"))
    for write in (lambda: source.modify(pod("c")), lambda: source.delete("ns/c"), lambda: source.poison("ns/c")):
        with pytest.raises(NotFoundError):
            write()


def test_lists_come_in_pages_of_one_version(source, pod):
    first = source.list(limit=1)
    source.add(pod("c"))
    second = source.list(limit=1, continue_=first.continue_)
    assert [obj.name for obj in (*first, *second)] == ["a", "b"]
    assert (first.resource_version, first.remaining, second.resource_version) == ("2", 1, "2")
    assert second.continue_ == ""


def test_a_compaction_ends_half_read_lists_and_old_watches(source, pod):
    page = source.list(limit=1)
    stream = source.watch(resource_version="2")
    source.add(pod("c"))
    source.compact()
    with pytest.raises(ExpiredError):
        source.list(limit=1, continue_=page.continue_)
    for watch in (stream, source.watch(resource_version="1")):
        with pytest.raises(ExpiredError):
            next(watch)
        with pytest.raises(StopIteration):
            next(watch)
    assert source.open_watches == 0
    up_to_date = source.watch(resource_version="3")
    source.compact()
    source.add(pod("d"))
    assert take(up_to_date, 1) == ["ADDED d@4"]
    up_to_date.close()


def test_a_watch_gives_what_came_after_its_version(source, pod):
    source.modify(pod("a"))
    source.delete("ns/b")
    with source.watch(resource_version="2") as stream:
        assert take(stream, 2) == ["MODIFIED a@3", "DELETED b@4"]
        source.add(pod("c"))
        assert take(stream, 1) == ["ADDED c@5"]


@pytest.mark.parametrize("version", [None, "", "0"])
def test_a_watch_without_a_version_begins_with_synthetic_events(source, version):
    with source.watch(resource_version=version) as stream:
        assert take(stream, 2) == ["ADDED a@1", "ADDED b@2"]


def test_a_streamed_list_ends_with_the_annotated_bookmark(source):
    with source.watch(send_initial_events=True) as stream:
        assert take(stream, 2) == ["ADDED a@1", "ADDED b@2"]
        end = next(stream)
    assert (end.type, end.object.resource_version) == ("BOOKMARK", "2")
    assert end.object.annotations == {"k8s.io/initial-events-end": "true"}


def test_an_old_server_refuses_a_streamed_list():
    with pytest.raises(InvalidError):
        FakeListWatch(watch_list=False).watch(send_initial_events=True)


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_a_version_from_the_future_is_too_large(source, verb):
    with pytest.raises(ServerTimeoutError) as caught:
        getattr(source, verb)(resource_version="99")
    assert caught.value.has_cause("ResourceVersionTooLarge")


def test_planned_failures_come_in_order_and_can_be_taken_back(source):
    source.fail_next("list", InternalError("one"))
    source.fail_next("list", InternalError("two"), times=2)
    for message in ("one", "two"):
        with pytest.raises(InternalError, match=message):
            source.list()
    source.clear_failures()
    assert len(source.list()) == 2
    assert [request.verb for request in source.requests()] == ["list"] * 3


def test_a_stalled_watch_delivers_nothing_until_resumed(source, pod):
    stream = source.watch(resource_version="2", timeout_seconds=0)
    source.stall()
    source.add(pod("c"))
    with pytest.raises(StopIteration):
        next(stream)
    stream = source.watch(resource_version="2")
    source.resume()
    assert take(stream, 1) == ["ADDED c@3"]
    stream.close()


def test_what_is_poisoned_shows_by_its_key_only(source, pod):
    with source.watch(resource_version="2") as stream:
        source.poison("ns/a")
        page = source.list()
        assert [obj.name for obj in page] == ["b"]
        assert [str(key) for key in page.unreadable] == ["ns/a"]
        assert [str(key) for key in source.poisoned()] == ["ns/a"]
        assert "ns/a" in source
        assert "ns/x" not in source
        source.modify(pod("a"))
        assert take(stream, 1) == ["MODIFIED a@4"]
        source.poison("ns/a")
        source.delete("ns/a")
        assert take(stream, 1) == ["DELETED a@6"]


def test_dropped_watches_end_normally_or_with_the_error(source):
    first = source.watch(resource_version="2")
    source.drop_watches()
    with pytest.raises(StopIteration):
        next(first)
    second = source.watch(resource_version="2")
    source.drop_watches(InternalError("etcd"))
    with pytest.raises(InternalError):
        next(second)


def test_bookmarks_go_to_watches_that_take_them(source):
    taking, refusing = source.watch(resource_version="2"), source.watch(resource_version="2", allow_bookmarks=False)
    source.bookmark()
    assert next(taking).type == "BOOKMARK"
    for stream in (taking, refusing):
        stream.close()
        with pytest.raises(StopIteration):
            next(stream)


def test_waiting_for_requests_times_out(source):
    with pytest.raises(TimeoutError):
        source.wait_for_requests("list", 1, timeout=0.01)


# ---- faults by name


def test_410_hits_the_open_watches_and_the_next_one(source, pod):
    stream = source.watch(resource_version="2")
    source.add(pod("late"))
    source.inject(Fault.GONE)
    with pytest.raises(ExpiredError):
        next(stream)
    with pytest.raises(ExpiredError):
        source.watch(resource_version="2")
    assert take(source.watch(resource_version="2"), 1) == ["ADDED late@3"]


def test_what_a_cut_watch_had_not_delivered_comes_with_the_next_one(source, pod):
    stream = source.watch(resource_version="2")
    source.add(pod("late"))
    source.inject(Fault.CUT)
    with pytest.raises(ConnectionReset):
        next(stream)
    assert take(source.watch(resource_version="2"), 1) == ["ADDED late@3"]


def test_a_half_open_watch_is_deaf_until_it_is_closed_and_new_ones_are_well(source, pod):
    clock = FakeClock()
    source = FakeListWatch([pod("a")], clock=clock)
    stream = source.watch(resource_version="1", timeout_seconds=10.0)
    source.inject(Fault.HALF_OPEN)
    source.add(pod("late"))
    source.drop_watches()
    found = []
    reader = threading.Thread(target=lambda: found.extend(stream))
    reader.start()
    clock.advance(100.0)
    assert take(source.watch(resource_version="1"), 1) == ["ADDED late@2"]
    assert reader.is_alive()
    stream.close()
    reader.join(10)
    assert found == []


def test_a_slow_watch_delivers_an_event_a_second(pod):
    clock = FakeClock()
    source = FakeListWatch(clock=clock)
    stream = source.watch(resource_version="0")
    source.inject(Fault.SLOW)
    for name in "abc":
        source.add(pod(name))
    found, arrived = [], threading.Semaphore(0)

    def read():
        for event in stream:
            found.append((clock.now(), event.object.name))
            arrived.release()

    reader = threading.Thread(target=read)
    reader.start()
    for _ in "abc":
        clock.wait_for_sleepers(1)
        clock.advance(1.0)
        assert arrived.acquire(timeout=10)
    assert found == [(1.0, "a"), (2.0, "b"), (3.0, "c")]
    stream.close()
    reader.join(10)


def test_a_poison_event_is_counted_and_named_and_what_follows_arrives(source, pod):
    stream = source.watch(resource_version="2")
    source.inject(Fault.POISON)
    source.add(pod("late"))
    assert take(stream, 1) == ["ADDED late@3"]
    assert (stream.unreadable, stream.last_unreadable) == (1, "MODIFIED of something without a readable key")


def test_duplicates_come_one_after_the_other_until_recovery(source, pod):
    stream = source.watch(resource_version="2")
    source.inject(Fault.DUPLICATE)
    source.add(pod("x"))
    source.recover()
    source.add(pod("y"))
    assert take(stream, 3) == ["ADDED x@3", "ADDED x@3", "ADDED y@4"]


def test_new_connections_come_to_a_server_that_stands_still(source, pod):
    well = source.watch(resource_version="2")
    source.inject(Fault.REORDER)
    source.modify(pod("a", app="x"))
    source.add(pod("late"))
    source.delete("ns/b")
    assert take(well, 3) == ["MODIFIED a@3", "ADDED late@4", "DELETED b@5"]
    for version in ("0", "4"):
        listed = source.list(resource_version=version)
        assert [(obj.name, obj.resource_version) for obj in listed.items] == [("a", "1"), ("b", "2")]
        assert listed.resource_version == "2"
    assert source.list().resource_version == "5"
    with pytest.raises(ServerTimeoutError, match="Too large"):
        source.watch(resource_version="5")
    behind = source.watch(resource_version="1")
    assert take(behind, 1) == ["ADDED b@2"]
    source.recover()
    assert take(behind, 3) == ["MODIFIED a@3", "ADDED late@4", "DELETED b@5"]


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_an_empty_answer_is_a_success_with_nothing_in_it(source, verb):
    source.inject(Fault.EMPTY)
    if verb == "list":
        with pytest.raises(MalformedResponseError):
            source.list()
    else:
        assert list(source.watch(resource_version="0")) == []
    assert len(source.list().items) == 2
