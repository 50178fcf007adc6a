"""The rules of an election, one by one, on the pure core."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leaderelection.config import Config
from leaderelection.core import ElectorCore, FencingToken, Record, Version, Write

CONFIG = Config(15, 10, 2)
WALL = 1_700_000_000_000_000


def core(identity: str = "me") -> ElectorCore:
    made = ElectorCore(identity, CONFIG)
    made.campaign()
    return made


def foreign(version: int = 1, *, holder: str = "other", uid: str = "u1", **members: object) -> Record:
    base = Record(holder, 15, 1, 1, 0, Version(uid, str(version)))
    return replace(base, **members)  # type: ignore[arg-type]


def stored(write: Write | None, version: int, uid: str = "u1") -> Record:
    assert write is not None
    return replace(write.record, version=Version(uid, str(version)))


def lead(candidate: ElectorCore, now: float = 0, *, record: Record | None = None, version: int = 10) -> Record:
    """Acquire at `now`, with an answer that takes no time."""
    write = candidate.saw(record, now, WALL)
    assert write is not None
    candidate.sent(write, now)
    result = stored(write, version)
    candidate.acknowledged(result, now)
    assert candidate.leads(now)
    return result


# -- acquiring


def test_an_absent_lock_is_created_with_term_zero() -> None:
    me = core()
    assert me.begin(0, WALL) is None
    write = me.saw(None, 0, WALL)
    assert write == Write(Record("me", 15, WALL, WALL, 0), None, acquires=True)
    assert not me.leads(0)  # not before it is acknowledged
    me.sent(write, 1)
    me.acknowledged(stored(write, 7), 3)
    assert me.leads(3)
    assert me.term is not None
    assert me.term.token == FencingToken(0, 7, "u1")
    assert me.holder == "me"


def test_a_released_lock_is_taken_at_once_with_the_next_term() -> None:
    me = core()
    write = me.saw(foreign(holder="", transitions=4, lease_duration=1), 0, WALL)
    assert write is not None
    assert write.record.transitions == 5
    assert write.replaces == Version("u1", "1")


@pytest.mark.parametrize("written", [2, 15, 60])
def test_a_standby_waits_as_long_as_the_holder_has_written(written: int) -> None:
    me = core()
    record = foreign(lease_duration=written)
    assert me.saw(record, 100, WALL) is None
    assert me.saw(record, 100 + written - 0.001, WALL) is None
    write = me.saw(record, 100 + written, WALL)
    assert write is not None
    assert write.record.lease_duration == 15


def test_a_holder_that_wrote_no_duration_gets_our_own() -> None:
    me = core()
    record = foreign(lease_duration=None, acquire_time=None, renew_time=None)
    assert me.saw(record, 0, WALL) is None
    assert me.saw(record, 14.9, WALL) is None
    assert me.saw(record, 15, WALL) is not None


@pytest.mark.parametrize("change", [{"version": Version("u1", "2")}, {"version": Version("u2", "1")}])
def test_any_change_of_uid_or_version_begins_the_wait_anew(change: dict[str, object]) -> None:
    me = core()
    record = foreign()
    assert me.saw(record, 0, WALL) is None
    changed = replace(record, **change)  # type: ignore[arg-type]
    assert me.saw(changed, 14, WALL) is None
    assert me.saw(changed, 28.9, WALL) is None
    assert me.saw(changed, 29, WALL) is not None


def test_the_times_in_the_record_are_never_judged() -> None:
    for renew_time in (None, 0, 1, WALL - 10**12, WALL + 10**12):
        me = core()
        record = foreign(renew_time=renew_time, acquire_time=renew_time)
        assert me.saw(record, 0, WALL) is None
        assert me.saw(record, 14.9, WALL + 10**13) is None
        assert me.saw(record, 15, WALL - 10**13) is not None


def test_identities_are_compared_exactly() -> None:
    me = core("node-1")
    record = foreign(holder="node-10")
    assert me.saw(record, 0, WALL) is None
    assert me.saw(record, 14, WALL) is None


def test_a_record_with_our_identity_that_we_did_not_write_is_somebody_else() -> None:
    me = core()
    record = foreign(holder="me")
    assert me.saw(record, 0, WALL) is None
    assert me.saw(record, 14.9, WALL) is None
    write = me.saw(record, 15, WALL)
    assert write is not None
    assert write.record.transitions == 1


def test_a_takeover_keeps_what_else_the_lock_holds() -> None:
    me = core()
    origin = object()
    record = foreign(holder="", origin=origin)
    write = me.saw(record, 0, WALL)
    assert write is not None
    assert write.record.origin is origin


def test_without_a_campaign_nothing_is_acquired() -> None:
    me = ElectorCore("me", CONFIG)
    assert me.begin(0, WALL) is None
    assert me.saw(None, 0, WALL) is None
    me.campaign()
    me.resign()
    assert me.saw(None, 0, WALL) is None


# -- a lock that is gone


def test_a_lock_that_was_seen_and_is_gone_is_not_free_for_one_lease_duration() -> None:
    me = core()
    assert me.saw(foreign(transitions=3), 0, WALL) is None
    assert me.saw(None, 5, WALL) is None
    assert me.holder == ""
    assert me.saw(None, 19.9, WALL) is None
    write = me.saw(None, 20, WALL)
    assert write is not None
    assert write.replaces is None
    assert write.record.transitions == 4  # terms go on counting


@pytest.mark.parametrize(("holder", "written", "wait"), [("other", 60, 60), ("other", 2, 15), ("", 1, 15)])
def test_that_wait_is_the_longer_of_both_durations_whoever_was_seen(holder: str, written: int, wait: float) -> None:
    me = ElectorCore("me", CONFIG)  # only looks at first
    me.saw(foreign(holder=holder, lease_duration=written), 0, WALL)
    me.campaign()
    assert me.saw(None, 1, WALL) is None
    assert me.saw(None, 0.9 + wait, WALL) is None
    assert me.saw(None, 1 + wait, WALL) is not None


def test_a_lock_made_anew_while_we_waited_begins_the_wait_anew() -> None:
    me = core()
    me.saw(foreign(), 0, WALL)
    me.saw(None, 5, WALL)
    new = foreign(uid="u2", holder="third")
    assert me.saw(new, 19, WALL) is None
    assert me.saw(new, 33, WALL) is None
    assert me.saw(new, 34, WALL) is not None


def test_a_leader_whose_lock_was_deleted_makes_it_anew_in_the_same_term() -> None:
    me = core()
    lead(me)
    write = me.begin(2, WALL)
    assert write is not None  # refused, since it is gone
    write = me.saw(None, 2, WALL + 5)
    assert write is not None
    assert (write.replaces, write.record.transitions, write.record.holder) == (None, 0, "me")
    me.sent(write, 2)
    me.acknowledged(stored(write, 20, uid="u2"), 2)
    assert me.term is not None
    assert me.term.token == FencingToken(0, 20, "u2")
    assert me.term.deadline == 12
    renewal = me.begin(4, WALL)
    assert renewal is not None
    assert renewal.replaces == Version("u2", "20")


# -- leading


def test_the_deadline_counts_from_when_the_write_was_sent() -> None:
    me = core()
    write = me.saw(None, 0, WALL)
    assert write is not None
    me.sent(write, 1)
    me.acknowledged(stored(write, 1), 4)
    assert me.term is not None
    assert me.term.deadline == 11
    renewal = me.begin(6, WALL)
    assert renewal is not None
    me.sent(renewal, 6)
    assert me.term.deadline == 11  # not before it is acknowledged
    me.acknowledged(stored(renewal, 2), 10.5)
    assert me.term.deadline == 16
    assert me.leads(15.999)
    assert not me.leads(16)


def test_an_acquisition_that_is_acknowledged_too_late_gives_no_term() -> None:
    me = core()
    write = me.saw(None, 0, WALL)
    assert write is not None
    me.sent(write, 0)
    me.acknowledged(stored(write, 1), 10)
    assert not me.leads(10)
    again = me.saw(stored(write, 1), 10, WALL)
    assert again is not None  # but nobody else has it, so it is taken with the next term
    assert again.record.transitions == 1


def test_a_renewal_keeps_term_and_acquire_time_and_changes_the_renew_time() -> None:
    me = core()
    lead(me)
    write = me.begin(2, WALL + 2_000_000)
    assert write == Write(Record("me", 15, WALL, WALL + 2_000_000, 0), Version("u1", "10"), acquires=False)


def test_two_writes_never_have_one_renew_time_even_if_the_wall_clock_stands_or_steps_back() -> None:
    me = core()
    record = lead(me)
    seen = {record.renew_time}
    for version, wall in enumerate((WALL, WALL, WALL - 10**9, WALL + 1), start=11):
        write = me.begin(1, wall)
        assert write is not None
        assert write.record.renew_time not in seen
        seen.add(write.record.renew_time)
        me.sent(write, 1)
        me.acknowledged(stored(write, version), 1)


def test_once_the_deadline_has_passed_the_term_is_over_even_if_the_answer_still_comes() -> None:
    me = core()
    lead(me)
    renewal = me.begin(5, WALL)
    assert renewal is not None
    me.sent(renewal, 5)
    me.acknowledged(stored(renewal, 11), 12)  # would have moved it to 15
    assert not me.leads(12)
    assert "10 s" in me.loss
    assert me.begin(12, WALL) is None
    assert me.saw(stored(renewal, 11), 12, WALL) is None  # the campaign is over with the term


def test_after_a_loss_our_own_record_can_be_taken_anew_with_the_next_term() -> None:
    me = core()
    record = lead(me)
    assert me.expire(10)
    assert not me.expire(10)
    me.campaign()
    write = me.saw(record, 11, WALL)
    assert write is not None
    assert (write.record.transitions, write.replaces) == (1, record.version)


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (foreign(11), "'other' holds the lock"),
        (foreign(11, holder="me", transitions=0), "another process holds the lock as 'me'"),
        (foreign(11, holder=""), "somebody released the lock"),
    ],
)
def test_whoever_sees_another_holder_stops_at_once(seen: Record, why: str) -> None:
    me = core()
    lead(me)
    assert me.saw(seen, 1, WALL) is None
    assert not me.leads(1)
    assert why in me.loss
    assert me.saw(seen, 1, WALL) is None


def test_a_term_that_has_ended_does_not_begin_again_from_its_own_record() -> None:
    me = core()
    record = lead(me)
    me.saw(foreign(9), 1, WALL)  # a read that was behind: we cannot know that
    assert me.saw(record, 2, WALL) is None
    assert not me.leads(2)
    me.campaign()
    write = me.saw(record, 3, WALL)
    assert not me.leads(3)
    assert write is not None
    assert write.record.transitions == 1


def test_an_acquisition_of_a_campaign_that_was_given_up_gives_no_term() -> None:
    me = core()
    write = me.saw(None, 0, WALL)
    assert write is not None
    me.sent(write, 0)
    me.resign()
    me.acknowledged(stored(write, 1), 1)
    assert not me.leads(1)


def test_a_foreign_change_of_our_term_ends_it() -> None:
    me = core()
    record = lead(me)
    assert me.saw(replace(record, transitions=7, version=Version("u1", "11")), 1, WALL) is None
    assert not me.leads(1)


def test_a_change_of_something_else_in_the_lock_is_only_read_and_renewed() -> None:
    me = core()
    record = lead(me)
    labelled = replace(record, version=Version("u1", "11"), origin="labelled")
    write = me.saw(labelled, 1, WALL)
    assert write is not None
    assert (write.replaces, write.record.origin) == (Version("u1", "11"), "labelled")
    assert me.leads(9.9)
    assert not me.leads(10)  # reading is no renewal


# -- answers that were lost


def test_a_renewal_whose_answer_was_lost_counts_from_its_sending_once_it_is_seen() -> None:
    me = core()
    lead(me)
    lost = me.begin(2, WALL)
    assert lost is not None
    me.sent(lost, 2)
    refused = me.begin(5, WALL)
    assert refused is not None
    me.sent(refused, 5)  # refused, since the first one was done
    write = me.saw(stored(lost, 11), 6, WALL)
    assert me.term is not None
    assert me.term.deadline == 12  # not 15 and not 16
    assert write is not None
    assert write.replaces == Version("u1", "11")


def test_an_acquisition_whose_answer_was_lost_is_recognised() -> None:
    me = core()
    write = me.saw(foreign(holder="", transitions=2), 0, WALL)
    assert write is not None
    me.sent(write, 0)
    assert me.saw(stored(write, 2), 4, WALL) is None
    assert me.term is not None
    assert (me.term.number, me.term.deadline) == (3, 10)
    assert me.term.token == FencingToken(3, 2, "u1")


def test_a_read_that_is_behind_ends_nothing_and_moves_nothing_back() -> None:
    me = core()
    first = lead(me)
    renewal = me.begin(2, WALL)
    assert renewal is not None
    me.sent(renewal, 2)
    me.acknowledged(stored(renewal, 11), 2)
    write = me.saw(first, 3, WALL)
    assert me.term is not None
    assert me.term.deadline == 12
    assert write is not None
    assert write.replaces == Version("u1", "11")


def test_what_is_remembered_of_writes_is_bounded() -> None:
    me = core()
    record = lead(me)
    for step in range(100):
        write = me.begin(1, WALL + step)
        assert write is not None
        me.sent(write, 1)
    assert len(me._writes) <= 16
    assert record.renew_time not in me._writes


# -- releasing


def test_release_empties_the_holder_and_keeps_the_term() -> None:
    me = core()
    record = lead(me, record=foreign(holder="", transitions=3))
    me.resign()
    write = me.release(record, WALL + 9)
    assert write is not None
    assert (write.record.holder, write.record.lease_duration, write.record.transitions) == ("", 1, 4)
    assert write.record.renew_time == WALL + 9
    assert write.replaces == record.version
    assert me.may_hold()
    me.released(stored(write, 12), 1)
    assert not me.may_hold()
    assert me.holder == ""


@pytest.mark.parametrize(
    "seen",
    [
        None,
        foreign(11),
        foreign(11, holder=""),
        foreign(11, holder="me"),
        foreign(11, holder="me", renew_time=WALL, transitions=1),
    ],
)
def test_release_touches_nothing_that_is_not_our_holder_and_term(seen: Record | None) -> None:
    me = core()
    lead(me)
    me.resign()
    assert me.release(seen, WALL) is None


def test_release_recognises_an_acquisition_whose_answer_was_lost() -> None:
    me = core()
    write = me.saw(None, 0, WALL)
    assert write is not None
    assert not me.may_hold()
    me.sent(write, 0)
    me.resign()
    assert me.may_hold()
    assert me.release(stored(write, 1), WALL) is not None


def test_candidates_wait_a_period_and_a_random_part() -> None:
    me = core()
    assert me.candidate_delay(0.0) == 2
    assert me.candidate_delay(0.5) == pytest.approx(3.2)
    assert me.candidate_delay(0.999999) == pytest.approx(4.4, abs=1e-4)
