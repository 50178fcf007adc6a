"""Two managers without any election, both acting at once, over real HTTP, real threads and real caches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from informers import Client, Object, ObjectKey
from informers.errors import InformersError
from pysedna.api import crds
from pysedna.controller import Manager
from pysedna.jobs import federated_learning, joint_inference
from pysedna.localcluster.controllers import setup_nodes
from pysedna.testing import Cluster, RecordingSink

FL, JI = ("sedna.io/v1alpha1", "FederatedLearningJob"), ("sedna.io/v1alpha1", "JointInferenceService")
POD, DEPLOYMENT = ("v1", "Pod"), ("apps/v1", "Deployment")
WORKERS = ["defects-aggregation-0", "defects-train-0", "defects-train-1"]
NODES = ("cloud", "edge-0", "edge-1")
PATIENCE = 60.0


class Watcher:
    """Sees every pod event, and what was there at once: two workers with one index, if it ever comes to that."""

    def __init__(self, client: Client, namespace: str) -> None:
        listing = client.resource(*POD).list(namespace=namespace)
        self._stream = client.resource(*POD).watch(namespace=namespace, resource_version=listing.resource_version)
        self.created: list[str] = []
        self.doubled: list[str] = []
        self._alive: dict[str, tuple[str, ...]] = {}
        self._thread = threading.Thread(target=self._run, name="watcher")
        self._thread.start()

    def _run(self) -> None:
        try:
            for event in self._stream:
                self._see(event.type, event.object)
        except InformersError:
            return

    def _see(self, type: str, pod: Object) -> None:
        prefix = "federatedlearningjob.sedna.io/"
        if type == "DELETED":
            self._alive.pop(pod.uid, None)
        elif type == "ADDED" and prefix + "uid" in pod.labels:
            worker = tuple(pod.labels[prefix + name] for name in ("uid", "worker-type", "worker-index"))
            if worker in self._alive.values():
                self.doubled.append(pod.name)
            self._alive[pod.uid] = worker
            self.created.append(pod.name)

    def stop(self) -> None:
        self._stream.close()
        self._thread.join(timeout=5)


@contextmanager
def running(*managers: Manager) -> Iterator[None]:
    stop = threading.Event()
    threads = [threading.Thread(target=one.run, args=(stop,), name=one.name) for one in managers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=30)
        assert not any(thread.is_alive() for thread in threads)


@pytest.fixture
def nodes(cluster: Cluster, namespace: str) -> Iterator[None]:
    """Simulated nodes under the names that the jobs pin their workers to."""
    manager = Manager(cluster.client, name="nodes", namespaces=[namespace], http=None)
    setup_nodes(manager, NODES)
    with running(manager):
        yield


def global_manager(client: Client, namespace: str, name: str, sink: RecordingSink) -> Manager:
    manager = Manager(client, name=name, namespaces=[namespace], http=None)
    federated_learning.setup(manager, sink=sink)
    joint_inference.setup(manager, sink=sink)
    return manager


def until(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"did not happen in time: {what}")


class Story:
    def __init__(self, client: Client, namespace: str, make: Any) -> None:
        self.client, self.namespace, self.make = client, namespace, make

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace, name)

    def create(self, manifest: dict[str, Any]) -> None:
        manifest["metadata"] = {"name": manifest["metadata"]["name"], "namespace": self.namespace}
        self.client.resource(manifest["apiVersion"], manifest["kind"]).create(manifest)

    def pods(self, prefix: str) -> dict[str, Object]:
        found = self.client.resource(*POD).list(namespace=self.namespace).items
        return {pod.name: pod for pod in found if pod.name.startswith(prefix)}

    def running(self, prefix: str) -> dict[str, Object]:
        return {
            name: pod
            for name, pod in self.pods(prefix).items()
            if (pod.get("status") or {}).get("phase") == "Running" and pod.deletion_timestamp is None
        }

    def status(self, kind: tuple[str, str], name: str) -> dict[str, Any]:
        return dict(self.client.resource(*kind).get(self.key(name)).to_dict().get("status") or {})

    def whole(self, kind: tuple[str, str], name: str, active: int) -> bool:
        obj = self.client.resource(*kind).get(self.key(name)).to_dict()
        status = obj.get("status") or {}
        return status.get("active") == active and status.get("observedGeneration") == obj["metadata"]["generation"]

    def value(self, pod: Object, name: str) -> str | None:
        variables = pod.to_dict()["spec"]["containers"][0]["env"]
        return next((variable.get("value") for variable in variables if variable["name"] == name), None)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("nodes")
def test_two_managers_without_election_never_make_two_workers_with_one_index_and_leave_no_surplus(
    make: Any, cluster: Cluster, namespace: str
) -> None:
    cluster.install_crds(crds())
    client, sink = cluster.client, RecordingSink()
    story = Story(client, namespace, make)
    for manifest in (make.model("model"), make.model("big"), make.model("little")):
        story.create(manifest)
    story.create(make.dataset("data-0"))
    watcher = Watcher(client, namespace)
    with running(*(global_manager(client, namespace, f"gm-{number}", sink) for number in range(2))):
        story.create(make.federated_manifest())
        story.create(make.inference_manifest())
        until(lambda: story.whole(JI, "helmets", 2), "both workers of the service run")
        pending = until(lambda: story.status(FL, "defects").get("conditions"), "the job says what is missing")
        assert any(condition.get("reason") == "DatasetNotFound" for condition in pending)
        story.create(make.dataset("data-1"))
        until(lambda: story.whole(FL, "defects", 3) and len(story.running("defects")) == 3, "all workers run")
        tell_deletions(client, story)
        edit_both(client, story)
        watcher.stop()
        assert watcher.doubled == []
        assert sorted(story.pods("defects")) == WORKERS
        for kind, name in ((FL, "defects"), (JI, "helmets")):
            client.resource(*kind).delete(story.key(name), propagation="Foreground")
        until(lambda: not story.pods("defects") and not story.pods("helmets"), "all children are collected")
        until(lambda: ("edge-1", "delete") in [(sent.node, sent.op) for sent in sink.sent], "the edge is told")


def tell_deletions(client: Client, story: Story) -> None:
    """Workers are deleted by hand, one of them again and again, gently and by force."""
    for number in range(3):
        old = until(lambda: story.running("defects-train-1").get("defects-train-1"), "the worker runs")
        client.resource(*POD).delete(old.key, grace_period=0 if number == 1 else None)
        until(lambda old=old: _other(story, old), "exactly one comes back")
    client.resource(*DEPLOYMENT).delete(story.key("helmets-deployment-edge"), propagation="Foreground")
    until(lambda: story.whole(JI, "helmets", 2) and len(story.running("helmets")) == 2, "the edge worker comes back")


def _other(story: Story, old: Object) -> bool:
    new = story.running("defects-train-1").get("defects-train-1")
    return new is not None and new.uid != old.uid


def edit_both(client: Client, story: Story) -> None:
    """Two edits in a row of the job and one of the service, seen by two managers at different times."""
    for size in ("16", "8"):
        spec = story.make.federated_manifest()["spec"]
        for worker in spec["trainingWorkers"]:
            worker["template"]["spec"]["containers"][0]["env"][0]["value"] = size
        client.resource(*FL).patch(story.key("defects"), {"spec": spec})
    parameters = [{"key": "threshold_img", "value": "0.1"}]
    mining = {"hardExampleMining": {"name": "IBT", "parameters": parameters}}
    client.resource(*JI).patch(story.key("helmets"), {"spec": {"edgeWorker": mining}})

    def rolled() -> bool:
        trainers = story.running("defects-train")
        edge = story.running("helmets-deployment-edge")
        return (
            sorted(story.pods("defects")) == WORKERS
            and [story.value(pod, "batch_size") for pod in trainers.values()] == ["8", "8"]
            and ["0.1" in str(story.value(pod, "HEM_PARAMETERS")) for pod in edge.values()] == [True]
            and story.whole(FL, "defects", 3)
            and story.whole(JI, "helmets", 2)
        )

    until(rolled, "all workers have the new spec, and there is no surplus")
