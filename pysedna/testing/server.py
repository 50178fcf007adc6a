"""One server of the control plane: a process with a log that never outlives the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pysedna.testing import supervisor
from pysedna.testing.errors import NotRunningError, StartError

_LOG_LINES = 20
_POLL = 0.05
_FREEZE_SECONDS = 10.0


class Server:
    """A program that runs until it is stopped or this process ends, however that comes about. Not thread-safe.

    What it writes is appended to ``FOLDER/NAME.log``. It can be started again after it ended.
    """

    def __init__(self, name: str, *, folder: Path, temporary: bool) -> None:
        """`temporary`: the folder is removed if this process is killed and cannot do it."""
        self.name = name
        self.log_file = folder / f"{name}.log"
        self._remove = str(folder) if temporary else ""
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self._log_start = 0

    @property
    def pid(self) -> int:
        """The id of the server's process. Raises NotRunningError."""
        self._running()
        return self._pid

    @property
    def running(self) -> bool:
        """Whether its process is there; a frozen one is."""
        return self._process is not None and self._process.poll() is None

    def start(self, command: Sequence[str | Path]) -> None:
        """Start it and return at once. Must not be running."""
        assert not self.running, f"{self.name} runs"
        self.stop(0)
        with self.log_file.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid()), self._remove, *map(str, command)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is for the tests, which stop the servers in their order
            )
        output = self._process.stdout
        assert output is not None
        with output:
            self._pid = int(output.readline() or b"0")

    def wait_until(self, ready: Callable[[], bool], *, deadline: float) -> None:
        """Block until `ready()`, asked 20 times a second. `deadline` is on time.monotonic.

        Raises StartError when the server ends before that or the time is over, with the end of its log.
        """
        started = time.monotonic()
        while not ready():
            if not self.running:
                raise StartError(f"{self.name} ended with exit status {self.exit_status}", log=self.log_tail())
            if time.monotonic() >= deadline:
                seconds = time.monotonic() - started
                raise StartError(f"{self.name} was not ready after {seconds:.1f} s", log=self.log_tail())
            time.sleep(_POLL)

    @property
    def exit_status(self) -> int | None:
        """As a shell gives it (137: killed); None while it runs or if it never ran."""
        return None if self._process is None else self._process.poll()

    def log_tail(self, lines: int = _LOG_LINES) -> str:
        """The last lines that it wrote since it was started last."""
        return "\n".join(self.log_since_start().splitlines()[-lines:])

    def log_since_start(self) -> str:
        """All that it wrote since it was started last."""
        if not self.log_file.exists():
            return ""
        with self.log_file.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def freeze(self) -> None:
        """Stop it from running, with its connections left open (SIGSTOP). Raises NotRunningError.

        It does not run any more when this returns: the signal takes a moment to arrive, and each thread one to stop.
        """
        self._send(signal.SIGSTOP)
        deadline = time.monotonic() + _FREEZE_SECONDS
        while self.running and not self._all_threads_stopped() and time.monotonic() < deadline:
            time.sleep(0.001)

    def thaw(self) -> None:
        """Let it go on. Does nothing if it is not frozen. Raises NotRunningError."""
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone. Does nothing if it is not running."""
        self.stop(0)

    def stop(self, timeout: float) -> bool:
        """SIGTERM, then SIGKILL after `timeout` seconds; at once with 0. Blocks until it is gone.

        Gives whether it ended by itself.
        """
        process = self._process
        if process is None:
            return True
        graceful = self._ended_by_itself(process, timeout)
        if not graceful:
            with suppress(NotRunningError):
                self._send(signal.SIGKILL)
            process.wait()
        assert process.stdin is not None
        process.stdin.close()  # only now: closed before, it would tell the supervisor that we are gone
        return graceful

    def _all_threads_stopped(self) -> bool:
        """As the kernel says it: the state comes after the name, which stands in parentheses and may hold anything."""
        try:
            tasks = list(Path(f"/proc/{self._pid}/task").iterdir())
            states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks]
        except FileNotFoundError:  # a thread, or all of it, ended meanwhile
            return False
        return all(state in "TtZX" for state in states)

    def _ended_by_itself(self, process: subprocess.Popen[bytes], timeout: float) -> bool:
        if timeout > 0:
            with suppress(NotRunningError):
                self._send(signal.SIGTERM)
                self._send(signal.SIGCONT)  # a frozen one would not hear of it
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _send(self, number: int) -> None:
        stdin = self._running().stdin
        assert stdin is not None
        try:
            stdin.write(bytes([number]))
        except BrokenPipeError:
            raise NotRunningError(f"{self.name} ended just now") from None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or not self.running:
            raise NotRunningError(f"{self.name} is not running")
        return self._process
