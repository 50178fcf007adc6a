"""The benchmarks of work queues and watchers run to their end and measure what they say. How fast is not asked."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from pysedna.testing.build import GoMissingError, find_go

SmokeRun = Callable[..., dict[str, Any]]

WORK_QUEUE = {
    "one thread": {
        "WorkQueue add, get, done",
        "the same, items are ObjectKeys",
        "WorkQueue add of a queued item",
        "queue.Queue put, get",
        "queue.SimpleQueue put, get",
    },
    "one thread, a thousand items ready at a time": {
        "WorkQueue",
        "WorkQueue, three priorities",
        "queue.Queue",
        "queue.PriorityQueue",
    },
    "one producer, four workers": {"WorkQueue", "WorkQueue, get_batch", "queue.Queue", "queue.SimpleQueue"},
    "add, get, done while others wait": {f"WorkQueue, {n} waiting" for n in ("0", "100", "1,000")},
    "add_after where others wait": {f"WorkQueue, {n} waiting" for n in ("0", "100", "1,000")},
    "asyncio, one task": {"AsyncWorkQueue add, get, done", "asyncio.Queue put_nowait, get"},
    "asyncio, one producer, four workers": {"AsyncWorkQueue", "asyncio.Queue"},
    "memory after 10,000 waits of an hour that ended at once": {"add_after, add, get, done", "add_after, cancel"},
}
CLIENT_GO = {
    "one thread": {"client-go Add, Get, Done", "client-go Add of a queued item"},
    "one thread, a thousand items ready at a time": {"client-go"},
    "one producer, four workers": {"client-go"},
    "add, get, done while others wait": {"client-go, 1,000 waiting"},
    "add_after where others wait": {"client-go, 1,000 waiting"},
}


def rows(data: dict[str, Any]) -> dict[str, set[str]]:
    """The rows of each table; every one of their figures must be a number."""
    for group in data["groups"]:
        for name, rounds in group["rounds"].items():
            for figures in rounds:
                assert figures, f"{group['title']}: {name} measured nothing"
                assert all(math.isfinite(value) for value in figures.values())
    return {group["title"]: set(group["rows"]) for group in data["groups"]}


@pytest.mark.slow
def test_the_work_queue_is_measured_beside_pythons_queues(smoke_run: SmokeRun) -> None:
    data = smoke_run("workqueue")
    assert {title: names & WORK_QUEUE[title] for title, names in rows(data).items()} == WORK_QUEUE
    if not any("client-go" in names for names in rows(data).values()):
        assert "client-go" not in data["facts"]["versions"]
    assert all(goal["value"] is not None for goal in data["goals"])


@pytest.mark.kube
def test_the_work_queue_is_measured_beside_client_go(smoke_run: SmokeRun) -> None:
    try:
        find_go()
    except GoMissingError as missing:
        pytest.skip(str(missing))
    data = smoke_run("workqueue", go=True)
    if any("Go cannot get" in note for note in data["notes"]):
        pytest.skip(" ".join(data["notes"]))
    found = rows(data)
    assert {title: found[title] - WORK_QUEUE[title] for title in CLIENT_GO} == CLIENT_GO
    assert data["facts"]["versions"]["client-go"].startswith("0.37.")


@pytest.mark.slow
def test_every_watcher_sees_every_write(smoke_run: SmokeRun) -> None:
    (names,) = rows(smoke_run("watchers")).values()
    assert names == {"embedded"}
