"""How much work gets through a work queue, beside the queues of the standard library and that of client-go?

    python benchmarks/bench_workqueue.py               # about a minute and a half
    python benchmarks/bench_workqueue.py --json FILE   # the figures for machines too

What is measured, and how the two sides are kept comparable, is in workqueue_runs.py. client-go takes part where there
is Go to build it with. Compare the rows of one run only. What one thread does is compared by processor time, which
leaves out what else the machine does; threads that wait for each other, by the clock on the wall.
"""

import gc
import multiprocessing
import queue
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import click
import gopeer
import report
import workqueue_asyncio_runs as asyncio_runs
import workqueue_runs as runs
from report import Figures, Report
from workqueue_runs import PER_CPU, RATE

from informers import ObjectKey
from workqueue import WorkQueue

WAITING = (0, 100, 1_000, 10_000, 100_000)
ABOUT = (
    "`WorkQueue` does more than it is compared with: it queues an item once, never hands it to two workers, knows "
    "priorities and delays, and waits for `done`. `queue.Queue` and `SimpleQueue` (written in C) only move items. "
    "client-go's is the typed rate limiting queue, in a process of its own that may use every core. The goals go by "
    "processor time, those of four workers by the clock on the wall."
)
PLAIN = "queue.Queue put, get"


def one_thread(result: Report, operations: int) -> None:
    """Add, get, done; and adding what is queued already."""
    items = runs.repeated(operations)
    keys = [ObjectKey(*item.split("/")) for item in items]
    group = result.measure(
        "one thread",
        {
            "WorkQueue add, get, done": lambda: runs.add_get_done(WorkQueue(), items),
            "the same, items are ObjectKeys": lambda: runs.add_get_done(WorkQueue(), keys),
            "WorkQueue add of a queued item": lambda: runs.duplicate_add(operations),
            PLAIN: lambda: runs.put_get(queue.Queue(), items),
            "queue.SimpleQueue put, get": lambda: runs.put_get(queue.SimpleQueue(), items),
            "client-go Add, Get, Done": lambda: runs.client_go("add-get-done", 10 * operations),
            "client-go Add of a queued item": lambda: runs.client_go("duplicate-add", 10 * operations),
        },
        against=(PLAIN, PER_CPU),
    )
    reached = group.ratio("WorkQueue add, get, done", PLAIN, PER_CPU)
    result.goal("add, get, done by put, get of queue.Queue", reached, at_least=0.7)
    reached = group.ratio("WorkQueue add of a queued item", PLAIN, PER_CPU)
    result.goal("add of a queued item by put, get of queue.Queue", reached, at_least=3.0)


def many_ready(result: Report, operations: int) -> None:
    """As many items as come in at once when a controller starts."""
    few = runs.names(1000)
    times = operations // len(few)
    ranked = [(number % 3, number, item) for number, item in enumerate(few)]
    result.measure(
        "one thread, a thousand items ready at a time",
        {
            "WorkQueue": lambda: runs.add_all_get_all(few, times),
            "WorkQueue, three priorities": lambda: runs.add_all_get_all(few, times, priorities=3),
            "queue.Queue": lambda: runs.put_all_get_all(queue.Queue(), few, times),
            "queue.PriorityQueue": lambda: runs.put_all_get_all(queue.PriorityQueue(), ranked, times),
            "client-go": lambda: runs.client_go("add-all-get-all", 10 * operations),
        },
        against=("queue.Queue", PER_CPU),
    )


def four_workers(result: Report, operations: int) -> None:
    """One thread adds, four get: how fast by the clock is the question, since they wait for each other."""
    items = runs.names(operations)
    group = result.measure(
        "one producer, four workers",
        {
            "WorkQueue": lambda: runs.workers(items),
            "WorkQueue, get_batch": lambda: runs.workers_in_batches(items),
            "queue.Queue": lambda: runs.plain_workers(queue.Queue(), items),
            "queue.SimpleQueue": lambda: runs.plain_workers(queue.SimpleQueue(), items),
            "client-go": lambda: runs.client_go("workers", 10 * operations),
        },
        against=("queue.Queue", PER_CPU),
    )
    result.goal("four workers by queue.Queue", group.ratio("WorkQueue", "queue.Queue", RATE), at_least=0.5)
    reached = group.ratio("WorkQueue, get_batch", "queue.Queue", RATE)
    result.goal("four workers with get_batch by queue.Queue", reached, at_least=1.0)


def items_that_wait(result: Report, operations: int, most: int) -> None:
    """Does it matter how many items wait?"""
    steps = [waiting for waiting in WAITING if waiting <= most]
    few, many = f"{steps[1]:,}", f"{steps[-1]:,}"
    cases = (
        ("add, get, done while others wait", runs.add_get_done_beside, "add-get-done", operations, 1.3),
        ("add_after where others wait", runs.add_after, "add-after", operations // 5, 2.0),
    )
    for title, run, client_go_case, count, limit in cases:
        contenders: dict[str, report.Run] = {
            f"WorkQueue, {waiting:,} waiting": partial(run, waiting, count) for waiting in steps
        }
        contenders[f"client-go, {many} waiting"] = partial(runs.client_go, client_go_case, count, steps[-1])
        group = result.measure(title, contenders)
        slower = group.ratio(f"WorkQueue, {few} waiting", f"WorkQueue, {many} waiting", PER_CPU)
        result.goal(f"{title}: cost with {many} by cost with {few}", slower, at_most=limit)


def on_asyncio(result: Report, operations: int) -> None:
    """The queue for asyncio beside asyncio's."""
    items, distinct = runs.repeated(operations), runs.names(operations)
    result.measure(
        "asyncio, one task",
        {
            "AsyncWorkQueue add, get, done": lambda: asyncio_runs.add_get_done(items),
            "asyncio.Queue put_nowait, get": lambda: asyncio_runs.put_get(items),
        },
        against=("asyncio.Queue put_nowait, get", PER_CPU),
    )
    result.measure(
        "asyncio, one producer, four workers",
        {
            "AsyncWorkQueue": lambda: asyncio_runs.workers(distinct),
            "asyncio.Queue": lambda: asyncio_runs.plain_workers(distinct),
        },
        against=("asyncio.Queue", PER_CPU),
    )


def memory(result: Report, operations: int) -> None:
    """What waits that ended early leave behind."""
    advanced, cancelled = "add_after, add, get, done", "add_after, cancel"
    group = result.measure(
        f"memory after {operations:,} waits of an hour that ended at once",
        {
            advanced: partial(_in_a_fresh_process, runs.growth_of_advanced, operations),
            cancelled: partial(_in_a_fresh_process, runs.growth_of_cancelled, operations),
        },
        rounds=1,
    )
    for name in (advanced, cancelled):
        grown = group.spread(name, runs.GROWTH)
        result.goal(f"{operations:,} times {name}: KB more than before", grown, at_most=1024.0)


def _in_a_fresh_process(run: Callable[[int], Figures], operations: int) -> Figures:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(run, operations).result()


@click.command()
@report.options(rounds=7)
def main(quick: bool, rounds: int, json_file: Path | None) -> None:
    """Measure the work queue beside others, and print a table."""
    result = Report(
        "workqueue",
        "Work queues",
        script=__file__,
        rounds=rounds,
        quick=quick,
        about=ABOUT,
        packages=("pysedna",),
        peers=gopeer.versions(),
    )
    gc.collect()
    gc.freeze()  # what is loaded so far is not collected again before each run
    operations = 1_000 if quick else 100_000
    one_thread(result, operations)
    many_ready(result, operations)
    four_workers(result, operations // 2)
    items_that_wait(result, operations // 2, 1_000 if quick else WAITING[-1])
    on_asyncio(result, operations // 2)
    memory(result, 10 * operations)
    result.finish(json_file)


if __name__ == "__main__":
    main()
