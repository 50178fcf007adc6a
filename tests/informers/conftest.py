"""Builders shared by the tests of the cache side of the package."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from informers import Event, EventType, Object, ProtocolConfig, SharedInformer
from informers.backoff import BackoffConfig
from informers.testing import FakeListWatch

type_names = {EventType.ADD: "add", EventType.UPDATE: "update", EventType.DELETE: "delete"}


def make_pod(
    name: str = "a", version: int | str = "", uid: str = "", *, namespace: str = "ns", **labels: str
) -> Object:
    metadata: dict[str, Any] = {"namespace": namespace, "name": name, "labels": labels}
    if version != "":
        metadata["resourceVersion"] = str(version)
    if uid:
        metadata["uid"] = uid
    return Object.from_dict({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})


@pytest.fixture
def pod() -> Callable[..., Object]:
    """pod(name, version, uid, namespace=, **labels) -> Object"""
    return make_pod


class Recorder:
    """A handler that remembers its events and lets a test wait for them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._condition = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._condition:
            self.events.append(event)
            self._condition.notify_all()

    def wait(self, count: int, timeout: float = 10.0) -> list[Event]:
        """The events, once there are `count`."""
        with self._condition:
            assert self._condition.wait_for(lambda: len(self.events) >= count, timeout), self.lines()
            return [*self.events]

    def lines(self) -> list[str]:
        """The events as "add a@1 watch"."""
        return [
            f"{type_names[event.type]} {event.object.name}@{event.object.resource_version} {event.reason.value}"
            + (" unknown" if event.final_state_unknown else "")
            for event in self.events
        ]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def recorders() -> Callable[[], Recorder]:
    """Makes as many recorders as a test needs."""
    return Recorder


@pytest.fixture
def no_stray_threads() -> Iterator[None]:
    """Fails a test that leaves threads behind."""
    before = set(threading.enumerate())
    yield
    assert [thread.name for thread in threading.enumerate() if thread not in before] == []


FAST = ProtocolConfig(backoff=BackoffConfig(base=0.001, cap=0.01), short_watch=0.0, gone_after=0.0, not_found_cap=0.01)


@pytest.fixture
def informers():
    """informers(source, **options) makes an informer that is stopped at the end."""
    made: list[SharedInformer] = []

    def make(source, protocol=FAST, **options):
        informer = SharedInformer(source, protocol=protocol, **options)
        made.append(informer)
        return informer

    yield make
    for informer in made:
        assert informer.stop(10), informer.status().unfinished


@pytest.fixture
def source(pod):
    return FakeListWatch([pod("a"), pod("b")])
