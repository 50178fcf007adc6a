"""`queue_machine`: a Hypothesis state machine that holds any work queue to the rules of `QueueModel`. Needs hypothesis.

Hypothesis plays adds, hand-outs, cancellations, the passing of time, calls that wait, shutdown and drain in any order
on the queue and on the model, and shrinks what fails. `RuleBroken` then tells the story of the steps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from workqueue.core import AGEING_INTERVAL
from workqueue.testing.adapter import Call, Capabilities, QueueAdapter, check_adapter
from workqueue.testing.model import QueueModel, exponential
from workqueue.testing.waiting import wait_until_finished

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
except ModuleNotFoundError as error:
    raise ImportError(f"workqueue.testing.machine needs hypothesis ({error}): pip install hypothesis") from error

__all__ = ["RuleBroken", "queue_machine"]

ITEMS = range(5)
WAITING_GETS = 3


def queue_machine(
    make_adapter: Callable[[], QueueAdapter],
    *,
    capabilities: Capabilities | None = None,
    max_priority_age: float | None = None,
    retry_delay: Callable[[int], float] = exponential,
    patience: float = 10.0,
) -> type[RuleBasedStateMachine]:
    """A state machine that fails with `RuleBroken` if the queue does not do what the rules of `WorkQueue` say.

    It holds the queue to these: an item is never handed out to two workers at once, and never without having been asked
    for; what was added before shutdown is handed out, cancelled or (if it waits) dropped at shutdown; an item is queued
    at most once, and once more while it is in process; nothing is handed out before it is due; the order is that of
    priorities, ages and times; a call that waits ends exactly when it should; each of `numbers()` is right.

    Run it as any state machine of Hypothesis: `run_state_machine_as_test(machine, settings=...)`, or
    `TestMyQueue = machine.TestCase` for pytest and unittest, with `TestMyQueue.settings`. An example takes about a
    millisecond a step on a queue in memory; a hundred examples of 50 steps find most faults.

    :param make_adapter: makes an adapter with a new, empty queue for each example; the class of the adapter will do
    :param capabilities: what the queue can do; by default everything that `WorkQueue` can
    :param max_priority_age: the queue's own; None if it does not know ageing. A few seconds test most
    :param retry_delay: what the queue's rate limiter answers after so many earlier failures of an item; by default it
        has to be exponential from 1 s to 1000 s
    :param patience: real seconds within which a call that has to end must have ended
    :raises TypeError: on the first example, if the adapter lacks a method that the capabilities need
    """
    given = Capabilities() if capabilities is None else capabilities
    ages = max_priority_age if given.priorities and given.order else None
    settings = _Settings(make_adapter, given, ages, retry_delay, patience)

    class QueueMachine(_QueueMachine):
        settings_of_queue = settings

    return QueueMachine


class RuleBroken(AssertionError):
    """The queue did not do what the rules say. The message tells what, and the steps that led there."""


@dataclass(frozen=True, slots=True)
class _Settings:
    make_adapter: Callable[[], QueueAdapter]
    capabilities: Capabilities
    max_priority_age: float | None
    retry_delay: Callable[[int], float]
    patience: float

    @property
    def timed(self) -> bool:
        return self.capabilities.delays or self.capabilities.rate_limits or self.max_priority_age is not None


@dataclass(frozen=True, slots=True)
class _Get:
    """A `get` that waits. All that wait at one time have the same deadline, so that it is the same who gets what."""

    call: Call[list[int] | None]
    limit: int
    deadline: float


@dataclass(frozen=True, slots=True)
class _Drain:
    call: Call[bool]
    deadline: float


# -- what is drawn; `runner` gives the machine -------------------------------------------------------------------------

NONE = st.none()
PRIORITIES = NONE | st.integers(-2, 2)
# Never whole numbers, as all other times are: what is due and what times out do not fall together.
TIMEOUTS = NONE | st.sampled_from((0.5, 1.5, 2.5, 3.5, 4.5))


@cache
def _one_of(choices: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(choices)


def _drawn(choose: Callable[[Any], st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    return st.runner().flatmap(choose)


def _timeouts_of_get(machine: _QueueMachine) -> st.SearchStrategy[float | None]:
    if machine.gets:
        deadline = machine.gets[0].deadline
        return st.just(None if deadline == math.inf else deadline - machine.model.now)
    return _timeouts(machine)


def _timeouts(machine: _QueueMachine) -> st.SearchStrategy[float | None]:
    return TIMEOUTS if machine.settings_of_queue.timed else NONE


def _seconds(machine: _QueueMachine) -> st.SearchStrategy[int]:
    """Whole ones, among them just enough, or just not, for what is due or reaches the age that counts."""
    model, ages = machine.model, machine.settings_of_queue.max_priority_age
    turns = [entry.due for entry in model.waiting().values()]
    turns += [entry.ready_at[0] + ages for entry in model.ready().values()] if ages is not None else []
    near = {whole + more for turn in turns if (whole := int(turn - model.now)) > 0 for more in (-1, 0, 1)}
    return _one_of((*sorted(near or {1, 2, 3, 4}), 40))


item_drawn = st.sampled_from(ITEMS)
priority_drawn = _drawn(lambda self: PRIORITIES if self.can.priorities else NONE)
running_drawn = _drawn(lambda self: _one_of(tuple(sorted(self.model.running))))
idle_drawn = _drawn(lambda self: _one_of(tuple(sorted(set(ITEMS) - set(self.model.running)))))
limit_drawn = _drawn(lambda self: _one_of((1, 2, 3, 4)) if self.can.batches else _one_of((1,)))


class _QueueMachine(RuleBasedStateMachine):
    settings_of_queue: ClassVar[_Settings]

    def __init__(self) -> None:
        super().__init__()
        settings = self.settings_of_queue
        self.can = settings.capabilities
        self.model = QueueModel(max_priority_age=settings.max_priority_age, retry_delay=settings.retry_delay)
        self.gets: list[_Get] = []
        self.drains: list[_Drain] = []
        self.story: list[str] = []
        self.broken = False
        self.open_for = 0
        self.look_often = False
        self.queue = settings.make_adapter()
        check_adapter(self.queue, self.can, timed=settings.timed)

    @initialize(open_for=st.sampled_from((80, 40, 20, 0)), look_often=st.booleans())
    def begin(self, open_for: int, look_often: bool) -> None:
        """So many steps go by before the first shutdown; the numbers are read after each step or now and then."""
        self.open_for, self.look_often = open_for, look_often

    # -- adding ------------------------------------------------------------------------------------------------------

    @rule(item=item_drawn, priority=priority_drawn)
    def add(self, item: int, priority: int | None) -> None:
        with self.step(f"add({item}{_said(priority)})"):
            self.queue.add(item, priority)
            self.model.add(item, priority)

    @rule(items=st.lists(item_drawn, min_size=1, max_size=6), priority=priority_drawn)
    def add_several(self, items: list[int], priority: int | None) -> None:
        for item in items:
            self.add(item, priority)

    @precondition(lambda self: self.can.delays)
    @rule(item=item_drawn, delay=st.integers(-1, 5), priority=priority_drawn)
    def add_after(self, item: int, delay: int, priority: int | None) -> None:
        with self.step(f"add_after({item}, {delay}{_said(priority)})"):
            self.queue.add_after(item, delay, priority)
            self.model.add_after(item, delay, priority)

    @precondition(lambda self: self.can.rate_limits)
    @rule(item=item_drawn, priority=priority_drawn)
    def add_rate_limited(self, item: int, priority: int | None) -> None:
        with self.step(f"add_rate_limited({item}{_said(priority)})"):
            self.queue.add_rate_limited(item, priority)
            self.model.add_rate_limited(item, priority)
            self.check_requeues(item)

    @precondition(lambda self: self.can.rate_limits)
    @rule(item=item_drawn)
    def forget(self, item: int) -> None:
        with self.step(f"forget({item})"):
            self.queue.forget(item)
            self.model.forget(item)
            self.check_requeues(item)

    @precondition(lambda self: self.can.cancel)
    @rule(item=item_drawn)
    def cancel(self, item: int) -> None:
        with self.step(f"cancel({item})"):
            self.compare(f"cancel({item})", self.queue.cancel(item), self.model.cancel(item))

    # -- handing out -------------------------------------------------------------------------------------------------

    @rule(limit=limit_drawn)
    def get(self, limit: int) -> None:
        with self.step(f"get({limit})"):
            self.take(limit)

    @precondition(lambda self: self.settings_of_queue.max_priority_age is not None and self.model.ready())
    @rule(item=item_drawn, seconds=_drawn(_seconds), count=st.integers(1, 2 * AGEING_INTERVAL))
    def flood(self, item: int, seconds: int, count: int) -> None:
        """After a while urgent work comes again and again: only age brings something else to its turn."""
        self.advance(seconds)
        for _ in range(count):
            self.add(item, 3)
            self.get_and_finish(1)

    @rule(count=st.integers(1, 4))
    def get_and_finish(self, count: int) -> None:
        """So many get and done in turn."""
        with self.step(f"{count} times get(1), done"):
            for _ in range(count):
                for item in self.take(1):
                    self.finish(item)

    def take(self, limit: int) -> list[int]:
        items = self.queue.get(limit)
        self.story[-1] += f" -> {items}"
        if items is None or not items:
            expected: list[int] | None = None if self.model.shutting_down else []
            if self.model.ready():
                self.fail(f"get({limit}) gave {items}, although {self.model.next()} is ready: lost, or held back")
            self.compare(f"get({limit}), with nothing ready,", items, expected)
            return []
        if len(items) != min(limit, len(self.model.ready())) and not self.model.running.keys() & set(items):
            self.fail(f"get({limit}) gave {items}, with {len(self.model.ready())} ready: {sorted(self.model.ready())}")
        for item in items:
            self.check_hand_out(item, {self.model.next()})
            self.model.take(item)
        return items

    def check_hand_out(self, item: int, first: set[int | None]) -> None:
        """`item` was handed out. `first`: what the order would have."""
        model = self.model
        if item in model.running:
            self.fail(f"{item} was handed out to two workers at once")
        if item not in model.queued:
            self.fail(f"{item} was handed out, and nobody asked for it")
        if item not in model.ready():
            self.fail(f"{item} was handed out early: it is due at t={model.queued[item].due:g}")
        if self.can.order and item not in first:
            self.fail(f"{item} was handed out, although {sorted(first, key=str)} come first")

    @precondition(lambda self: self.model.running)
    @rule(item=running_drawn)
    def done(self, item: int) -> None:
        with self.step(f"done({item})"):
            self.finish(item)

    def finish(self, item: int) -> None:
        self.compare(f"done({item}), which is in process,", self.queue.done(item), True)
        self.model.done(item)

    @precondition(lambda self: self.can.misuse and len(self.model.running) < len(ITEMS))
    @rule(item=idle_drawn)
    def done_of_what_is_not_in_process(self, item: int) -> None:
        with self.step(f"done({item})"):
            self.compare(f"done({item}), which is not in process,", self.queue.done(item), False)

    # -- calls that wait ---------------------------------------------------------------------------------------------

    @precondition(lambda self: self.can.blocking and len(self.gets) < WAITING_GETS and not self.waits_for_batch())
    @rule(timeout=_drawn(_timeouts_of_get))
    def start_get(self, timeout: float | None) -> None:
        with self.step(f"start_get(1{_limited(timeout)})"):
            self.gets.append(_Get(self.queue.start_get(1, timeout), 1, self.deadline(timeout)))

    @precondition(lambda self: self.can.blocking and self.can.batches and not self.gets)
    @rule(limit=st.integers(2, 4), timeout=_drawn(_timeouts))
    def start_get_batch(self, limit: int, timeout: float | None) -> None:
        with self.step(f"start_get({limit}{_limited(timeout)})"):
            self.gets.append(_Get(self.queue.start_get(limit, timeout), limit, self.deadline(timeout)))

    @precondition(lambda self: self.can.drain and self.may_shut_down())
    @rule(timeout=_drawn(_timeouts))
    def start_drain(self, timeout: float | None) -> None:
        with self.step(f"start_drain({'' if timeout is None else timeout})"):
            self.drains.append(_Drain(self.queue.start_drain(timeout), self.deadline(timeout)))
            self.model.shut_down()

    def deadline(self, timeout: float | None) -> float:
        return math.inf if timeout is None else self.model.now + timeout

    def waits_for_batch(self) -> bool:
        return any(get.limit > 1 for get in self.gets)

    # -- time, and the end -------------------------------------------------------------------------------------------

    @precondition(lambda self: self.settings_of_queue.timed)
    @rule(seconds=_drawn(_seconds))
    def advance(self, seconds: int) -> None:
        until = self.model.now + seconds
        waiting: Sequence[_Get | _Drain] = [*self.gets, *self.drains]
        # Who times out does so before anything else happens, or it would not be sure whether an item came in time.
        stops = {min(call.deadline, until) for call in waiting} | {until}
        for stop in sorted(stops):
            step = stop - self.model.now
            with self.step(f"advance({step:g})"):
                self.queue.advance(step)
                self.model.advance(step)

    def may_shut_down(self) -> bool:
        return len(self.story) >= self.open_for

    @precondition(may_shut_down)
    @rule()
    def shut_down(self) -> None:
        with self.step("shut_down()"):
            self.queue.shut_down()
            self.model.shut_down()
            self.check_drains(ended=True)

    def teardown(self) -> None:
        """Unless something failed: work off what is left, and see that nothing was lost and nobody waits for ever."""
        try:
            if not self.broken:
                self.work_off()
                self.shut_down()
                while self.model.queued or self.model.running:
                    self.work_off()
                self.look()
                self.get(1)
        finally:
            self.queue.close()

    def work_off(self) -> None:
        for item in sorted(self.model.running):
            self.done(item)
        while self.model.ready():
            self.get_and_finish(1)

    # -- checking ----------------------------------------------------------------------------------------------------

    @rule()
    def look(self) -> None:
        """Compare all that the queue tells about itself."""
        with self.step("look()", quiet=True):
            self.check_numbers()
            for item in ITEMS if self.can.priorities else ():
                self.compare(f"priority({item})", self.queue.priority(item), self.model.priority(item))

    def check_numbers(self) -> None:
        expected = self.model.numbers()
        for name, value in self.queue.numbers().items():
            if name not in expected:
                raise TypeError(f"numbers() gives {name!r}; known are {', '.join(expected)}")
            if not math.isclose(value, expected[name], abs_tol=1e-9) and (name != "aged" or self.can.order):
                self.fail(f"{name} is {value:g}, not {expected[name]:g}")

    def check_requeues(self, item: int) -> None:
        self.compare(f"num_requeues({item})", self.queue.num_requeues(item), self.model.num_requeues(item))

    def check_gets(self) -> None:
        """Whoever waits has what became ready; the others wait on, unless their time is up or all is shut down."""
        if not self.gets:
            return
        model, (limit, deadline) = self.model, (self.gets[0].limit, self.gets[0].deadline)
        served = min(len(model.ready()), len(self.gets))
        over = model.shutting_down or model.now >= deadline
        ended = self.ended([get.call for get in self.gets], len(self.gets) if over else served)
        self.gets = [get for get in self.gets if get.call not in ended]
        results = [call.result() for call in ended]
        items = [item for result in results for item in result or ()]
        if items:
            self.story[-1] += f"; get -> {items}"
        first = self.expected_items(limit * served)
        for item, count in Counter(items).items():
            self.check_hand_out(item, set(first))
            if count > 1:
                self.fail(f"{item} was handed out to {count} workers at once")
        if len(items) != len(first):
            self.fail(f"get gave {items} to those who wait, with {first} ready: lost, or held back")
        empty = [result for result in results if not result]
        self.compare("get, with nothing left,", empty, [None if model.shutting_down else []] * (len(ended) - served))
        if not over and len(ended) != served:
            self.fail(f"{len(ended)} that wait in get ended, not {served}")
        for item in first if self.can.order else items:
            model.take(item)

    def expected_items(self, count: int) -> list[int]:
        """What the next hand-outs have to be."""
        if count == 0:
            return []
        model = deepcopy(self.model)
        items: list[int] = []
        while len(items) < count and (item := model.next()) is not None:
            model.take(item)
            items.append(item)
        return items

    def check_drains(self, *, ended: bool = False) -> None:
        """A drain ends when all is done, when its time is up, and by `shut_down` (`ended`); not before."""
        for drain in list(self.drains):
            over = self.model.idle or ended or self.model.now >= drain.deadline
            if not self.ended([drain.call], int(over)):
                continue
            self.drains.remove(drain)
            self.story[-1] += f"; drain -> {drain.call.result()}"
            if not over:
                left = sorted({*self.model.ready(), *self.model.running})
                self.fail(f"the drain ended with {drain.call.result()}, but {left} are ready or in process")
            self.compare("the drain", drain.call.result(), self.model.idle)

    def ended(self, calls: Sequence[Call[Any]], count: int) -> list[Call[Any]]:
        """Those that have ended; there should be `count`."""
        ended = wait_until_finished(calls, count, self.settings_of_queue.patience)
        if len(ended) < count:
            self.fail(f"{count - len(ended)} more of those who wait should have ended by now")
        return ended

    def compare(self, what: str, answer: object, expected: object) -> None:
        if answer != expected:
            self.fail(f"{what} gave {answer}, not {expected}")

    def fail(self, problem: str) -> None:
        raise RuleBroken(f"{problem}\n\n{self.told()}")

    # -- telling -----------------------------------------------------------------------------------------------------

    @contextmanager
    def step(self, text: str, *, quiet: bool = False) -> Iterator[None]:
        """One step of the story. After it, those who wait are looked after."""
        self.story.append(f"t={self.model.now:g}  {text}")
        try:
            yield
            self.check_gets()
            self.check_drains()
            if self.look_often and not quiet:
                self.check_numbers()
        except RuleBroken:
            self.broken = True
            raise
        except Exception as error:
            self.broken = True
            error.add_note(self.told())
            raise
        if quiet:
            self.story.pop()

    def told(self) -> str:
        """The story so far, for reading."""
        lines = [f"{number:4}  {line}" for number, line in enumerate(self.story, 1)]
        return "\n".join(["The steps, of which the last one failed:", *lines, "By the rules:", *self.model.told()])


def _said(priority: int | None) -> str:
    return "" if priority is None else f", priority={priority}"


def _limited(timeout: float | None) -> str:
    return "" if timeout is None else f", timeout={timeout:g}"
