"""A ReplicaSet whose cache lags behind its own writes makes no pod twice."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from informers import Indexer, InformerStopped, Lister, Object, ObjectKey, Timeout
from informers.testing import FakeClient
from pysedna.controller import Cancelled, Context
from pysedna.localcluster.controllers.own_writes import OwnWrites
from pysedna.localcluster.controllers.replicasets import CONTROLLER_INDEX, ReplicaSets, controller_uid
from pysedna.testing import FakeRecorder
from workqueue.testing import FakeClock

KEY = ObjectKey("ns", "rs")
REPLICA_SET: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "rs", "namespace": "ns", "uid": "u", "generation": 1},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


class Cache:
    """A cache of pods that shows what the server has only when it is told to catch up."""

    def __init__(self, client: FakeClient) -> None:
        self._client = client
        self.indexer = Indexer()
        self.indexer.add_index(CONTROLLER_INDEX, controller_uid)
        self.stopped = False

    def catch_up(self) -> None:
        self.indexer.replace(self._client.stored("v1", "Pod"))

    def wait_for(self, obj: Object, timeout: float) -> None:
        self._wait(self.indexer.get(obj.key) is not None)

    def wait_for_deletion(self, key: ObjectKey, uid: str, timeout: float) -> None:
        self._wait(self.indexer.get(key) is None)

    def _wait(self, seen: bool) -> None:
        if self.stopped:
            raise InformerStopped("stopped")
        if not seen:
            raise Timeout("not yet")


class World:
    def __init__(self) -> None:
        self.client = FakeClient(REPLICA_SET)
        self.cache = Cache(self.client)
        self.sets = Indexer()
        self.refresh()
        informer: Any = self.cache
        self.recorder = FakeRecorder()
        self.reconciler = ReplicaSets(
            Lister(self.sets, "replica sets"), Lister(self.cache.indexer, "pods"), OwnWrites(informer), self.recorder
        )
        self.context = Context(client=self.client, stop=threading.Event(), clock=FakeClock(), gate=lambda: None)

    def refresh(self) -> None:
        self.sets.replace(self.client.stored("apps/v1", "ReplicaSet"))

    def reconcile(self) -> None:
        self.reconciler.reconcile(KEY, self.context)

    def pods(self) -> list[str]:
        return [pod.name for pod in self.client.stored("v1", "Pod")]


def test_nothing_is_decided_before_the_cache_shows_what_was_made() -> None:
    world = World()
    for _ in range(3):
        with pytest.raises(Timeout):
            world.reconcile()
        assert len(world.pods()) == 2
    world.cache.catch_up()
    world.reconcile()
    assert len(world.pods()) == 2
    assert [event.reason for event in world.recorder.events] == ["SuccessfulCreate"] * 2


def test_nothing_is_decided_before_the_cache_shows_what_was_deleted() -> None:
    world = World()
    with pytest.raises(Timeout):
        world.reconcile()
    world.cache.catch_up()
    world.client.resource("apps/v1", "ReplicaSet").patch(KEY, {"spec": {"replicas": 1}})
    world.refresh()
    for _ in range(3):
        with pytest.raises(Timeout):
            world.reconcile()
        assert len(world.pods()) == 1
    world.cache.catch_up()
    world.reconcile()
    assert len(world.pods()) == 1


def test_a_refused_creation_ends_the_run_and_shows_in_the_status_until_it_works() -> None:
    from informers.errors import ForbiddenError

    world = World()
    world.client.fail_next("create", "Pod", ForbiddenError("exceeded quota"))
    with pytest.raises(ForbiddenError):
        world.reconcile()
    assert world.pods() == []
    (stored,) = world.client.stored("apps/v1", "ReplicaSet")
    (condition,) = stored["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["message"]) == (
        "ReplicaFailure",
        "True",
        "exceeded quota",
    )
    assert [str(event) for event in world.recorder.events] == ["Warning FailedCreate Error creating: exceeded quota"]
    world.refresh()
    with pytest.raises(Timeout):
        world.reconcile()
    (stored,) = world.client.stored("apps/v1", "ReplicaSet")
    assert stored["status"]["conditions"] == []


def test_a_cache_that_was_stopped_ends_the_wait() -> None:
    world = World()
    with pytest.raises(Timeout):
        world.reconcile()
    world.cache.stopped = True
    with pytest.raises(Cancelled):
        world.reconcile()


def test_a_namespace_that_goes_away_is_left_alone_without_a_word() -> None:
    from informers.errors import ForbiddenError

    world = World()
    causes = {"causes": [{"reason": "NamespaceTerminating", "message": "namespace ns is being terminated"}]}
    world.client.fail_next("create", "Pod", ForbiddenError("being terminated", details=causes))
    world.reconcile()
    assert world.pods() == []
    assert world.recorder.events == []
