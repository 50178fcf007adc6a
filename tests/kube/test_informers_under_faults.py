"""Informers on a real API server that is restarted, killed, frozen and loses its history while others write to it.

At the end each cache equals the server, and each handler was shown a legal history of every object.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from informers import Client, Event, EventType, Object, ProtocolConfig, SharedInformer
from informers.backoff import BackoffConfig
from informers.errors import InformersError
from pysedna.testing import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.slow]

MAPS = ("v1", "ConfigMap")
BACKOFF = BackoffConfig(base=0.05, cap=1.0)
STREAMED = ProtocolConfig(backoff=BACKOFF)
PAGED = ProtocolConfig(backoff=BACKOFF, watch_list=False, page_size=3)
STALE = ProtocolConfig(backoff=BACKOFF, watch_list=False, prefer_stale=True)
PATIENCE = 60.0


class Writer:
    """Creates, changes and deletes objects of a few names, as long as it is let; what is refused is refused."""

    def __init__(self, kubeconfig: str, kinds: list[tuple[str, str]], namespaces: list[str], seed: int) -> None:
        self._random = random.Random(seed)
        self._client = Client.from_kubeconfig(kubeconfig, timeout=2.0)
        self._kinds, self._namespaces = kinds, namespaces
        self._stop = threading.Event()
        self.done = self.failed = 0
        self._thread = threading.Thread(target=self._run, name=f"writer-{seed}")
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._random.uniform(0.0, 0.03)):
            try:
                self._step()
                self.done += 1
            except InformersError:
                self.failed += 1

    def _step(self) -> None:
        resource = self._client.resource(*self._random.choice(self._kinds))
        namespace, name = self._random.choice(self._namespaces), f"m{self._random.randrange(8)}"
        labels = {"app": self._random.choice("xy"), "step": str(self.done)}
        what = self._random.random()
        if what < 0.4:
            resource.create({"metadata": {"name": name, "namespace": namespace, "labels": labels}})
        elif what < 0.8:
            resource.patch(f"{namespace}/{name}", {"metadata": {"labels": labels}})
        else:
            resource.delete(f"{namespace}/{name}")

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self._client.close()


class History:
    """A handler that checks every event against what it was shown before."""

    def __init__(self, informer: SharedInformer, accepts: str | None, max_pending: int | None) -> None:
        self.shown: dict[str, Object] = {}
        self.wrong: list[str] = []
        self.events = 0
        self.condition = threading.Condition()
        self.accepts = accepts
        informer.add_event_handler(
            on_event=self.on_event,
            filter=None if accepts is None else lambda obj: obj.labels.get("app") == accepts,
            max_pending=max_pending,
        )

    def on_event(self, event: Event) -> None:
        with self.condition:
            self.events += 1
            self._check(event, self.shown.get(event.object.uid))
            self.condition.notify_all()

    def _check(self, event: Event, before: Object | None) -> None:
        if event.type is EventType.DELETE:
            if self.shown.pop(event.object.uid, None) is None:
                self.wrong.append(f"delete of something not shown: {event}")
            return
        if event.type is EventType.ADD and any(one.key == event.object.key for one in self.shown.values()):
            self.wrong.append(f"added twice: {event}")
        if event.type is EventType.UPDATE:
            if before is None or event.old != before:
                self.wrong.append(f"update of something not shown: {event}, shown {before}")
            elif int(event.object.resource_version) <= int(before.resource_version):
                self.wrong.append(f"went back: {event}")
        self.shown[event.object.uid] = event.object

    def wait_equal(self, wanted: list[Object]) -> None:
        versions = {one.uid: one.resource_version for one in wanted if self.accepts in (None, one.labels.get("app"))}

        def equal() -> bool:
            return versions == {uid: one.resource_version for uid, one in self.shown.items()}

        with self.condition:
            assert self.condition.wait_for(equal, PATIENCE), (self.shown, versions)
        assert self.wrong == []


class Watched:
    """An informer of one scope with three handlers, and how the same is read from the server."""

    def __init__(self, client: Client, kind: tuple[str, str], protocol: ProtocolConfig, **scope: Any) -> None:
        resource = client.resource(*kind)
        self.informer = SharedInformer(resource.list_watch(**scope), protocol=protocol)
        scope.pop("metadata_only", None)
        self.wanted: Callable[[], list[Object]] = lambda: list(resource.list(**scope).items)
        self.histories = [History(self.informer, *how) for how in ((None, None), (None, 1), ("x", 4))]
        self.informer.start()

    def check(self) -> None:
        wanted = self.wanted()
        for history in self.histories:
            history.wait_equal(wanted)
            assert history.events > 10
        cached = {one.uid: one.resource_version for one in self.informer.lister.list()}
        assert cached == {one.uid: one.resource_version for one in wanted}
        assert self.informer.status().internal_errors == 0


def restart(plane: ControlPlane) -> None:
    plane.restart_api_server()


def kill(plane: ControlPlane) -> None:
    plane.kill_api_server()
    time.sleep(0.5)
    plane.restart_api_server()


def freeze(plane: ControlPlane) -> None:
    plane.freeze()
    time.sleep(4)
    plane.thaw()


def expire(plane: ControlPlane) -> None:
    plane.compact()


@pytest.fixture
def names(own_control_plane: ControlPlane) -> list[str]:
    namespaces = own_control_plane.client.resource("v1", "Namespace")
    return [namespaces.create({"metadata": {"name": f"faults-{letter}"}}).name for letter in "ab"]


@pytest.fixture
def widgets(own_control_plane: ControlPlane) -> tuple[str, str]:
    """A kind of the test's own, which a starting server does not serve at once."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    }
    own_control_plane.install_crds([definition])
    return ("example.com/v1", "Widget")


@pytest.fixture
def watched(own_control_plane: ControlPlane, names: list[str], widgets: tuple[str, str]) -> Iterator[list[Watched]]:
    client, first = own_control_plane.client, names[0]
    all_of_them = [
        Watched(client, MAPS, STREAMED, namespace=first),
        Watched(client, MAPS, PAGED, namespace=first, label_selector="app=x"),
        Watched(client, MAPS, STALE, namespace=names[1]),
        Watched(client, MAPS, STREAMED, namespace=names[1], metadata_only=True),
        Watched(client, widgets, STREAMED),
        Watched(client, widgets, PAGED),
    ]
    yield all_of_them
    for one in all_of_them:
        assert one.informer.stop(5)


@pytest.mark.timeout(300)
def test_after_any_faults_each_cache_equals_the_server_and_each_history_was_legal(
    own_control_plane: ControlPlane, names: list[str], widgets: tuple[str, str], watched: list[Watched]
) -> None:
    seed = secrets.randbelow(1_000_000)
    print("seed", seed)  # shown when it fails
    writers = [Writer(own_control_plane.kubeconfig, [MAPS, widgets], names, seed + number) for number in range(2)]
    faults = [restart, kill, freeze, expire, expire, kill]
    random.Random(seed).shuffle(faults)
    try:
        for fault in faults:
            time.sleep(0.7)  # for writes between faults, and not always after the informers have caught up
            fault(own_control_plane)
            print(fault.__name__)
    finally:
        for writer in writers:
            writer.stop()
    assert all(writer.done > 50 and writer.failed for writer in writers)
    for one in watched:
        one.check()
