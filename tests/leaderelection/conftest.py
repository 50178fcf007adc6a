"""Helpers for the tests of the election."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from leaderelection import Config, ElectionEvent, LeaderElector, Leadership, MemoryLock
from workqueue.testing import FakeClock

LONG = 20.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(start=1000.0)


@pytest.fixture
def lock() -> MemoryLock:
    return MemoryLock()


@dataclass
class Candidate:
    """An elector on a thread, with a worker that a test steers."""

    elector: LeaderElector
    clock: FakeClock
    stop: threading.Event
    started: threading.Event = field(default_factory=threading.Event)
    finish: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    log: list[str] = field(default_factory=list)
    events: list[ElectionEvent] = field(default_factory=list)
    leadership: Leadership | None = None
    error: BaseException | None = None
    thread: threading.Thread | None = None

    def start(self) -> Candidate:
        self.ended.clear()
        self.thread = threading.Thread(target=self._run, name="test elector", daemon=True)
        self.thread.start()
        return self

    def _run(self) -> None:
        try:
            self.elector.run(self.stop)
        except BaseException as error:  # noqa: BLE001 - handed to the test
            self.error = error
        finally:
            self.ended.set()

    def alive(self) -> bool:
        return not self.ended.is_set()

    def events_of(self, type_: str) -> list[ElectionEvent]:
        return [event for event in self.events if event.type == type_]


class Arena:
    """Makes candidates for one lock and one fake clock, and lets time pass for them."""

    def __init__(self, lock: MemoryLock, clock: FakeClock) -> None:
        self.lock = lock
        self.clock = clock
        self.candidates: list[Candidate] = []

    def candidate(
        self,
        identity: str,
        config: Config = Config(),  # noqa: B008 - immutable
        *,
        work: Callable[[Candidate, Leadership], None] | None = None,
        **options: Any,
    ) -> Candidate:
        """By default its worker runs until it is told to stop and `finish` is set (which it is from the beginning)."""

        def started(leadership: Leadership) -> None:
            candidate.leadership = leadership
            candidate.log.append("started")
            candidate.started.set()
            if work is not None:
                work(candidate, leadership)
                return
            leadership.stop.wait(LONG)
            candidate.finish.wait(LONG)
            candidate.log.append("returned")

        elector = LeaderElector(
            options.pop("lock", self.lock),
            identity,
            config,
            on_started_leading=started,
            on_stopped_leading=lambda: candidate.log.append("stopped"),
            on_event=lambda event: candidate.events.append(event),
            clock=self.clock,
            **options,
        )
        candidate = Candidate(elector, self.clock, threading.Event())
        candidate.finish.set()
        self.candidates.append(candidate)
        return candidate

    def until(self, reached: Callable[[], bool], *, within: float) -> float:
        """Let fake time pass in small steps until `reached`; gives how much it took, fails if it takes more."""
        begun = self.clock.now()
        real = threading.Event()
        while not reached():
            passed = self.clock.now() - begun
            assert passed <= within + 1e-9, f"not reached within {within} s"
            # Whoever is awake acts first: a step is made when nobody has come to sleep for a while.
            for _ in range(400):
                if reached():
                    return passed
                real.wait(0.0005)
                if self.clock.sleepers() >= self.expected_sleepers():
                    break
            self.clock.advance(0.05)
        return self.clock.now() - begun

    def expected_sleepers(self) -> int:
        """Of each live candidate one thread sleeps, or two if it leads and renews."""
        alive = [one for one in self.candidates if one.thread is not None and one.alive()]
        return sum(2 if one.elector.is_leader() and one.started.is_set() else 1 for one in alive)

    def let_pass(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        self.until(lambda: self.clock.now() >= end - 1e-9, within=seconds + 1)


@pytest.fixture
def arena(lock: MemoryLock, clock: FakeClock) -> Iterator[Arena]:
    arena = Arena(lock, clock)
    yield arena
    lock.hook = None
    for candidate in arena.candidates:
        candidate.stop.set()
        candidate.finish.set()
    for candidate in arena.candidates:
        if candidate.thread is not None:
            for _ in range(400):
                if candidate.ended.wait(0.05):
                    break
                clock.advance(0.5)
            candidate.thread.join(LONG)
            assert not candidate.thread.is_alive()
    for thread in threading.enumerate():
        if thread.name.startswith(("leader ", "renewer ")):
            thread.join(LONG)  # a stuck worker, which may return now
            assert not thread.is_alive()
