"""kopf: an index, and a handler of raw events, which writes nothing back to the server."""

from __future__ import annotations

import asyncio
from threading import Event, Thread
from typing import Any

import kopf
import meter
from meter import Counter, Meter

from workqueue import WorkQueue

registry = kopf.OperatorRegistry()


def main() -> None:
    """Run an operator on a thread of its own."""
    told = meter.arguments()
    measured = Meter(told.server, told.pods, told.events)
    queue: WorkQueue[str] = WorkQueue()
    counter = Counter(queue, told.pods, told.events)
    indexed: set[str] = set()

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=told.server)

    @kopf.on.startup(registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.scanning.disabled = True

    @kopf.index("pods", registry=registry)
    def node(name: str, namespace: str, spec: Any, **_: Any) -> dict[str, str]:
        key = f"{namespace}/{name}"
        indexed.add(key)
        return {spec["nodeName"]: key}

    @kopf.on.event("pods", registry=registry)
    def handle(type: str | None, name: str, namespace: str, **_: Any) -> None:
        key = f"{namespace}/{name}"
        if type is None:
            counter.added(key)
        else:
            counter.updated(key)

    stop = Event()
    operator = Thread(
        target=lambda: asyncio.run(kopf.operator(registry=registry, clusterwide=True, standalone=True, stop_flag=stop)),
        name="operator",
    )
    measured.begin()
    operator.start()
    try:
        counter.wait_listed()
        measured.listed()
        if told.events:
            counter.wait_done()
            measured.done()
    finally:
        stop.set()
        operator.join()
    meter.check(len(indexed), len(queue), told.pods)
    measured.report()


if __name__ == "__main__":
    main()
