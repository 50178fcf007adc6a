"""Events over a real server: never blocking, counted, flushed at the stop."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from informers import Client
from informers.errors import ForbiddenError
from informers.testing import FakeClient
from pysedna.controller import Manager
from pysedna.controller.metrics import CollectorRegistry, EventMetrics
from pysedna.controller.recorder import EventBroadcaster, EventRecorder
from pysedna.testing import FakeRecorder

WAIT = 20.0


@pytest.fixture
def subject(cluster: Any, namespace: str) -> Any:
    return cluster.client.resource("v1", "ConfigMap").create({"metadata": {"name": "one", "namespace": namespace}})


def events(cluster: Any, namespace: str) -> list[tuple[str, str, str, int]]:
    found = cluster.client.resource("v1", "Event").list(namespace=namespace).items
    return sorted((one["type"], one["reason"], one["message"], one["count"]) for one in found)


def test_events_are_written_and_the_same_one_is_counted(
    cluster: Any, namespace: str, run: Any, subject: Any, eventually: Any
) -> None:
    manager = Manager(cluster.client, name="m", http=None)
    recorder = manager.recorder("tester")
    recorder.event(subject, "Normal", "Early", "before the manager runs")
    run(manager)
    for _ in range(3):
        recorder.event(subject, "Warning", "Broken", "no such model")
    wanted = [("Normal", "Early", "before the manager runs", 1), ("Warning", "Broken", "no such model", 3)]
    eventually(lambda: events(cluster, namespace) == wanted)
    about = cluster.client.resource("v1", "Event").list(namespace=namespace).items[0]["involvedObject"]
    assert (about["kind"], about["name"], about["uid"]) == ("ConfigMap", "one", subject.uid)


def test_what_was_recorded_is_written_before_the_manager_has_stopped(
    cluster: Any, namespace: str, run: Any, subject: Any
) -> None:
    manager = Manager(cluster.client, name="m", http=None)
    recorder = manager.recorder("tester")

    begun = threading.Event()

    class Last:
        def run(self, stop: threading.Event) -> None:
            begun.set()
            stop.wait()
            for number in range(20):
                recorder.event(subject, "Normal", f"Reason{number}", "the last words")

    manager.add(Last())
    running = run(manager)
    assert begun.wait(WAIT)
    assert running.end() is None
    assert len(events(cluster, namespace)) == 20


def test_an_event_that_is_gone_is_written_afresh(
    cluster: Any, namespace: str, run: Any, subject: Any, eventually: Any
) -> None:
    manager = Manager(cluster.client, name="m", http=None)
    recorder = manager.recorder("tester")
    run(manager)
    recorder.event(subject, "Normal", "Seen", "x")
    eventually(lambda: events(cluster, namespace))
    cluster.client.resource("v1", "Event").delete_collection(namespace=namespace)
    recorder.event(subject, "Normal", "Seen", "x")
    eventually(lambda: events(cluster, namespace) == [("Normal", "Seen", "x", 2)])


def test_a_full_queue_drops_events_and_nobody_waits(subject: Any) -> None:
    registry = CollectorRegistry()
    with Client.from_url("http://127.0.0.1:9") as client:
        broadcaster = EventBroadcaster(client, metrics=EventMetrics(registry), size=3)
        recorder = EventRecorder("tester", broadcaster.submit)
        began = time.monotonic()
        for number in range(10):
            recorder.event(subject, "Normal", "Flood", str(number))
        assert time.monotonic() - began < 1
    assert registry.get_sample_value("pysedna_events_total", {"result": "dropped"}) == 7


def test_the_flush_is_bounded_when_the_server_does_not_answer(subject: Any) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    with silent, Client.from_url(f"http://127.0.0.1:{silent.getsockname()[1]}") as client:
        broadcaster = EventBroadcaster(client)
        EventRecorder("tester", broadcaster.submit).event(subject, "Normal", "Lost", "x")
        EventRecorder("tester", broadcaster.submit).event(subject, "Normal", "Lost too", "y")
        began = time.monotonic()
        broadcaster.start()
        assert not broadcaster.stop(0.2)
        assert time.monotonic() - began < 3


@pytest.mark.parametrize(("cause", "level"), [("NamespaceTerminating", "DEBUG"), ("", "WARNING")])
def test_a_refusal_is_told_unless_the_namespace_goes(cause: str, level: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    client = FakeClient()
    client.fail_next("create", "Event", ForbiddenError("refused", details={"causes": [{"reason": cause}]}))
    broadcaster = EventBroadcaster(client)
    subject = {"kind": "ConfigMap", "metadata": {"name": "one", "namespace": "ns", "uid": "u"}}
    EventRecorder("tester", broadcaster.submit).event(subject, "Normal", "Made", "x")
    broadcaster.start()
    assert broadcaster.stop(20)
    told = [record.levelname for record in caplog.records if "was not written: refused" in record.getMessage()]
    assert told == [level]


def test_a_type_that_does_not_exist_is_refused(subject: Any) -> None:
    with pytest.raises(ValueError, match="Normal or Warning, not 'Error'"):
        FakeRecorder().event(subject, "Error", "X", "y")


def test_the_fake_keeps_what_it_is_told(subject: Any) -> None:
    recorder = FakeRecorder()
    recorder.event(subject, "Normal", "Made", "a pod")
    recorder.event(subject, "Warning", "Lost", "a pod")
    assert [str(event) for event in recorder.events] == ["Normal Made a pod", "Warning Lost a pod"]
    assert recorder.events[0].key == subject.key
    assert len(recorder.take()) == 2
    assert recorder.events == []
