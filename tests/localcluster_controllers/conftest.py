"""A cluster with its controllers, and ways to wait for what they do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from informers import Client, Object
from informers.errors import NotFoundError
from pysedna.controller import Manager
from pysedna.localcluster import LocalCluster
from pysedna.localcluster.controllers import NodeOptions, setup_nodes
from pysedna.testing import Cluster, ControlPlane

WAIT = 60.0
Json = dict[str, Any]


OPTIONS = NodeOptions(start_seconds=0.01, stop_seconds=0.01, heartbeat_seconds=0.5)
NODES = ("n1", "n2")


@pytest.fixture(scope="module")
def embedded_with_nodes() -> Iterator[LocalCluster]:
    """The embedded cluster with two nodes on which pods start and stop quickly."""
    with LocalCluster(nodes=NODES, node_options=OPTIONS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def real_with_nodes(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The real controllers, with the same nodes."""
    manager = Manager(control_plane.client, name="nodes", http=None)
    setup_nodes(manager, NODES, OPTIONS)
    stop = threading.Event()
    thread = threading.Thread(target=manager.run, args=(stop,), name="simulated-nodes")
    thread.start()
    yield control_plane
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.kube)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """A cluster with controllers and the nodes n1 and n2, so that each rule is checked on its originals too."""
    cluster: Cluster = request.getfixturevalue(f"{request.param}_with_nodes")
    return cluster


@pytest.fixture
def client(cluster: Cluster) -> Client:
    return cluster.client


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Waits until a function gives something true, and gives that."""

    def wait(probe: Callable[[], Any], timeout: float = WAIT) -> Any:
        deadline = time.monotonic() + timeout
        while not (found := probe()):
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.01)
        return found

    return wait


class Kit:
    """Short ways to objects of one namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    def create(
        self, kind: str, name: str, *, api_version: str = "v1", owners: list[Json] | None = None, **more: Any
    ) -> Object:
        metadata = {"name": name, "namespace": self.namespace, **more.pop("metadata", {})}
        if owners:
            metadata["ownerReferences"] = owners
        return self.client.resource(api_version, kind).create({"metadata": metadata, **more})

    def get(self, kind: str, name: str, *, api_version: str = "v1") -> Object | None:
        try:
            return self.client.resource(api_version, kind).get(f"{self.namespace}/{name}")
        except NotFoundError:
            return None

    def list(self, kind: str, *, api_version: str = "v1", **options: Any) -> list[Object]:
        return list(self.client.resource(api_version, kind).list(namespace=self.namespace, **options).items)

    def delete(self, kind: str, name: str, *, api_version: str = "v1", **options: Any) -> None:
        self.client.resource(api_version, kind).delete(f"{self.namespace}/{name}", **options)

    def wait(
        self, kind: str, name: str, holds: Callable[[Object | None], Any], *, api_version: str = "v1"
    ) -> Object | None:
        resource = self.client.resource(api_version, kind)
        return resource.wait_until(f"{self.namespace}/{name}", lambda obj: bool(holds(obj)), WAIT)

    def gone(self, kind: str, name: str, *, api_version: str = "v1") -> None:
        self.wait(kind, name, lambda obj: obj is None, api_version=api_version)

    def pod(self, name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
        spec = {"containers": [{"name": "main", "image": "img"}], **spec}
        return self.create("Pod", name, metadata={"annotations": annotations or {}}, spec=spec)


@pytest.fixture
def kit(client: Client, namespace: str) -> Kit:
    return Kit(client, namespace)
