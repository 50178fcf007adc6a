"""Starting and ending a real control plane: taken ports, wrong flags, time-outs, and a test process that is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from pysedna.testing import ControlPlane, NotRunningError, Settings, StartError, servers
from pysedna.testing.binaries import find_binaries
from pysedna.testing.ports import free_ports

pytestmark = pytest.mark.kube
WAIT = 30.0


@pytest.fixture(autouse=True)
def programs() -> None:
    """Skips as `control_plane` does, without starting one."""
    from pysedna.testing import BinariesMissingError

    try:
        find_binaries(Settings.from_environment())
    except BinariesMissingError as error:
        pytest.skip(str(error))


def processes(folder: Path) -> list[str]:
    """The command lines of all processes that name the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in command and int(entry.name) != os.getpid():
                found.append(command)
    return found


def test_stop_leaves_no_process_and_no_folder() -> None:
    plane = ControlPlane()
    plane.start()
    folder = plane.folder
    assert sum("--etcd-servers" in command for command in processes(folder)) == 2  # itself and its supervisor
    assert plane.stop()
    assert processes(folder) == []
    assert not folder.exists()
    assert plane.stop()
    for ask in (lambda: plane.client, lambda: plane.kubeconfig, plane.compact):
        with pytest.raises(NotRunningError):
            ask()


def test_a_folder_that_was_named_is_kept_with_the_logs(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    with ControlPlane(folder=folder, controllers=()) as plane:
        assert plane.folder == folder
        assert not any("kube-controller-manager" in command for command in processes(folder))
    assert {file.name for file in folder.glob("*.log")} == {"etcd.log", "kube-apiserver.log"}


KILLED = """
import sys, time
from pysedna.testing import ControlPlane
plane = ControlPlane()
plane.start()
plane.freeze()
print(plane.folder, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_the_test_process_is_killed(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert len(processes(folder)) == 6
        process.send_signal(number)
    deadline = time.monotonic() + WAIT
    while processes(folder) or folder.exists():
        assert time.monotonic() < deadline, processes(folder)
        time.sleep(0.05)


@pytest.fixture
def take_port() -> Iterator[Callable[[int], None]]:
    with ExitStack() as stack:

        def take(port: int) -> None:
            listener = stack.enter_context(socket.socket())
            listener.bind(("127.0.0.1", port))
            listener.listen()

        yield take


@pytest.mark.parametrize("taken", [0, 1, 2], ids=["etcd", "etcd-peer", "api-server"])
def test_a_port_that_is_taken_meanwhile_is_changed_for_another(
    taken: int, take_port: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Sequence[int]] = []

    def give(count: int) -> Sequence[int]:
        tries.append(free_ports(count))
        if len(tries) == 1:
            take_port(tries[0][taken])
        return tries[-1]

    monkeypatch.setattr(servers, "free_ports", give)
    with ControlPlane(controllers=()) as plane:
        assert plane.client.raw("GET", "/readyz") == b"ok"
    assert len(tries) == 2


def test_a_wrong_flag_is_told_by_the_end_of_the_log_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"(?s)kube-apiserver ended with exit status 1.*no-such-flag"):
        ControlPlane(folder=tmp_path, api_server_args=["--no-such-flag"]).start()
    assert processes(tmp_path) == []


def test_a_start_that_takes_too_long_is_told_with_the_log(tmp_path: Path) -> None:
    settings = replace(Settings.from_environment(), start_timeout=2.0)
    flags = ["--etcd-servers=http://127.0.0.1:1"]  # nobody is there
    with pytest.raises(StartError, match=r"kube-apiserver was not ready after .* s; the end of its log") as caught:
        ControlPlane(folder=tmp_path, settings=settings, api_server_args=flags).start()
    assert caught.value.log
    assert processes(tmp_path) == []
