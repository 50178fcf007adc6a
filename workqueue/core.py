"""The state of a work queue: what is ready, waiting, in process, and who is next. Pure and deterministic.

It takes the time as an argument, starts no thread, reads no clock and takes no lock: `WorkQueue` (threads) wraps it,
and a test can walk it step by step. `now` must never go backwards from call to call.

One item has at most one queued form, of three: *ready*, *waiting* (due later) or *pending* (due, but in process, so
that it is handed out again after `done`). Apart from that it may be in process.

Ready entries stand in the order in which they became ready, which is also what ageing looks at. While all of them are
of one priority that is the order of the queue as well. Once a second priority appears, and until nothing is ready any
more, they also stand in one class per priority. So a queue without priorities does not pay for them, and whoever uses
them pays at most once per entry for the change.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections import OrderedDict
from dataclasses import dataclass
from operator import index
from typing import Generic, TypeVar

from workqueue.errors import NotProcessing, UnhashableItem, UnknownItem

__all__ = ["AGEING_INTERVAL", "Entry", "QueueState", "Statistics", "require_hashable"]

T = TypeVar("T")

AGEING_INTERVAL = 8
"""At most one hand-out in this many goes to the longest-ready item instead of the one of highest priority."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """A snapshot of a queue. Counters count from its creation; ages and sums are seconds."""

    ready: int
    """Items that `get` would hand out now."""
    waiting: int
    """Items whose due time has not come."""
    processing: int
    """Items handed out and not done."""
    pending: int
    """Items in process that will be handed out once more after `done`."""
    adds: int
    """Times an item became ready or pending; adding one that is already there does not count."""
    retries: int
    """Calls of `add_after` and `add_rate_limited`."""
    gets: int
    """Hand-outs."""
    aged: int
    """Hand-outs that served the longest-ready item instead of the one of highest priority."""
    cancelled: int
    """Entries that `cancel` dropped."""
    dropped: int
    """Adds ignored after shutdown, and items that were waiting at shutdown."""
    oldest_age: float
    """How long the longest-ready item has been ready; 0 if none is."""
    unfinished_seconds: float
    """Sum of how long the items in process have been in process."""
    longest_processing: float
    """The longest of these."""
    shutting_down: bool


class Entry(Generic[T]):
    """One stay of an item in the queue: from being asked for to being done.

    It has no `__init__`, which would make an `add` a quarter slower: whoever makes one sets the attributes.
    """

    __slots__ = ("item", "priority", "queued_at", "ready_at", "started_at")

    item: T
    priority: int
    queued_at: float  # when it was asked for or, if that is later, due
    ready_at: float  # later than that for a re-run: when the run before it was done
    started_at: float  # only of an entry in process


def _entry(item: T, priority: int, at: float) -> Entry[T]:
    entry: Entry[T] = Entry()
    entry.item = item
    entry.priority = priority
    entry.queued_at = entry.ready_at = at
    return entry


class _Wait(Generic[T]):
    """An item that is due later. Its slot in the heap is the one with the same `order`; any other is stale."""

    __slots__ = ("due", "item", "order", "priority")

    def __init__(self, item: T, order: int, priority: int, due: float) -> None:
        self.item = item
        self.order = order
        self.priority = priority
        self.due = due


class QueueState(Generic[T]):
    """The rules of the queue. Not thread-safe: the shell holds one lock around each call.

    :param max_priority_age: see `WorkQueue`; None turns ageing off.
    """

    def __init__(self, *, max_priority_age: float | None = 30.0, name: str = "") -> None:
        if max_priority_age is not None and not max_priority_age >= 0:
            raise ValueError(f"max_priority_age must be at least 0 or None, not {max_priority_age!r}")
        self._name = name
        self._max_age = math.inf if max_priority_age is None else max_priority_age
        self._ready: OrderedDict[T, Entry[T]] = OrderedDict()  # in the order in which they became ready
        self._processing: dict[T, Entry[T]] = {}
        self._pending: dict[T, Entry[T]] = {}  # the re-runs of what is in process
        self._waiting: dict[T, _Wait[T]] = {}
        self._heap: list[tuple[float, int, _Wait[T]]] = []
        # Either there are no classes, and all that is ready has this priority ...
        self._only_priority = 0
        # ... or each ready entry is in its class too. None is empty; `_priorities` has theirs, ascending.
        self._classes: dict[int, OrderedDict[T, Entry[T]]] = {}
        self._priorities: list[int] = []
        self._order = 0
        self.shutting_down = False
        self._adds = self._retries = self._gets = self._aged = self._cancelled = self._dropped = 0
        self._gets_when_aged = 0  # how many hand-outs there had been after the last that ageing chose

    # -- adding ------------------------------------------------------------------------------------------------------

    def add(self, item: T, priority: int | None, now: float) -> bool:
        """Make `item` ready now. True if it became ready (somebody who waits for an item should look)."""
        if priority is not None:
            priority = index(priority)  # what does not compare with other priorities would break the order for all
        if self.shutting_down:
            self._dropped += 1
            return False
        if self._heap:
            self._promote(now)
        ready = self._ready
        try:
            already = item in ready  # faster than `get`, and nearly always False
        except TypeError:
            require_hashable(item, self._name)
            raise
        if already:
            entry = ready[item]
            if (priority or 0) > entry.priority:
                self._raise_ready(entry, priority or 0)
            return False
        if self._processing:
            running = self._processing.get(item)
            if running is not None:
                self._add_rerun(running, running.priority if priority is None else priority, now)
                return False
        if priority is None:
            priority = 0
        if self._waiting:
            priority = self._stop_waiting(item, priority)
        self._adds += 1
        # What `_make_ready(_entry(item, priority, now))` does, without the calls: this is the path of nearly all adds.
        ready[item] = entry = Entry()
        entry.item = item
        entry.priority = priority
        entry.queued_at = entry.ready_at = now
        if self._classes:
            self._enter_class(entry)
        elif priority != self._only_priority:
            self._open_classes(entry)
        return True

    def add_after(self, item: T, delay: float, priority: int | None, now: float) -> bool:
        """Make `item` ready after `delay` seconds. True if it is ready now or due before all others."""
        if math.isnan(delay):
            raise ValueError("a delay cannot be NaN")
        due = now + delay
        if priority is not None:
            priority = index(priority)
        require_hashable(item, self._name)
        if self.shutting_down:
            self._dropped += 1
            return False
        self._retries += 1
        if delay <= 0:
            return self.add(item, priority, now)
        if self._heap:
            self._promote(now)
        entry = self._ready.get(item)
        if entry is not None:
            if (priority or 0) > entry.priority:
                self._raise_ready(entry, priority or 0)
            return False
        running = self._processing.get(item)
        if priority is None:
            priority = 0 if running is None else running.priority
        if running is not None and item in self._pending:
            self._add_rerun(running, priority, now)
            return False
        return self._wait_until(item, due, priority)

    def _wait_until(self, item: T, due: float, priority: int) -> bool:
        wait = self._waiting.get(item)
        if wait is not None:
            wait.priority = max(wait.priority, priority)
            if due >= wait.due:
                return False
        earliest = due < self.next_due()
        self._order += 1
        if wait is None:
            wait = self._waiting[item] = _Wait(item, self._order, priority, due)
        else:
            wait.order, wait.due = self._order, due
        heapq.heappush(self._heap, (due, self._order, wait))
        self._sweep_heap()
        return earliest

    def _add_rerun(self, running: Entry[T], priority: int, now: float) -> None:
        """`running` is asked for again: it will be handed out once more after `done`, whatever was asked for before."""
        priority = self._stop_waiting(running.item, priority)
        rerun = self._pending.get(running.item)
        if rerun is None:
            self._adds += 1
            self._pending[running.item] = _entry(running.item, priority, now)
        elif priority > rerun.priority:
            rerun.priority = priority

    def _stop_waiting(self, item: T, priority: int) -> int:
        """The item need not wait any more, if it did. Gives the higher of `priority` and what it waited with."""
        wait = self._waiting.get(item)
        if wait is None:
            return priority
        self._drop_wait(wait)
        return max(priority, wait.priority)

    def _make_ready(self, entry: Entry[T]) -> None:
        self._ready[entry.item] = entry
        if self._classes:
            self._enter_class(entry)
        elif entry.priority != self._only_priority:
            self._open_classes(entry)

    # -- priorities --------------------------------------------------------------------------------------------------

    def _open_classes(self, entry: Entry[T]) -> None:
        """The latest ready entry is of another priority than those before it, if there are any."""
        if len(self._ready) == 1:
            self._only_priority = entry.priority
            return
        others = self._ready.copy()
        others.popitem()
        self._classes[self._only_priority] = others
        self._priorities.append(self._only_priority)
        self._enter_class(entry)

    def _raise_ready(self, entry: Entry[T], priority: int) -> None:
        """A higher priority puts a ready entry at the end of its new class; its age is not touched."""
        if not self._classes:
            self._classes[entry.priority] = self._ready.copy()
            self._priorities.append(entry.priority)
        self._leave_class(entry)
        entry.priority = priority
        self._enter_class(entry)

    def _enter_class(self, entry: Entry[T]) -> None:
        found = self._classes.get(entry.priority)
        if found is None:
            found = self._classes[entry.priority] = OrderedDict()
            insort(self._priorities, entry.priority)
        found[entry.item] = entry

    def _leave_class(self, entry: Entry[T]) -> None:
        left = self._classes[entry.priority]
        del left[entry.item]
        if not left:
            del self._classes[entry.priority]
            del self._priorities[bisect_left(self._priorities, entry.priority)]

    # -- the passing of time -----------------------------------------------------------------------------------------

    def next_due(self) -> float:
        """When the first waiting item is due; infinity if none waits."""
        heap = self._heap
        while heap:
            due, order, wait = heap[0]
            if wait.order == order:
                return due
            heapq.heappop(heap)
        return math.inf

    def promote(self, now: float) -> bool:
        """Make what is due by `now` ready, or pending if it is in process. True if something is ready."""
        if self._heap:
            self._promote(now)
        return bool(self._ready)

    def _promote(self, now: float) -> None:
        heap = self._heap
        while heap and heap[0][0] <= now:
            due, order, wait = heapq.heappop(heap)
            if wait.order != order:
                continue
            del self._waiting[wait.item]
            running = self._processing.get(wait.item)
            if running is None:
                self._adds += 1
                self._make_ready(_entry(wait.item, wait.priority, due))
            else:
                self._add_rerun(running, wait.priority, due)
        # What left may have been most of the live ones.
        self._sweep_heap()

    # -- handing out -------------------------------------------------------------------------------------------------

    def take(self, now: float) -> Entry[T] | None:
        """Hand out the next item, which is in process from then on; None if nothing is ready."""
        if self._heap:
            self._promote(now)
        if not self._ready:
            return None
        entry = self._choose(now) if self._classes else self._ready.popitem(False)[1]
        entry.started_at = now
        self._processing[entry.item] = entry
        self._gets += 1
        return entry

    def take_batch(self, limit: int, now: float) -> list[Entry[T]]:
        """What up to `limit` calls of `take` would hand out."""
        if self._heap:
            self._promote(now)
        ready, processing = self._ready, self._processing
        entries: list[Entry[T]] = []
        for _ in range(min(limit, len(ready))):
            entry = self._choose(now) if self._classes else ready.popitem(False)[1]
            entry.started_at = now
            processing[entry.item] = entry
            self._gets += 1  # one by one, since ageing counts them
            entries.append(entry)
        return entries

    def _choose(self, now: float) -> Entry[T]:
        """Take out the longest-ready entry, if its turn has come, or else the first one of the highest priority."""
        if self._gets - self._gets_when_aged >= AGEING_INTERVAL - 1:
            aged = self._choose_aged(now)
            if aged is not None:
                return aged
        priority = self._priorities[-1]
        top = self._classes[priority]
        entry = top.popitem(False)[1]
        del self._ready[entry.item]
        if not top:
            del self._classes[priority]
            self._priorities.pop()
        return entry

    def _choose_aged(self, now: float) -> Entry[T] | None:
        oldest = next(iter(self._ready.values()))
        if not now - oldest.ready_at > self._max_age:
            return None
        if oldest is next(iter(self._classes[self._priorities[-1]].values())):
            return None  # its turn has come without that
        self._aged += 1
        self._gets_when_aged = self._gets + 1  # this one too
        del self._ready[oldest.item]
        self._leave_class(oldest)
        return oldest

    def done(self, item: T, now: float) -> tuple[Entry[T], bool]:
        """End the processing of `item`. Gives its entry, and True if its pending re-run is ready now."""
        if self._heap:
            self._promote(now)  # first, for what is due by now, maybe this very item, was due while it was in process
        entry = self._processing.pop(item, None)
        if entry is None:
            raise NotProcessing(item, self._name)
        rerun = self._pending.pop(item, None) if self._pending else None
        if rerun is None:
            return entry, False
        rerun.ready_at = now
        self._make_ready(rerun)
        return entry, True

    def cancel(self, item: T, now: float) -> bool:
        """Drop the queued form of `item` (ready, waiting or pending). True if there was one."""
        if self._heap:
            self._promote(now)  # first, for what is due by now has become ready, and counts as added
        if (entry := self._ready.pop(item, None)) is not None:
            if self._classes:
                self._leave_class(entry)
        elif (wait := self._waiting.get(item)) is not None:
            self._drop_wait(wait)
        elif self._pending.pop(item, None) is None:
            return False
        self._cancelled += 1
        return True

    def shut_down(self, now: float) -> None:
        """Accept nothing any more. What is due by now stays; what waits is dropped and counted."""
        self._promote(now)
        self.shutting_down = True
        self._dropped += len(self._waiting)
        self._waiting.clear()
        self._heap.clear()

    # -- asking ------------------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """True if nothing is ready and nothing in process. After shutdown it stays so."""
        return not self._ready and not self._processing

    def ready_count(self) -> int:
        """How many items are ready, as of the last call that was given the time."""
        return len(self._ready)

    def knows(self, item: T) -> bool:
        """True if the item is queued or in process."""
        return item in self._ready or item in self._processing or item in self._waiting

    def priority(self, item: T) -> int:
        """The priority of an item in process (of its run) or else queued; raises `UnknownItem`."""
        entry = self._processing.get(item) or self._ready.get(item) or self._waiting.get(item)
        if entry is None:
            raise UnknownItem(item, self._name)
        return entry.priority

    def statistics(self, now: float) -> Statistics:
        """Promote what is due, then count."""
        self.promote(now)
        running = [now - entry.started_at for entry in self._processing.values()]
        return Statistics(
            ready=len(self._ready),
            waiting=len(self._waiting),
            processing=len(self._processing),
            pending=len(self._pending),
            adds=self._adds,
            retries=self._retries,
            gets=self._gets,
            aged=self._aged,
            cancelled=self._cancelled,
            dropped=self._dropped,
            oldest_age=now - next(iter(self._ready.values())).ready_at if self._ready else 0.0,
            unfinished_seconds=sum(running, 0.0),
            longest_processing=max(running, default=0.0),
            shutting_down=self.shutting_down,
        )

    # -- sweeping dead slots -----------------------------------------------------------------------------------------

    def slots(self) -> dict[str, tuple[int, int]]:
        """For each internal order the number of slots held and of live entries among them: for tests and debugging."""
        return {
            "waiting": (len(self._heap), len(self._waiting)),
            "priority": (sum(len(one) for one in self._classes.values()) or len(self._ready), len(self._ready)),
        }

    def _drop_wait(self, wait: _Wait[T]) -> None:
        del self._waiting[wait.item]
        wait.order = -1
        self._sweep_heap()

    def _sweep_heap(self) -> None:
        if len(self._heap) > 2 * len(self._waiting):
            self._heap = [(wait.due, wait.order, wait) for wait in self._waiting.values()]
            heapq.heapify(self._heap)


def require_hashable(item: object, queue: str) -> None:
    """Raises UnhashableItem. `queue` is the name of the one that it was meant for."""
    try:
        hash(item)
    except TypeError as error:
        raise UnhashableItem(item, queue) from error
