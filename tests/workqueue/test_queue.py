"""`WorkQueue` from the outside: blocking, waking, shutting down, retrying."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Hashable, Iterator
from typing import Any

import pytest

from workqueue import (
    ItemExponentialFailureRateLimiter,
    MonotonicClock,
    NotProcessing,
    ShutDown,
    Timeout,
    UnknownItem,
    WorkQueue,
    WorkQueueError,
    default_controller_rate_limiter,
)
from workqueue.testing import FakeClock

LONG = 20.0


def test_get_polls_with_a_timeout_of_zero() -> None:
    queue: WorkQueue[str] = WorkQueue("q")
    with pytest.raises(Timeout, match="'q'"):
        queue.get(timeout=0)
    with pytest.raises(TimeoutError):
        queue.get(timeout=-1)
    queue.add("a")
    assert queue.get(timeout=0) == "a"


def test_get_blocks_until_something_is_added(background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue()
    result = background.start(queue.get)
    queue.add("a")
    assert result() == "a"


def test_get_times_out_on_the_clock_of_the_queue(clock: FakeClock, background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    result = background.start(lambda: queue.get(timeout=5))
    clock.wait_for_sleepers(1)
    clock.advance(5)
    with pytest.raises(Timeout):
        result()


def test_get_waits_for_a_delayed_item_and_no_longer(clock: FakeClock, background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 3)
    result = background.start(queue.get)
    clock.wait_for_sleepers(1)
    assert len(queue) == 0
    clock.advance(3)
    assert result() == "a"


def test_a_sooner_delay_wakes_a_waiting_getter(clock: FakeClock, background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("later", 10)
    result = background.start(queue.get)
    clock.wait_for_sleepers(1)
    queue.add_after("sooner", 2)
    clock.advance(2)
    assert result() == "sooner"


def test_whoever_leaves_passes_the_time_keeping_on(clock: FakeClock, background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 3)
    queue.add_after("b", 5)
    results = [background.start(queue.get) for _ in range(3)]
    clock.wait_for_sleepers(1)
    clock.advance(3)
    clock.wait_for_sleepers(1)
    clock.advance(2)
    queue.add("c")
    assert sorted(str(result()) for result in results) == ["a", "b", "c"]


def test_a_getter_that_times_out_passes_the_time_keeping_on(clock: FakeClock, background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 9)
    impatient = background.start(lambda: queue.get(timeout=4))
    clock.wait_for_sleepers(1)
    patient = background.start(queue.get)
    clock.advance(4)
    with pytest.raises(Timeout):
        impatient()
    clock.wait_for_sleepers(1)
    clock.advance(5)
    assert patient() == "a"


def test_several_due_at_once_wake_several_getters(clock: FakeClock, background: Any) -> None:
    queue: WorkQueue[int] = WorkQueue(clock=clock)
    for item in range(4):
        queue.add_after(item, 1)
    results = [background.start(queue.get) for _ in range(4)]
    clock.wait_for_sleepers(1)
    clock.advance(1)
    assert sorted(result() for result in results) == [0, 1, 2, 3]


def test_get_batch_blocks_for_the_first_item_and_never_for_more(background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue()
    result = background.start(lambda: queue.get_batch(10))
    queue.add("a")
    assert result() == ["a"]


def test_get_batch_gives_the_order_of_get_up_to_its_limit() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item, priority in (("low", -1), ("a", 0), ("b", 0), ("high", 1)):
        queue.add(item, priority=priority)
    assert queue.get_batch(3) == ["high", "a", "b"]
    assert queue.statistics().processing == 3
    with pytest.raises(ValueError, match="limit"):
        queue.get_batch(0)
    with pytest.raises(TypeError):
        queue.get_batch(1.5)  # type: ignore[arg-type]
    assert queue.get_batch(3) == ["low"]
    with pytest.raises(Timeout):
        queue.get_batch(3, timeout=0)


def test_get_batch_wakes_the_next_getter_for_what_it_left(background: Any) -> None:
    queue: WorkQueue[int] = WorkQueue()
    results = [background.start(lambda: queue.get_batch(2)) for _ in range(3)]
    for item in range(6):
        queue.add(item)
    taken: list[int] = []
    for result in results:
        taken += result()
    taken += queue.get_batch(6, timeout=0) if len(queue) else []
    assert sorted(taken) == list(range(6))


def test_done_of_what_was_not_handed_out_raises() -> None:
    queue: WorkQueue[str] = WorkQueue("q")
    queue.add("a")
    with pytest.raises(NotProcessing, match="'a' is not in process in work queue 'q'") as caught:
        queue.done("a")
    assert caught.value.item == "a"
    assert isinstance(caught.value, ValueError)
    assert queue.get() == "a"
    queue.done("a")
    with pytest.raises(NotProcessing):
        queue.done("a")


def test_processing_is_get_and_done_however_the_block_ends() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    with queue.processing() as item:
        assert item == "a"
        assert queue.statistics().processing == 1
    queue.add("a")
    with pytest.raises(RuntimeError), queue.processing(timeout=0):
        raise RuntimeError
    assert queue.statistics().processing == 0
    with pytest.raises(Timeout), queue.processing(timeout=0):
        pytest.fail("there was nothing to process")


def test_priority_of_a_queued_item_and_of_a_run() -> None:
    queue: WorkQueue[str] = WorkQueue("q")
    queue.add("a", priority=3)
    assert queue.priority("a") == 3
    queue.get()
    queue.add("a", priority=9)
    assert queue.priority("a") == 3
    queue.done("a")
    assert queue.priority("a") == 9
    with pytest.raises(UnknownItem) as caught:
        queue.priority("b")
    assert str(caught.value) == "'b' is neither queued nor in process in work queue 'q'"
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, WorkQueueError)


def test_a_retry_keeps_its_priority(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a", priority=-100)
    with queue.processing() as item:
        queue.add_rate_limited(item)
    clock.advance(1)
    assert queue.priority("a") == -100


def test_equal_items_are_one() -> None:
    queue: WorkQueue[Hashable] = WorkQueue("q")
    queue.add(("ns", "name"))
    queue.add(("ns", "name"))
    assert len(queue) == 1


# -- retries


def test_add_rate_limited_waits_as_the_limiter_says(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(rate_limiter=ItemExponentialFailureRateLimiter(1, 100, clock=clock), clock=clock)
    for failures, delay in enumerate((1, 2, 4, 8)):
        assert queue.num_requeues("a") == failures
        queue.add_rate_limited("a")
        clock.advance(delay - 0.5)
        assert len(queue) == 0
        clock.advance(0.5)
        assert len(queue) == 1
        queue.done(queue.get())
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    assert queue.statistics().retries == 4


def test_the_default_limiter_is_per_item_exponential_from_5_ms(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_rate_limited("a")
    clock.advance(0.004)
    assert len(queue) == 0
    clock.advance(0.001)
    assert len(queue) == 1


def test_any_limiter_of_hashables_fits(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(rate_limiter=default_controller_rate_limiter(clock=clock), clock=clock)
    queue.add_rate_limited("a")
    assert queue.num_requeues("a") == 1


def test_failures_of_an_item_that_is_queued_or_in_process_are_never_dropped(clock: FakeClock) -> None:
    limiter: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(1, 10, clock=clock)
    queue: WorkQueue[str] = WorkQueue(rate_limiter=limiter, clock=clock)
    for item in ("waiting", "ready", "running", "idle"):
        limiter.when(item)
    queue.add("running")
    queue.get()
    queue.add("ready")
    queue.add_after("waiting", 1000)
    clock.advance(21)
    for index in range(8):
        limiter.when(f"other {index}")
    assert [queue.num_requeues(item) for item in ("waiting", "ready", "running", "idle")] == [1, 1, 1, 0]


def test_a_limiter_does_not_keep_its_queue_alive(clock: FakeClock) -> None:
    limiter: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(1, 10, clock=clock)
    queue: WorkQueue[str] = WorkQueue(rate_limiter=limiter, clock=clock)
    queue.add("a")
    limiter.when("a")
    del queue
    clock.advance(30)
    limiter.when("b")
    assert limiter.num_requeues("a") == 0


def test_a_limiter_does_not_collect_the_queues_that_are_gone(clock: FakeClock) -> None:
    limiter: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(1, 10, clock=clock)
    for _ in range(100):
        WorkQueue(rate_limiter=limiter, clock=clock)
    assert len(limiter._failures._users) <= 1


def test_a_getter_is_told_once_however_much_is_added(background: Any) -> None:
    queue: WorkQueue[int] = WorkQueue()
    told: list[int] = []
    notify = queue._available.notify

    def counting(n: int = 1) -> None:
        told.append(n)
        notify(n)

    queue._available.notify = counting  # type: ignore[method-assign]
    results = [background.start(queue.get) for _ in range(2)]
    while queue._getters < 2:
        threading.Event().wait(0.001)
    with queue._lock:  # so that nobody told gets away before we are through
        for item in range(50):
            if queue._core.add(item, None, 0) and queue._getters:
                queue._wake_getter()
    assert len(told) == 2
    assert sorted(result() for result in results) == [0, 1]


# -- the end


def test_shut_down_hands_out_what_is_ready_and_then_raises() -> None:
    queue: WorkQueue[str] = WorkQueue("q")
    queue.add("a")
    queue.add_after("late", 100)
    queue.shut_down()
    queue.shut_down()
    assert queue.shutting_down
    queue.add("never")
    queue.add_rate_limited("never")
    assert queue.get() == "a"
    with pytest.raises(ShutDown, match="'q'"):
        queue.get()
    with pytest.raises(ShutDown):
        queue.get_batch(3)
    assert queue.statistics().dropped == 3
    assert queue.num_requeues("never") == 0


def test_shut_down_wakes_all_getters(background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("late", 100)
    results = [background.start(queue.get) for _ in range(4)]
    queue.shut_down()
    for result in results:
        with pytest.raises(ShutDown):
            result()


def test_after_shutdown_a_rerun_is_for_the_worker_that_calls_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.get()
    queue.add("a")
    queue.shut_down()
    with pytest.raises(ShutDown):
        queue.get()
    queue.done("a")
    assert queue.get() == "a"
    queue.done("a")
    with pytest.raises(ShutDown):
        queue.get()


def test_drain_returns_true_when_everything_ready_and_in_process_is_done(background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("running")
    queue.get()
    queue.add("ready")
    drained = background.start(queue.shut_down_with_drain)
    while not queue.shutting_down:
        threading.Event().wait(0.001)
    queue.done("running")
    assert queue.get() == "ready"
    assert background.threads[0].is_alive()
    queue.done("ready")
    assert drained() is True


def test_drain_waits_for_a_rerun(background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.get()
    queue.add("a")
    drained = background.start(queue.shut_down_with_drain)
    while not queue.shutting_down:
        threading.Event().wait(0.001)
    queue.done("a")
    assert queue.get() == "a"
    assert background.threads[0].is_alive()
    queue.done("a")
    assert drained() is True


def test_drain_gives_false_on_timeout_and_can_be_asked_again(clock: FakeClock, background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a")
    queue.get()
    assert queue.shut_down_with_drain(timeout=0) is False
    drained = background.start(lambda: queue.shut_down_with_drain(timeout=3))
    clock.wait_for_sleepers(1)
    clock.advance(3)
    assert drained() is False
    queue.done("a")
    assert queue.shut_down_with_drain(timeout=0) is True


def test_a_later_shut_down_ends_a_drain(clock: FakeClock, background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a")
    queue.get()
    drained = background.start(lambda: queue.shut_down_with_drain(timeout=1000))
    clock.wait_for_sleepers(1)
    queue.shut_down()
    assert drained() is False


def test_cancel_of_the_last_item_ends_a_drain(clock: FakeClock, background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a")
    drained = background.start(lambda: queue.shut_down_with_drain(timeout=1000))
    clock.wait_for_sleepers(1)
    assert queue.cancel("a")
    assert drained() is True


def test_drain_of_an_idle_queue_returns_at_once_and_drops_what_waits() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 100)
    assert queue.shut_down_with_drain() is True
    assert queue.statistics().dropped == 1


def test_two_drains_both_return(background: Any) -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.get()
    drains = [background.start(queue.shut_down_with_drain) for _ in range(2)]
    while not queue.shutting_down:
        threading.Event().wait(0.001)
    queue.done("a")
    assert [drain() for drain in drains] == [True, True]


def test_the_queue_keeps_no_item_it_has_handed_out() -> None:
    class Item:
        pass

    queue: WorkQueue[Item] = WorkQueue()
    item = Item()
    reference = weakref.ref(item)
    queue.add(item)
    queue.done(queue.get())
    del item
    assert reference() is None


@pytest.fixture
def hectic() -> Iterator[None]:
    """Switch threads far more often than usual."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("hectic")
def test_stress_no_item_is_lost_doubled_or_run_twice_at_once() -> None:
    queue: WorkQueue[int] = WorkQueue("stress", clock=MonotonicClock())
    running: set[int] = set()
    last_seen: dict[int, int] = {}
    version = dict.fromkeys(range(50), 0)
    trouble: list[str] = []
    guard = threading.Lock()

    def produce(seed: int) -> None:
        for step in range(2000):
            item = (seed * 7 + step * 13) % 50
            with guard:
                version[item] += 1
            if step % 3 == 0:
                queue.add_after(item, (step % 5) / 10000, priority=step % 4)
            else:
                queue.add(item, priority=step % 4)

    def consume(batch: bool) -> None:
        while True:
            try:
                items = queue.get_batch(3) if batch else [queue.get()]
            except ShutDown:
                return
            for item in items:
                with guard:
                    if item in running:
                        trouble.append(f"{item} runs twice at once")
                    running.add(item)
                    last_seen[item] = version[item]
            for item in items:
                with guard:
                    running.discard(item)
                queue.done(item)

    consumers = [threading.Thread(target=consume, args=(index == 0,)) for index in range(5)]
    producers = [threading.Thread(target=produce, args=(seed,)) for seed in range(5)]
    for thread in consumers + producers:
        thread.start()
    for thread in producers:
        thread.join()
    while queue.statistics().waiting:  # a drain would drop these
        threading.Event().wait(0.001)
    assert queue.shut_down_with_drain(timeout=LONG)
    for thread in consumers:
        thread.join(LONG)
        assert not thread.is_alive()
    assert not trouble
    assert last_seen == version  # the last add of each item was seen by a run that began after it
    seen = queue.statistics()
    assert seen.adds == seen.gets
    assert (seen.ready, seen.waiting, seen.processing, seen.pending) == (0, 0, 0, 0)
    assert (queue._getters, queue._told) == (0, 0)  # or adds would notify nobody for ever
