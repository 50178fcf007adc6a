"""Clusters for tests: `cluster` runs a test twice, on the embedded one and on a real kube-apiserver (marked `kube`).

Each is started when the first test asks for it and shared by all, so a test keeps to names of its own (`namespace`)
and to groups of its own when it installs kinds.
"""

from __future__ import annotations

import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from informers import NotFoundError
from pysedna.controller import Manager
from pysedna.localcluster import LocalCluster
from pysedna.localcluster.controllers import setup_nodes
from pysedna.testing import BinariesMissingError, Cluster, ControlPlane

pytest_plugins = ["pysedna.testing.pytest_plugin"]

NODES = ("node-1", "node-2")


def pytest_configure() -> None:
    """A shell that runs the tests in the background lets them ignore Ctrl-C, and every process that they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def embedded_cluster() -> Iterator[LocalCluster]:
    """The embedded cluster with its controllers, and without nodes: as on the real one, pods stay Pending."""
    with LocalCluster(nodes=()) as cluster:
        yield cluster


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.kube)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """An API server with garbage collection, Deployments and namespace deletion behind it; no nodes."""
    name = {"embedded": "embedded_cluster", "real": "control_plane"}[request.param]
    cluster: Cluster = request.getfixturevalue(name)
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """The name of a namespace that is this test's alone; its deletion is asked for afterwards."""
    namespaces = cluster.client.resource("v1", "Namespace")
    name = f"test-{secrets.token_hex(5)}"
    namespaces.create({"metadata": {"name": name}})
    yield name
    with suppress(NotFoundError):
        namespaces.delete(name)


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[tuple[str, ...]]:
    """The names of simulated nodes that bind and run the pods of the cluster, all of them, while the test runs."""
    manager = Manager(cluster.client, name="nodes", http=None)
    setup_nodes(manager, NODES)
    stop = threading.Event()
    thread = threading.Thread(target=manager.run, args=(stop,), name="simulated-nodes")
    thread.start()
    yield NODES
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


@pytest.fixture
def own_control_plane() -> Iterator[ControlPlane]:
    """A control plane that is this test's alone, to be frozen or killed; skips as `control_plane` does."""
    plane = ControlPlane()
    try:
        plane.start()
    except BinariesMissingError as error:
        pytest.skip(str(error))
    yield plane
    plane.stop()
