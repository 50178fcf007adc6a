"""The shell that writes the statuses of pods: what it remembers, and what it does when a write crosses another."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from informers import Object, ObjectKey
from informers.errors import ConflictError, NotFoundError
from pysedna.controller import Context, Result
from pysedna.localcluster.controllers import NodeOptions
from pysedna.localcluster.controllers.nodes import PodRunner
from workqueue.testing import FakeClock

KEY = ObjectKey("ns", "p")


class Pods:
    """One pod: lister and API at once. `conflicts` writes are refused."""

    def __init__(self, conflicts: int = 0) -> None:
        self.conflicts = conflicts
        self.deleted: list[dict[str, Any]] = []
        self.pod: dict[str, Any] | None = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Pending"},
        }

    def resource(self, api_version: str, kind: str) -> Pods:
        return self

    def get(self, key: ObjectKey) -> Object:
        if self.pod is None:
            raise NotFoundError("no such pod")
        return Object.from_dict(self.pod)

    def patch(self, key: ObjectKey, patch: dict[str, Any], *, subresource: str, **options: Any) -> Object:
        assert subresource == "status"
        if self.conflicts:
            self.conflicts -= 1
            raise ConflictError("the object has been modified")
        assert self.pod is not None
        assert patch["metadata"]["resourceVersion"] == self.pod["metadata"]["resourceVersion"]
        self.pod = {**self.pod, "status": patch["status"]}
        return Object.from_dict(self.pod)

    def delete(self, key: ObjectKey, **options: Any) -> None:
        self.deleted.append(options)
        self.pod = None

    @property
    def container(self) -> dict[str, Any]:
        assert self.pod is not None
        return self.pod["status"]["containerStatuses"][0]


class Node:
    def __init__(self, pods: Pods, options: NodeOptions) -> None:
        self.now = 1_800_000_000.0
        self.runner = PodRunner(pods, frozenset({"n1"}), options, now=lambda: self.now)  # type: ignore[arg-type]
        client: Any = pods
        self.context = Context(client=client, stop=threading.Event(), clock=FakeClock(), gate=lambda: None)

    def look(self, after: float = 0.0) -> Result | None:
        self.now += after
        return self.runner.reconcile(KEY, self.context)


def test_it_comes_back_when_something_is_due() -> None:
    pods = Pods()
    node = Node(pods, NodeOptions(start_seconds=2))
    result = node.look()
    assert result is not None
    assert result.requeue_after == pytest.approx(2)
    assert node.look(2) is None
    assert "running" in pods.container["state"]


def test_steps_that_were_not_written_have_not_happened() -> None:
    pods = Pods(conflicts=3)
    node = Node(pods, NodeOptions(start_seconds=0, run_seconds=0, exit_code=1, backoff_base=10))
    for _ in range(3):
        result = node.look()
        assert result is not None
        assert result.requeue_after == pytest.approx(0.05)
    node.look()
    assert pods.container["restartCount"] == 1
    assert "back-off 10s" in pods.container["state"]["waiting"]["message"]


def test_a_stopped_pod_is_deleted_by_its_uid_without_grace() -> None:
    pods = Pods()
    node = Node(pods, NodeOptions(start_seconds=0, stop_seconds=1))
    node.look()
    assert pods.pod is not None
    pods.pod["metadata"].update(deletionTimestamp="2027-01-15T08:00:00Z", deletionGracePeriodSeconds=30)
    node.look()
    assert pods.deleted == []
    node.look(1)
    assert pods.deleted == [{"uid": "u", "grace_period": 0}]


def test_nothing_is_remembered_of_a_pod_that_is_gone() -> None:
    pods = Pods()
    node = Node(pods, NodeOptions())
    node.look()
    assert len(node.runner._known) == 1
    pods.pod = None
    node.look()
    assert node.runner._known == {}
