"""Groups of things that run until they are told to stop, and the order in which a manager starts and stops its parts.

A manager starts from the outside in (who asks for health gets an answer before anything else happens, no reconcile
runs before the caches are filled) and stops so that nobody else can lead while its own workers still finish: the
election is cancelled after all else. `START` and `STOP` are that order; `RunnableGroup` is what each stage with
threads is made of.
"""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from pysedna.controller.errors import Cancelled, ManagerStopped

_log = logging.getLogger(__name__)


class Stage(enum.Enum):
    """A part of a manager that starts and stops as a whole."""

    HTTP = "http"
    EVENTS = "events"
    CACHES = "caches"
    OTHERS = "others"
    ELECTION = "election"
    LEADERS = "leaders"  # starts when the election is won; at once when there is none


START = (Stage.HTTP, Stage.EVENTS, Stage.CACHES, Stage.OTHERS, Stage.ELECTION, Stage.LEADERS)
STOP = (Stage.OTHERS, Stage.LEADERS, Stage.CACHES, Stage.HTTP, Stage.ELECTION, Stage.EVENTS)


class Runnable(Protocol):
    """Something with a `run` that blocks until `stop` is set. Returning earlier is fine; raising stops the manager."""

    def run(self, stop: threading.Event) -> None: ...


def runnable_name(runnable: Runnable) -> str:
    """What logs and errors call it: its `name`, else its class."""
    return str(getattr(runnable, "name", "") or type(runnable).__name__)


class RunnableGroup:
    """Runs each of its runnables on a thread of its own. Thread-safe.

    What is added before `start` waits for it; what is added later starts at once. `on_failure(name, error)` is
    called, on the runnable's thread, when one raises; `Cancelled` while the group stops is a way to return, not a
    failure.
    """

    def __init__(self, name: str, on_failure: Callable[[str, BaseException], None]) -> None:
        self.name = name
        self.stop = threading.Event()
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._started = False
        self._waiting: list[Runnable] = []
        self._threads: dict[threading.Thread, str] = {}

    def add(self, runnable: Runnable) -> None:
        """Add a runnable. Raises ManagerStopped when the group stops or has stopped."""
        with self._lock:
            if self.stop.is_set():
                raise ManagerStopped(f"cannot add {runnable_name(runnable)}: {self.name} is stopping")
            if self._started:
                self._launch(runnable)
            else:
                self._waiting.append(runnable)

    def start(self) -> None:
        """Start all that waits. Without effect on a group that stops."""
        with self._lock:
            if self.stop.is_set():
                return
            self._started = True
            waiting, self._waiting = self._waiting, []
            for runnable in waiting:
                self._launch(runnable)

    def begin_stop(self) -> None:
        """Tell all to stop; does not wait."""
        with self._lock:
            self.stop.set()
            self._waiting.clear()

    def join(self, timeout: float | None = None) -> list[str]:
        """Wait until all have returned, at most `timeout` seconds; the names of those that have not. `begin_stop`
        comes first.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in list(self._threads):
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return [name for thread, name in list(self._threads.items()) if thread.is_alive()]

    def _launch(self, runnable: Runnable) -> None:
        name = runnable_name(runnable)
        for finished in [thread for thread in self._threads if thread.ident is not None and not thread.is_alive()]:
            del self._threads[finished]
        # A daemon: a runnable that ignores its stop must not keep the process from ending.
        thread = threading.Thread(target=self._run, args=(runnable, name), name=f"{self.name}-{name}", daemon=True)
        self._threads[thread] = name
        thread.start()

    def _run(self, runnable: Runnable, name: str) -> None:
        try:
            runnable.run(self.stop)
        except BaseException as error:  # noqa: BLE001 - whatever ended it, the manager must hear of it
            if self.stop.is_set() and isinstance(error, Cancelled):
                return
            _log.exception("%s failed", name, extra={"runnable": name})
            self._on_failure(name, error)
