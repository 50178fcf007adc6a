"""Public bug reports about work queues: what was reported there cannot happen here.

The docstring of a test names the reports. `ELSEWHERE` says where the others are, which are rules of other test files.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from workqueue import BucketRateLimiter, NotProcessing, ShutDown, WorkQueue
from workqueue.metrics import PrometheusMetricsProvider
from workqueue.testing import FakeClock

TESTS = Path(__file__).parent.parent
QUEUE, CORE, LIMITERS = ("workqueue/test_queue", "workqueue/test_core", "workqueue/test_rate_limiters")

ELSEWHERE = {
    "client-go#382: without a handler no resync ever fires, also not for one that comes later":
        "informers/test_informer_life.test_a_handler_may_ask_for_resync_where_the_informer_does_not_and_late",
    "kubernetes#101928: shutdown does not wait for what is in process":
        f"{QUEUE}.test_drain_returns_true_when_everything_ready_and_in_process_is_done",
    "kubernetes#131200: is what is queued still handed out after shutdown?":
        f"{QUEUE}.test_shut_down_hands_out_what_is_ready_and_then_raises",
    "kubernetes#141079: a drain returns although items are queued":
        f"{QUEUE}.test_drain_returns_true_when_everything_ready_and_in_process_is_done",
    "kubernetes#141079: a drain returns before a re-run": f"{QUEUE}.test_drain_waits_for_a_rerun",
    "kubernetes#141079: the second of two drains hangs": f"{QUEUE}.test_two_drains_both_return",
    "kubernetes#110642, #112325, #126027: an add does not cancel the delayed add of the item, which runs twice":
        f"{CORE}.test_ready_and_waiting_count_together_so_add_makes_a_waiting_item_ready_now",
    "kubernetes#112328: a delayed add of an item that is ready runs it twice":
        f"{CORE}.test_add_after_of_a_ready_item_does_not_queue_it_twice",
    "kubernetes#138743: failures that nobody forgets are kept for ever":
        f"{LIMITERS}.test_entries_idle_for_twice_max_delay_are_dropped",
    "kubernetes#105031: the queue keeps objects that it has handed out":
        f"{QUEUE}.test_the_queue_keeps_no_item_it_has_handed_out",
    "controller-runtime#3239: get is stuck at shutdown": f"{QUEUE}.test_shut_down_wakes_all_getters",
    "controller-runtime#3157: a retry loses its priority": f"{QUEUE}.test_a_retry_keeps_its_priority",
    "controller-runtime#3066: the depth is negative for an item that waited and was added":
        "workqueue/test_upstream_cases.test_a_waiting_item_that_is_added_now_counts_once",
    "kubernetes#68179: depth and time in the queue are wrong":
        "workqueue/test_metrics.test_the_numbers_are_those_of_client_go",
    "controller-runtime#3330: what becomes due stands behind lower priorities":
        "workqueue/test_upstream_cases.test_what_becomes_due_goes_before_lower_priorities_that_were_ready",
}  # fmt: skip


@pytest.mark.parametrize("report", ELSEWHERE)
def test_the_other_reports_are_where_they_are_said_to_be(report: str) -> None:
    file, name = ELSEWHERE[report].split(".")
    assert re.search(rf"^def {name}\(", (TESTS / f"{file}.py").read_text(), re.MULTILINE), ELSEWHERE[report]


# -- the end


def test_a_shutdown_ends_a_drain_at_whatever_moment_it_comes(background: Any) -> None:
    """kubernetes#119554: ShutDown between two steps of ShutDownWithDrain lets it wait for ever."""
    for _ in range(100):
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        queue.get()
        drained = background.start(queue.shut_down_with_drain)
        while not queue.shutting_down:
            pass
        queue.shut_down()
        assert drained() is False


def test_a_drain_hears_of_the_last_done_although_getters_wait_too(background: Any) -> None:
    """kubernetes#141079: one waiter is woken when the queue becomes idle, which may be the wrong one."""
    for _ in range(50):
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        queue.get()
        getters = [background.start(queue.get) for _ in range(3)]
        drained = background.start(queue.shut_down_with_drain)
        queue.done("a")
        assert drained() is True
        for getter in getters:
            with pytest.raises(ShutDown):
                getter()


def test_a_queue_has_no_thread_that_could_outlive_it() -> None:
    """kubernetes#135072: ShutDown returns while a goroutine of the queue goes on."""
    threads = threading.enumerate()
    queue: WorkQueue[str] = WorkQueue("q", metrics=PrometheusMetricsProvider())
    queue.add("a")
    queue.add_after("b", 3600)
    queue.get()
    assert threading.enumerate() == threads


def test_getters_and_producers_in_full_swing_all_return_at_shutdown(background: Any) -> None:
    """controller-runtime#3538: an item on its way to a getter that has left at shutdown blocks the queue for good."""

    def work(queue: WorkQueue[int], item: int) -> str:
        while True:
            queue.add(item)
            try:
                taken = queue.get()
            except ShutDown:
                return "told"
            begun.set()
            queue.done(taken)

    for _ in range(20):
        begun = threading.Event()
        queue: WorkQueue[int] = WorkQueue()
        workers = [background.start(lambda item=item, queue=queue: work(queue, item)) for item in range(8)]
        assert begun.wait(20)
        queue.shut_down()
        assert [worker() for worker in workers] == ["told"] * 8


# -- done


def test_done_without_get_changes_nothing(clock: FakeClock) -> None:
    """kubernetes#79934, #141079: Done of a queued item queues it again, each time."""
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a")
    for _ in range(3):
        with pytest.raises(NotProcessing):
            queue.done("a")
    assert len(queue) == 1
    assert queue.get_batch(5, timeout=0) == ["a"]


# -- retries


def ready_within(queue: WorkQueue[Any], clock: FakeClock, seconds: float) -> int:
    clock.advance(seconds)
    return len(queue)


def test_an_item_that_fails_does_not_wait_for_the_failures_of_others(clock: FakeClock) -> None:
    """controller-runtime#1594, kubernetes#104554: the bucket of the default limiter lets the last of 10,000 wait for a
    quarter of an hour, and is emptied by items that were going to wait longer anyway."""
    queue: WorkQueue[int] = WorkQueue(clock=clock)
    for item in range(10_000):
        queue.add_rate_limited(item)
    assert ready_within(queue, clock, 0.005) == 10_000


def test_a_bucket_may_be_asked_for_and_then_spaces_its_items_evenly(clock: FakeClock) -> None:
    """controller-runtime#1594: who wants a bucket gets one. As upstream, each rate limited add takes a token of it."""
    queue: WorkQueue[int] = WorkQueue(rate_limiter=BucketRateLimiter(8, 1, clock=clock), clock=clock)
    for item in range(4):
        queue.add_rate_limited(item)
    assert [ready_within(queue, clock, seconds) for seconds in (0, 0.125, 0.125, 0.125)] == [1, 2, 3, 4]


def test_add_after_neither_counts_nor_forgets_failures(clock: FakeClock) -> None:
    """controller-runtime#392, #755: coming back later is neither a failure nor a success: who succeeded must forget."""
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    for _ in range(3):
        queue.add_rate_limited("a")
        queue.cancel("a")
    queue.add_after("a", 10)
    assert queue.num_requeues("a") == 3
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    assert ready_within(queue, clock, 10) == 1  # forget did not touch the delayed add


def test_an_add_does_not_wait_for_the_backoff_and_keeps_the_count(clock: FakeClock) -> None:
    """kubernetes#75577, cert-manager#7455: an event waits for the backoff of earlier failures. `add` does not."""
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    for _ in range(15):
        queue.add_rate_limited("a")
        queue.cancel("a")
    queue.add_rate_limited("a")  # in 164 s
    queue.add("a")
    assert queue.get(timeout=0) == "a"
    assert queue.num_requeues("a") == 16


def test_a_wait_is_put_off_by_cancel(clock: FakeClock) -> None:
    """client-go#131, #1104, kubernetes#113607: a delayed add cannot be taken back, nor replaced by a later one."""
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 5)
    queue.add_after("a", 600)
    assert ready_within(queue, clock, 5) == 1
    queue.done(queue.get())
    queue.add_after("a", 5)
    assert queue.cancel("a") is True
    queue.add_after("a", 600)
    assert ready_within(queue, clock, 599) == 0
    assert ready_within(queue, clock, 1) == 1


# -- priorities


def test_what_the_first_list_brought_runs_although_the_queue_is_never_empty(clock: FakeClock) -> None:
    """controller-runtime#3496, miroir#122: three items of priority -100 are never reached, because 101 others come back
    every 30 seconds and the worker cannot keep up."""
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    for number in range(3):
        queue.add(f"listed {number}", priority=-100)
    for number in range(101):
        queue.add(f"polled {number}")
    seen = []
    while len(seen) < 200:
        item = queue.get(timeout=0)
        seen.append(item)
        clock.advance(1)
        if item.startswith("polled"):
            queue.add_after(item, 30)
        queue.done(item)
    assert {f"listed {number}" for number in range(3)} <= set(seen[:60])


def test_a_thousand_priorities_are_one_depth() -> None:
    """controller-runtime#3396: a time series for each priority there ever was."""
    provider = PrometheusMetricsProvider()
    queue: WorkQueue[int] = WorkQueue("q", metrics=provider)
    for number in range(1000):
        queue.add(number, priority=number)
    samples = [sample for family in provider.registry.collect() for sample in family.samples]
    assert [sample.value for sample in samples if sample.name == "workqueue_depth"] == [1000]
