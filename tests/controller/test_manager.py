"""A manager's life against an API server over HTTP: what is called when, and how it ends."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from informers import Client, ObjectKey
from pysedna.controller import (
    AddressUnavailable,
    Context,
    DuplicateName,
    Manager,
    ManagerStopped,
    Result,
    RunnableFailed,
    ShutdownTimeout,
)
from pysedna.localcluster import LocalCluster

CONFIG_MAP = ("v1", "ConfigMap")
WAIT = 20.0


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


class Blocking:
    """A runnable that says when it runs and when it was told to stop."""

    def __init__(self, name: str = "blocking", on_stop: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.running = threading.Event()
        self.stopped = threading.Event()
        self._on_stop = on_stop

    def run(self, stop: threading.Event) -> None:
        self.running.set()
        stop.wait()
        self._on_stop()
        self.stopped.set()


@pytest.fixture
def make(cluster: Any, namespace: str) -> Callable[..., Manager]:
    def make(**options: Any) -> Manager:
        return Manager(cluster.client, **{"name": "m", "namespaces": [namespace], "http": None, **options})

    return make


@pytest.fixture
def create(cluster: Any, namespace: str) -> Callable[..., Any]:
    def create(name: str, **data: str) -> Any:
        body = config_map(name, **data)
        body["metadata"]["namespace"] = namespace
        return cluster.client.resource(*CONFIG_MAP).create(body)

    return create


def test_no_reconcile_runs_before_caches_and_queue_hold_all_first_objects(make: Any, create: Any, run: Any) -> None:
    for number in range(20):
        create(f"c{number}")
    manager = make()
    seen: list[tuple[int, int]] = []
    done = threading.Event()
    lister = manager.informers.informer(*CONFIG_MAP).lister

    def reconcile(key: ObjectKey, context: Context) -> None:
        if not seen:
            seen.append((len(lister.list()), len(controller.queue)))
            done.set()

    controller = manager.controller("maps", CONFIG_MAP, reconcile)
    run(manager)
    assert done.wait(WAIT)
    assert seen == [(20, 19)]


def test_first_objects_come_at_low_priority_and_changes_at_normal(
    make: Any, create: Any, run: Any, cluster: Any
) -> None:
    first = create("first")
    priorities: dict[str, int] = {}
    seen = {name: threading.Event() for name in ("first", "later")}

    def reconcile(key: ObjectKey, context: Context) -> None:
        priorities.setdefault(key.name, context.priority)
        seen[key.name].set()

    manager = make()
    manager.controller("maps", CONFIG_MAP, reconcile)
    run(manager)
    assert seen["first"].wait(WAIT)
    create("later")
    assert seen["later"].wait(WAIT)
    assert priorities == {"first": -100, "later": 0}
    assert first.name == "first"


def test_a_child_leads_to_its_owner(
    make: Any, create: Any, run: Any, cluster: Any, namespace: str, eventually: Any
) -> None:
    from pysedna.controller import owner_reference

    keys: list[ObjectKey] = []
    manager = make()
    manager.controller("maps", CONFIG_MAP, lambda key, context: keys.append(key), owns=[("v1", "Secret")])
    owner = create("owner")
    run(manager)
    eventually(lambda: ObjectKey(namespace, "owner") in keys)
    keys.clear()
    metadata = {"name": "child", "namespace": namespace, "ownerReferences": [owner_reference(owner)]}
    cluster.client.resource("v1", "Secret").create({"metadata": metadata})
    eventually(lambda: keys == [ObjectKey(namespace, "owner")])


def test_a_cluster_scoped_owner_is_found_too(cluster: Any, run: Any, namespace: str, eventually: Any) -> None:
    from pysedna.controller import owner_reference

    keys: list[ObjectKey] = []
    manager = Manager(cluster.client, name="m", http=None)
    manager.controller("nodes", ("v1", "Node"), lambda key, context: keys.append(key), owns=[CONFIG_MAP])
    node = cluster.client.resource("v1", "Node").create({"metadata": {"name": f"n-{namespace}"}, "spec": {}})
    run(manager)
    eventually(lambda: node.key in keys)
    keys.clear()
    metadata = {"name": "child", "namespace": namespace, "ownerReferences": [owner_reference(node)]}
    cluster.client.resource(*CONFIG_MAP).create({"metadata": metadata})
    eventually(lambda: keys == [node.key])


def test_what_is_added_while_it_runs_starts_at_once(make: Any, create: Any, run: Any, eventually: Any) -> None:
    manager, keys, late = make(), [], Blocking()
    early = Blocking("early")
    manager.add(early)
    run(manager)
    assert early.running.wait(WAIT)
    create("one")
    manager.add(late)
    manager.controller("late", CONFIG_MAP, lambda key, context: keys.append(key.name))
    assert late.running.wait(WAIT)
    eventually(lambda: "one" in keys)


def test_a_running_reconcile_is_waited_for_and_nothing_new_begins(make: Any, create: Any, run: Any) -> None:
    begun, release, finished = threading.Event(), threading.Event(), []

    def reconcile(key: ObjectKey, context: Context) -> None:
        begun.set()
        release.wait(WAIT)
        assert context.stop.is_set()
        finished.append(key.name)

    create("a")
    create("b")
    manager = make()
    manager.controller("maps", CONFIG_MAP, reconcile)
    running = run(manager)
    assert begun.wait(WAIT)
    running.stop.set()
    assert running.is_running()
    manager._leaders.stop.wait(WAIT)
    release.set()
    assert running.ended() is None
    assert len(finished) == 1


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_who_still_runs_after_the_graceful_time_is_named(make: Any, create: Any, run: Any, seconds: float) -> None:
    begun, release = threading.Event(), threading.Event()

    def reconcile(key: ObjectKey, context: Context) -> None:
        begun.set()
        release.wait(WAIT)

    create("a")
    manager = make(graceful_timeout=seconds)
    manager.controller("maps", CONFIG_MAP, reconcile)
    running = run(manager)
    assert begun.wait(WAIT)
    error = running.end()
    release.set()
    assert isinstance(error, ShutdownTimeout)
    assert error.names == ("maps",)


def test_a_negative_graceful_time_waits_for_ever(make: Any, run: Any) -> None:
    release = threading.Event()
    slow = Blocking("slow", on_stop=lambda: release.wait(WAIT) and None)
    manager = make(graceful_timeout=-1)
    manager.add(slow)
    running = run(manager)
    assert slow.running.wait(WAIT)
    running.stop.set()
    with pytest.raises(AssertionError, match="still runs"):
        running.ended(0.5)
    release.set()
    assert running.ended() is None


def test_a_runnable_that_raises_stops_everything_else(make: Any, run: Any) -> None:
    class Raising:
        name = "raising"

        def run(self, stop: threading.Event) -> None:
            raise OSError("disk full")

    other, unled = Blocking(), Blocking("unled")
    manager = make()
    manager.add(other)
    manager.add(unled, needs_leadership=False)
    manager.add(Raising())
    error = run(manager).ended()
    assert isinstance(error, RunnableFailed)
    assert str(error) == "raising failed: OSError: disk full"
    assert isinstance(error.__cause__, OSError)
    assert other.stopped.is_set() or not other.running.is_set()
    assert unled.stopped.is_set()


def test_a_reconcile_that_wants_to_end_the_process_ends_the_manager(make: Any, create: Any, run: Any) -> None:
    def reconcile(key: ObjectKey, context: Context) -> None:
        raise SystemExit(3)

    create("a")
    manager = make()
    manager.controller("maps", CONFIG_MAP, reconcile)
    error = run(manager).ended()
    assert isinstance(error, RunnableFailed)
    assert isinstance(error.__cause__, SystemExit)


def test_it_stops_others_first_then_workers_while_caches_and_health_still_serve(
    cluster: Any, namespace: str, run: Any, http: Any
) -> None:
    manager = Manager(cluster.client, name="m", namespaces=[namespace])
    order: list[tuple[str, bool, int]] = []
    informer = manager.informers.informer(*CONFIG_MAP)

    def note(name: str) -> None:
        status, _ = http(f"http://{manager.http_address}/healthz")
        order.append((name, informer.status().state == "stopped", status))

    unled, led = Blocking("unled", lambda: note("others")), Blocking("led", lambda: note("leaders"))
    manager.add(led)
    manager.add(unled, needs_leadership=False)
    running = run(manager)
    assert led.running.wait(WAIT)
    assert unled.running.wait(WAIT)
    assert running.end() is None
    assert order == [("others", False, 200), ("leaders", False, 200)]
    assert manager.http_address is None
    assert informer.status().state == "stopped"


def test_nothing_is_left_running(make: Any, create: Any, run: Any) -> None:
    before = set(threading.enumerate())
    create("a")
    done = threading.Event()
    manager = make(http="127.0.0.1:0")
    manager.controller("maps", CONFIG_MAP, lambda key, context: done.set(), workers=3)
    running = run(manager)
    assert done.wait(WAIT)
    assert running.end() is None
    left = [one.name for one in threading.enumerate() if one not in before and one.is_alive()]
    assert left == []


def test_a_manager_runs_once(make: Any, run: Any) -> None:
    manager = make()
    running = run(manager)
    running.end()
    with pytest.raises(ManagerStopped):
        manager.run(threading.Event())
    with pytest.raises(ManagerStopped):
        manager.add(Blocking())
    with pytest.raises(ManagerStopped):
        manager.controller("late", CONFIG_MAP, lambda key, context: None)


def test_a_stop_that_is_set_before_the_start_stops_it(make: Any, run: Any) -> None:
    stop = threading.Event()
    stop.set()
    manager, never = make(), Blocking()
    manager.add(never)
    manager.run(stop)
    assert not never.running.is_set()


def test_two_controllers_of_one_name_are_refused(make: Any) -> None:
    manager = make()
    manager.controller("maps", CONFIG_MAP, lambda key, context: None)
    with pytest.raises(DuplicateName, match="maps"):
        manager.controller("maps", CONFIG_MAP, lambda key, context: None)


@pytest.mark.parametrize("options", [{"workers": 0}, {"timeout": 0}])
def test_options_that_make_no_sense_are_refused(make: Any, options: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(options)).rstrip("s")):
        make().controller("maps", CONFIG_MAP, lambda key, context: None, **options)


def test_an_address_in_use_ends_the_start(make: Any, run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = run(make(http=f"127.0.0.1:{taken.getsockname()[1]}")).ended()
    assert isinstance(error, AddressUnavailable)


def test_ready_when_caches_are_filled_and_metrics_tell_of_the_work(
    make: Any, create: Any, run: Any, eventually: Any, http: Any
) -> None:
    create("a")
    manager = make(http="127.0.0.1:0")
    manager.controller("maps", CONFIG_MAP, lambda key, context: Result(requeue_after=1000))
    run(manager)
    eventually(lambda: manager.http_address)
    eventually(lambda: http(f"http://{manager.http_address}/readyz")[0] == 200)
    wanted = 'controller_runtime_reconcile_total{controller="maps",result="requeue_after"} 1.0'
    eventually(lambda: wanted in http(f"http://{manager.http_address}/metrics")[1])
    metrics = http(f"http://{manager.http_address}/metrics")[1]
    assert 'workqueue_depth{name="maps"} 0.0' in metrics
    assert "informer_objects{name=" in metrics


def test_an_unreachable_server_is_named_and_makes_it_not_ready(
    run: Any, http: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    caplog.set_level(logging.WARNING)
    with Client.from_url(address) as client:
        manager = Manager(client, name="lonely")
        manager.controller("maps", CONFIG_MAP, lambda key, context: None)
        running = run(manager)
        url = f"http://{eventually(lambda: manager.http_address)}"
        eventually(lambda: "refused" in http(f"{url}/readyz")[1])
        status, text = http(f"{url}/readyz")
        assert status == 500
        assert address in text
        assert http(f"{url}/healthz")[0] == 200
        eventually(lambda: any("waits for its caches" in record.getMessage() for record in caplog.records))
        said = next(record.getMessage() for record in caplog.records if "waits for its caches" in record.getMessage())
        assert address in said
        assert "refused" in said
        assert running.end() is None


def test_caches_that_wait_for_one_reason_are_named_together_in_few_words(run: Any, http: Any, eventually: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Client.from_url(address) as client:
        manager = Manager(client, name="lonely")
        manager.controller("maps", CONFIG_MAP, lambda key, context: None, owns=[("v1", "Secret")])
        running = run(manager)
        url = f"http://{eventually(lambda: manager.http_address)}"
        eventually(lambda: "caches failed: v1 ConfigMap, v1 Secret: " in http(f"{url}/readyz")[1])
        assert http(f"{url}/readyz")[1].count("refused") == 1
        assert running.end() is None


def test_a_server_that_goes_away_makes_it_not_ready_and_the_work_goes_on_with_the_next_one(
    run: Any, http: Any, eventually: Any
) -> None:
    first = LocalCluster(controllers=False)
    first.start()
    address = first.address
    seen: list[ObjectKey] = []
    with Client.from_url(address) as client:
        manager = Manager(client, name="m")
        manager.controller("maps", CONFIG_MAP, lambda key, context: seen.append(key))
        running = run(manager)
        url = f"http://{eventually(lambda: manager.http_address)}/readyz"
        eventually(lambda: http(url)[0] == 200)
        first.stop()
        eventually(lambda: address in http(url)[1])
        assert http(url)[0] == 500
        with LocalCluster(controllers=False, port=int(address.rpartition(":")[2])) as second:
            body = {"metadata": {"name": "here", "namespace": "default"}}
            second.client.resource(*CONFIG_MAP).create(body)
            eventually(lambda: ObjectKey("default", "here") in seen)
            eventually(lambda: http(url)[0] == 200)
            assert running.end() is None


PROGRAM = """
import sys, threading
from informers import Client
from pysedna.controller import Manager

manager = Manager(Client.from_kubeconfig(sys.argv[1]), name="m", http=None)

class Ready:
    def run(self, stop):
        print("running", flush=True)
        stop.wait()
        print("stopping", flush=True)

manager.add(Ready())
manager.run()
print("ended", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_the_main_thread(cluster: Any, number: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, cluster.kubeconfig], stdout=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(number)
        assert process.stdout.read() == "stopping\nended\n"
        assert process.wait(WAIT) == 0
