"""Managers that elect one of them: who acts, who takes over, and what a lost lease means."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from informers import ObjectKey
from leaderelection import Config, ConfigError
from pysedna.controller import Context, LeaderElection, LeadershipLost, Manager, NotLeading

CONFIG_MAP = ("v1", "ConfigMap")
LEASE = ("coordination.k8s.io/v1", "Lease")
WAIT = 30.0
FAST = Config(lease_duration=2, renew_deadline=1.0, retry_period=0.2)


class Signs:
    """Runnables and reconciles of one manager, and the signs that they give."""

    def __init__(self) -> None:
        self.led, self.unled, self.reconciled = threading.Event(), threading.Event(), threading.Event()

    def runnable(self, sign: threading.Event) -> Any:
        class Telling:
            name = "telling"

            def run(self, stop: threading.Event) -> None:
                sign.set()
                stop.wait()

        return Telling()


@pytest.fixture
def make(cluster: Any, namespace: str) -> Callable[..., tuple[Manager, Signs]]:
    def make(identity: str, config: Config = FAST, **options: Any) -> tuple[Manager, Signs]:
        election = LeaderElection(ObjectKey(namespace, "lock"), config, identity)
        options = {"http": None, "namespaces": [namespace], **options}
        manager = Manager(cluster.client, name=identity, leader_election=election, **options)
        signs = Signs()
        manager.add(signs.runnable(signs.led))
        manager.add(signs.runnable(signs.unled), needs_leadership=False)
        manager.controller("maps", CONFIG_MAP, lambda key, context: signs.reconciled.set())
        return manager, signs

    return make


@pytest.fixture
def one_object(cluster: Any, namespace: str) -> None:
    cluster.client.resource(*CONFIG_MAP).create({"metadata": {"name": "one", "namespace": namespace}})


def holder(cluster: Any, namespace: str) -> str:
    return cluster.client.resource(*LEASE).get(f"{namespace}/lock")["spec"].get("holderIdentity") or ""


@pytest.mark.usefixtures("one_object")
def test_one_acts_and_the_other_takes_over_when_it_stops(make: Any, run: Any, cluster: Any, namespace: str) -> None:
    first, signs = make("first")
    running = run(first)
    assert signs.reconciled.wait(WAIT)
    second, others = make("second")
    run(second)
    assert others.unled.wait(WAIT)
    assert first.is_leader()
    assert not second.is_leader()
    assert not others.led.is_set()
    assert running.end() is None
    assert others.reconciled.wait(WAIT)
    assert holder(cluster, namespace) == "second"


@pytest.mark.usefixtures("one_object")
def test_nobody_else_leads_while_a_worker_finishes(make: Any, run: Any, cluster: Any, namespace: str) -> None:
    first, _ = make("first")
    begun, release = threading.Event(), threading.Event()

    def slow(key: ObjectKey, context: Context) -> None:
        begun.set()
        release.wait(WAIT)
        context.client.resource(*CONFIG_MAP).get(key)  # still allowed: it still leads

    first.controller("slow", CONFIG_MAP, slow)
    running = run(first)
    assert begun.wait(WAIT)
    second, others = make("second")
    run(second)
    assert others.unled.wait(WAIT)
    running.stop.set()
    assert not others.led.wait(2 * FAST.lease_duration)
    assert holder(cluster, namespace) == "first"
    release.set()
    assert running.ended() is None
    assert others.led.wait(WAIT)


def test_a_manager_that_has_not_been_elected_is_not_elected_while_it_stops(make: Any, run: Any) -> None:
    first, signs = make("first")
    leading = run(first)
    assert signs.led.wait(WAIT)
    second, others = make("second")
    standby = run(second)
    assert others.unled.wait(WAIT)
    assert standby.end() is None
    assert not others.led.is_set()
    assert leading.end() is None


@pytest.mark.usefixtures("one_object")
def test_a_lost_lease_ends_the_manager_without_waiting_and_its_runs_may_not_act(
    make: Any, run: Any, cluster: Any, namespace: str, eventually: Any
) -> None:
    manager, _ = make("first")
    begun, lost, release = threading.Event(), threading.Event(), threading.Event()
    seen: list[BaseException] = []

    def slow(key: ObjectKey, context: Context) -> None:
        begun.set()
        release.wait(WAIT)
        try:
            context.client.resource(*CONFIG_MAP).delete(key)
        except NotLeading as error:
            seen.append(error)
            raise
        finally:
            lost.set()

    manager.controller("slow", CONFIG_MAP, slow)
    running = run(manager)
    assert begun.wait(WAIT)
    leases = cluster.client.resource(*LEASE)
    leases.patch(f"{namespace}/lock", {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}})
    error = running.ended()
    assert isinstance(error, LeadershipLost)
    assert "first lost the lease" in str(error)
    assert not lost.is_set()
    release.set()
    assert lost.wait(WAIT)
    assert len(seen) == 1
    assert holder(cluster, namespace) == "thief"
    assert cluster.client.resource(*CONFIG_MAP).get(f"{namespace}/one").name == "one"


@pytest.mark.usefixtures("one_object")
def test_the_lease_of_a_worker_that_hangs_is_not_given_back(make: Any, run: Any, cluster: Any, namespace: str) -> None:
    manager, _ = make("first", graceful_timeout=0.1)
    begun, release = threading.Event(), threading.Event()
    manager.controller("stuck", CONFIG_MAP, lambda key, context: begun.set() or (release.wait(WAIT) and None))
    running = run(manager)
    assert begun.wait(WAIT)
    running.end()
    assert holder(cluster, namespace) == "first"
    release.set()


def test_health_and_metrics_tell_of_the_election(make: Any, run: Any, http: Any) -> None:
    manager, signs = make("first", http="127.0.0.1:0")
    run(manager)
    assert signs.led.wait(WAIT)
    status, text = http(f"http://{manager.http_address}/healthz?verbose")
    assert status == 200
    assert "[+]leader-election ok" in text
    assert 'leader_election_master_status{name="first"} 1.0' in http(f"http://{manager.http_address}/metrics")[1]


def test_an_unsafe_configuration_is_refused_when_the_manager_is_made(make: Any) -> None:
    with pytest.raises(ConfigError):
        make("first", Config(lease_duration=1, renew_deadline=2, retry_period=0.1))


def test_identities_made_up_differ() -> None:
    from pysedna.controller.election import new_identity

    assert len({new_identity() for _ in range(100)}) == 100
