"""What the Python peers of bench_informers.py share: their arguments, and the measuring of a list and of a watch.

Each peer is a program of its own, so that its imports, its memory and its processor time are its own too. It says what
it measured as one JSON object on its standard output, like the Go program in ../clientgo/informer. Only the standard
library is imported here.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import json
import resource
import sys
import time
from collections.abc import Hashable
from dataclasses import asdict, dataclass, field
from threading import Event
from typing import Any, Protocol
from urllib.parse import urlsplit

SENT = "bench.pysedna.io/sent"
"""The annotation that says when the server sent an event, in nanoseconds of the monotonic clock."""
TIMEOUT = 120.0
"""How long a list, or all events, may take, in seconds."""


class Queue(Protocol):
    """What the handlers put keys into."""

    def add(self, item: Any) -> None: ...


def arguments(**more: Any) -> argparse.Namespace:
    """Parse what every peer is told; `more` are defaults of arguments that only some have."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True, help="the address of the server of prebuilt bytes")
    parser.add_argument("--pods", type=int, required=True, help="how many it lists")
    parser.add_argument("--events", type=int, default=0, help="how many it sends when its gate is opened")
    for name, default in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    return parser.parse_args()


def ask(server: str, control: str) -> None:
    """Use one of the server's controls; returns when it is done."""
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=TIMEOUT)
    try:
        connection.request("POST", control)
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise RuntimeError(f"{control}: {answer.status} {answer.read().decode()}")
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class Phase:
    """What a list or a watch cost: seconds by the clock, seconds of CPU of all threads, bytes of the largest RSS."""

    objects: int
    wall: float
    cpu: float
    peak: int


class Stopwatch:
    """Measures one phase, from its making on."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def stop(self, objects: int) -> Phase:
        """What was spent since."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return Phase(objects, wall, cpu, peak_memory())


@dataclass
class Meter:
    """Measures a list and then a watch. `begin`, `listed` and `done` mark the ends; `report` prints what was found.

    Whoever counts calls `listed` after the last object of the list was handled, on any thread: it opens the gate, and
    the events begin. What is done between the two phases counts in neither.
    """

    server: str
    pods: int
    events: int
    found: dict[str, Any] = field(default_factory=dict)

    def begin(self) -> None:
        """The peer begins to list; everything before is its start-up."""
        self.found["startup_cpu"] = time.process_time()
        self._stopwatch = Stopwatch()

    def listed(self) -> None:
        """The list has been handled: let the events come."""
        self.found["list"] = asdict(self._stopwatch.stop(self.pods))
        self._stopwatch = Stopwatch()
        if self.events:
            ask(self.server, "/bench/gate?open=true")

    def done(self) -> None:
        """The events have been handled."""
        self.found["watch"] = asdict(self._stopwatch.stop(self.events))

    def report(self, **more: Any) -> None:
        """Print it all."""
        say(self.found | more)


class Counter:
    """A handler: adds keys to a queue, and sets `listed` and `done` when it was called for so many adds, updates."""

    def __init__(self, queue: Queue, adds: int, updates: int) -> None:
        self._add = queue.add
        self._adds, self._updates = adds, updates
        self.listed, self.done = Event(), Event()

    def added(self, key: Hashable) -> None:
        """An object is new."""
        self._add(key)
        self._adds -= 1
        if not self._adds:
            self.listed.set()

    def updated(self, key: Hashable) -> None:
        """An object has changed."""
        self._add(key)
        self._updates -= 1
        if not self._updates:
            self.done.set()

    def wait_listed(self) -> None:
        """Wait until every object of the list was handled."""
        wait(self.listed, "the list")

    def wait_done(self) -> None:
        """Wait until every event was handled."""
        wait(self.done, "the events")


class Store:
    """A cache with an index by node, for clients that bring none: the least that an informer is."""

    def __init__(self) -> None:
        self.objects: dict[Hashable, Any] = {}
        self._node_of: dict[Hashable, str] = {}
        self._by_node: dict[str, set[Hashable]] = {}

    def put(self, key: Hashable, obj: Any, node: str) -> None:
        """Keep an object under its key and its node."""
        self.objects[key] = obj
        before = self._node_of.get(key)
        if before != node:
            if before is not None:
                self._by_node[before].discard(key)
            self._node_of[key] = node
            self._by_node.setdefault(node, set()).add(key)


def wait(event: Event, what: str) -> None:
    """Wait for an event, but not for ever."""
    if not event.wait(TIMEOUT):
        raise TimeoutError(f"{what} did not come to an end in {TIMEOUT:g} s")


def check(held: int, queued: int, pods: int) -> None:
    """No object may be missing."""
    if held != pods or queued != pods:
        raise AssertionError(f"the cache holds {held} objects and the queue {queued} keys, not {pods}")


def collector(mode: str) -> None:
    """Set the garbage collector as --gc says, at the start; for "freeze" see `freeze`."""
    if mode not in ("default", "freeze", "off"):
        raise ValueError(f"no such mode of the collector: {mode}")
    if mode == "off":
        gc.disable()


def freeze(mode: str) -> None:
    """With --gc freeze: take what there is after the list out of the collector's sight."""
    if mode == "freeze":
        gc.collect()
        gc.freeze()


def peak_memory() -> int:
    """The largest resident set since the last call, in bytes; of the whole life where the kernel cannot say better."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        with open("/proc/self/clear_refs", "w", encoding="ascii") as control:
            control.write("5")
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak << 10


def say(found: object) -> None:
    """Print the result."""
    json.dump(found, sys.stdout)
    sys.stdout.flush()
