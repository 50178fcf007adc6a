"""A cluster with its controllers, and ways to wait for what they do."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from informers import Client, Object
from informers.errors import NotFoundError
from pysedna.localcluster import LocalCluster
from pysedna.localcluster.controllers import NodeOptions

WAIT = 20.0
Json = dict[str, Any]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A cluster with two nodes on which pods start and stop quickly."""
    options = NodeOptions(start_seconds=0.01, stop_seconds=0.01, heartbeat_seconds=0.5)
    with LocalCluster(nodes=("n1", "n2"), node_options=options) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Client:
    return cluster.client


@pytest.fixture
def namespace(client: Client) -> str:
    """A namespace of the test's own."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    client.resource("v1", "Namespace").create({"metadata": {"name": name}})
    return name


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
