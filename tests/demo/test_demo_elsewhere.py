"""The story on a cluster that was there before: it passes, and leaves the cluster as it found it."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from informers import Client, NotFoundError
from pysedna.api.crds import crds
from pysedna.localcluster import LocalCluster
from pysedna.testing import Cluster

DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


@pytest.fixture
def with_nodes() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=("first", "second")) as running:
        yield running


def start(*words: str, **options: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pysedna", "demo", *words], stdout=subprocess.PIPE, text=True, **options
    )


def traces(client: Client) -> list[str]:
    """What a demo would leave behind: definitions, namespaces and nodes of its own."""
    found = [
        obj for kind in (DEFINITION, ("v1", "Namespace"), ("v1", "Node")) for obj in client.resource(*kind).list().items
    ]
    return sorted(obj.name for obj in found if "sedna" in obj.name)


def managers(cluster: LocalCluster) -> list[int]:
    """The ids of the managers that run on this cluster."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    found = [line.split() for line in listed.splitlines() if cluster.kubeconfig in line]
    return [int(words[0]) for words in found if words[2:5] == ["-m", "pysedna", "manager"]]


@pytest.mark.slow
def test_it_passes_on_the_nodes_of_a_cluster_and_leaves_no_trace(with_nodes: LocalCluster) -> None:
    with start("--kubeconfig", with_nodes.kubeconfig) as demo:
        output, _ = demo.communicate(timeout=100)
    assert demo.returncode == 0, output
    assert traces(with_nodes.client) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_it_brings_its_nodes_where_there_are_none_and_takes_them_away(cluster: Cluster) -> None:
    definitions = cluster.client.resource(*DEFINITION)
    for definition in crds():  # what other tests have left, for the demo to bring and to take away
        with suppress(NotFoundError):
            definitions.delete(definition["metadata"]["name"])
        definitions.wait_until(definition["metadata"]["name"], lambda one: one is None, 60)
    before = traces(cluster.client)
    with start("--kubeconfig", cluster.kubeconfig, "--simulate-nodes", "--step-timeout", "60") as demo:
        output, _ = demo.communicate(timeout=240)
    assert demo.returncode == 0, output
    assert "All 6 steps passed" in output[output.index("what was checked") :]
    assert traces(cluster.client) == before
    assert not any("sedna.io" in name for name in before)


def test_a_cluster_without_nodes_is_told_what_would_help() -> None:
    with LocalCluster(nodes=()) as empty:
        with start("--kubeconfig", empty.kubeconfig) as demo:
            output, _ = demo.communicate(timeout=60)
        assert demo.returncode == 1
        assert "--simulate-nodes" in output
        assert traces(empty.client) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_stopped_clears_up(with_nodes: LocalCluster, number: signal.Signals) -> None:
    with start("--kubeconfig", with_nodes.kubeconfig) as demo:
        assert demo.stdout is not None
        assert any("1. Apply" in line for line in demo.stdout)
        assert len(managers(with_nodes)) == 2
        demo.send_signal(number)
        demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert managers(with_nodes) == []
    assert traces(with_nodes.client) == []


def test_no_manager_outlives_a_demo_that_is_killed(with_nodes: LocalCluster) -> None:
    with start("--kubeconfig", with_nodes.kubeconfig) as demo:
        assert demo.stdout is not None
        assert any("1. Apply" in line for line in demo.stdout)
        left = [os.pidfd_open(pid) for pid in managers(with_nodes)]
        assert len(left) == 2
        demo.kill()
        for descriptor in left:
            assert select.select([descriptor], [], [], 30)[0], "a manager goes on"
            os.close(descriptor)


def test_definitions_that_were_there_before_stay(with_nodes: LocalCluster) -> None:
    with_nodes.install_crds(crds())
    before = traces(with_nodes.client)
    with start("--kubeconfig", with_nodes.kubeconfig, "--step-timeout", "0") as demo:
        demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert traces(with_nodes.client) == before != []


def test_in_a_terminal_it_draws(with_nodes: LocalCluster) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "pysedna", "demo", "--kubeconfig", with_nodes.kubeconfig]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as demo:
        os.close(theirs)
        seen = b""
        while b"surface-defects-train-1" not in seen or b"Running" not in seen:
            seen += os.read(ours, 65536)
        demo.send_signal(signal.SIGINT)
        try:
            while True:
                seen += os.read(ours, 65536)
        except OSError:
            pass  # the other end is closed: the demo has ended
    os.close(ours)
    assert re.search(rb"\x1b\[\d*A", seen), "the picture is drawn over"
    assert demo.returncode == 130
