"""Many pods, many watchers, steady writes: does every event reach every watcher, in order, and how soon?

    python benchmarks/bench_watchers.py               # the embedded cluster, and a real control plane if it is built
    python benchmarks/bench_watchers.py --json FILE   # the figures for machines too

Server, writer and watchers are processes of their own. Each write carries the monotonic time at which it was sent, so
the delay of an event is that of the write and of its way to the watcher. Compare the rows of one run only.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

import click
import report
from report import Figures, LeftOut, Report

from informers import Client, Object, ObjectKey
from pysedna.localcluster import LocalCluster
from pysedna.testing import BinariesMissingError, ControlPlane

Cluster = Callable[[], AbstractContextManager[str]]

NAMESPACE = "bench-watchers"
SENT = "bench.pysedna.io/sent"
ABOUT = (
    "Every watcher, on a thread and a connection of its own, must see every write once and in order. The milliseconds "
    "are from sending a write to reading its event. Server, writer and watchers share the machine's cores."
)
_CONTEXT = multiprocessing.get_context("spawn")


@contextmanager
def embedded() -> Iterator[str]:
    """The kubeconfig of an embedded cluster in a process of its own."""
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_serve, args=(theirs,))
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("stop")
        process.join()


def _serve(pipe: Connection) -> None:
    with LocalCluster(controllers=False) as cluster:
        pipe.send(cluster.kubeconfig)
        pipe.recv()


@contextmanager
def real() -> Iterator[str]:
    """The kubeconfig of a real control plane."""
    try:
        with ControlPlane() as plane:
            yield plane.kubeconfig
    except BinariesMissingError as error:
        raise LeftOut(str(error)) from None


def pod(number: int) -> dict[str, Any]:
    """A pod of about a kilobyte that nothing will ever run."""
    container = {
        "name": "main",
        "image": f"registry.example/worker:{number}",
        "env": [{"name": f"VARIABLE_{n}", "value": f"value {n}"} for n in range(12)],
    }
    metadata = {"name": f"pod-{number:05}", "namespace": NAMESPACE, "labels": {"number": str(number)}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def fill(kubeconfig: str, pods: int) -> None:
    """Create the namespace and the pods."""
    with Client.from_kubeconfig(kubeconfig) as client:
        client.resource("v1", "Namespace").create({"metadata": {"name": NAMESPACE}})
        resource = client.resource("v1", "Pod")
        for number in range(pods):
            resource.create(pod(number))


def write(kubeconfig: str, pods: int, rate: float, seconds: float, pipe: Connection) -> None:
    """Patch one pod after the other, `rate` times a second; tell the versions that came back, and how long it took."""
    with Client.from_kubeconfig(kubeconfig) as client:
        resource = client.resource("v1", "Pod")
        versions: list[str] = []
        began = time.monotonic()
        for number in range(int(rate * seconds)):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            key = ObjectKey(NAMESPACE, f"pod-{number % pods:05}")
            patched = resource.patch(key, {"metadata": {"annotations": {SENT: repr(time.monotonic())}}})
            versions.append(patched.resource_version)
        pipe.send((versions, time.monotonic() - began))


def watch(kubeconfig: str, watchers: int, events: int, pipe: Connection) -> None:
    """Run the watchers, each on a thread and a connection of its own; tell what each saw: versions and delays."""
    with Client.from_kubeconfig(kubeconfig) as client:
        resource = client.resource("v1", "Pod")
        start = resource.list(namespace=NAMESPACE, limit=1).resource_version
        seen: list[list[tuple[str, float]]] = [[] for _ in range(watchers)]

        def run(mine: list[tuple[str, float]]) -> None:
            with resource.watch(namespace=NAMESPACE, resource_version=start, allow_bookmarks=False) as stream:
                for event in stream:
                    mine.append((event.object.resource_version, time.monotonic() - _sent(event.object)))
                    if len(mine) == events:
                        return

        threads = [Thread(target=run, args=(mine,), daemon=True) for mine in seen]
        for thread in threads:
            thread.start()
        pipe.send("ready")
        deadline = pipe.recv()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        pipe.send([list(mine) for mine in seen])


def _sent(obj: Object) -> float:
    return float(obj.annotations[SENT])


def measure(cluster: Cluster, *, pods: int, watchers: int, rate: float, seconds: float) -> Figures:
    """One run on a cluster of its own. Raises AssertionError if a watcher missed an event or saw one out of order."""
    with cluster() as kubeconfig:
        fill(kubeconfig, pods)
        reader, theirs = _CONTEXT.Pipe()
        watching = _CONTEXT.Process(target=watch, args=(kubeconfig, watchers, int(rate * seconds), theirs))
        watching.start()
        reader.recv()
        answers, theirs = _CONTEXT.Pipe()
        writing = _CONTEXT.Process(target=write, args=(kubeconfig, pods, rate, seconds, theirs))
        writing.start()
        versions, took = answers.recv()
        reader.send(time.monotonic() + 60)
        seen = reader.recv()
        writing.join()
        watching.join()
    for mine in seen:
        assert [version for version, _ in mine] == versions, "a watcher missed an event, or saw one out of order"
    delays = sorted(delay for mine in seen for _, delay in mine)
    return {
        "writes/s": len(versions) / took,
        "events": len(delays),
        "p50 ms": 1000 * delays[len(delays) // 2],
        "p99 ms": 1000 * delays[len(delays) * 99 // 100],
    }


@click.command()
@click.option("--pods", default=5000, show_default=True)
@click.option("--watchers", default=20, show_default=True)
@click.option("--rate", default=200.0, show_default=True, help="Writes a second.")
@click.option("--seconds", default=10.0, show_default=True)
@report.options(rounds=1)
def main(
    pods: int, watchers: int, rate: float, seconds: float, quick: bool, rounds: int, json_file: Path | None
) -> None:
    """Measure every cluster that can be had, and print a table. --quick asks little, of the embedded one only."""
    clusters: dict[str, Cluster] = {"embedded": embedded, "kube-apiserver": real}
    if quick:
        pods, watchers, rate, seconds = 20, 2, 50.0, 0.4
        del clusters["kube-apiserver"]
    result = Report("watchers", "Watchers", script=__file__, rounds=rounds, quick=quick, about=ABOUT)
    result.measure(
        f"{pods:,} pods, {watchers} watchers, {rate:g} writes/s asked for, {seconds:g} s",
        {
            name: partial(measure, cluster, pods=pods, watchers=watchers, rate=rate, seconds=seconds)
            for name, cluster in clusters.items()
        },
    )
    result.finish(json_file)


if __name__ == "__main__":
    main()
