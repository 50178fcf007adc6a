"""Objects and events for tests of controllers."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from informers import Event, EventType, Object, Reason
from pysedna.controller import Manager

WAIT = 20.0
MakeObject = Callable[..., Object]
MakeEvent = Callable[..., Event]


@pytest.fixture
def make_object() -> MakeObject:
    def make(name: str = "one", *, namespace: str = "ns", rv: str = "1", uid: str = "", **fields: Any) -> Object:
        metadata = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": rv, **fields.pop("metadata", {})}
        if namespace:
            metadata["namespace"] = namespace
        return Object.from_dict({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields})

    return make


@pytest.fixture
def make_event() -> MakeEvent:
    def make(old: Object | None, new: Object | None, reason: Reason = Reason.WATCH) -> Event:
        kind = EventType.ADD if old is None else EventType.DELETE if new is None else EventType.UPDATE
        return Event(kind, old, new, reason)

    return make


class Running:
    """A manager that runs on a thread; its end and its error."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"test-{manager.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.manager.run(self.stop)
        except BaseException as error:  # noqa: BLE001 - whatever it was, the test looks at it
            self.error = error

    def ended(self, timeout: float = WAIT) -> BaseException | None:
        """Wait for the end; the error that it ended with."""
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "the manager still runs"
        return self.error

    def end(self) -> BaseException | None:
        """Stop it and wait for the end."""
        self.stop.set()
        return self.ended()

    def is_running(self) -> bool:
        return self._thread.is_alive()


@pytest.fixture
def run() -> Iterator[Callable[[Manager], Running]]:
    """Runs managers, and stops them when the test is over."""
    started: list[Running] = []

    def start(manager: Manager) -> Running:
        started.append(Running(manager))
        return started[-1]

    yield start
    for one in started:
        one.stop.set()
    for one in started:
        one.ended()


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Waits until a function gives something true, and gives that."""

    def wait(probe: Callable[[], Any], timeout: float = WAIT) -> Any:
        deadline = time.monotonic() + timeout
        while not (found := probe()):
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.005)
        return found

    return wait


@pytest.fixture
def http() -> Callable[[str], tuple[int, str]]:
    """GETs a URL: status and text."""

    def get(url: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(url, timeout=WAIT) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return get
