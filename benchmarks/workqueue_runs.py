"""What bench_workqueue.py measures: the same piece of work for each queue, as runs that a `Report` can take turns with.

The two sides of a comparison have the same loop, the same item objects (names, as client-go's informers queue them),
bound methods in local variables, and a garbage collector that is on and has just collected. Setting up is not measured.
A queue that only moves items (`put`, `get`) is what `add`, `get`, `done` are held against, although these also see to
it that an item is queued once and never in two hands.
"""

from __future__ import annotations

import gc
import os
import queue
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gopeer
from report import Figures

from workqueue import ShutDown, WorkQueue

RATE = "operations/s"
PER_CPU = "operations/CPU s"
WORKERS = 4
BATCH = 64

PlainQueue = queue.Queue[str | None] | queue.SimpleQueue[str | None]


def names(count: int, namespace: str = "default") -> list[str]:
    """Distinct items."""
    return [f"{namespace}/pod-{number:06}" for number in range(count)]


def repeated(operations: int) -> list[str]:
    """A thousand items over and over: as many as a small controller has."""
    few = names(min(1000, operations))
    return few * (operations // len(few))


def measured(operations: int, work: Callable[[], object]) -> Figures:
    """Time `work`, which does that many operations; the processor time is that of all threads."""
    gc.collect()
    cpu, start = time.process_time(), time.perf_counter()
    work()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    return {RATE: operations / seconds, PER_CPU: operations / cpu_seconds}


def client_go(case: str, operations: int, waiting: int = 0) -> Figures:
    """The same case in the Go program."""
    answer = gopeer.run("workqueue", f"-case={case}", f"-operations={operations}", f"-waiting={waiting}")
    return {
        RATE: answer["operations"] / answer["seconds"],
        PER_CPU: answer["operations"] / answer["cpu_seconds"],
    }


# -- one thread --------------------------------------------------------------------------------------------------------


def add_get_done(work_queue: WorkQueue[Any], items: list[Any]) -> Figures:
    """Add each item, get it and be done with it."""

    def work() -> None:
        add, get, done = work_queue.add, work_queue.get, work_queue.done
        for item in items:
            add(item)
            done(get())

    return measured(len(items), work)


def put_get(plain: PlainQueue, items: list[str]) -> Figures:
    """Put each item and get it."""

    def work() -> None:
        put, get = plain.put, plain.get
        for item in items:
            put(item)
            get()

    return measured(len(items), work)


def duplicate_add(operations: int) -> Figures:
    """Add an item that is queued already."""
    work_queue: WorkQueue[str] = WorkQueue()
    work_queue.add("default/pod-000000")
    items = ["default/pod-000000"] * operations

    def work() -> None:
        add = work_queue.add
        for item in items:
            add(item)

    return measured(operations, work)


def add_all_get_all(few: list[str], times: int, *, priorities: int = 1) -> Figures:
    """Add all of `few`, then get each and be done with it; so many times, with so many priorities."""
    work_queue: WorkQueue[str] = WorkQueue()
    ranked = [(item, number % priorities) for number, item in enumerate(few)]

    def work() -> None:
        add, get, done = work_queue.add, work_queue.get, work_queue.done
        for _ in range(times):
            if priorities == 1:
                for item in few:
                    add(item)
            else:
                for item, priority in ranked:
                    add(item, priority=priority)
            for _ in few:
                done(get())

    return measured(times * len(few), work)


def put_all_get_all(plain: PlainQueue | queue.PriorityQueue[Any], few: list[Any], times: int) -> Figures:
    """Put all of `few`, then get each; so many times."""

    def work() -> None:
        put, get = plain.put, plain.get
        for _ in range(times):
            for item in few:
                put(item)
            for _ in few:
                get()

    return measured(times * len(few), work)


# -- one producer, four workers ----------------------------------------------------------------------------------------


def _with_workers(worker: Callable[[list[int]], None], produce: Callable[[], None], items: int) -> Figures:
    """Measure from the start of the workers to their end. A worker appends how many items it has seen."""
    seen: list[int] = []

    def work() -> None:
        threads = [threading.Thread(target=worker, args=(seen,), name=f"bench-{n}") for n in range(WORKERS)]
        for thread in threads:
            thread.start()
        produce()
        for thread in threads:
            thread.join()

    figures = measured(items, work)
    assert sum(seen) == items, f"{sum(seen)} of {items} items came through"
    return figures


def workers(items: list[str]) -> Figures:
    """Four threads that get one item at a time and are done with it."""
    work_queue: WorkQueue[str] = WorkQueue()

    def worker(seen: list[int]) -> None:
        get, done = work_queue.get, work_queue.done
        count = 0
        try:
            while True:
                done(get())
                count += 1
        except ShutDown:
            seen.append(count)

    return _with_workers(worker, _adding(work_queue, items), len(items))


def workers_in_batches(items: list[str]) -> Figures:
    """Four threads that get up to `BATCH` items at a time and are done with each of them."""
    work_queue: WorkQueue[str] = WorkQueue()

    def worker(seen: list[int]) -> None:
        get_batch, done = work_queue.get_batch, work_queue.done
        count = 0
        try:
            while True:
                for item in get_batch(BATCH):
                    done(item)
                    count += 1
        except ShutDown:
            seen.append(count)

    return _with_workers(worker, _adding(work_queue, items), len(items))


def _adding(work_queue: WorkQueue[str], items: list[str]) -> Callable[[], None]:
    def produce() -> None:
        add = work_queue.add
        for item in items:
            add(item)
        work_queue.shut_down()  # what is ready is still handed out

    return produce


def plain_workers(plain: PlainQueue, items: list[str]) -> Figures:
    """Four threads that get one item at a time."""

    def worker(seen: list[int]) -> None:
        get = plain.get
        count = 0
        while get() is not None:
            count += 1
        seen.append(count)

    def produce() -> None:
        put = plain.put
        for item in items:
            put(item)
        for _ in range(WORKERS):
            put(None)

    return _with_workers(worker, produce, len(items))


# -- items that wait ---------------------------------------------------------------------------------------------------


def _filled(waiting: list[str], delays: list[float]) -> WorkQueue[str]:
    work_queue: WorkQueue[str] = WorkQueue()
    for item, delay in zip(waiting, delays, strict=True):
        work_queue.add_after(item, delay)
    return work_queue


def _some_delays(count: int) -> list[float]:
    """Between half an hour and an hour, in no order: nothing becomes due while it is measured."""
    generator = random.Random(count)
    return [generator.uniform(1800.0, 3600.0) for _ in range(count)]


def add_get_done_beside(waiting: int, operations: int) -> Figures:
    """Add, get, done, while other items wait."""
    return add_get_done(_filled(names(waiting, "waiting"), _some_delays(waiting)), repeated(operations))


def add_after(waiting: int, operations: int) -> Figures:
    """Let one item more wait, where `waiting` or a few more do: as often on a queue filled anew as it takes."""
    more = min(operations, max(100, waiting // 10))
    times = operations // more
    old, new = names(waiting, "waiting"), names(more)
    old_delays, new_delays = _some_delays(waiting), _some_delays(more)
    rates: list[Figures] = []
    for _ in range(times):
        add = _filled(old, old_delays).add_after

        def work(add: Callable[[str, float], None] = add) -> None:
            for item, delay in zip(new, new_delays, strict=True):
                add(item, delay)

        rates.append(measured(more, work))
    return {column: statistics.harmonic_mean([one[column] for one in rates]) for column in (RATE, PER_CPU)}


# -- memory ------------------------------------------------------------------------------------------------------------

GROWTH = "growth KB"
BLOCKS = "more live objects"


def growth_of_advanced(operations: int) -> Figures:
    """An hour's wait that `add` ends at once, for that many distinct items: what stays behind."""
    work_queue: WorkQueue[str] = WorkQueue()

    def step(item: str) -> None:
        work_queue.add_after(item, 3600.0)
        work_queue.add(item)
        work_queue.done(work_queue.get())

    return _growth(operations, step)


def growth_of_cancelled(operations: int) -> Figures:
    """An hour's wait that `cancel` ends at once, for that many distinct items: what stays behind."""
    work_queue: WorkQueue[str] = WorkQueue()

    def step(item: str) -> None:
        work_queue.add_after(item, 3600.0)
        work_queue.cancel(item)

    return _growth(operations, step)


def _growth(operations: int, step: Callable[[str], None]) -> Figures:
    for number in range(1000):  # what the first calls set up is no growth
        step(f"warm/pod-{number:07}")
    gc.collect()
    memory, blocks = _resident_kb(), sys.getallocatedblocks()
    for number in range(operations):
        step(f"default/pod-{number:07}")
    return {GROWTH: _resident_kb() - memory, BLOCKS: sys.getallocatedblocks() - blocks}


def _resident_kb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024
