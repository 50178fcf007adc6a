"""The state of a work queue: what is ready, waiting, in process, and who is next. Pure and deterministic.

It takes the time as an argument, starts no thread, reads no clock and takes no lock: `WorkQueue` (threads) wraps it,
and a test can walk it step by step. `now` must never go backwards from call to call.

One item has at most one queued form, of three: *ready*, *waiting* (due later) or *pending* (due, but in process, so
that it is handed out again after `done`). Apart from that it may be in process.

Ready entries stand in one deque per priority and, in the order in which they became ready, in one more that ageing
looks at. Entries that left out of turn stay behind as dead slots and are skipped; they are swept as soon as they would
outnumber the live ones, so the cost of an operation stays constant on average and memory follows what is queued.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections import deque
from dataclasses import dataclass
from operator import index
from typing import Generic, TypeVar

from workqueue.errors import NotProcessing, UnknownItem

__all__ = ["AGEING_INTERVAL", "Entry", "QueueState", "Statistics"]

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
    """One stay of an item in the queue: from becoming ready to being done."""

    __slots__ = ("item", "live", "priority", "queued_at", "ready_at", "rerun_at", "rerun_priority", "started_at")

    def __init__(self, item: T, priority: int, ready_at: float, queued_at: float) -> None:
        self.item = item
        self.live = True  # in the ready set; False once handed out or cancelled
        self.priority = priority
        self.ready_at = ready_at
        self.queued_at = queued_at  # earlier than ready_at for a re-run: when it was asked for
        self.started_at = ready_at
        self.rerun_priority: int | None = None  # not None: a re-run is pending
        self.rerun_at = ready_at


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
        self._ready: dict[T, Entry[T]] = {}
        self._processing: dict[T, Entry[T]] = {}
        self._waiting: dict[T, _Wait[T]] = {}
        self._heap: list[tuple[float, int, _Wait[T]]] = []
        # The deques of ready entries; `_priorities` is ascending. Only the top one may be empty.
        self._top_priority = 0
        self._top: deque[Entry[T]] = deque()
        self._classes: dict[int, deque[Entry[T]]] = {0: self._top}
        self._priorities: list[int] = [0]
        self._dead_slots = 0  # in the deques of the classes
        self._by_age: deque[Entry[T]] = deque()
        self._since_aged = 0
        self._order = 0
        self.shutting_down = False
        self._adds = self._retries = self._gets = self._aged = self._cancelled = self._dropped = self._pending = 0

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
        entry = self._ready.get(item)
        if entry is not None:
            self._raise_ready(entry, priority or 0)
            return False
        running = self._processing.get(item)
        if running is not None:
            self._add_rerun(running, running.priority if priority is None else priority, now)
            return False
        if priority is None:
            priority = 0
        if self._waiting:
            wait = self._waiting.get(item)
            if wait is not None:
                self._drop_wait(wait)
                priority = max(priority, wait.priority)
        self._make_ready(Entry(item, priority, now, now))
        return True

    def add_after(self, item: T, delay: float, priority: int | None, now: float) -> bool:
        """Make `item` ready after `delay` seconds. True if it is ready now or due before all others."""
        if math.isnan(delay):
            raise ValueError("a delay cannot be NaN")
        if priority is not None:
            priority = index(priority)
        if self.shutting_down:
            self._dropped += 1
            return False
        self._retries += 1
        if delay <= 0:
            return self.add(item, priority, now)
        self._promote(now)
        entry = self._ready.get(item)
        if entry is not None:
            self._raise_ready(entry, priority or 0)
            return False
        running = self._processing.get(item)
        if priority is None:
            priority = 0 if running is None else running.priority
        if running is not None and running.rerun_priority is not None:
            self._add_rerun(running, priority, now)
            return False
        return self._wait_until(item, now + delay, priority)

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
        if self._waiting:
            wait = self._waiting.get(running.item)
            if wait is not None:
                self._drop_wait(wait)
                priority = max(priority, wait.priority)
        if running.rerun_priority is None:
            running.rerun_priority, running.rerun_at = priority, now
            self._pending += 1
            self._adds += 1
        elif priority > running.rerun_priority:
            running.rerun_priority = priority

    def _make_ready(self, entry: Entry[T]) -> None:
        self._adds += 1
        self._ready[entry.item] = entry
        self._by_age.append(entry)
        if entry.priority == self._top_priority:
            self._top.append(entry)
        else:
            self._class(entry.priority).append(entry)

    def _raise_ready(self, entry: Entry[T], priority: int) -> None:
        """A higher priority puts a ready entry at the end of its new class; its age is not touched."""
        if priority <= entry.priority:
            return
        entry.priority = priority  # which makes the slot in the old class a dead one
        self._dead_slots += 1
        self._class(priority).append(entry)
        self._sweep_classes()

    def _class(self, priority: int) -> deque[Entry[T]]:
        found = self._classes.get(priority)
        if found is not None:
            return found
        if self._top:
            new: deque[Entry[T]] = deque()
        else:  # an emptied class makes room, so that empty ones cannot pile up
            new = self._classes.pop(self._top_priority)
            self._priorities.pop()
        self._classes[priority] = new
        insort(self._priorities, priority)
        self._set_top()
        return new

    def _set_top(self) -> None:
        self._top_priority = self._priorities[-1]
        self._top = self._classes[self._top_priority]

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
                self._make_ready(Entry(wait.item, wait.priority, due, due))
            else:
                self._add_rerun(running, wait.priority, due)
        # What left may have been most of the live ones.
        self._sweep_heap()

    # -- handing out -------------------------------------------------------------------------------------------------

    def take(self, now: float) -> Entry[T] | None:
        """Hand out the next item, which is in process from then on; None if nothing is ready."""
        if self._heap:
            self._promote(now)
        ready = self._ready
        if not ready:
            return None
        by_age = self._by_age
        while not by_age[0].live:
            by_age.popleft()
        oldest = by_age[0]
        entry = self._head()
        if entry is not oldest and self._since_aged >= AGEING_INTERVAL - 1 and now - oldest.ready_at > self._max_age:
            entry = oldest
            self._since_aged = 0
            self._aged += 1
            self._dead_slots += 1
        else:
            self._top.popleft()
            self._since_aged += 1
        item = entry.item
        del ready[item]
        entry.live = False
        entry.started_at = now
        self._processing[item] = entry
        self._gets += 1
        if entry is oldest:
            by_age.popleft()
        if self._dead_slots or len(by_age) != len(ready):
            self._sweep_classes()
            self._sweep_ages()
        return entry

    def _head(self) -> Entry[T]:
        """The first live entry of the highest priority; there must be one."""
        while True:
            top, priority = self._top, self._top_priority
            while top:
                entry = top[0]
                if entry.live and entry.priority == priority:
                    return entry
                top.popleft()
                self._dead_slots -= 1
            del self._classes[priority]
            self._priorities.pop()
            self._set_top()

    def done(self, item: T, now: float) -> tuple[Entry[T], bool]:
        """End the processing of `item`. Gives its entry, and True if its pending re-run is ready now."""
        if self._heap:
            self._promote(now)  # first, for what is due by now, maybe this very item, was due while it was in process
        entry = self._processing.pop(item, None)
        if entry is None:
            raise NotProcessing(item, self._name)
        if entry.rerun_priority is None:
            return entry, False
        self._pending -= 1
        self._adds -= 1  # it was counted when it was asked for
        self._make_ready(Entry(entry.item, entry.rerun_priority, now, entry.rerun_at))
        return entry, True

    def cancel(self, item: T) -> bool:
        """Drop the queued form of `item` (ready, waiting or pending). True if there was one."""
        running = self._processing.get(item)
        if (entry := self._ready.pop(item, None)) is not None:
            entry.live = False
            self._dead_slots += 1
            self._sweep_classes()
            self._sweep_ages()
        elif (wait := self._waiting.get(item)) is not None:
            self._drop_wait(wait)
        elif running is not None and running.rerun_priority is not None:
            running.rerun_priority = None
            self._pending -= 1
        else:
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
        if self.promote(now):
            while not self._by_age[0].live:
                self._by_age.popleft()
        running = [now - entry.started_at for entry in self._processing.values()]
        return Statistics(
            ready=len(self._ready),
            waiting=len(self._waiting),
            processing=len(self._processing),
            pending=self._pending,
            adds=self._adds,
            retries=self._retries,
            gets=self._gets,
            aged=self._aged,
            cancelled=self._cancelled,
            dropped=self._dropped,
            oldest_age=now - self._by_age[0].ready_at if self._ready else 0.0,
            unfinished_seconds=sum(running),
            longest_processing=max(running, default=0.0),
            shutting_down=self.shutting_down,
        )

    # -- sweeping dead slots -----------------------------------------------------------------------------------------

    def slots(self) -> dict[str, tuple[int, int]]:
        """For each internal order the number of slots held and of live entries among them: for tests and debugging."""
        held = sum(len(one) for one in self._classes.values())
        return {
            "waiting": (len(self._heap), len(self._waiting)),
            "priority": (held, len(self._ready)),
            "age": (len(self._by_age), len(self._ready)),
        }

    def _drop_wait(self, wait: _Wait[T]) -> None:
        del self._waiting[wait.item]
        wait.order = -1
        self._sweep_heap()

    def _sweep_heap(self) -> None:
        if len(self._heap) > 2 * len(self._waiting):
            self._heap = [(wait.due, wait.order, wait) for wait in self._waiting.values()]
            heapq.heapify(self._heap)

    def _sweep_classes(self) -> None:
        if self._dead_slots <= len(self._ready):
            return
        for priority, entries in list(self._classes.items()):
            live = [entry for entry in entries if entry.live and entry.priority == priority]
            entries.clear()
            entries.extend(live)
            if not live and len(self._classes) > 1:
                del self._classes[priority]
        self._priorities = sorted(self._classes)
        self._dead_slots = 0
        self._set_top()

    def _sweep_ages(self) -> None:
        if len(self._by_age) > 2 * len(self._ready):
            self._by_age = deque(entry for entry in self._by_age if entry.live)
