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

from informers import Client, Object, ProtocolConfig, SharedInformer
from informers.backoff import BackoffConfig
from informers.errors import InformersError
from informers.testing import HistoryChecker
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


def has_app_x(obj: Object) -> bool:
    return obj.labels.get("app") == "x"


class Watched:
    """An informer of one scope with three handlers, and how the same is read from the server."""

    def __init__(self, client: Client, kind: tuple[str, str], protocol: ProtocolConfig, **scope: Any) -> None:
        resource = client.resource(*kind)
        self.informer = SharedInformer(resource.list_watch(**scope), protocol=protocol)
        scope.pop("metadata_only", None)
        self.wanted: Callable[[], list[Object]] = lambda: list(resource.list(**scope).items)
        selected = "label_selector" in scope
        self.all_of_it, self.merged = HistoryChecker(filtered=selected), HistoryChecker(filtered=selected)
        self.filtered = HistoryChecker(filtered=True)
        self.informer.add_event_handler(on_event=self.all_of_it)
        self.informer.add_event_handler(on_event=self.merged, max_pending=1)
        self.informer.add_event_handler(on_event=self.filtered, filter=has_app_x, max_pending=4)
        self.informer.start()

    def check(self) -> None:
        wanted = self.wanted()
        self.all_of_it.wait_for(lambda: wanted, PATIENCE)
        self.merged.wait_for(lambda: wanted, PATIENCE)
        self.filtered.wait_for(lambda: filter(has_app_x, wanted), PATIENCE)
        assert all(history.events for history in (self.all_of_it, self.merged, self.filtered))
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
    assert sum(one.all_of_it.events for one in watched) > 60
