"""`QueueModel`: the rules of the work queue, written to be read. It keeps one list of items and scans it.

It is the yardstick of the kit (`workqueue.testing.machine`): too simple to be wrong, far too slow to be used. Time does
not pass but by `advance`, and what is due is ready at that moment, whether anybody looks or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workqueue.core import AGEING_INTERVAL

__all__ = ["QueueModel", "Queued", "Run", "exponential"]

Moment = tuple[float, int]
"""A time, and which call it was: the order of calls decides among equal times."""


@dataclass(slots=True)
class Queued:
    """What the queue holds of an item apart from its run. Not due: it waits. Due: ready, or pending if it runs."""

    priority: int
    due: float
    waits: bool
    ready_at: Moment
    """When it became ready: what ageing goes by."""
    place: Moment
    """When it came into its class of priority: what goes first there."""
    asked_at: float
    """When it was asked for or, if that is later, due: what the queue duration counts from."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the queue knows of an item in process."""

    priority: int
    started_at: float


def exponential(failures: int) -> float:
    """The delay after so many earlier failures: 1, 2, 4 ... 1000 seconds."""
    return min(2.0**failures, 1000.0)


class QueueModel:
    """What a work queue of the given settings has to answer. Items are ints.

    :param max_priority_age: see `WorkQueue`; None for strictly by priority
    :param retry_delay: what the rate limiter answers after so many earlier failures of an item
    """

    def __init__(
        self, *, max_priority_age: float | None = None, retry_delay: Callable[[int], float] = exponential
    ) -> None:
        self.now = 0.0
        self.queued: dict[int, Queued] = {}
        self.running: dict[int, Run] = {}
        self.failures: dict[int, int] = {}
        self.shutting_down = False
        self._max_age = max_priority_age
        self._retry_delay = retry_delay
        self._calls = 0
        self._since_aged = 0
        self._adds = self._retries = self._gets = self._aged = self._cancelled = self._dropped = self._ended = 0
        self._queue_seconds = self._work_seconds = 0.0

    # -- what the queue does -----------------------------------------------------------------------------------------

    def add(self, item: int, priority: int | None = None) -> None:
        """See `WorkQueue.add`."""
        if self.shutting_down:
            self._dropped += 1
        else:
            self._add(item, 0.0, priority)

    def add_after(self, item: int, delay: float, priority: int | None = None) -> None:
        """See `WorkQueue.add_after`."""
        if self.shutting_down:
            self._dropped += 1
        else:
            self._retries += 1
            self._add(item, delay, priority)

    def add_rate_limited(self, item: int, priority: int | None = None) -> None:
        """See `WorkQueue.add_rate_limited`."""
        delay = 0.0
        if not self.shutting_down:
            failures = self.failures.get(item, 0)
            self.failures[item] = failures + 1
            delay = self._retry_delay(failures)
        self.add_after(item, delay, priority)

    def _add(self, item: int, delay: float, priority: int | None) -> None:
        self._calls += 1
        due = self.now + max(delay, 0.0)
        moment = (due, self._calls)
        if priority is None:
            priority = self.running[item].priority if item in self.running else 0
        entry = self.queued.get(item)
        if entry is None:
            entry = self.queued[item] = Queued(priority, due, True, moment, moment, due)
        if priority > entry.priority:
            entry.priority = priority
            entry.place = (self.now, self._calls)
        if entry.waits and due < entry.due:
            entry.due, entry.ready_at = due, moment
        self._let_fall_due()

    def _let_fall_due(self) -> None:
        for entry in self.queued.values():
            if entry.waits and entry.due <= self.now:
                entry.waits = False
                entry.place = entry.ready_at = (entry.due, entry.ready_at[1])
                entry.asked_at = entry.due
                self._adds += 1

    def take(self, item: int) -> None:
        """Hand out `item`, which must be ready; `next` says which one it should be."""
        if item not in self.ready():
            raise ValueError(f"{item} is not ready")
        if self._is_aged(item):
            self._since_aged = 0
            self._aged += 1
        else:
            self._since_aged += 1
        entry = self.queued.pop(item)
        self.running[item] = Run(entry.priority, self.now)
        self._gets += 1
        self._queue_seconds += self.now - entry.asked_at

    def done(self, item: int) -> None:
        """See `WorkQueue.done`; the item must be in process."""
        self._calls += 1
        run = self.running.pop(item)
        self._ended += 1
        self._work_seconds += self.now - run.started_at
        entry = self.queued.get(item)
        if entry is not None and not entry.waits:
            entry.place = entry.ready_at = (self.now, self._calls)

    def forget(self, item: int) -> None:
        """See `WorkQueue.forget`."""
        self.failures.pop(item, None)

    def cancel(self, item: int) -> bool:
        """See `WorkQueue.cancel`."""
        if self.queued.pop(item, None) is None:
            return False
        self._cancelled += 1
        return True

    def shut_down(self) -> None:
        """See `WorkQueue.shut_down`."""
        self.shutting_down = True
        self._dropped += len(self.waiting())
        self.queued = {item: entry for item, entry in self.queued.items() if not entry.waits}

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self._let_fall_due()

    # -- what there is -----------------------------------------------------------------------------------------------

    def ready(self) -> dict[int, Queued]:
        """What `get` may hand out now."""
        return {item: entry for item, entry in self.queued.items() if not entry.waits and item not in self.running}

    def waiting(self) -> dict[int, Queued]:
        """What is due later."""
        return {item: entry for item, entry in self.queued.items() if entry.waits}

    def pending(self) -> dict[int, Queued]:
        """What is handed out once more after `done`."""
        return {item: entry for item, entry in self.queued.items() if not entry.waits and item in self.running}

    @property
    def idle(self) -> bool:
        """True when a drain has nothing to wait for."""
        return not self.ready() and not self.running

    def next(self) -> int | None:
        """The item that `get` has to hand out now; None if none is ready."""
        if not self.ready():
            return None
        oldest = self._oldest()
        return oldest if self._is_aged(oldest) else self._first()

    def _first(self) -> int:
        ready = self.ready()
        return min(ready, key=lambda item: (-ready[item].priority, ready[item].place))

    def _oldest(self) -> int:
        ready = self.ready()
        return min(ready, key=lambda item: ready[item].ready_at)

    def _is_aged(self, item: int) -> bool:
        """Whether `item` goes first because of its age and not of its priority."""
        age = self.now - self.queued[item].ready_at[0]
        turn = self._max_age is not None and self._since_aged >= AGEING_INTERVAL - 1 and age > self._max_age
        return turn and item == self._oldest() != self._first()

    def priority(self, item: int) -> int | None:
        """See `WorkQueue.priority`; None if the item is neither queued nor in process."""
        if item in self.running:
            return self.running[item].priority
        return self.queued[item].priority if item in self.queued else None

    def num_requeues(self, item: int) -> int:
        """See `WorkQueue.num_requeues`."""
        return self.failures.get(item, 0)

    def numbers(self) -> dict[str, float]:
        """Everything that can be counted, by the names of `Statistics` and of the metrics as a scrape shows them."""
        ready, pending = self.ready(), len(self.pending())
        running = [self.now - run.started_at for run in self.running.values()]
        statistics: dict[str, float] = {
            "ready": len(ready),
            "waiting": len(self.waiting()),
            "processing": len(running),
            "pending": pending,
            "adds": self._adds,
            "retries": self._retries,
            "gets": self._gets,
            "aged": self._aged,
            "cancelled": self._cancelled,
            "dropped": self._dropped,
            "oldest_age": max([self.now - entry.ready_at[0] for entry in ready.values()], default=0.0),
            "unfinished_seconds": sum(running),
            "longest_processing": max(running, default=0.0),
            "shutting_down": self.shutting_down,
        }
        metrics: dict[str, float] = {
            "workqueue_depth": len(ready) + pending,
            "workqueue_adds_total": self._adds,
            "workqueue_retries_total": self._retries,
            "workqueue_queue_duration_seconds_count": self._gets,
            "workqueue_queue_duration_seconds_sum": self._queue_seconds,
            "workqueue_work_duration_seconds_count": self._ended,
            "workqueue_work_duration_seconds_sum": self._work_seconds,
            "workqueue_unfinished_work_seconds": sum(running),
            "workqueue_longest_running_processor_seconds": max(running, default=0.0),
        }
        return {**statistics, **metrics}

    def told(self) -> list[str]:
        """All that is in the queue, a line each, for reading."""
        lines = []
        for item, entry in sorted(self.queued.items()):
            state = f"waits until t={entry.due:g}" if entry.waits else f"ready since t={entry.ready_at[0]:g}"
            if not entry.waits and item in self.running:
                state = "to be handed out once more"
            lines.append(f"{item} {state}, priority {entry.priority}")
        for item, run in sorted(self.running.items()):
            lines.append(f"{item} in process since t={run.started_at:g}, priority {run.priority}")
        return lines or ["nothing is queued or in process"]
