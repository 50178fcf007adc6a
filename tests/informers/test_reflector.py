"""The reflector's threads: what is asked reaches the source, what is answered reaches the sink, and all of it ends."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from informers import Indexer, ProtocolConfig, Reflector
from informers.backoff import BackoffConfig
from informers.errors import ConnectionRefused, ExpiredError, ForbiddenError, InternalError, TooManyRequestsError
from informers.testing import FakeListWatch
from workqueue.testing import FakeClock

pytestmark = pytest.mark.usefixtures("no_stray_threads")

FAST = ProtocolConfig(backoff=BackoffConfig(base=0.001, cap=0.01), short_watch=0.0)
PAGED = ProtocolConfig(backoff=BackoffConfig(base=0.001, cap=0.01), short_watch=0.0, watch_list=False)


class Store(Indexer):
    """A sink that lets a test wait, and that can be told to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.condition = threading.Condition()
        self.replaced = 0
        self.resyncs = 0
        self.refuse = 0

    def apply(self, changes):
        if self.refuse:
            self.refuse -= 1
            raise RuntimeError("the sink is full")
        super().apply(changes)
        self._tell()

    def replace(self, objs, resource_version="", *, keep=()):
        if self.refuse:
            self.refuse -= 1
            raise RuntimeError("the sink is full")
        super().replace(objs, resource_version, keep=keep)
        self.replaced += 1
        self._tell()

    def resync(self):
        self.resyncs += 1
        self._tell()

    def _tell(self):
        with self.condition:
            self.condition.notify_all()

    def wait(self, predicate):
        with self.condition:
            assert self.condition.wait_for(predicate, 10), (self.list(), self.replaced)

    def wait_equal(self, source):
        self.wait(lambda: {obj.key: obj for obj in self.list()} == source.objects())


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def reflect(store):
    """reflect(source, **options) starts a reflector that is stopped at the end."""
    started = []

    def start(source, protocol=FAST, **options):
        reflector = Reflector(source, store, protocol=protocol, **options)
        reflector.start()
        started.append(reflector)
        return reflector

    yield start
    for reflector in started:
        assert reflector.stop(10)


@pytest.mark.parametrize("protocol", [FAST, PAGED], ids=["streamed", "paged"])
def test_list_and_watch_keeps_the_sink_equal_to_the_source(store, reflect, pod, protocol):
    source = FakeListWatch([pod(f"p{number}") for number in range(10)])
    reflector = reflect(source, protocol, page_size=4)
    store.wait_equal(source)
    source.add(pod("new"))
    source.modify(pod("p1", app="x"))
    source.delete("ns/p2")
    store.wait_equal(source)
    lists = source.requests("list")
    assert len(lists) == (0 if protocol is FAST else 3)
    assert reflector.resource_version == source.resource_version
    assert reflector.status().state == "watching"


def test_pages_are_of_the_size_asked_for(store, reflect, pod):
    source = FakeListWatch([pod(f"p{number}") for number in range(10)])
    reflect(source, PAGED, page_size=4)
    store.wait_equal(source)
    assert [request.options.get("limit") for request in source.requests("list")] == [4, 4, 4]
    assert "resource_version" not in source.requests("list")[0].options


def test_a_server_without_watch_list_is_listed(store, reflect, pod):
    source = FakeListWatch([pod("a")], watch_list=False)
    reflector = reflect(source)
    store.wait_equal(source)
    assert not reflector.status().watch_list


def test_a_dropped_watch_goes_on_from_the_last_version(store, reflect, pod):
    source = FakeListWatch([pod("a")])
    reflect(source)
    store.wait_equal(source)
    source.wait_for_requests("watch", 1)
    for round_ in range(5):
        source.add(pod(f"p{round_}"))
        store.wait_equal(source)
        source.drop_watches()
        source.wait_for_requests("watch", round_ + 2)
    assert store.replaced == 1
    assert source.requests("list") == []


def test_changes_in_a_gap_that_was_compacted_come_with_the_next_list(store, reflect, pod):
    source = FakeListWatch([pod("a"), pod("b")])
    reflect(source)
    store.wait_equal(source)
    source.fail_next("watch", ConnectionRefused("nobody"), times=5)
    source.drop_watches()
    source.delete("ns/a")
    source.add(pod("c"))
    source.compact()
    store.wait_equal(source)
    assert store.replaced == 2


@pytest.mark.parametrize(
    "error",
    [
        ExpiredError("old"), InternalError("etcd"), TooManyRequestsError("slow"), ConnectionRefused("nobody"),
        ForbiddenError("no"), ValueError("bug"),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("verb", ["list", "watch", "stream"])
@pytest.mark.parametrize("protocol", [FAST, PAGED], ids=["streamed", "paged"])
def test_after_any_failure_the_sink_equals_the_source(store, reflect, pod, error, verb, protocol):
    source = FakeListWatch([pod("a")])
    if verb != "stream":
        source.fail_next(verb, error, times=3)
    reflector = reflect(source, protocol)
    store.wait_equal(source)
    source.wait_for_requests("watch", 1)
    if verb == "stream":
        for _ in range(3):
            source.drop_watches(error)
    source.delete("ns/a")
    source.add(pod("b"))
    store.wait_equal(source)
    source.clear_failures()
    assert reflector.status().sink_errors == 0


def test_a_sink_that_refuses_one_object_does_not_stop_the_stream(store, reflect, pod):
    source = FakeListWatch([pod("a")])
    reflector = reflect(source)
    store.wait_equal(source)
    store.refuse = 1
    source.add(pod("lost"))
    source.add(pod("b"))
    store.wait(lambda: "ns/b" in [str(key) for key in store.keys()])  # noqa: SIM118
    assert reflector.status().sink_errors == 1


def test_a_sink_that_refuses_a_list_is_given_another_one(store, reflect, pod):
    store.refuse = 2
    source = FakeListWatch([pod("a")])
    reflector = reflect(source)
    store.wait_equal(source)
    store.wait(lambda: store.replaced == 1)
    assert reflector.status().sink_errors == 2


def test_unreadable_items_keep_what_was_known_and_are_counted(store, reflect, pod):
    source = FakeListWatch([pod("a"), pod("b"), pod("c")])
    reflector = reflect(source, PAGED)
    store.wait_equal(source)
    source.poison("ns/a")
    source.fail_next("watch", ExpiredError("old"))
    source.drop_watches()
    source.delete("ns/b")
    store.wait(lambda: store.replaced == 2)
    assert sorted(obj.name for obj in store.list()) == ["a", "c"]
    assert reflector.status().unreadable == 2, "once on the watch, once in the list"
    source.modify(pod("a", app="healed"))
    store.wait_equal(source)


# ---- time


def test_a_silent_stream_is_closed_and_opened_again(store, pod):
    clock = FakeClock()
    source = FakeListWatch([pod("a")], clock=clock)
    reflector = Reflector(source, store, clock=clock, random=lambda: 0.0)
    reflector.start()
    store.wait_equal(source)
    source.stall()
    source.add(pod("b"))
    clock.wait_for_sleepers(1)
    source.wait_for_requests("watch", 1)
    for _ in range(40):
        if len(source.requests("watch")) > 1:
            break
        clock.advance(10)
        clock.wait_for_sleepers(1)
    source.wait_for_requests("watch", 2)
    source.resume()
    store.wait_equal(source)
    assert reflector.stop(10)


def test_a_stream_that_has_shown_a_bookmark_is_given_up_after_the_silence_that_this_allows(store, pod):
    clock = FakeClock()
    source = FakeListWatch([pod("a")], clock=clock)
    protocol = ProtocolConfig(watch_list=False, watch_timeout=(600.0, 600.0))
    changes = threading.Semaphore(0)
    reflector = Reflector(source, store, protocol=protocol, clock=clock, random=lambda: 0.0, on_change=changes.release)
    reflector.start()
    store.wait_equal(source)
    assert changes.acquire(timeout=10)
    source.wait_for_requests("watch", 1)
    clock.wait_for_sleepers(2)  # the stream's time-out and the keeper's
    clock.advance(60)
    source.bookmark()
    assert changes.acquire(timeout=10)
    source.stall()
    for _ in range(200):  # once the keeper has seen the bookmark, three minutes of silence are enough
        if len(source.requests("watch")) > 1:
            break
        clock.advance(1)
        clock.wait_for_sleepers(1)
    source.wait_for_requests("watch", 2)
    assert clock.now() < 300
    source.resume()
    assert reflector.stop(10)


def test_a_streamed_list_that_never_ends_falls_back_to_pages(store, pod):
    clock = FakeClock()
    source = FakeListWatch([pod("a")], clock=clock)
    source.stall()
    reflector = Reflector(source, store, clock=clock, random=lambda: 0.0)
    reflector.start()
    source.wait_for_requests("watch", 1)
    clock.wait_for_sleepers(2)  # the stream's time-out and the keeper's
    clock.advance(31)
    store.wait_equal(source)
    assert len(source.requests("list")) == 1
    source.wait_for_requests("watch", 2)
    assert "send_initial_events" not in source.requests("watch")[1].options
    assert reflector.stop(10)


def test_resync_calls_the_sink_about_that_often(store, pod):
    clock = FakeClock()
    source = FakeListWatch([pod("a")], clock=clock)
    reflector = Reflector(source, store, resync=10.0, clock=clock, random=lambda: 0.5)
    reflector.start()
    store.wait_equal(source)
    for count in (1, 2, 3):
        clock.wait_for_sleepers(2)
        clock.advance(10)
        store.wait(lambda count=count: store.resyncs == count)
    assert reflector.stop(10)


def test_waits_between_failures_run_on_the_clock_and_end_with_stop(store):
    clock = FakeClock()
    source = FakeListWatch(clock=clock)
    source.fail_next("watch", ConnectionRefused("nobody at http://x"), times=100)
    reflector = Reflector(source, store, clock=clock, random=lambda: 0.0)
    reflector.start()
    clock.wait_for_sleepers(1)
    assert reflector.status().state == "waiting"
    assert len(source.requests()) == 1
    clock.advance(0.8)
    source.wait_for_requests("watch", 2)
    assert reflector.stop(10)
    assert reflector.status().state == "stopped"
    assert "nobody at http://x" in reflector.status().last_error


def test_a_failure_that_goes_on_is_logged_once_a_minute(store, caplog):
    clock = FakeClock()
    source = FakeListWatch(clock=clock)
    source.fail_next("watch", ConnectionRefused("nobody at http://x"), times=100)
    reflector = Reflector(source, store, clock=clock, random=lambda: 0.0)
    reflector.start()
    for _ in range(9):  # 0.8 + 1.6 + 3.2 + 6.4 + 12.8 + 4 * 15 s
        clock.wait_for_sleepers(1)
        clock.advance(15)
    clock.wait_for_sleepers(1)
    assert reflector.stop(10)
    said = [record for record in caplog.records if record.name == "informers.reflector"]
    assert reflector.status().failures >= 5
    assert 2 <= len(said) <= 3
    assert {record.message for record in said} == {"fake source: nobody at http://x"}


# ---- life


def test_stop_ends_a_blocked_read_at_once(store, pod):
    source = FakeListWatch([pod("a")])
    reflector = Reflector(source, store)
    reflector.start()
    store.wait_equal(source)
    assert reflector.stop(1)
    assert source.open_watches == 0
    with pytest.raises(RuntimeError, match="stopped"):
        reflector.start()


def test_run_blocks_until_the_event_is_set(store, pod):
    source = FakeListWatch([pod("a")])
    reflector = Reflector(source, store)
    stop = threading.Event()
    runner = threading.Thread(target=reflector.run, args=(stop,))
    runner.start()
    store.wait_equal(source)
    stop.set()
    runner.join(10)
    assert not runner.is_alive()


def test_run_ends_when_stopped_from_elsewhere(store, pod):
    reflector = Reflector(FakeListWatch([pod("a")]), store)
    runner = threading.Thread(target=reflector.run, args=(threading.Event(),))
    runner.start()
    store.wait(lambda: len(store) == 1)
    assert reflector.stop(10)
    runner.join(10)
    assert not runner.is_alive()


def test_a_stop_while_the_watch_is_opened_closes_it(store):
    opening, go_on = threading.Event(), threading.Event()

    class Slow(FakeListWatch):
        def watch(self, **options):
            opening.set()
            go_on.wait(10)
            return super().watch(**options)

    source = Slow()
    reflector = Reflector(source, store)
    reflector.start()
    assert opening.wait(10)
    assert not reflector.stop(0.01)
    go_on.set()
    assert reflector.stop(10)
    assert source.open_watches == 0


def test_a_failure_that_is_remembered_keeps_nothing_of_the_answer_alive(store, pod):
    class Refused(Exception):
        pass

    class Source(FakeListWatch):
        def watch(self, **options):
            error = Refused("no use")
            errors.append(weakref.ref(error))
            raise error

    errors: list[weakref.ref[Refused]] = []
    source = Source([pod("a")])
    clock = FakeClock()
    reflector = Reflector(source, store, protocol=ProtocolConfig(), clock=clock)
    reflector.start()
    clock.wait_for_sleepers(1)
    gc.collect()
    assert "no use" in reflector.status().last_error
    assert errors[0]() is None
    assert reflector.stop(10)


def test_before_the_start_there_is_a_status(store):
    status = Reflector(FakeListWatch(description="pods at x"), store).status()
    assert (status.source, status.state, status.listed, status.last_list_age) == ("pods at x", "new", False, None)
