"""`LeaderElector`: threads, stopping, losing, releasing, health. On a fake clock and a lock in memory."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from leaderelection import (
    AlreadyRunning,
    BootClock,
    Config,
    LeaderElector,
    Leadership,
    LockError,
    MemoryLock,
    NotLeading,
    NotRenewed,
    Record,
    WorkerFailed,
    WorkerStuck,
)
from leaderelection.metrics import PrometheusMetricsProvider
from workqueue.testing import FakeClock

LONG = 20.0
OTHER = Record("other", 15, 1, 1, 7)


def test_a_candidate_becomes_leader_of_a_free_lock_and_runs_its_worker(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a").start()
    assert one.started.wait(LONG)
    assert one.elector.is_leader()
    assert one.elector.leader == "a"
    assert lock.record is not None
    assert (lock.record.holder, lock.record.transitions, lock.record.lease_duration) == ("a", 0, 15)
    one.leadership.guard()
    assert one.leadership.token.term == 0
    assert one.leadership.deadline == 1010


def test_renewals_move_the_deadline_and_count_no_term(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a").start()
    arena.until(lambda: one.leadership is not None and one.leadership.deadline >= 1040, within=40)
    assert lock.record is not None
    assert lock.record.transitions == 0
    assert lock.calls.count("get") == 1  # renewals need no read
    assert 14 <= lock.calls.count("update") <= 16
    one.elector.check()


# -- stopping


def test_stopped_the_worker_returns_first_then_the_lock_is_released(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a")
    one.finish.clear()
    one.start()
    assert one.started.wait(LONG)
    one.stop.set()
    arena.until(one.leadership.stop.is_set, within=1)
    deadline = one.leadership.deadline
    arena.until(lambda: one.leadership.deadline >= deadline + 20, within=30)  # renewals go on
    assert lock.record is not None
    assert lock.record.holder == "a"
    one.leadership.guard()
    one.finish.set()
    arena.until(one.ended.is_set, within=5)
    assert one.error is None
    assert one.log == ["started", "returned", "stopped"]
    assert (lock.record.holder, lock.record.lease_duration, lock.record.transitions) == ("", 1, 0)
    assert [event.type for event in one.events] == [
        "NewLeader", "StartedLeading", "StoppedLeading", "Released"
    ]  # fmt: skip
    assert not one.elector.is_leader()
    with pytest.raises(NotLeading, match="term 0 is over: the elector has stopped"):
        one.leadership.guard()


def test_a_released_lock_is_taken_by_the_next_poll(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a").start()
    assert one.started.wait(LONG)
    two = arena.candidate("b").start()
    arena.let_pass(5)
    assert two.elector.leader == "a"
    one.stop.set()
    arena.until(two.started.is_set, within=0.5 + 4.4)
    assert two.leadership.token.term == 1


def test_without_release_on_stop_the_lock_is_left_to_run_out(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a", release_on_stop=False).start()
    assert one.started.wait(LONG)
    one.stop.set()
    arena.until(one.ended.is_set, within=1)
    assert lock.record is not None
    assert lock.record.holder == "a"


def test_a_campaign_ends_soon_after_stop_and_leaves_others_lock_alone(arena: Any, lock: MemoryLock) -> None:
    stored = lock.write(OTHER)
    one = arena.candidate("a").start()
    arena.let_pass(3)
    one.stop.set()
    assert arena.until(one.ended.is_set, within=0.5) <= 0.5
    assert lock.record is stored
    assert one.error is None
    assert one.log == []  # stopped is only called after started


def test_stopped_before_it_runs_does_nothing(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a")
    one.stop.set()
    one.start()
    assert one.ended.wait(LONG)
    assert not lock.calls


def test_stopped_while_it_acquires_the_lock_is_given_back_unused(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a")

    def stop_meanwhile(verb: str) -> None:
        if verb == "create":
            one.stop.set()

    lock.hook = stop_meanwhile
    one.start()
    assert one.ended.wait(LONG)
    assert one.log == []
    assert lock.record is not None
    assert lock.record.holder == ""


def test_an_acquisition_of_unknown_outcome_is_given_back_too(arena: Any, lock: MemoryLock) -> None:
    lock.fail_next("create", after=True)
    one = arena.candidate("a")
    one.start()
    arena.until(lambda: one.elector.failed_attempts == 1, within=0)
    one.stop.set()
    arena.until(one.ended.is_set, within=1)
    assert one.log == []
    assert lock.record is not None
    assert lock.record.holder == ""


# -- the worker's end


def test_a_worker_that_returns_ends_the_term_and_the_lock_is_released(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a", work=lambda candidate, leadership: None).start()
    assert one.ended.wait(LONG)  # without any time passing
    assert one.error is None
    assert one.log == ["started", "stopped"]
    assert lock.record is not None
    assert lock.record.holder == ""


def test_a_worker_that_raises_ends_the_term_and_run_raises_worker_failed(arena: Any, lock: MemoryLock) -> None:
    def work(candidate: Any, leadership: Any) -> None:
        raise RuntimeError("broken")

    one = arena.candidate("a", work=work).start()
    assert one.ended.wait(LONG)  # without any time passing
    assert isinstance(one.error, WorkerFailed)
    assert isinstance(one.error.__cause__, RuntimeError)
    assert "broken" in str(one.error)
    assert one.log == ["started", "stopped"]
    assert lock.record is not None
    assert lock.record.holder == ""


def test_a_worker_that_leaves_a_lost_term_through_guard_has_not_failed(arena: Any, lock: MemoryLock) -> None:
    def work(candidate: Any, leadership: Any) -> None:
        leadership.stop.wait(LONG)
        leadership.guard()

    one = arena.candidate("a", work=work).start()
    assert one.started.wait(LONG)
    lock.write(OTHER)
    arena.until(one.ended.is_set, within=4)
    assert one.error is None


def test_a_stuck_worker_is_reported_and_the_lock_left_to_expire(arena: Any, lock: MemoryLock) -> None:
    stuck: list[str] = []
    one = arena.candidate("a", worker_timeout=5.0, on_stuck=lambda: stuck.append("stuck"))
    one.finish.clear()
    one.start()
    assert one.started.wait(LONG)
    one.stop.set()
    arena.until(one.ended.is_set, within=7)
    assert isinstance(one.error, WorkerStuck)
    assert stuck == ["stuck"]
    assert "stopped" not in one.log
    assert lock.record is not None
    assert lock.record.holder == "a"
    with pytest.raises(NotLeading):
        one.leadership.guard()
    with pytest.raises(WorkerStuck, match="earlier term"):
        one.elector.run(threading.Event())
    arena.clock.advance(30)
    with pytest.raises(NotRenewed):
        one.elector.check()


# -- losing


def test_a_hung_request_does_not_keep_the_term_alive(arena: Any, lock: MemoryLock, clock: FakeClock) -> None:
    hung, go_on = threading.Event(), threading.Event()

    def hang(verb: str) -> None:
        if verb == "update":
            hung.set()
            go_on.wait(LONG)

    one = arena.candidate("a").start()
    assert one.started.wait(LONG)
    lock.hook = hang
    arena.until(hung.is_set, within=2.1)
    # The renewer hangs in its request, so only the watchdog sleeps on the clock.
    while clock.now() < 1012 and not one.leadership.stop.wait(0.004):
        if clock.sleepers():
            clock.advance(0.05)
    assert 1010 <= clock.now() <= 1010.2
    assert "no renewal was acknowledged within 10" in one.leadership.lost
    with pytest.raises(NotLeading):
        one.leadership.guard()
    go_on.set()
    lock.hook = None
    arena.until(one.ended.is_set, within=1)
    assert one.error is None
    assert one.log == ["started", "returned", "stopped"]
    assert lock.record is not None
    assert lock.record.holder == "a"  # a lost term is not released


def test_failing_renewals_lose_the_term_at_the_deadline(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a").start()
    assert one.started.wait(LONG)
    for verb in ("get", "update"):
        lock.fail_next(verb, OSError("no route to host"), count=50)
    took = arena.until(one.leadership.stop.is_set, within=10.2)
    assert took >= 9.9
    arena.until(one.ended.is_set, within=1)
    assert one.error is None
    assert one.elector.failed_attempts >= 4
    assert "no route to host" in one.events_of("AttemptFailed")[0].message
    assert [event.term for event in one.events_of("Lost")] == [0]


def test_a_renewal_that_fails_now_and_then_loses_nothing(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a").start()
    assert one.started.wait(LONG)
    for _ in range(3):
        lock.fail_next("update", count=3)
        arena.let_pass(9)
        lock.fail_next("update", after=True)
        arena.let_pass(5)
    assert one.elector.is_leader()
    assert one.log == ["started"]


def test_whoever_sees_another_holder_stops_at_once(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a").start()
    assert one.started.wait(LONG)
    arena.let_pass(1)
    lock.write(OTHER)
    arena.until(one.leadership.stop.is_set, within=2)
    assert one.leadership.lost == "'other' holds the lock"
    arena.until(one.ended.is_set, within=1)
    assert lock.record is not None
    assert lock.record.holder == "other"  # neither renewed nor released
    assert one.elector.leader == "other"


def test_a_second_process_with_our_identity_is_another_holder(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("same").start()
    assert one.started.wait(LONG)
    two = arena.candidate("same").start()
    arena.let_pass(10)
    assert not two.started.is_set()  # it waits like anybody
    assert lock.record is not None
    lock.write(replace(lock.record, renew_time=5))
    arena.until(one.leadership.stop.is_set, within=2.2)
    assert "another process holds the lock as 'same'" in one.leadership.lost


def test_a_deleted_lock_is_made_anew_in_the_same_term(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a").start()
    assert one.started.wait(LONG)
    first = one.leadership.token
    lock.delete()
    arena.until(lambda: lock.record is not None, within=2.2)
    arena.let_pass(10)
    assert one.log == ["started"]
    assert one.elector.is_leader()
    assert one.leadership.token.term == first.term
    assert one.leadership.token.lease_uid != first.lease_uid


def test_a_dead_leader_is_replaced_within_the_bound(arena: Any, lock: MemoryLock) -> None:
    lock.write(OTHER)
    one = arena.candidate("a").start()
    took = arena.until(one.started.is_set, within=Config().max_failover())
    assert took >= 15 - 0.1
    assert one.leadership.token.term == 8
    assert [event.message for event in one.events_of("NewLeader")] == ["other leads", "a leads"]


def test_of_several_candidates_one_leads_at_a_time_and_all_get_their_turn(arena: Any, lock: MemoryLock) -> None:
    config = Config(3, 2, 0.4)
    candidates = [arena.candidate(name, config) for name in "abc"]
    for one in candidates:
        one.start()
    waiting = list(candidates)
    while waiting:
        arena.until(lambda: any(one.elector.is_leader() for one in candidates), within=config.max_failover())
        (leader,) = [one for one in candidates if one.elector.is_leader()]
        assert leader.started.wait(LONG)
        waiting.remove(leader)
        leader.stop.set()
        arena.until(leader.ended.is_set, within=1)
        assert leader.log == ["started", "returned", "stopped"]
    assert lock.record is not None
    assert lock.record.transitions == 2


def test_an_interrupt_stops_the_worker_and_leaves_no_thread(lock: MemoryLock) -> None:
    class Interrupting(FakeClock):
        def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt
            return super().wait(condition, timeout)

    seen: list[Leadership] = []

    def work(leadership: Leadership) -> None:
        seen.append(leadership)
        leadership.stop.wait(LONG)

    elector = LeaderElector(lock, "a", on_started_leading=work, clock=Interrupting())
    with pytest.raises(KeyboardInterrupt):
        elector.run(threading.Event())
    assert seen[0].stop.is_set()
    assert not elector.is_leader()
    assert not [one.name for one in threading.enumerate() if one.name.startswith(("leader", "renewer"))]


# -- running again


def test_it_may_run_again_after_a_loss_and_takes_the_next_term(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a").start()
    assert one.started.wait(LONG)
    for verb in ("get", "update"):
        lock.fail_next(verb, count=50)
    arena.until(one.ended.is_set, within=11)
    lock._faults.clear()
    one.started.clear()
    one.start()
    assert one.started.wait(LONG)  # at once: nobody else can have held its own record
    assert one.leadership.token.term == 1
    assert one.log == ["started", "returned", "stopped", "started"]


def test_it_runs_once_at_a_time(arena: Any) -> None:
    one = arena.candidate("a").start()
    assert one.started.wait(LONG)
    with pytest.raises(AlreadyRunning):
        one.elector.run(threading.Event())


# -- callbacks, health, metrics


def test_on_new_leader_is_called_once_a_term(arena: Any, lock: MemoryLock) -> None:
    seen: list[str] = []
    lock.write(OTHER)
    one = arena.candidate("a", on_new_leader=seen.append).start()
    arena.let_pass(6)
    lock.write(OTHER)
    lock.write(replace(OTHER, holder="third", transitions=8))
    arena.let_pass(6)
    assert seen == ["other", "third"]
    lock.write(Record("", 1, 1, 1, 8))
    arena.until(one.started.is_set, within=5)
    assert seen == ["other", "third", "a"]


def test_a_failing_callback_ends_nothing(arena: Any, lock: MemoryLock, caplog: pytest.LogCaptureFixture) -> None:
    def fail(who: str) -> None:
        raise RuntimeError("callback")

    one = arena.candidate("a", on_new_leader=fail).start()
    assert one.started.wait(LONG)
    arena.let_pass(5)
    assert one.elector.is_leader()
    assert "a callback failed" in caplog.text


@pytest.mark.parametrize("error", [LockError("x"), ValueError("x"), OSError("x"), KeyError("x")])
def test_any_error_of_the_lock_is_a_failed_attempt_and_survived(arena: Any, lock: MemoryLock, error: Exception) -> None:
    lock.fail_next("get", error, count=3)
    one = arena.candidate("a").start()
    arena.until(one.started.is_set, within=3 * 4.4 + 0.2)
    assert one.elector.failed_attempts == 3


def test_release_is_tried_again_and_given_up_in_the_end(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a").start()
    assert one.started.wait(LONG)
    lock.fail_next("get", count=2)
    one.stop.set()
    arena.until(one.ended.is_set, within=1)
    assert lock.record is not None
    assert lock.record.holder == ""
    two = arena.candidate("b").start()
    arena.until(two.started.is_set, within=1)
    lock.fail_next("get", count=3)
    two.stop.set()
    arena.until(two.ended.is_set, within=1)
    assert lock.record.holder == "b"
    assert two.error is None


def test_check_complains_of_a_worker_that_outlives_its_lease(arena: Any, lock: MemoryLock) -> None:
    one = arena.candidate("a")
    one.elector.check()
    one.finish.clear()
    one.start()
    assert one.started.wait(LONG)
    for verb in ("get", "update"):
        lock.fail_next(verb, count=1000)
    arena.until(one.leadership.stop.is_set, within=10.2)
    arena.let_pass(4.5)
    one.elector.check()
    arena.let_pass(1)
    with pytest.raises(NotRenewed, match="term 0"):
        one.elector.check()
    one.elector.check(tolerance=5)


def test_requests_of_a_leader_are_cut_at_its_deadline(arena: Any, clock: FakeClock) -> None:
    timeouts: list[float] = []

    class Watched(MemoryLock):
        def update(self, record: Any, version: Any, timeout: float) -> Any:
            timeouts.append(round(timeout, 2))
            raise LockError("down")

        def get(self, timeout: float) -> Any:
            timeouts.append(round(timeout, 2))
            return super().get(timeout)

    one = arena.candidate("a", lock=Watched()).start()
    assert one.started.wait(LONG)
    arena.until(one.ended.is_set, within=11)
    assert timeouts[:3] == [4, 4, 4]
    assert timeouts[-1] == pytest.approx(2, abs=0.5)


def test_metrics_show_who_leads_and_slow_renewals(arena: Any, lock: MemoryLock) -> None:
    provider = PrometheusMetricsProvider()
    one = arena.candidate("a", name="mine", metrics=provider)

    def read(name: str) -> float | None:
        return provider.registry.get_sample_value(name, {"name": "mine"})

    assert read("leader_election_master_status") == 0
    one.start()
    assert one.started.wait(LONG)
    assert read("leader_election_master_status") == 1
    assert read("leader_election_slowpath_total") == 0
    assert lock.record is not None
    lock.write(lock.record)  # somebody changes a label
    arena.let_pass(3)
    assert read("leader_election_slowpath_total") == 1
    assert one.elector.is_leader()
    one.stop.set()
    arena.until(one.ended.is_set, within=1)
    assert read("leader_election_master_status") == 0


def test_the_real_clock_runs_and_works(lock: MemoryLock) -> None:
    assert BootClock().now() <= BootClock().now()
    done = threading.Event()
    elector = LeaderElector(lock, "a", on_started_leading=lambda leadership: done.set())
    elector.run(threading.Event())
    assert done.is_set()
    assert lock.record is not None
    assert lock.record.holder == ""
