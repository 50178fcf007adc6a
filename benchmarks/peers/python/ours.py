"""Our own informer: throughput, latency and idleness, as bench_informers.py asks for."""

from __future__ import annotations

import cProfile
import pstats
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict

import meter
from meter import SENT, Counter, Meter, Stopwatch

from informers import Client, Object, ObjectKey, SharedInformer, SharedInformerFactory, field_index
from workqueue import WorkQueue


def node_of(pod: Object) -> tuple[str, ...]:
    """The index that every peer has, as a function of the object."""
    return (pod["spec"]["nodeName"],)


INDEXES = {"field": field_index("spec.nodeName"), "function": node_of}


def throughput(server: str, pods: int, events: int, *, handlers: int, gc: str, index: str, read: bool) -> None:
    """From the start to the last handler call, for the list and for the events; `read`: see `look_at`."""
    meter.collector(gc)
    measured = Meter(server, pods, events)
    queues: list[WorkQueue[ObjectKey]] = [WorkQueue() for _ in range(handlers)]  # as so many controllers have
    with Client.from_url(server) as client, SharedInformerFactory(client) as factory:
        informer = factory.informer("v1", "Pod", indexers={"node": INDEXES[index]})
        counters = [_handle(informer, queue, pods, events, read=read) for queue in queues]
        measured.begin()
        factory.start()
        for counter in counters:
            counter.wait_listed()
        meter.freeze(gc)
        measured.listed()
        if events:
            for counter in counters:
                counter.wait_done()
            measured.done()
        for queue in queues:
            meter.check(len(informer.lister.list()), len(queue), pods)
    measured.report()


def look_at(pod: Object) -> bool:
    """What a handler may want to know before it queues a key: it makes the object decode its labels and its status."""
    return pod["status"]["phase"] == "Running" and "pod-template-hash" in pod.labels


def _handle(informer: SharedInformer, queue: WorkQueue[ObjectKey], pods: int, events: int, *, read: bool) -> Counter:
    counter = Counter(queue, pods, events)

    def on_add(pod: Object, is_initial: bool) -> None:
        counter.added(pod.key)

    def on_update(old: Object, new: Object) -> None:
        counter.updated(new.key)

    def read_on_add(pod: Object, is_initial: bool) -> None:
        if look_at(pod):
            counter.added(pod.key)

    def read_on_update(old: Object, new: Object) -> None:
        if look_at(new):
            counter.updated(new.key)

    if read:
        informer.add_event_handler(on_add=read_on_add, on_update=read_on_update)
    else:
        informer.add_event_handler(on_add=on_add, on_update=on_update)
    return counter


def latency(server: str, pods: int, *, count: int, interval: str) -> None:
    """From the moment before an event is written by the server to the reconcile of its object, one at a time."""
    from pysedna.controller import Context, Manager

    delays: list[float] = []
    first = threading.Semaphore(0)
    stop = threading.Event()

    def reconcile(key: ObjectKey, context: Context) -> None:
        now = time.monotonic_ns()
        sent = int(informer.lister.get(key).annotations[SENT])
        if sent:
            delays.append((now - sent) / 1e9)
            if len(delays) == count:
                stop.set()
        else:
            first.release()

    def emit() -> None:
        for _ in range(pods):
            first.acquire()
        meter.ask(server, "/bench/gate?open=true")
        meter.ask(server, f"/bench/emit?count={count}&interval={interval}")

    with Client.from_url(server) as client:
        manager = Manager(client, name="bench")
        informer = manager.informers.informer("v1", "Pod")
        manager.controller("pods", ("v1", "Pod"), reconcile)
        emitting = threading.Thread(target=emit, name="emit", daemon=True)
        emitting.start()
        manager.run(stop)
    meter.say({"delays": delays})


def idle(server: str, *, informers: int, seconds: float) -> None:
    """What informers cost that have nothing to do."""
    with Client.from_url(server) as client:
        resource = client.resource("v1", "Pod")
        made = [SharedInformer(resource.list_watch(), name=f"idle-{number}") for number in range(informers)]
        for informer in made:
            informer.add_event_handler(on_event=lambda event: None)
            informer.start()
        for informer in made:
            informer.wait_for_sync(meter.TIMEOUT)
        meter.ask(server, "/bench/gate?open=true")
        time.sleep(1.0)  # what came with the start is not idleness
        stopwatch = Stopwatch()
        time.sleep(seconds)
        spent = stopwatch.stop(0)
        for informer in made:
            informer.end()
        for informer in made:
            informer.stop()
    meter.say(asdict(spent))


def profiled(run: Callable[[], None]) -> None:
    """Run with a profile of every thread by its own processor time, and print what took most of it."""
    profiles: list[cProfile.Profile] = []

    def begin(*_: object) -> None:  # called in a new thread for its first event, and replaced by the profile
        profiles.append(cProfile.Profile(time.thread_time))
        profiles[-1].enable()

    threading.setprofile(begin)
    run()
    threading.setprofile(None)
    print(file=sys.stderr)
    pstats.Stats(*profiles, stream=sys.stderr).strip_dirs().sort_stats("tottime").print_stats(45)


def main() -> None:
    """Do what the arguments say."""
    told = meter.arguments(
        handlers=1, index="field", read=0, gc="default", latency=0, interval="5ms", idle=0.0, informers=1, profile=False
    )
    if told.latency:
        latency(told.server, told.pods, count=told.latency, interval=told.interval)
    elif told.idle:
        idle(told.server, informers=told.informers, seconds=told.idle)
    else:

        def run() -> None:
            throughput(
                told.server,
                told.pods,
                told.events,
                handlers=told.handlers,
                gc=told.gc,
                index=told.index,
                read=bool(told.read),
            )

        profiled(run) if told.profile else run()


if __name__ == "__main__":
    main()
