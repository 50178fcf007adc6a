"""What makes no sense is refused before anything changes, and foreign code that fails costs nobody an item."""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Callable, Hashable
from typing import Any

import pytest

from workqueue import BucketRateLimiter, MonotonicClock, NotProcessing, UnhashableItem, WorkQueue, WorkQueueError
from workqueue.metrics import QueueMetrics
from workqueue.testing import FakeClock

NOT_INTEGERS: list[Any] = ["high", 1.5, math.nan, [1], object()]


@pytest.mark.parametrize("priority", NOT_INTEGERS, ids=repr)
@pytest.mark.parametrize("call", ["add", "add_after", "add_rate_limited"])
@pytest.mark.parametrize("already", [(), ("b",)], ids=["empty", "ready"])
def test_a_priority_that_is_no_integer_is_refused_and_the_queue_goes_on(
    priority: Any, call: str, already: tuple[str, ...]
) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=FakeClock())
    for item in ("a", *already):
        queue.add(item, priority=1)
    arguments = (0.0,) if call == "add_after" else ()
    with pytest.raises(TypeError):
        getattr(queue, call)("b", *arguments, priority=priority)
    queue.add("c", priority=2)
    assert queue.get_batch(9, timeout=0) == ["c", "a", *already]


def test_integers_of_any_size_are_priorities() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for priority in (10**30, -(10**30), True):
        queue.add(str(priority), priority=priority)
    assert queue.get_batch(9, timeout=0) == [str(10**30), "True", str(-(10**30))]


def test_a_timeout_of_nan_is_refused_instead_of_spinning() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for wait in (queue.get, lambda timeout: queue.get_batch(1, timeout)):
        with pytest.raises(ValueError, match="NaN"):
            wait(math.nan)
    queue.add("a")
    queue.get(timeout=0)
    with pytest.raises(ValueError, match="NaN"):
        queue.shut_down_with_drain(math.nan)
    assert not queue.shutting_down


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1])
def test_a_fake_clock_goes_forward_by_a_number_of_seconds(seconds: float) -> None:
    clock = FakeClock(5)
    with pytest.raises(ValueError, match="clock"):
        clock.advance(seconds)
    assert clock.now() == 5


def test_a_fake_clock_starts_at_a_number() -> None:
    with pytest.raises(ValueError, match="nan"):
        FakeClock(math.nan)


@pytest.mark.parametrize("clock", [MonotonicClock(), FakeClock()], ids=["real", "fake"])
def test_no_clock_waits_for_nan_seconds(clock: Any) -> None:
    condition = threading.Condition()
    with condition, pytest.raises(ValueError, match="NaN"):
        clock.wait(condition, math.nan)


def test_a_bucket_has_a_number_of_tokens() -> None:
    with pytest.raises(ValueError, match="burst"):
        BucketRateLimiter(1.0, math.nan)  # type: ignore[arg-type]


def test_an_unhashable_item_is_refused_by_name_and_not_counted() -> None:
    queue: WorkQueue[Any] = WorkQueue("q")
    calls: list[Callable[[Any], None]] = [
        queue.add,
        lambda item: queue.add_after(item, 5),
        lambda item: queue.add_after(item, 0),
        queue.add_rate_limited,
    ]
    for add in calls:
        with pytest.raises(TypeError, match=r"\['x'\] is not hashable.* in work queue 'q'") as caught:
            add(["x"])
        assert isinstance(caught.value, UnhashableItem)
        assert caught.value.item == ["x"]
    assert len(queue) == 0
    assert queue.statistics().retries == 0


def test_an_item_that_compares_badly_is_not_called_unhashable() -> None:
    class Odd:
        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            raise TypeError("incomparable")

    queue: WorkQueue[Odd] = WorkQueue()
    queue.add(Odd())
    with pytest.raises(TypeError, match="incomparable"):
        queue.add(Odd())


def test_errors_call_no_repr_until_they_are_read_and_can_be_pickled() -> None:
    queue: WorkQueue[Hashable] = WorkQueue("q")

    class Nosy:
        def __repr__(self) -> str:
            return f"one of {len(queue)}"  # takes the queue's lock

    for wrong in (queue.done, queue.priority):
        with pytest.raises(WorkQueueError, match="one of 0"):
            wrong(Nosy())
    copied = pickle.loads(pickle.dumps(NotProcessing("a", "q")))
    assert (str(copied), copied.item, copied.queue) == ("'a' is not in process in work queue 'q'", "a", "q")


class BrokenMetrics:
    def queue(self, name: str, statistics: object) -> QueueMetrics:
        return self

    def observe_queue_duration(self, seconds: float) -> None:
        raise RuntimeError("full")

    observe_work_duration = observe_queue_duration


def test_metrics_that_fail_are_logged_and_the_item_still_gets_to_its_worker(caplog: pytest.LogCaptureFixture) -> None:
    queue: WorkQueue[str] = WorkQueue("q", metrics=BrokenMetrics())
    queue.add("a")
    queue.add("b")
    assert [queue.get(timeout=0), *queue.get_batch(2, timeout=0)] == ["a", "b"]
    queue.done("a")
    queue.done("b")
    assert queue.statistics().processing == 0
    assert caplog.text.count("the metrics failed") == 4
