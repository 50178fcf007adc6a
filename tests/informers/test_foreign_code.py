"""Handlers, filters, transforms and index functions are foreign code: whatever they do, the informer goes on."""

from __future__ import annotations

import sys
import threading

import pytest

from informers import ProtocolConfig, SharedInformer, SharedInformerFactory
from informers.backoff import BackoffConfig
from informers.testing import FakeClient, FakeListWatch

pytestmark = pytest.mark.usefixtures("no_stray_threads")

FAST = ProtocolConfig(backoff=BackoffConfig(base=0.001, cap=0.01), short_watch=0.0)


class WithoutText(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def leave(*_):
    sys.exit(3)


def fail_without_text(*_):
    raise WithoutText


@pytest.fixture
def source(pod):
    return FakeListWatch([pod(name, uid=f"uid-{name}") for name in "abc"])


@pytest.fixture
def informer(request, source):
    made = SharedInformer(source, protocol=FAST, name="pods", **getattr(request, "param", {}))
    yield made
    assert made.stop(10), made.status().unfinished


BROKEN = pytest.mark.parametrize(
    ("broken", "said"), [(leave, "SystemExit: 3"), (fail_without_text, "WithoutText: (an")], ids=["exits", "no text"]
)


@BROKEN
def test_a_handler_that_exits_or_fails_without_a_text_costs_only_that_event(informer, broken, said):
    first = True

    def on_add(obj, is_initial):
        nonlocal first
        if first:
            first = False
            broken()

    registration = informer.add_event_handler(on_add=on_add)
    informer.start()
    registration.wait_for_sync(10)
    statistics = registration.statistics()
    assert (statistics.delivered, statistics.failed) == (3, 1)
    assert said in statistics.last_error


@BROKEN
def test_so_does_a_filter(informer, recorder, broken, said):
    registration = informer.add_event_handler(
        on_event=recorder, filter=lambda obj: broken() if obj.name == "b" else True
    )
    informer.start()
    registration.wait_for_sync(10)
    assert [event.object.name for event in recorder.events] == ["a", "c"]
    assert said in registration.statistics().last_error


@BROKEN
def test_an_index_function_that_exits_leaves_the_object_out_of_that_index_only(informer, broken, said):
    informer.indexer.add_index("first", lambda obj: broken() if obj.name == "b" else ["all"])
    informer.start()
    informer.wait_for_sync(10)
    assert len(informer.lister.list()) == 3
    assert [obj.name for obj in informer.lister.by_index("first", "all")] == ["a", "c"]
    assert said in informer.status().last_index_error


@BROKEN
def test_a_transform_that_exits_leaves_out_that_object_only(source, pod, broken, said, recorder):
    informer = SharedInformer(source, protocol=FAST, transform=lambda obj: broken() if obj.name == "b" else obj)
    informer.add_event_handler(on_event=recorder)
    informer.start()
    informer.wait_for_sync(10)
    source.modify(pod("b", uid="uid-b"))
    source.add(pod("d"))
    recorder.wait(3)
    assert sorted(obj.name for obj in informer.lister.list()) == ["a", "c", "d"]
    assert informer.status().unreadable == 2
    assert informer.stop(10)


def test_handlers_that_all_stop_their_informer_do_not_wait_for_each_other_for_ever(informer):
    together = threading.Barrier(2)
    finished = threading.Barrier(3)

    def on_add(obj, is_initial):
        together.wait(10)
        informer.stop()
        finished.wait(10)

    for _ in range(2):
        informer.add_event_handler(on_add=on_add)
    informer.start()
    finished.wait(10)
    assert informer.stop(10)


def test_handlers_of_several_informers_may_all_stop_their_factory():
    client = FakeClient(
        *(
            {"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "ns", "name": "a"}}
            for kind in ("Pod", "Secret")
        )
    )
    factory = SharedInformerFactory(client, protocol=FAST)
    together = threading.Barrier(2)
    finished = threading.Barrier(3)

    def on_add(obj, is_initial):
        together.wait(10)
        factory.stop()
        finished.wait(10)

    for kind in ("Pod", "Secret"):
        factory.informer("v1", kind).add_event_handler(on_add=on_add)
    factory.start()
    finished.wait(10)
    assert factory.stop(10)


def test_a_handler_that_was_removed_in_the_middle_of_a_call_is_still_waited_for(informer):
    inside, go_on = threading.Event(), threading.Event()

    def slow(obj, is_initial):
        inside.set()
        go_on.wait(10)

    registration = informer.add_event_handler(on_add=slow)
    informer.start()
    assert inside.wait(10)
    registration.remove()
    assert not informer.stop(0.05)
    assert any("slow" in name for name in informer.status().unfinished)
    go_on.set()
    assert informer.stop(10)


def test_removed_handlers_are_not_kept(informer):
    informer.start()
    for _ in range(50):
        informer.add_event_handler(on_event=print).remove(wait=True)
    informer.add_event_handler(on_event=print).remove(wait=True)
    assert len(informer._removed) <= 2


def test_a_version_of_any_length_spoils_no_batch(informer, source, pod, recorder):
    informer.add_event_handler(on_event=recorder)
    informer.start()
    informer.wait_for_sync(10)
    known = informer.lister.get("ns/a")
    informer._fifo.update(pod("a", "9" * 5000, known.uid))
    informer._fifo.update(pod("b", "8" * 5000, "uid-b"))
    informer._fifo.add(pod("new", "77"))
    recorder.wait(6)
    assert informer.status().internal_errors == 0
    assert len(informer.lister.get("ns/a").resource_version) == 5000
