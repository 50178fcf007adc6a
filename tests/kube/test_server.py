"""A server ends with the process that started it, whatever way that goes: small programs, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pysedna.testing import NotRunningError, StartError
from pysedna.testing.server import Server

WAIT = 20.0
SLEEP = ("sleep", "600")


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"  # whoever inherited it has yet to take note


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server("program", folder=tmp_path, temporary=False)
    yield server
    server.kill()


PARENT = """
    import os, sys, time
    from pathlib import Path
    from pysedna.testing.server import Server

    def tell(line):  # in one piece, however stdout is buffered: two processes write
        os.write(1, line.encode() + b"\\n")

    folder = Path(sys.argv[1])
    server = Server("program", folder=folder, temporary=True)
    server.start(["sh", "-c", "trap '' TERM HUP INT; sleep 600"] if {stubborn} else ["sleep", "600"])
    if {forks} and os.fork() == 0:
        tell(f"{{os.getpid()}}")
        time.sleep(600)
    tell(f"ready {{server.pid}} {{server._process.pid}}")
    time.sleep(600)
"""


class Parent:
    """A test process of its own with a server, and perhaps a forked child that outlives it."""

    def __init__(self, folder: Path, *, stubborn: bool = False, forks: bool = False) -> None:
        script = textwrap.dedent(PARENT).format(stubborn=stubborn, forks=forks)
        self.process = subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.forked = 0
        while True:
            words = self.process.stdout.readline().split()
            if words[0] != "ready":
                self.forked = int(words[0])
                continue
            self.server, self.supervisor = map(int, words[1:])
            if self.forked or not forks:
                return
            self.forked = int(self.process.stdout.readline())
            return

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.mark.parametrize("stubborn", [False, True])
def test_nothing_is_left_of_a_test_process_that_is_killed(tmp_path: Path, stubborn: bool) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    parent = Parent(folder, stubborn=stubborn)
    assert not gone(parent.server)
    parent.kill()
    eventually(lambda: gone(parent.server) and gone(parent.supervisor))
    eventually(lambda: not folder.exists())


def test_a_frozen_server_dies_with_the_test_process(tmp_path: Path) -> None:
    parent = Parent(tmp_path)
    os.kill(parent.server, signal.SIGSTOP)
    parent.kill()
    eventually(lambda: gone(parent.server))


def test_a_forked_child_does_not_keep_the_server_alive(tmp_path: Path) -> None:
    parent = Parent(tmp_path, forks=True)
    try:
        parent.kill()
        eventually(lambda: gone(parent.server))
        assert not gone(parent.forked)
    finally:
        os.kill(parent.forked, signal.SIGKILL)


def test_a_killed_supervisor_takes_its_server_along(tmp_path: Path) -> None:
    parent = Parent(tmp_path)
    os.kill(parent.supervisor, signal.SIGKILL)
    eventually(lambda: gone(parent.server))
    assert tmp_path.exists()
    parent.kill()


def test_a_server_that_is_stopped_leaves_the_folder(tmp_path: Path) -> None:
    server = Server("program", folder=tmp_path, temporary=True)
    server.start(SLEEP)
    pid = server.pid
    assert server.stop(WAIT)
    assert gone(pid)
    assert (tmp_path / "program.log").exists()
    server.start(SLEEP)
    server.kill()
    assert (tmp_path / "program.log").exists()


def test_stop_is_graceful_in_time_and_forceful_after_it(server: Server) -> None:
    server.start(SLEEP)
    assert server.stop(WAIT)
    assert server.exit_status == 128 + signal.SIGTERM
    server.start(("sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.01; done"))
    server.wait_until(lambda: "up" in server.log_since_start(), deadline=time.monotonic() + WAIT)
    assert not server.stop(0.1)
    assert server.exit_status == 128 + signal.SIGKILL
    assert server.stop(0.1)


def test_a_frozen_server_stands_still_and_can_be_stopped(server: Server) -> None:
    server.start(SLEEP)
    server.freeze()
    eventually(lambda: state(server.pid) == "T")
    assert server.running
    server.thaw()
    eventually(lambda: state(server.pid) == "S")
    server.freeze()
    assert server.stop(WAIT)
    assert server.exit_status == 128 + signal.SIGTERM


def test_a_server_that_ends_early_is_told_with_the_end_of_its_log(server: Server) -> None:
    server.start(("sh", "-c", "seq 100; echo no such flag >&2; exit 3"))
    with pytest.raises(StartError, match=r"program ended with exit status 3") as caught:
        server.wait_until(lambda: False, deadline=time.monotonic() + WAIT)
    lines = caught.value.log.splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("82", "no such flag", 20)
    assert "no such flag" in str(caught.value)


def test_a_server_that_is_not_ready_in_time_is_told_with_the_end_of_its_log(server: Server) -> None:
    server.start(("sh", "-c", "echo waiting for a miracle; sleep 600"))
    server.wait_until(lambda: bool(server.log_since_start()), deadline=time.monotonic() + WAIT)
    with pytest.raises(StartError, match=r"(?s)not ready after 0\.. s.*miracle"):
        server.wait_until(lambda: False, deadline=time.monotonic() + 0.1)


def test_the_log_goes_on_over_restarts_and_the_tail_is_of_the_last(server: Server) -> None:
    for word in ("first", "second"):
        server.start(("echo", word))
        eventually(lambda: not server.running)
    assert server.log_tail() == "second"
    assert server.log_file.read_text() == "first\nsecond\n"


def test_a_program_that_cannot_run_is_told(server: Server) -> None:
    server.start(("/no/such/program",))
    with pytest.raises(StartError, match=r"(?s)ended with exit status 1.*/no/such/program"):
        server.wait_until(lambda: False, deadline=time.monotonic() + WAIT)


def test_what_is_not_running_cannot_be_frozen(server: Server) -> None:
    with pytest.raises(NotRunningError, match="program is not running"):
        server.freeze()
    server.start(SLEEP)
    server.kill()
    with pytest.raises(NotRunningError):
        server.thaw()
