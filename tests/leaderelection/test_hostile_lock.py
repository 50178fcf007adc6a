"""Locks, metrics and callbacks are foreign code: whatever they answer or raise, the elector stays safe and goes on."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import Any

import pytest

from leaderelection import Config, ConfigError, LeaderElector, MemoryLock, Record, Version
from leaderelection.core import ElectorCore, _token

LONG = 20.0
WALL = 1_700_000_000_000_000


class LyingLock(MemoryLock):
    """Answers one verb with something else than what is stored, as long as `lies` is set."""

    def __init__(self, verb: str, answer: Any) -> None:
        super().__init__()
        self.verb, self.answer, self.lies = verb, answer, True

    def _call(self, verb: str, do: Any) -> Any:
        result: Any = super()._call(verb, do)
        return self.answer if self.lies and verb == self.verb else result


@pytest.mark.parametrize("answer", ["garbage", 5, {}, object()], ids=["str", "int", "dict", "object"])
@pytest.mark.parametrize("verb", ["get", "create"])
def test_an_answer_that_is_no_record_is_a_failed_attempt_and_survived(arena: Any, verb: str, answer: Any) -> None:
    lock = LyingLock(verb, answer)
    one = arena.candidate("a", lock=lock).start()
    arena.until(lambda: one.elector.failed_attempts >= 1, within=0.1)
    assert one.elector.leader == ""
    lock.lies = False
    arena.until(one.started.is_set, within=5)


@pytest.mark.parametrize("answer", [None, "garbage"])
def test_renewals_answered_with_no_record_are_found_out_by_reading(arena: Any, answer: Any) -> None:
    lock = LyingLock("update", answer)
    one = arena.candidate("a", lock=lock).start()
    assert one.started.wait(LONG)
    arena.let_pass(30)
    assert one.log == ["started"]


def test_a_release_answered_with_no_record_ends_the_run(arena: Any) -> None:
    lock = LyingLock("update", None)
    one = arena.candidate("a", lock=lock).start()
    assert one.started.wait(LONG)
    one.stop.set()
    arena.until(one.ended.is_set, within=1)
    assert one.error is None


@pytest.mark.parametrize(
    "members",
    [
        {"holder": None},
        {"holder": 5},
        {"transitions": "5"},
        {"lease_duration": "15"},
        {"lease_duration": 15.0},
        {"lease_duration": math.nan},
        {"lease_duration": 0},
        {"lease_duration": -5},
        {"renew_time": 1.5},
        {"acquire_time": "now"},
        {"version": None},
        {"version": ("u", "1")},
        {"version": Version("u", 1)},  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_what_cannot_be_a_record_is_refused_when_it_is_made(members: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        Record(**members)


def test_a_leader_whose_write_is_answered_with_another_holder_stops_at_once() -> None:
    me = ElectorCore("me", Config())
    me.campaign()
    write = me.saw(None, 0, WALL)
    assert write is not None
    me.sent(write, 0)
    me.acknowledged(replace(write.record, version=Version("u", "1")), 0)
    renewal = me.begin(1, WALL)
    assert renewal is not None
    me.sent(renewal, 1)
    me.acknowledged(replace(renewal.record, holder="other", version=Version("u", "2")), 1)
    assert not me.leads(1)
    assert me.loss == "'other' holds the lock"


def test_a_standby_sees_a_renewal_also_under_a_version_that_stands_still() -> None:
    me = ElectorCore("me", Config(15, 10, 2))
    me.campaign()
    for now in range(0, 60, 2):
        seen = Record("other", 15, 1, 1 + now, 0, Version("", ""))
        assert me.saw(seen, now, WALL) is None
    assert me.saw(seen, 58 + 15, WALL) is not None


@pytest.mark.parametrize("version", ["9" * 5000, "abc", "", "-5", "²"])
def test_a_version_that_is_no_version_gives_a_token_all_the_same(version: str) -> None:
    assert _token(Record("me", version=Version("u", version))).resource_version == 0


class BrokenMetrics:
    def elector(self, name: str) -> Any:
        return self

    def leading(self, leads: bool) -> None:
        raise RuntimeError("full")

    def slow_path(self) -> None:
        raise RuntimeError("full")


def test_metrics_that_fail_cost_no_term(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a", metrics=BrokenMetrics()).start()
    assert one.started.wait(LONG)
    lock.write(lock.record)  # type: ignore[arg-type] # so that a renewal has to read first
    arena.let_pass(15)
    one.stop.set()
    arena.until(one.ended.is_set, within=1)
    assert one.error is None
    assert one.log == ["started", "returned", "stopped"]


@pytest.mark.parametrize("callback", ["on_new_leader", "on_event"])
def test_an_elector_that_was_ended_by_a_callback_that_exits_does_not_lead(lock: MemoryLock, callback: str) -> None:
    def leave(_: object) -> None:
        raise SystemExit(3)

    elector = LeaderElector(lock, "a", on_started_leading=lambda _: None, **{callback: leave})  # type: ignore[arg-type]
    with pytest.raises(SystemExit):
        elector.run(threading.Event())
    assert not elector.is_leader()
    elector.check()


@pytest.mark.parametrize("timeout", [math.nan, -1])
def test_a_worker_timeout_that_is_no_time_is_refused(lock: MemoryLock, timeout: float) -> None:
    with pytest.raises(ConfigError, match="worker_timeout"):
        LeaderElector(lock, "a", on_started_leading=lambda _: None, worker_timeout=timeout)


@pytest.mark.parametrize("identity", ["", None, 5])
def test_an_identity_is_a_text(lock: MemoryLock, identity: Any) -> None:
    with pytest.raises(ConfigError, match="identity"):
        LeaderElector(lock, identity, on_started_leading=lambda _: None)


@pytest.mark.parametrize("value", [math.nan, -1.0])
@pytest.mark.parametrize("name", ["drift", "stall", "exit_time"])
def test_no_margin_is_computed_from_what_is_no_duration(name: str, value: float) -> None:
    for bound in (Config().margin, Config().max_overlap, Config().safe):
        with pytest.raises(ValueError, match=name):
            bound(**{name: value})
