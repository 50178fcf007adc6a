"""Whatever the faults, once they stop the cache equals the source and each handler saw a legal history of every uid.

The same session is played by Hypothesis against the informer, and by dice against informers and handlers that were
broken on purpose: each kind of damage has to be found, or the session would show nothing.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from informers import DeltaFIFO, Event, EventType, Indexer, Object, ProtocolConfig, SharedInformer, Tombstone
from informers import event as event_module
from informers import pending as pending_module
from informers import shared_informer as informer_module
from informers.backoff import BackoffConfig
from informers.errors import (
    ConnectionRefused,
    ConnectionReset,
    ExpiredError,
    ForbiddenError,
    InternalError,
    KindNotFoundError,
    ServerTimeoutError,
    TooManyRequestsError,
)
from informers.protocol import Protocol
from informers.testing import FakeListWatch, Fault, HistoryChecker
from workqueue.testing import FakeClock

NAMES = "abcdef"
ERRORS = [
    ExpiredError("too old"),
    InternalError("etcd"),
    TooManyRequestsError("slow down"),
    ConnectionRefused("nobody"),
    ConnectionReset("cut"),
    ForbiddenError("no"),
    KindNotFoundError("gone"),
    ServerTimeoutError("Too large resource version: 9, current: 1"),
]


def pod(name: str, **labels: str) -> dict[str, object]:
    return {"metadata": {"namespace": "ns", "name": name, "labels": labels}}


class Watcher:
    """A handler of some kind, and what it was told."""

    def __init__(self, accepts: str | None = None, max_pending: int | None = None, *, raises: bool = False) -> None:
        self.accepts, self.max_pending, self.raises = accepts, max_pending, raises
        self.checker = HistoryChecker(filtered=accepts is not None)
        self.gate = threading.Event()
        self.gate.set()

    def join(self, informer: SharedInformer) -> None:
        self.registration = informer.add_event_handler(
            on_event=self.told, filter=self.passes if self.accepts else None, max_pending=self.max_pending
        )

    def passes(self, obj: Object) -> bool:
        return self.accepts in (None, obj.labels.get("app"))

    def told(self, event: Event) -> None:
        self.gate.wait(30)
        self.checker(event)
        if self.raises:
            raise RuntimeError("as planned")

    def shows(self, source: FakeListWatch) -> bool:
        wanted = {obj.key: obj for obj in source.objects().values() if self.passes(obj)}
        return self.checker.shown == wanted


class OneByOne:
    """A stream that gives single events only, as that of a source of one's own may."""

    read_batch = None

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Any:
        return iter(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class OneByOneSource(FakeListWatch):
    def watch(self, **options: Any) -> Any:
        return OneByOne(super().watch(**options))


class Session:
    """An informer, its handlers, and a source that is written to and goes wrong, on a clock of its own."""

    patience = 600  # looks before something is taken for wrong, a second of the clock each

    def __init__(
        self, *, watch_list: bool, server: bool, page_size: int, stale: bool, resync: float, batches: bool
    ) -> None:
        self.clock = FakeClock()
        kind = FakeListWatch if batches else OneByOneSource
        self.source = kind([pod("a"), pod("b", app="x")], watch_list=server, clock=self.clock)
        protocol = ProtocolConfig(
            page_size=page_size, prefer_stale=stale, watch_list=watch_list,
            backoff=BackoffConfig(base=0.2, cap=1.0), short_watch=0.5, not_found_cap=1.0, gone_after=1.0,
            watch_timeout=(10.0, 20.0), watch_grace=2.0, min_silence=6.0, initial_silence=3.0, initial_total=20.0,
        )  # fmt: skip
        self.informer = SharedInformer(
            self.source, protocol=protocol, clock=self.clock, resync=resync, random=random.Random(0).random
        )
        self.watchers: list[Watcher] = []
        self.faults = 0
        self.kind_was_lost = False
        for watcher in (Watcher(), Watcher(max_pending=1), Watcher("x", 2), Watcher(raises=True)):
            self.join(watcher)
        self.informer.start()

    def join(self, watcher: Watcher) -> None:
        watcher.join(self.informer)
        self.watchers.append(watcher)

    def write(self, name: str, app: str) -> None:
        (self.source.modify if f"ns/{name}" in self.source else self.source.add)(pod(name, app=app))

    def delete(self, name: str) -> None:
        if f"ns/{name}" in self.source:
            self.source.delete(f"ns/{name}")

    def recreate(self, name: str) -> None:
        self.delete(name)
        self.source.add(pod(name, app="x"))

    def poison(self, name: str) -> None:
        if f"ns/{name}" in self.source:
            self.faults += 1
            self.source.poison(f"ns/{name}")

    def compact(self) -> None:
        self.faults += 1
        self.source.compact()

    def drop(self, error: Exception | None) -> None:
        self.faults += 1
        self.kind_was_lost |= isinstance(error, KindNotFoundError)
        self.source.drop_watches(error)

    def stall(self) -> None:
        self.faults += 1
        self.source.stall()

    def fail(self, verb: str, error: Exception, times: int) -> None:
        self.faults += 1
        self.kind_was_lost |= isinstance(error, KindNotFoundError)
        self.source.fail_next(verb, error, times)  # type: ignore[arg-type]

    def inject(self, fault: Fault) -> None:
        self.faults += 1
        self.source.inject(fault)

    def hold(self, number: int) -> None:
        """Let a handler get behind."""
        self.watchers[number % len(self.watchers)].gate.clear()

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def breathe(self) -> None:
        """Give the informer's threads a moment; how far they come is chance, and right whatever it is."""
        threading.Event().wait(0.001)

    def settle(self) -> None:
        """The faults stop: everything must come right."""
        self.source.recover()
        for watcher in self.watchers:
            watcher.gate.set()
        for key in self.source.poisoned():
            self.source.modify(pod(key.name, app="healed"))
        self.write("z", "x")
        for _ in range(self.patience):
            if self.is_right():
                break
            self.clock.advance(1.0)  # what waits, or is half open, needs time to notice
            self.breathe()
        self.check()

    def is_right(self) -> bool:
        cached = {obj.key: obj for obj in self.informer.lister.list()}
        return cached == self.source.objects() and all(watcher.shows(self.source) for watcher in self.watchers)

    def check(self) -> None:
        for watcher in self.watchers:
            watcher.checker.check()
        status, there = self.informer.status(), self.source.objects()
        assert {obj.key: obj for obj in self.informer.lister.list()} == there, status
        for watcher in self.watchers:
            assert watcher.shows(self.source), (watcher.checker.shown, there, watcher.registration.statistics())
            told, counted = watcher.checker.events, watcher.registration.statistics()
            assert counted.failed == (told if watcher.raises else 0)
            lost = {obj.uid for obj in watcher.checker.unknown_deletes}
            assert self.faults or not lost, "nothing was missed: the final states were all seen"
            assert self.kind_was_lost or not lost & {obj.uid for obj in there.values()}, "it was there all the time"
        assert status.internal_errors == 0
        assert self.informer.has_synced()

    def end(self) -> None:
        for watcher in self.watchers:
            watcher.gate.set()
        assert self.informer.stop(10), self.informer.status()


class InformerMachine(RuleBasedStateMachine):
    @initialize(
        watch_list=st.booleans(),
        server=st.booleans(),
        page_size=st.sampled_from([0, 1, 2, 500]),
        stale=st.booleans(),
        resync=st.sampled_from([0.0, 5.0]),
        batches=st.booleans(),
    )
    def start(self, **options: object) -> None:
        self.session = Session(**options)  # type: ignore[arg-type]

    @rule(name=st.sampled_from(NAMES), app=st.sampled_from("xy"))
    def write(self, name: str, app: str) -> None:
        self.session.write(name, app)

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        self.session.delete(name)

    @rule(name=st.sampled_from(NAMES))
    def recreate(self, name: str) -> None:
        self.session.recreate(name)

    @rule(name=st.sampled_from(NAMES))
    def poison(self, name: str) -> None:
        self.session.poison(name)

    @rule()
    def compact(self) -> None:
        self.session.compact()

    @rule(error=st.sampled_from([None, *ERRORS]))
    def drop(self, error: Exception | None) -> None:
        self.session.drop(error)

    @rule()
    def stall(self) -> None:
        self.session.stall()

    @rule(verb=st.sampled_from(["list", "watch"]), error=st.sampled_from(ERRORS), times=st.integers(1, 4))
    def fail(self, verb: str, error: Exception, times: int) -> None:
        self.session.fail(verb, error, times)

    @rule(fault=st.sampled_from(Fault))
    def inject(self, fault: Fault) -> None:
        self.session.inject(fault)

    @rule()
    def bookmark(self) -> None:
        self.session.source.bookmark()

    @rule(number=st.integers(0, 9))
    def hold(self, number: int) -> None:
        self.session.hold(number)

    @rule(seconds=st.sampled_from([0.3, 1.5, 7.0, 30.0]))
    def pass_time(self, seconds: float) -> None:
        self.session.pass_time(seconds)

    @rule()
    def breathe(self) -> None:
        self.session.breathe()

    @rule(max_pending=st.sampled_from([None, 1, 3]), accepts=st.sampled_from([None, "x"]))
    @precondition(lambda self: len(self.session.watchers) < 7)
    def join_late(self, max_pending: int | None, accepts: str | None) -> None:
        self.session.join(Watcher(accepts, max_pending))

    @rule()
    def settle(self) -> None:
        self.session.settle()

    def teardown(self) -> None:
        if hasattr(self, "session"):
            try:
                self.session.settle()
            finally:
                self.session.end()


InformerMachine.TestCase.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestInformerMachine = InformerMachine.TestCase


# ---- damage that has to be found


def play(seed: int) -> None:
    """One session by dice."""
    dice = random.Random(seed)
    session = Session(
        watch_list=dice.random() < 0.5, server=dice.random() < 0.7, page_size=dice.choice([0, 1, 2]),
        stale=dice.random() < 0.5, resync=0.0, batches=dice.random() < 0.5,
    )  # fmt: skip
    steps: list[Callable[[], None]] = [
        *[lambda: session.write(dice.choice(NAMES), dice.choice("xy"))] * 4,
        *[lambda: session.delete(dice.choice(NAMES))] * 2,
        lambda: session.recreate(dice.choice(NAMES)),
        lambda: session.poison(dice.choice(NAMES)),
        session.compact,
        lambda: session.drop(dice.choice([None, *ERRORS])),
        lambda: session.fail(dice.choice(["list", "watch"]), dice.choice(ERRORS), dice.randint(1, 3)),
        *[lambda: session.inject(dice.choice(list(Fault)))] * 3,
        lambda: session.hold(dice.randrange(4)),
        *[lambda: session.pass_time(dice.choice([0.3, 1.5, 7.0]))] * 3,
        *[session.breathe] * 6,
    ]
    try:
        for _ in range(3):
            for _ in range(20):
                dice.choice(steps)()
            session.settle()
    finally:
        session.end()


def play_all(count: int) -> None:
    for seed in range(count):
        play(seed)


def expired_watches_go_on_from_now(monkeypatch):
    failed = Protocol.failed

    def broken(self, now, error):
        if isinstance(error, ExpiredError) and self.phase.value == "watching":
            self.version = "0"
            error = TooManyRequestsError("never mind")
        failed(self, now, error)

    monkeypatch.setattr(Protocol, "failed", broken)


def every_seventh_batch_is_lost_on_its_way_to_a_handler(monkeypatch):
    offer, count = informer_module.Registration.offer, iter(range(10**9))
    monkeypatch.setattr(
        informer_module.Registration, "offer", lambda self, events: next(count) % 7 == 6 or offer(self, events)
    )


def merged_with(wrong: Callable[[Event, Event], bool]):
    merge = pending_module.merge

    def damage(monkeypatch):
        monkeypatch.setattr(
            pending_module, "merge", lambda first, then: then if wrong(first, then) else merge(first, then)
        )

    return damage


def types(first: EventType, then: EventType) -> Callable[[Event, Event], bool]:
    return lambda one, other: (one.type, other.type) == (first, then)


def replaced(where: object, name: str, by: object):
    return lambda monkeypatch: monkeypatch.setattr(where, name, by)


DAMAGE = {
    "an object that was re-created is taken for the one before": replaced(
        event_module, "_same_uid", lambda one, other: True),
    "a relist tells of what did not change": replaced(event_module, "_same_version", lambda one, other: False),
    "an event may come twice": replaced(event_module, "_is_news", lambda obj, cached: True),
    "a list derives no deletes": replaced(DeltaFIFO, "_missing", lambda self, *arguments: []),
    "a list derives deletes of what it could not read": replaced(
        informer_module.Reflector, "_keep_unreadable", lambda self, keys: None),
    "a list deletes without a sign that nobody saw it": replaced(
        event_module, "_deleted",
        lambda obj, cached: Event(
            EventType.DELETE, cached if isinstance(obj, Tombstone) else obj, None, event_module.Reason.WATCH, True)),
    "merged updates forget where they began": merged_with(types(EventType.UPDATE, EventType.UPDATE)),
    "a merged add is told as an update": merged_with(types(EventType.ADD, EventType.UPDATE)),
    "what came and went is told as a delete": merged_with(types(EventType.ADD, EventType.DELETE)),
    "an expired watch goes on from now": expired_watches_go_on_from_now,
    "silence is not noticed": replaced(Protocol, "deadline", lambda self: None),
    "a batch is lost": every_seventh_batch_is_lost_on_its_way_to_a_handler,
    "the cache takes nothing in": replaced(Indexer, "apply", lambda self, changes: None),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_the_session_finds(damage, monkeypatch):
    monkeypatch.setattr(Session, "patience", 150)
    damage(monkeypatch)
    with pytest.raises(AssertionError):
        play_all(60)


def test_without_damage_it_finds_nothing():
    play_all(25)
