"""`LeaseLock`: records in and out of a Lease, as other clients write and read it; and whole elections on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from informers import Client, ObjectKey
from informers.errors import ForbiddenError, KindNotFoundError, RequestTimeout
from informers.testing import FakeClient
from leaderelection import Config, LeaderElector, Leadership, LeaseLock, LockConflict, Record, Version
from pysedna.testing import Cluster

API, KIND = "coordination.k8s.io/v1", "Lease"
KEY = ObjectKey("default", "election")
MINE = Record("me", 15, 1_700_000_000_000_000, 1_700_000_001_500_000, 3)
LONG = 20.0


def lease(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": KIND, "metadata": {"namespace": "default", "name": "election"}, "spec": spec}


def stored_spec(client: FakeClient) -> dict[str, Any]:
    (one,) = client.stored(API, KIND, KEY)
    spec: dict[str, Any] = one.to_dict()["spec"]
    return spec


def test_no_lease_is_no_record_and_create_writes_what_client_go_reads() -> None:
    client = FakeClient()
    lock = LeaseLock(client, "default/election")
    assert lock.get(1) is None
    made = lock.create(MINE, 1)
    assert stored_spec(client) == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2023-11-14T22:13:20.000000Z",
        "renewTime": "2023-11-14T22:13:21.500000Z",
        "leaseTransitions": 3,
    }
    assert replace(made, version=Version("", "")) == MINE
    assert made.version.uid
    assert made.version.resource_version.isdecimal()
    assert lock.get(1) == made


def test_a_second_create_is_a_conflict() -> None:
    lock = LeaseLock(FakeClient(lease()), KEY)
    with pytest.raises(LockConflict, match="lease default/election"):
        lock.create(MINE, 1)


def test_update_replaces_exactly_the_version_that_was_read() -> None:
    client = FakeClient()
    lock = LeaseLock(client, KEY)
    first = lock.create(MINE, 1)
    second = lock.update(replace(first, renew_time=MINE.renew_time, transitions=4), first.version, 1)
    assert second.version.uid == first.version.uid
    assert second.transitions == 4
    with pytest.raises(LockConflict):
        lock.update(first, first.version, 1)
    assert lock.get(1) == second


def test_update_of_a_lease_that_is_gone_or_another_one_is_a_conflict() -> None:
    client = FakeClient()
    lock = LeaseLock(client, KEY)
    first = lock.create(MINE, 1)
    leases = client.resource(API, KIND)
    leases.delete(KEY)
    with pytest.raises(LockConflict):
        lock.update(first, first.version, 1)
    again = lock.create(MINE, 1)
    assert again.version.uid != first.version.uid
    with pytest.raises(LockConflict):
        lock.update(first, Version(first.version.uid, again.version.resource_version), 1)


def test_update_keeps_labels_annotations_and_members_it_does_not_know() -> None:
    body = lease(holderIdentity="", strategy="OldestEmulationVersion", preferredHolder="x")
    body["metadata"].update(labels={"a": "b"}, annotations={"c": "d"})
    client = FakeClient(body)
    lock = LeaseLock(client, KEY)
    seen = lock.get(1)
    assert seen is not None
    lock.update(replace(MINE, origin=seen.origin), seen.version, 1)
    (stored,) = client.stored(API, KIND, KEY)
    assert dict(stored.labels) == {"a": "b"}
    assert dict(stored.annotations) == {"c": "d"}
    assert stored_spec(client)["strategy"] == "OldestEmulationVersion"
    assert stored_spec(client)["holderIdentity"] == "me"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, Record()),
        ({"holderIdentity": None, "leaseDurationSeconds": None}, Record()),
        ({"holderIdentity": "x", "leaseDurationSeconds": 60, "leaseTransitions": 2}, Record("x", 60, transitions=2)),
        ({"holderIdentity": "x", "leaseDurationSeconds": 0, "leaseTransitions": -1}, Record("x")),
        ({"holderIdentity": "x", "renewTime": "2023-11-14T22:13:20Z"}, Record("x", renew_time=1_700_000_000_000_000)),
        ({"holderIdentity": "x", "renewTime": "yesterday", "acquireTime": 5}, Record("x")),
        ({"holderIdentity": 5, "leaseDurationSeconds": "15"}, Record("5")),
    ],
)
def test_what_others_left_out_or_wrote_wrongly_counts_as_left_out(spec: dict[str, Any], expected: Record) -> None:
    seen = LeaseLock(FakeClient(lease(**spec)), KEY).get(1)
    assert seen is not None
    assert replace(seen, version=Version("", "")) == expected


def test_a_lease_without_a_spec_is_read() -> None:
    body = lease()
    del body["spec"]
    client = FakeClient(body)
    lock = LeaseLock(client, KEY)
    seen = lock.get(1)
    assert seen is not None
    lock.update(replace(MINE, origin=seen.origin), seen.version, 1)
    assert stored_spec(client)["holderIdentity"] == "me"


def test_a_server_without_leases_is_an_error_and_not_a_free_lock() -> None:
    client = FakeClient()
    lock = LeaseLock(client, KEY)
    for verb in ("get", "update"):
        client.fail_next(verb, "*", KindNotFoundError("no such kind"))
    with pytest.raises(KindNotFoundError):
        lock.get(1)
    with pytest.raises(KindNotFoundError):
        lock.update(MINE, Version("u", "1"), 1)


def test_other_errors_pass_through() -> None:
    client = FakeClient()
    lock = LeaseLock(client, KEY)
    client.fail_next("create", "Lease", ForbiddenError("no"))
    with pytest.raises(ForbiddenError):
        lock.create(MINE, 1)


@pytest.mark.parametrize("key", ["election", ObjectKey("", "election"), "a/b/c"])
def test_a_lease_needs_a_namespace_and_a_name(key: ObjectKey | str) -> None:
    with pytest.raises(ValueError):
        LeaseLock(FakeClient(), key)


# -- elections on it


class Runner:
    def __init__(self, client: Client, identity: str, config: Config, key: ObjectKey = KEY) -> None:
        self.stop = threading.Event()
        self.started = threading.Event()
        self.leadership: Leadership | None = None
        self.elector = LeaderElector(LeaseLock(client, key), identity, config, on_started_leading=self.work)
        self.thread = threading.Thread(target=self.elector.run, args=(self.stop,), name=f"elector {identity}")
        self.thread.start()

    def work(self, leadership: Leadership) -> None:
        self.leadership = leadership
        self.started.set()
        leadership.stop.wait()

    def end(self) -> None:
        self.stop.set()
        self.thread.join(LONG)
        assert not self.thread.is_alive()


QUICK = Config(3, 2, 0.2)
PATIENT = Config(9, 6, 0.3)  # a machine may be slow


@pytest.fixture
def runners() -> Iterator[list[Runner]]:
    made: list[Runner] = []
    yield made
    for one in made:
        one.end()


def test_an_election_on_a_lease_survives_lost_answers(runners: list[Runner]) -> None:
    client = FakeClient()
    client.fail_next("create", "Lease", RequestTimeout("lost"), applied=True)
    client.fail_next("update", "Lease", RequestTimeout("lost"), applied=True, times=2)
    runners.append(Runner(client, "a", QUICK))
    assert runners[0].started.wait(LONG)
    assert runners[0].leadership is not None
    deadline = runners[0].leadership.deadline
    until = time.monotonic() + LONG
    while runners[0].leadership.deadline <= deadline and time.monotonic() < until:
        time.sleep(0.01)
    assert runners[0].elector.is_leader()
    assert runners[0].leadership.token.term == 0
    runners[0].end()
    assert stored_spec(client)["holderIdentity"] == ""


def test_an_election_over_http_hands_over_on_release(cluster: Cluster, namespace: str, runners: list[Runner]) -> None:
    key = ObjectKey(namespace, "election")
    first = Runner(cluster.client, "a", PATIENT, key)
    runners.append(first)
    assert first.started.wait(LONG)
    second = Runner(cluster.client, "b", PATIENT, key)
    runners.append(second)
    first.end()
    assert second.started.wait(LONG)
    assert second.leadership is not None
    assert second.leadership.token.term == 1
    spec = cluster.client.resource(API, KIND).get(key).to_dict()["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)
    second.end()
    spec = cluster.client.resource(API, KIND).get(key).to_dict()["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)


def test_a_candidate_takes_over_from_a_leader_that_is_silent(
    cluster: Cluster, namespace: str, runners: list[Runner]
) -> None:
    key = ObjectKey(namespace, "election")
    LeaseLock(cluster.client, key).create(Record("dead", 1, MINE.acquire_time, MINE.renew_time, 3), LONG)
    runners.append(Runner(cluster.client, "b", PATIENT, key))
    assert runners[0].started.wait(LONG)
    assert runners[0].leadership is not None
    assert runners[0].leadership.token.term == 4


def test_of_two_writers_of_one_version_the_second_is_told(cluster: Cluster, namespace: str) -> None:
    first, second = (LeaseLock(cluster.client, ObjectKey(namespace, "election")) for _ in range(2))
    assert first.get(LONG) is None
    made = first.create(MINE, LONG)
    assert replace(made, version=Version("", "")) == MINE
    with pytest.raises(LockConflict):
        second.create(MINE, LONG)
    seen = second.get(LONG)
    assert seen == made
    renewed = first.update(replace(made, renew_time=MINE.renew_time + 1), made.version, LONG)
    with pytest.raises(LockConflict):
        second.update(replace(made, holder="b"), made.version, LONG)
    assert second.get(LONG) == renewed
    cluster.client.resource(API, KIND).delete(ObjectKey(namespace, "election"))
    with pytest.raises(LockConflict):
        first.update(renewed, renewed.version, LONG)
    again = second.create(MINE, LONG)
    with pytest.raises(LockConflict):
        first.update(renewed, Version(renewed.version.uid, again.version.resource_version), LONG)
