"""`check_log`: whether the calls in a `WorkLog` can have happened on a queue that keeps its rules.

A call takes effect once, somewhere between its start and its end. One call is surely before another if it ended before
the other started. Everything here is built on that, so what two threads did at one time is never held against them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from workqueue.core import Statistics
from workqueue.testing.work_log import Event, Kind

__all__ = ["LogRefused", "LogSummary", "check_log"]


class LogRefused(AssertionError):
    """No queue that keeps the rules can have had this log."""


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What an accepted log consists of."""

    items: int
    adds: int
    """Calls of `add`."""
    retries: int
    """Calls of `add_after` and `add_rate_limited`."""
    gets: int
    cancelled: int
    repeated: int
    """Hand-outs of items that had been handed out before."""


@dataclass(frozen=True, slots=True)
class _Closing:
    """When the queue was shut down, at the earliest and at the latest; infinity if it was not."""

    start: float
    end: float


def check_log(events: Iterable[Event], statistics: Statistics | None = None) -> LogSummary:
    """Raise `LogRefused` unless the log can be that of a queue which keeps the rules.

    They are: an item is never in two workers at once; each hand-out was asked for, after the last one and early enough
    for its delay; what was added before shutdown is handed out at or after its last add, or is cancelled, or waited at
    shutdown; what was added after shutdown is not handed out; when a drain ended, all was done.

    The workers must have gone on until `get` raised `ShutDown`.

    :param statistics: of the queue at the end; its counts must be those of the log, with nothing left
    """
    by_item: defaultdict[int, list[Event]] = defaultdict(list)
    closings, drains, everything = [], [], sorted(events, key=lambda event: event.start)
    for event in everything:
        if event.kind in (Kind.SHUT_DOWN, Kind.DRAIN):
            closings.append(event)
        else:
            by_item[event.item].append(event)
        if event.kind is Kind.DRAIN:
            drains.append(event)
    # A drain shuts down when it starts, and ends much later.
    ends = [math.inf if event.kind is Kind.DRAIN else event.end for event in closings]
    closing = _Closing(min((event.start for event in closings), default=math.inf), min(ends, default=math.inf))
    for item, calls in by_item.items():
        _check_item(item, calls, closing)
    for drain in drains:
        late = [event for event in everything if event.kind in (Kind.GET, Kind.DONE) and event.start > drain.end]
        if late:
            raise LogRefused(f"the drain ended at {drain.end}, but {_told(late[0])}")
    count = {kind: sum(event.kind is kind for event in everything) for kind in Kind}
    if statistics is not None:
        _check_counts(everything, count, statistics, closing)
    handed_out = sum(any(call.kind is Kind.GET for call in calls) for calls in by_item.values())
    return LogSummary(
        items=len(by_item),
        adds=count[Kind.ADD],
        retries=count[Kind.RETRY],
        gets=count[Kind.GET],
        cancelled=count[Kind.CANCEL],
        repeated=count[Kind.GET] - handed_out,
    )


def _check_item(item: int, calls: list[Event], closing: _Closing) -> None:
    adds = [call for call in calls if call.kind in (Kind.ADD, Kind.RETRY)]
    gets = sorted((call for call in calls if call.kind is Kind.GET), key=lambda call: call.end)
    done = [call for call in calls if call.kind is Kind.DONE]
    cancels = [call for call in calls if call.kind is Kind.CANCEL]
    _check_runs(item, gets, done)
    _check_reasons(item, gets, adds, cancels, closing)
    last = max((call.end for call in (*gets, *cancels)), default=-math.inf)
    for add in adds:
        may_be_dropped = add.end + add.delay >= closing.start
        if last < add.start and not may_be_dropped:
            raise LogRefused(f"{item} was lost: {_told(add)}, and it was neither handed out nor cancelled after that")


def _check_runs(item: int, gets: list[Event], done: list[Event]) -> None:
    """The n-th run ends with the n-th `done`, and the next one starts after that."""
    if len(gets) != len(done):
        raise LogRefused(f"{item} was handed out {len(gets)} times and done {len(done)} times")
    for get, end, following in zip(gets, done, [*gets, None][1:], strict=True):
        if end.start < get.end:
            raise LogRefused(f"{item} was done before it was handed out: {_told(end)}, {_told(get)}")
        if following is not None and following.end < end.start:
            raise LogRefused(f"{item} was in two workers at once: {_told(following)}, and {_told(end)}")


def _check_reasons(item: int, gets: list[Event], adds: list[Event], cancels: list[Event], closing: _Closing) -> None:
    """Each hand-out needs an add that was not used up before, nor too late, nor too far ahead."""
    used_up = -math.inf  # what ended before this went with the run before
    for get in gets:
        for cancel in cancels:
            if cancel.end < get.start:
                used_up = max(used_up, cancel.start)
        fresh = [add for add in adds if add.end >= used_up and add.start <= min(get.end, closing.end)]
        if not fresh:
            raise LogRefused(f"{item} was handed out without having been added since {used_up}: {_told(get)}")
        due = min(add.start + max(add.delay, 0.0) for add in fresh)
        if due > get.end:
            raise LogRefused(f"{item} was handed out early: it was due at {due}, {_told(get)}")
        used_up = max(used_up, get.start)


def _check_counts(events: list[Event], count: dict[Kind, int], statistics: Statistics, closing: _Closing) -> None:
    asked = [event for event in events if event.kind in (Kind.ADD, Kind.RETRY)]
    surely_late = sum(event.start > closing.end for event in asked)
    may_be_dropped = sum(event.end + event.delay >= closing.start for event in asked)
    retries = [event for event in asked if event.kind is Kind.RETRY]
    possible = {
        "ready": (0, 0),
        "waiting": (0, 0),
        "processing": (0, 0),
        "pending": (0, 0),
        "gets": (count[Kind.GET], count[Kind.GET]),
        "cancelled": (count[Kind.CANCEL], count[Kind.CANCEL]),
        # Each entry left by a hand-out or was cancelled; one that was cancelled while it waited was none yet.
        "adds": (count[Kind.GET], count[Kind.GET] + count[Kind.CANCEL]),
        "retries": (
            sum(event.end < closing.start for event in retries),
            sum(event.start <= closing.end for event in retries),
        ),
        "dropped": (surely_late, may_be_dropped),
    }
    for name, (least, most) in possible.items():
        value = getattr(statistics, name)
        if not least <= value <= most:
            raise LogRefused(f"statistics().{name} is {value}; by the log it is from {least} to {most}")


def _told(event: Event) -> str:
    after = f", delay {event.delay}" if event.delay else ""
    return f"{event.kind.value}({event.item}{after}) from {event.start} to {event.end}"
