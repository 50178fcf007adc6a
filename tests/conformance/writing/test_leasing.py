"""Leases: what they hold, who may take them, and electors that share one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from leaderelection import Config, LeaderElector, Leadership, LeaseLock

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any


@pytest.fixture
def leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


@pytest.fixture
def elect(cluster: Any, namespace: str) -> Iterator[Callable[[str], Any]]:
    """elect(identity) starts an elector for the Lease `shared`; all are stopped at the end."""
    config = Config(lease_duration=3, renew_deadline=2, retry_period=0.2)
    electors: list[Elector] = []

    def start(identity: str) -> Elector:
        electors.append(Elector(LeaseLock(cluster.client, f"{namespace}/shared"), identity, config))
        return electors[-1]

    yield start
    for each in electors:
        each.stop()


class Elector:
    """A LeaderElector on a thread, with an event that says that it leads."""

    def __init__(self, lock: LeaseLock, identity: str, config: Config) -> None:
        self.leading = threading.Event()
        self._stop = threading.Event()
        elector = LeaderElector(lock, identity, config, on_started_leading=self._lead)
        self._thread = threading.Thread(target=elector.run, args=(self._stop,), name=identity)
        self._thread.start()

    def _lead(self, leadership: Leadership) -> None:
        self.leading.set()
        leadership.stop.wait()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)


def _lease(holder: str, **spec: Any) -> Json:
    held = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.678901Z"}
    return {"metadata": {"name": "l"}, "spec": {**held, **spec}}


def test_of_two_that_take_a_lease_at_the_same_version_one_has_it(api: Api, leases: str) -> None:
    free = api.create(leases, _lease(""))
    assert free["spec"]["renewTime"] == "2026-01-02T03:04:05.678901Z"
    mine = api.replace(f"{leases}/l", {**free, "spec": {**free["spec"], "holderIdentity": "a"}})
    assert mine["spec"]["holderIdentity"] == "a"
    said = api.replace(f"{leases}/l", {**free, "spec": {**free["spec"], "holderIdentity": "b"}})
    assert (said["code"], said["reason"]) == (409, "Conflict")
    assert said["details"] == {"name": "l", "group": "coordination.k8s.io", "kind": "leases"}
    assert api.get(f"{leases}/l") == mine
    assert api.create(leases, _lease("c"))["reason"] == "AlreadyExists"


def test_a_lease_is_not_replaced_without_its_version(api: Api, leases: str) -> None:
    api.create(leases, _lease("a"))
    said = api.replace(f"{leases}/l", _lease("b"))
    assert (said["code"], said["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in said["details"]["causes"]] == ["metadata.resourceVersion"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds"), ({"leaseTransitions": -1}, "spec.leaseTransitions")],
)
def test_a_lease_that_makes_no_sense_is_refused(api: Api, leases: str, spec: Json, field: str) -> None:
    said = api.create(leases, _lease("a", **spec))
    assert (said["code"], said["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in said["details"]["causes"]] == [field]


def test_what_is_no_time_with_microseconds_is_refused(api: Api, leases: str) -> None:
    for time in ("yesterday", 5, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1234567Z"):
        said = api.create(leases, _lease("a", renewTime=time))
        assert (said["code"], said["reason"]) == (400, "BadRequest")


def test_a_lease_passes_from_one_elector_to_the_next(cluster: Any, namespace: str, elect: Callable) -> None:
    first = elect("first")
    assert first.leading.wait(30)
    second = elect("second")
    lease = cluster.client.resource("coordination.k8s.io/v1", "Lease")
    assert lease.get(f"{namespace}/shared")["spec"]["holderIdentity"] == "first"
    assert not second.leading.is_set()
    first.stop()
    assert second.leading.wait(30)
    spec = lease.get(f"{namespace}/shared")["spec"]
    assert spec["holderIdentity"] == "second"
    assert spec["leaseTransitions"] > 0
