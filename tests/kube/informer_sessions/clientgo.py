"""Plays sessions to client-go's shared informer: the program `tests/kube/clientgo/informer`, one process for many."""

from __future__ import annotations

import json
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from informer_sessions.history import Played, Shown
from informer_sessions.script import MARKER

_MODULE = Path(__file__).parent.parent / "clientgo"


def build(go: str, folder: Path) -> Path:
    """Compile the program. Raises AssertionError with what the compiler said."""
    program = folder / "informer"
    command = [go, "build", "-o", str(program), "./informer"]
    made = subprocess.run(command, cwd=_MODULE, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return program


class ClientGo:
    """A running program; a context manager. `play` may be called by many threads at once."""

    def __init__(self, program: Path, *flags: str) -> None:
        self._process = subprocess.Popen(
            [str(program), *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._condition = threading.Condition()
        self._results: dict[str, dict[str, Any]] = {}
        self._over = False
        self.errors = ""
        self._threads = [
            threading.Thread(target=target, name=f"client-go {target.__name__}")
            for target in (self._read_results, self._read_errors)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> int:
        """Let it end what it plays; gives the exit status."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already
            self._process.stdin.close()
        status = self._process.wait(120)
        for thread in self._threads:
            thread.join(30)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        return status

    def play(self, session_id: str, url: str, *, seconds: int, watch_list: bool, **options: Any) -> Played | None:
        """Play one session to its end; None if the program died meanwhile (see `errors`)."""
        spec = {"id": session_id, "url": url, "marker": MARKER, "seconds": seconds, "watchList": watch_list} | options
        with self._condition:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(spec) + "\n")
            self._process.stdin.flush()
            self._condition.wait_for(lambda: session_id in self._results or self._over, seconds + 60)
            result = self._results.pop(session_id, None)
        return None if result is None else _played(result)

    def _read_results(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            result = json.loads(line)
            with self._condition:
                self._results[result["id"]] = result
                self._condition.notify_all()
        with self._condition:
            self._over = True
            self._condition.notify_all()

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self.errors = self._process.stderr.read()


def _played(result: dict[str, Any]) -> Played:
    history = tuple(
        Shown(
            event=each["event"],
            key=each["key"],
            uid=each["uid"],
            rv=each["rv"],
            old_uid=each.get("oldUid", ""),
            old_rv=each.get("oldRv", ""),
            unknown=each.get("unknown", False),
            initial=each.get("initial", False),
        )
        for each in result["history"]
    )
    cache = {key: (one["uid"], one["rv"], one["data"]) for key, one in result["cache"].items()}
    return Played(result["ended"], history, cache, result["synced"], result["handlerSynced"])
