"""The upstream cases: what client-go's util/workqueue and controller-runtime's priority queue are tested for.

The docstring of a test names the case that it stands for. `ELSEWHERE` says where the others are, which are rules of the
other test files here. Where the two upstreams differ, docs/workqueue.md says whom we follow, and the case is ours.
"""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workqueue import ItemExponentialFailureRateLimiter, ShutDown, Timeout, WorkQueue
from workqueue.metrics import PrometheusMetricsProvider
from workqueue.testing import FakeClock

ELSEWHERE = {
    # client-go: queue_test.go
    "TestReinsert": "test_core.test_an_item_added_in_process_is_handed_out_once_more_after_done",
    "TestCollapse": "test_core.test_two_adds_before_a_get_collapse_to_one",
    "TestQueueDrainageUsingShutDownWithDrain":
        "test_queue.test_drain_returns_true_when_everything_ready_and_in_process_is_done",
    "TestForceQueueShutdownUsingShutDown": "test_queue.test_a_later_shut_down_ends_a_drain",
    "TestQueueDrainageUsingShutDownWithDrainWithDirtyItem": "test_queue.test_drain_waits_for_a_rerun",
    "TestGarbageCollection": "test_queue.test_the_queue_keeps_no_item_it_has_handed_out",
    # client-go: delaying_queue_test.go
    "TestDeduping": "test_core.test_the_earliest_due_time_wins",
    "TestCopyShifting": "test_core.test_delayed_items_come_in_the_order_of_their_due_times",
    # client-go: default_rate_limiters_test.go
    "TestItemExponentialFailureRateLimiter":
        "test_rate_limiters.test_exponential_doubles_per_item_until_forgotten",
    "TestItemExponentialFailureRateLimiterOverFlow": "test_rate_limiters.test_exponential_table",
    "TestItemFastSlowRateLimiter":
        "test_rate_limiters.test_fast_slow_goes_slow_after_the_fast_attempts_per_item",
    "TestMaxOfRateLimiter": "test_rate_limiters.test_max_of_asks_all_and_gives_the_longest",
    "TestWithMaxWaitRateLimiter": "test_rate_limiters.test_with_max_wait_cuts_the_delay",
    # client-go: metrics_test.go, parallelizer_test.go
    "TestMetrics": "test_metrics.test_the_numbers_are_those_of_client_go",
    "TestParallelizeUntil": "test_parallelize.test_each_piece_is_done_exactly_once",
    # controller-runtime: priorityqueue_test.go
    "returns an item": "test_queue.test_get_polls_with_a_timeout_of_zero",
    "returns items in order": "test_core.test_fifo_within_one_priority",
    "returns an item as soon as its unlocked": "test_core.test_a_rerun_becomes_ready_at_done",
    "de-duplicates items": "test_core.test_two_adds_before_a_get_collapse_to_one",
    "enqueues a locked item": "test_core.test_an_item_added_in_process_is_handed_out_once_more_after_done",
    "retains the highest priority": "test_core.test_the_highest_priority_wins_for_ready_items",
    "will not decrease the priority":
        "test_core.test_adding_again_at_the_same_or_a_lower_priority_keeps_the_place",
    "retains the lowest after duration": "test_core.test_add_after_of_a_ready_item_does_not_queue_it_twice",
    "Get from priority queue might get stuck when the priority queue is shut down":
        "test_queue.test_shut_down_hands_out_what_is_ready_and_then_raises",
    "follows FIFO order in the new priority queue when item priority changes":
        "test_core.test_a_rise_of_priority_puts_the_item_at_the_end_of_its_new_class",
    "TestItemIsOnlyReturnedAfterAfterHasPassed":
        "test_queue.test_get_waits_for_a_delayed_item_and_no_longer",
    "TestItemIsReturnedAsSoonAsPossible": "test_queue.test_get_blocks_until_something_is_added",
    "TestGetFromPriorityQueueIsUnblockedOnShutdown": "test_queue.test_shut_down_wakes_all_getters",
    "TestPriorityQueueDoesNotDeadlockOnShutdownWhileHandingOutItems":
        "test_bug_reports.test_getters_and_producers_in_full_swing_all_return_at_shutdown",
}  # fmt: skip

ENDINGS = ["shut_down", "shut_down_with_drain"]


@pytest.mark.parametrize("case", ELSEWHERE)
def test_the_other_cases_are_where_they_are_said_to_be(case: str) -> None:
    file, name = ELSEWHERE[case].split(".")
    text = (Path(__file__).parent / f"{file}.py").read_text()
    assert re.search(rf"^def {name}\(", text, re.MULTILINE), ELSEWHERE[case]


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(clock=clock)


class Metrics:
    """What a scrape shows of the queue `q`."""

    def __init__(self) -> None:
        self.provider = PrometheusMetricsProvider()

    def __call__(self, name: str) -> float | None:
        return self.provider.registry.get_sample_value(f"workqueue_{name}", {"name": "q"})


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def measured(clock: FakeClock, metrics: Metrics) -> WorkQueue[str]:
    """A queue that reports to `metrics`."""
    return WorkQueue("q", clock=clock, metrics=metrics.provider)


def work(queue: WorkQueue[Any], step: Callable[[Any], object] = lambda item: None) -> list[Any]:
    """A worker: until the queue is shut down. Gives what it got."""
    seen = []
    while True:
        try:
            with queue.processing() as item:
                seen.append(item)
                step(item)
        except ShutDown:
            return seen


# -- client-go: queue_test.go


@pytest.mark.parametrize("ending", ENDINGS)
def test_all_that_was_added_before_shutdown_is_handed_out_and_nothing_after(ending: str, background: Any) -> None:
    """TestBasic: 50 producers, 10 consumers."""
    queue: WorkQueue[Any] = WorkQueue()
    consumers = [background.start(lambda: work(queue)) for _ in range(10)]
    producers = [background.start(lambda n=n: [queue.add(n) for _ in range(50)]) for n in range(50)]
    for producer in producers:
        producer()
    getattr(queue, ending)()
    queue.add("added after shutdown")
    seen = [item for consumer in consumers for item in consumer()]
    assert set(seen) == set(range(50))
    assert len(queue) == 0


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_item_that_its_worker_adds_again_is_never_in_two_hands(ending: str, background: Any) -> None:
    """TestAddWhileProcessing: 50 items, 10 consumers that each add an item again the first time."""
    queue: WorkQueue[int] = WorkQueue()
    guard, in_hand, troubles = threading.Lock(), set(), []

    def consume() -> list[int]:
        counts: Counter[int] = Counter()

        def step(item: int) -> None:
            with guard:
                troubles.extend([item] if item in in_hand else [])
                in_hand.add(item)
            counts[item] += 1
            if counts[item] < 2:
                queue.add(item)
            with guard:
                in_hand.remove(item)

        return work(queue, step)

    consumers = [background.start(consume) for _ in range(10)]
    for item in range(50):
        queue.add(item)
    getattr(queue, ending)()
    seen = Counter(item for consumer in consumers for item in consumer())
    assert troubles == []
    assert set(seen) == set(range(50))
    assert len(queue) == 0


def test_len_counts_each_ready_item_once(queue: WorkQueue[str]) -> None:
    """TestLen"""
    lengths = []
    for item in ("foo", "bar", "foo"):
        queue.add(item)
        lengths.append(len(queue))
    assert lengths == [1, 2, 2]


def test_adds_in_process_collapse_to_one_run_that_another_worker_gets_after_done(
    queue: WorkQueue[str], background: Any
) -> None:
    """TestCollapseWhileProcessing"""
    queue.add("foo")
    queue.get()
    queue.add("foo")
    queue.add("foo")
    with pytest.raises(Timeout):
        queue.get(timeout=0)
    other = background.start(queue.get)
    queue.done("foo")
    assert other() == "foo"
    queue.done("foo")
    with pytest.raises(Timeout):
        queue.get(timeout=0)


def test_shut_down_does_not_wait_for_what_is_in_process(queue: WorkQueue[str], background: Any) -> None:
    """TestNoQueueDrainageUsingShutDown"""
    queue.add("foo")
    queue.add("bar")
    assert queue.get_batch(2) == ["foo", "bar"]
    background.start(queue.shut_down)()
    assert queue.statistics().processing == 2


# -- client-go: delaying_queue_test.go


def test_a_delayed_item_comes_once(queue: WorkQueue[str], clock: FakeClock) -> None:
    """TestSimpleQueue"""
    queue.add_after("foo", 0.05)
    assert len(queue) == 0
    clock.advance(0.06)
    assert len(queue) == 1
    queue.done(queue.get(timeout=0))
    clock.advance(10)
    assert len(queue) == 0


def test_what_is_added_later_may_be_due_earlier(queue: WorkQueue[str], clock: FakeClock) -> None:
    """TestAddTwoFireEarly"""
    queue.add_after("first", 1.0)
    queue.add_after("second", 0.05)
    assert len(queue) == 0
    clock.advance(0.06)
    assert queue.get(timeout=0) == "second"
    queue.add_after("third", 2.0)
    clock.advance(1.0)
    assert queue.get(timeout=0) == "first"
    clock.advance(2.0)
    assert queue.get(timeout=0) == "third"


# -- client-go: rate_limiting_queue_test.go, metrics_test.go


def test_retries_of_each_item_are_delayed_for_themselves(clock: FakeClock) -> None:
    """TestRateLimitingQueue"""
    queue: WorkQueue[str] = WorkQueue(rate_limiter=ItemExponentialFailureRateLimiter(1, 1000, clock=clock), clock=clock)

    def delay(item: str) -> int:
        queue.add_rate_limited(item)
        for seconds in range(1, 1001):
            clock.advance(1)
            if len(queue):
                queue.done(queue.get(timeout=0))
                return seconds
        raise AssertionError("it never came")

    assert [delay("one") for _ in range(5)] == [1, 2, 4, 8, 16]
    assert [delay("two") for _ in range(2)] == [1, 2]
    assert (queue.num_requeues("one"), queue.num_requeues("two")) == (5, 2)
    queue.forget("one")
    assert queue.num_requeues("one") == 0
    assert delay("one") == 1


def test_the_age_of_work_is_computed_when_read_so_that_shutdown_has_nothing_to_stop(
    metrics: Metrics, clock: FakeClock
) -> None:
    """TestMetricShutdown: upstream, a goroutine writes these gauges every half second."""
    threads = threading.enumerate()
    queue: WorkQueue[str] = WorkQueue("q", clock=clock, metrics=metrics.provider)
    queue.add("foo")
    queue.get()
    assert threading.enumerate() == threads
    queue.shut_down()
    clock.advance(3600)
    assert metrics("unfinished_work_seconds") == metrics("longest_running_processor_seconds") == 3600
    queue.done("foo")
    assert metrics("unfinished_work_seconds") == metrics("longest_running_processor_seconds") == 0


# -- controller-runtime: priorityqueue_test.go


def test_an_item_in_process_is_passed_over(measured: WorkQueue[str], metrics: Metrics) -> None:
    """doesn't return an item that is currently locked"""
    measured.add("foo")
    assert measured.get(timeout=0) == "foo"
    measured.add("foo")
    measured.add("bar")
    assert measured.get(timeout=0) == "bar"
    assert (metrics("depth"), metrics("adds_total")) == (1, 3)


def test_a_rise_of_priority_moves_an_item_before_the_others(measured: WorkQueue[str], metrics: Metrics) -> None:
    """gets pushed to the front if the priority increases"""
    for item in ("foo", "bar", "baz"):
        measured.add(item)
    measured.add("baz", priority=1)
    assert measured.get(timeout=0) == "baz"
    assert measured.priority("baz") == 1
    assert len(measured) == 2
    assert (metrics("depth"), metrics("adds_total")) == (2, 3)


def test_len_and_depth_count_what_waits_only_once_it_is_due(
    measured: WorkQueue[str], metrics: Metrics, clock: FakeClock
) -> None:
    """doesn't include non-ready items in Len(); TestItemsAreInludedInLenAndMetricsOnceTheyAreReady"""
    for _ in range(2):  # the second time shows that nothing is left of the first
        measured.add_after("foo", 0.5)
        measured.add("baz")
        measured.add_after("bar", 0.5)
        measured.add("bal")
        assert len(measured) == metrics("depth") == 2
        clock.advance(1)
        assert len(measured) == metrics("depth") == 4
        for item in measured.get_batch(4):
            measured.done(item)
        assert len(measured) == metrics("depth") == 0


def test_many_items_and_workers_at_once(background: Any) -> None:
    """returns many items: 1,000 items, some delayed, others of random priority, and 100 workers; again and again."""
    queue: WorkQueue[str] = WorkQueue()
    source = random.Random(1)

    def take_ten() -> list[str]:
        taken = []
        for _ in range(10):
            with queue.processing() as item:
                taken.append(item)
        return taken

    for _ in range(5):
        for number in range(1000):
            draw = source.randrange(100)
            if draw < 10:
                queue.add_after(f"foo{number}", draw / 1000)
            else:
                queue.add(f"foo{number}", priority=draw)
        workers = [background.start(take_ten) for _ in range(100)]
        assert sorted(item for worker in workers for item in worker()) == sorted(f"foo{n}" for n in range(1000))


@pytest.mark.parametrize("priority", [None, 1])
def test_a_waiting_item_that_is_added_now_counts_once(
    priority: int | None, measured: WorkQueue[str], metrics: Metrics, clock: FakeClock
) -> None:
    """updates metrics correctly for an item that gets initially added with after and then without; updates metrics
    correctly when an item with after is re-added with higher priority and no after"""
    measured.add_after("foo", 3600)
    assert len(measured) == metrics("depth") == 0
    measured.add("foo", priority=priority)
    assert len(measured) == metrics("depth") == 1
    assert measured.get(timeout=0) == "foo"
    assert measured.priority("foo") == (priority or 0)
    assert len(measured) == metrics("depth") == 0
    assert metrics("adds_total") == 1


def test_an_item_that_became_due_and_is_added_counts_once(
    measured: WorkQueue[str], metrics: Metrics, clock: FakeClock
) -> None:
    """TestMetricsAreUpdatedForItemWhoseRequeueAfterExpiredThatGetsAddedAgainWithoutRequeueAfter"""
    measured.add_after("foo", 0.05)
    clock.advance(0.05)
    assert len(measured) == metrics("depth") == 1
    measured.add("foo")
    assert len(measured) == metrics("depth") == 1
    assert measured.get(timeout=0) == "foo"
    assert len(measured) == metrics("depth") == 0


@pytest.mark.parametrize("after", [-1.0, 0.0, 1.0])
def test_each_priority_is_handed_out_before_the_lower_ones_in_order(
    after: float, measured: WorkQueue[str], metrics: Metrics, clock: FakeClock
) -> None:
    """TestHighPriorityItemsAreReturnedBeforeLowPriorityItemMultipleTimes: 1,000 items of each of five."""
    priorities = (10, 5, 0, -5, -10)
    for number in range(1000):
        for priority in priorities:
            measured.add_after(f"{priority} {number}", after, priority=priority)
    clock.advance(max(after, 0.0))
    got = measured.get_batch(5001, timeout=0)
    assert got == [f"{priority} {number}" for priority in priorities for number in range(1000)]
    assert (metrics("depth"), metrics("adds_total")) == (0, 5000)


def test_what_becomes_due_goes_before_lower_priorities_that_were_ready(
    measured: WorkQueue[str], metrics: Metrics, clock: FakeClock
) -> None:
    """TestHighPriorityItemThatBecameReadyIsReturnedBeforeLowPriorityItem"""
    measured.add("foo", priority=-100)
    measured.add_after("prio", 1.0, priority=0)
    clock.advance(1.0)
    assert measured.get(timeout=0) == "prio"
    assert (metrics("depth"), metrics("adds_total"), metrics("retries_total")) == (1, 2, 1)


def test_an_add_of_a_waiting_item_wakes_who_waits_for_it(
    measured: WorkQueue[str], metrics: Metrics, clock: FakeClock, background: Any
) -> None:
    """TestWaitingItemIsReturnedRightAfterReadWithoutAfter"""
    got = background.start(measured.get)
    measured.add_after("foo", 60.0)
    clock.wait_for_sleepers(1)
    assert background.threads[0].is_alive()
    measured.add("foo")
    assert got() == "foo"
    assert (metrics("depth"), metrics("adds_total")) == (0, 1)


def test_who_waits_gets_delayed_items_in_the_order_of_their_due_times(
    measured: WorkQueue[str], clock: FakeClock, background: Any
) -> None:
    """TestMultipleItemsWithAfterAreReturnedInCorrectOrder"""
    got = background.start(lambda: [measured.get(), measured.get()])
    measured.add_after("foo", 1.0)
    measured.add_after("bar", 0.2)
    clock.wait_for_sleepers(1)
    clock.advance(1.0)
    assert got() == ["bar", "foo"]


def test_retries_of_two_items_do_not_affect_each_other(
    measured: WorkQueue[str], metrics: Metrics, clock: FakeClock, background: Any
) -> None:
    """TestWhenAddingMultipleItemsWithRatelimitTrueTheyDontAffectEachOther"""
    for _ in range(7):
        measured.add_rate_limited("bar")
        measured.cancel("bar")
    measured.add_rate_limited("foo")  # in 5 ms
    measured.add_rate_limited("bar")  # in 640 ms
    clock.advance(0.006)
    assert measured.get(timeout=0) == "foo"
    clock.advance(0.633)
    with pytest.raises(Timeout):
        measured.get(timeout=0)
    clock.advance(0.001)
    assert measured.get(timeout=0) == "bar"
    assert (metrics("depth"), metrics("adds_total"), metrics("retries_total")) == (0, 2, 9)


def test_many_producers_and_consumers_find_the_highest_priority_and_no_item_twice(background: Any) -> None:
    """TestFuzzPriorityQueue: 10 producers, 20 consumers."""
    queue: WorkQueue[int] = WorkQueue(max_priority_age=None)
    guard = threading.Lock()
    highest: dict[int, int] = {}
    in_hand: set[int] = set()
    troubles: list[str] = []

    def produce(seed: int) -> None:
        source = random.Random(seed)
        for _ in range(300):
            item, priority, delay = source.randrange(200), source.randrange(-50, 50), source.choice((0, 0, 0.001))
            with guard:
                queue.add_after(item, delay, priority=priority)
                highest[item] = max(highest.get(item, priority), priority)

    def consume() -> None:
        while True:
            try:
                with guard:
                    item = queue.get(timeout=0)
                    if item in in_hand:
                        troubles.append(f"{item} was handed out twice")
                    in_hand.add(item)
                    if queue.priority(item) != highest.pop(item):
                        troubles.append(f"{item} has another priority than the highest that was given")
            except Timeout:
                if stopped.wait(0.0005) and not queue.statistics().waiting:
                    return
                continue
            with guard:
                in_hand.remove(item)
            queue.done(item)

    stopped = threading.Event()
    consumers = [background.start(consume) for _ in range(20)]
    producers = [background.start(lambda seed=seed: produce(seed)) for seed in range(10)]
    for producer in producers:
        producer()
    stopped.set()
    for consumer in consumers:
        consumer()
    assert troubles == []
    assert highest == {}
