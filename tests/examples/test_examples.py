"""Every example runs with one command, as a user starts it, and ends when it is asked to."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ENVIRONMENT = {**os.environ, "PYTHONUNBUFFERED": "1"}


@contextmanager
def started(name: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / name), *words], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    timer = threading.Timer(60, process.kill)
    timer.start()
    with process:
        try:
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(15) == 0
        finally:
            process.kill()
            timer.cancel()


def read_until(process: subprocess.Popen[str], wanted: Sequence[str]) -> list[str]:
    """Lines up to the one by which every text of `wanted` was seen."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if all(any(text in line for line in lines) for text in wanted):
            return lines
    raise AssertionError(f"the example ended without {wanted}: {''.join(lines)}")


def test_work_queue() -> None:
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / "work_queue.py")], capture_output=True, text=True, timeout=60, check=True
    )
    assert "300 adds, 3 items in the queue" in result.stdout
    assert "drained: True; runs: {'apples': 1, 'bread': 1, 'cheese': 4}" in result.stdout


def test_pod_watcher() -> None:
    with started("pod_watcher.py") as process:
        lines = read_until(process, ["-> Running on node-1"] * 3)
        assert any(line.startswith(("added default/web-", "found default/web-")) for line in lines)


def test_custom_controller() -> None:
    with started("custom_controller.py") as process:
        read_until(process, ["red-ann: created", "red-bob: created"])


@pytest.mark.parametrize("name", ["pod_watcher.py", "custom_controller.py"])
def test_it_runs_on_any_kubeconfig(name: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    words = ["localcluster", "--kubeconfig-out", str(kubeconfig), "--log-level", "error"]
    with subprocess.Popen([sys.executable, "-m", "pysedna", *words], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert "listening" in server.stdout.readline()
            with started(name, str(kubeconfig)) as process:
                if name == "custom_controller.py":
                    read_until(process, ["red-ann: created"])
                else:
                    make_pod(str(kubeconfig))
                    read_until(process, ["default/alone"])
        finally:
            server.terminate()


def make_pod(kubeconfig: str) -> None:
    from informers import Client

    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "alone", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "any"}]},
    }
    with Client.from_kubeconfig(kubeconfig) as client:
        client.resource("v1", "Pod").create(pod)


def test_the_federated_learning_job_runs_and_is_collected() -> None:
    from ruamel.yaml import YAML

    from informers import Object
    from pysedna.api.crds import crds
    from pysedna.controller import Manager
    from pysedna.jobs.federated_learning import setup
    from pysedna.localcluster import LocalCluster

    def trains(job: Object | None) -> bool:
        return job is not None and job.get("status", {}).get("phase") == "Running"

    stop = threading.Event()
    with LocalCluster(nodes=("cloud", "edge-1", "edge-2")) as cluster:
        cluster.install_crds(crds())
        for manifest in YAML(typ="safe").load_all(EXAMPLES / "federated_learning.yaml"):
            manifest["metadata"]["namespace"] = "default"
            cluster.client.resource(manifest["apiVersion"], manifest["kind"]).create(manifest)
        manager = Manager(cluster.client, name="test", http=None)
        setup(manager)
        running = threading.Thread(target=manager.run, args=(stop,))
        running.start()
        try:
            jobs = cluster.client.resource("sedna.io/v1alpha1", "FederatedLearningJob")
            pods = cluster.client.resource("v1", "Pod")
            jobs.wait_until("default/surface-defects", trains, timeout=60)
            names = ["surface-defects-aggregation-0", "surface-defects-train-0", "surface-defects-train-1"]
            assert sorted(pod.name for pod in pods.list().items) == names
            jobs.delete("default/surface-defects")
            for name in names:
                pods.wait_until(f"default/{name}", lambda pod: pod is None, timeout=60)
        finally:
            stop.set()
            running.join()
