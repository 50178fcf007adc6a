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
