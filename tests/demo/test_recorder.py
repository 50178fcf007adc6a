"""The story's eyes: every event once and in order, waits that end with the event, and a watch that survives faults."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from informers import Client
from pysedna.demo import StepFailed
from pysedna.demo.history import History
from pysedna.demo.recorder import Recorder
from pysedna.localcluster import LocalCluster

PATIENCE = 20.0


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(controllers=False) as running:
        yield running


@pytest.fixture
def recorder(cluster: LocalCluster) -> Iterator[Recorder]:
    recorder = Recorder(cluster.client, [("v1", "Pod"), ("v1", "ConfigMap")], "default")
    recorder.start()
    yield recorder
    recorder.stop()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("demo-watch")] == []


def make(client: Client, name: str, worker: str = "trainer-0") -> None:
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"federatedlearningjob.sedna.io/uid": "job"},
        },
        "spec": {"containers": [{"name": "main", "image": "x", "env": [{"name": "WORKER_NAME", "value": worker}]}]},
    }
    client.resource("v1", "Pod").create(pod)


def test_a_wait_ends_with_the_event_and_returns_the_answer(cluster: LocalCluster, recorder: Recorder) -> None:
    make(cluster.client, "a")
    pod = recorder.wait_for("pod a", lambda seen: seen.get("Pod", "a"), PATIENCE)
    assert pod is not None
    assert pod.name == "a"


def test_a_wait_that_ends_without_says_what_for_and_what_there_is(cluster: LocalCluster, recorder: Recorder) -> None:
    make(cluster.client, "a")
    recorder.wait_for("pod a", lambda seen: seen.get("Pod", "a"), PATIENCE)
    with pytest.raises(StepFailed, match=r"waited 0 s for pod b; seen: a Pending"):
        recorder.wait_for("pod b", lambda seen: seen.get("Pod", "b"), 0)


def test_a_surplus_worker_is_noticed_although_it_is_deleted_at_once(cluster: LocalCluster, recorder: Recorder) -> None:
    make(cluster.client, "a")
    make(cluster.client, "surplus")
    cluster.client.resource("v1", "Pod").delete("default/surplus", grace_period=0)
    recorder.wait_for("the delete", lambda seen: len(seen.sightings) >= 3, PATIENCE)
    assert len(recorder.ask(lambda seen: seen.crowds)) == 1


def test_no_event_is_lost_or_seen_twice_when_watches_break(cluster: LocalCluster, recorder: Recorder) -> None:
    for number in range(20):
        make(cluster.client, f"pod-{number}", worker=f"worker-{number}")
        if number % 5 == 0:
            cluster.drop_watches()
    recorder.wait_for("all pods", lambda seen: len(seen.live("Pod")) == 20, PATIENCE)
    assert [event.type for event in recorder.ask(lambda seen: list(seen.sightings))] == ["ADDED"] * 20
    assert recorder.ask(lambda seen: seen.gaps) == 0


def test_a_gap_in_the_history_is_counted_and_bridged_by_a_list(cluster: LocalCluster, recorder: Recorder) -> None:
    make(cluster.client, "a")
    recorder.wait_for("pod a", lambda seen: seen.get("Pod", "a"), PATIENCE)
    # Versions move on by another kind; a watch that resumes from before the compaction is refused.
    config_maps = cluster.client.resource("v1", "ConfigMap")
    for number in range(3):
        config_maps.create({"metadata": {"name": f"c{number}", "namespace": "default"}})
    recorder.wait_for("config maps", lambda seen: len(seen.live("ConfigMap")) == 3, PATIENCE)
    cluster.compact()
    cluster.drop_watches()
    make(cluster.client, "b", worker="trainer-1")
    recorder.wait_for("pod b", lambda seen: seen.get("Pod", "b"), PATIENCE)
    assert recorder.ask(lambda seen: seen.gaps) >= 1
    assert [pod.name for pod in recorder.ask(lambda seen: seen.live("Pod"))] == ["a", "b"]


def test_waits_end_when_they_are_given_up(recorder: Recorder) -> None:
    waiting = threading.Event()

    def question(seen: History) -> bool:
        waiting.set()
        return False

    with ThreadPoolExecutor(1) as pool:
        wait = pool.submit(recorder.wait_for, "what never comes", question, 60)
        assert waiting.wait(PATIENCE)
        recorder.give_up()
        with pytest.raises(StepFailed, match="interrupted"):
            wait.result(PATIENCE)
    with pytest.raises(StepFailed, match="interrupted"):
        recorder.wait_for("more", question, 60)
    assert recorder.wait_for("what is there", lambda seen: True, 0)
