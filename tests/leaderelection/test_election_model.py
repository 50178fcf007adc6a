"""Electors against a store that loses, delays and reorders, on clocks that run at different rates: never two believers.

Each process speaks to the store in single steps (send, apply, deliver), so every interleaving can be drawn. A request
that its sender gave up may still be applied much later; a read may be behind. Time and rates are exact fractions.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from leaderelection.config import Config
from leaderelection.core import ElectorCore, Record, Version, Write

DRIFT = Fraction(1, 5)  # with 15/10 the margin is exactly 0
RATES = [1 - DRIFT, 1 + DRIFT, Fraction(1)]
PROCESSES = st.integers(0, 2)


class Store:
    def __init__(self) -> None:
        self.record: Record | None = None
        self.history: list[Record | None] = [None]
        self.writers: dict[Version, str] = {}
        self.uids = 0

    def put(self, writer: str, write: Write) -> Record | None:
        """Carry out a write; None if it is refused."""
        old = self.record
        if write.replaces != (None if old is None else old.version):
            return None
        if old is None:
            self.uids += 1
        elif write.acquires:
            assert write.record.transitions == old.transitions + 1, "terms count one by one"
        else:
            assert self.writers[old.version] == writer, "only the writer of a record renews or releases it"
            assert write.record.transitions == old.transitions
        self.record = replace(write.record, version=Version(f"u{self.uids}", str(len(self.history))))
        self.writers[self.record.version] = writer
        self.history.append(self.record)
        return self.record


class Process:
    def __init__(self, name: str, config: Config, rate: Fraction, offset: int) -> None:
        self.core = ElectorCore(name, config)
        self.name = name
        self.rate = rate
        self.offset = offset
        self.request: Write | str | None = None  # "get", a write, or nothing on its way
        self.reply: tuple[bool, Record | None] | None = None  # done or refused, and what is stored


class Election(RuleBasedStateMachine):
    config = Config(15, 10, 2)

    def __init__(self) -> None:
        super().__init__()
        self.time = Fraction(0)
        self.store = Store()
        self.processes: list[Process] = []
        self.abandoned: list[tuple[str, Write]] = []
        self.granted: dict[tuple[str, int], str] = {}
        self.ended: set[tuple[str, int]] = set()  # process and term
        self.overlap = Fraction(0)

    @initialize(rates=st.lists(st.sampled_from(RATES), min_size=3, max_size=3), offset=st.integers(0, 1000))
    def begin(self, rates: list[Fraction], offset: int) -> None:
        self.processes = [
            Process(name, self.config, rate, offset * index)
            for index, (name, rate) in enumerate(zip("abc", rates, strict=True))
        ]

    def now(self, process: Process) -> float:
        return self.time * process.rate + process.offset  # type: ignore[return-value]  # exact, on purpose

    def believers(self) -> list[Process]:
        return [one for one in self.processes if one.core.leads(self.now(one))]

    # -- what can happen

    @rule(tenths=st.one_of(st.integers(1, 30), st.integers(30, 200)))
    def time_passes(self, tenths: int) -> None:
        self.pass_time(Fraction(tenths, 10))

    def pass_time(self, step: Fraction) -> None:
        ends = sorted(
            min((Fraction(one.core.term.deadline) - one.offset) / one.rate, self.time + step)
            for one in self.believers()
            if one.core.term is not None
        )
        if len(ends) > 1:  # until the last but one stops, there are two
            self.overlap += ends[-2] - self.time
        if len(ends) < 2 or ends[-2] < self.time + step:
            self.check_overlap()
            self.overlap = Fraction(0)
        self.time += step

    @rule(which=PROCESSES, early=st.sampled_from([0, 0, 1]))
    def wait_out(self, which: int, early: int) -> None:
        """A standby tries at the very moment when it may, which is what it all comes down to, or a little before."""
        one = self.processes[which]
        seen = one.core.observed
        if seen is None or one.core.term is not None:
            return
        due = (Fraction(one.core._observed_at) + (seen.lease_duration or 15) - early - one.offset) / one.rate
        if due > self.time:
            self.pass_time(due - self.time)
        self.whole_attempt(which)

    @rule(which=PROCESSES, tenths=st.integers(1, 99))
    def slow_renewal(self, which: int, tenths: int) -> None:
        """The answer of a renewal takes its time."""
        one = self.processes[which]
        if one.request is not None or one.reply is not None or one.core.term is None:
            return
        self.attempt(which)
        self.apply(which, 0)
        self.pass_time(Fraction(tenths, 10))
        self.deliver(which)

    @rule(which=PROCESSES)
    def attempt(self, which: int) -> None:
        one = self.processes[which]
        if one.request is not None or one.reply is not None:
            return
        if one.core.term is None or one.core.expire(self.now(one)):
            one.core.campaign()
        write = one.core.begin(self.now(one), 0)
        self.send(one, "get" if write is None else write)

    def send(self, one: Process, request: Write | str) -> None:
        one.request = request
        if isinstance(request, Write):
            one.core.sent(request, self.now(one))

    @rule(which=PROCESSES, behind=st.integers(0, 6))
    def apply(self, which: int, behind: int) -> None:
        one = self.processes[which]
        if one.request is None:
            return
        if isinstance(one.request, Write):
            stored = self.store.put(one.name, one.request)
            one.reply = (stored is not None, stored)
        elif behind and len(self.store.history) > behind:
            one.reply = (True, self.store.history[-1 - behind])
        else:
            one.reply = (True, self.store.record)

    @rule(which=PROCESSES)
    def deliver(self, which: int) -> None:
        one = self.processes[which]
        if one.reply is None:
            return
        request, (done, record) = one.request, one.reply
        one.request = one.reply = None
        if isinstance(request, Write):
            if not done:
                self.send(one, "get")
            elif record is not None:
                one.core.acknowledged(record, self.now(one))
        else:
            write = one.core.saw(record, self.now(one), 0)
            if record is not None and record.holder != one.name:
                assert not one.core.leads(self.now(one)), "whoever sees another holder stops at once"
            if write is not None:
                self.send(one, write)
        self.note_grants()

    @rule(which=PROCESSES)
    def whole_attempt(self, which: int) -> None:
        """The undisturbed case, which single steps would rarely draw."""
        self.attempt(which)
        for _ in range(3):
            if self.processes[which].reply is None:
                self.apply(which, 0)
            self.deliver(which)

    @rule(which=PROCESSES, arrives=st.booleans())
    def give_up(self, which: int, arrives: bool) -> None:
        one = self.processes[which]
        if isinstance(one.request, Write) and one.reply is None and arrives:
            self.abandoned.append((one.name, one.request))
        one.request = one.reply = None

    @precondition(lambda self: self.abandoned)
    @rule(data=st.data())
    def late_arrival(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.abandoned) - 1))
        self.store.put(*self.abandoned.pop(index))

    @rule(which=PROCESSES)
    def release(self, which: int) -> None:
        one = self.processes[which]
        if one.request is not None or one.reply is not None:
            return
        one.core.resign()
        write = one.core.release(self.store.record, 0)
        if write is not None:
            stored = self.store.put(one.name, write)
            assert stored is not None
            one.core.released(stored, self.now(one))

    @precondition(lambda self: self.store.record is not None)
    @rule()
    def delete(self) -> None:
        """Somebody deletes the lock. Who has not seen it (come back) cannot know that it was held."""
        if any(one.core.observed is None or one.core._gone for one in self.processes):
            return
        writes = [write for _, write in self.abandoned] + [one.request for one in self.processes]
        if any(isinstance(write, Write) and write.replaces is None for write in writes):
            return  # a creation on its way could come after any number of deletions
        self.store.record = None
        self.store.history.append(None)

    # -- what must hold

    def note_grants(self) -> None:
        for one in self.processes:
            if one.core.leads(self.now(one)) and one.core.term is not None:
                key = (one.core.term.token.lease_uid, one.core.term.number)
                assert self.granted.setdefault(key, one.name) == one.name, "one process is granted a term"
                assert (one.name, one.core.term.number) not in self.ended, "a term that has ended does not begin again"

    @invariant()
    def note_ends(self) -> None:
        for (_, number), name in self.granted.items():
            core = next(one.core for one in self.processes if one.name == name)
            if core.term is None or core.term.number != number:
                self.ended.add((name, number))

    def check_overlap(self) -> None:
        bound = self.config.max_overlap(drift=float(DRIFT))
        assert self.overlap <= bound + 1e-9, f"two leaders for {float(self.overlap)} s, the bound is {bound}"

    @invariant()
    def at_most_one_believes(self) -> None:
        if self.config.safe(drift=float(DRIFT)):
            assert len(self.believers()) <= 1


class UnsafeElection(Election):
    """With a negative margin there may be two, but no longer than the bound says."""

    config = Config(15, 14, 2)


TestElection = Election.TestCase
TestElection.settings = settings(max_examples=120, stateful_step_count=60, deadline=None)
TestUnsafeElection = UnsafeElection.TestCase
TestUnsafeElection.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


def test_the_model_finds_an_election_that_is_not_safe() -> None:
    """The unsafe configuration does give two believers: the model is able to see them."""
    world = UnsafeElection()
    world.begin([1 - DRIFT, 1 + DRIFT, Fraction(1)], 0)
    world.whole_attempt(0)
    world.whole_attempt(1)
    world.time_passes(125)
    world.whole_attempt(1)
    assert [one.name for one in world.believers()] == ["a", "b"]
    world.time_passes(50)
    assert [one.name for one in world.believers()] == ["b"]
    assert world.overlap == 5  # exactly the bound
    world.time_passes(1)
    assert world.overlap == 0


TENTHS = st.integers(0, 120).map(lambda tenths: Fraction(tenths, 10))


@settings(max_examples=200, deadline=None)
@given(
    deadline=st.integers(4, 14),
    rates=st.tuples(st.sampled_from(RATES), st.sampled_from(RATES)),
    sent=TENTHS,
    on_the_way=TENTHS,
    answered_after=TENTHS,
)
@example(12, (1 - DRIFT, 1 + DRIFT), Fraction(5), Fraction(0), Fraction(9))
@example(10, (1 - DRIFT, 1 + DRIFT), Fraction(5), Fraction(0), Fraction(7))
@example(10, (1 - DRIFT, 1 + DRIFT), Fraction(20), Fraction(0), Fraction(0))
def test_one_handover_overlaps_no_longer_than_the_bound(
    deadline: int, rates: tuple[Fraction, Fraction], sent: Fraction, on_the_way: Fraction, answered_after: Fraction
) -> None:
    """A leader acquires at 0, renews once with a slow request and a slow answer, and is cut off; a standby polls."""
    config = Config(15, deadline, 2)
    world = Election()
    world.processes = [Process(name, config, rate, 0) for name, rate in zip("ab", rates, strict=True)]
    leader, standby = world.processes
    world.whole_attempt(0)
    applied, answered = sent + on_the_way, sent + on_the_way + answered_after
    believed_until = led_from = None
    for tenth in range(600):
        world.time = Fraction(tenth, 10)
        if leader.core.term is not None:
            believed_until = Fraction(leader.core.term.deadline) / leader.rate
        if world.time == sent and leader.core.leads(world.now(leader)):
            world.attempt(0)
        if world.time == applied:
            world.apply(0, 0)
        if world.time == answered:
            world.deliver(0)
        world.whole_attempt(1)
        if standby.core.leads(world.now(standby)):
            led_from = world.time
            break
    assert believed_until is not None
    assert led_from is not None
    overlap = max(believed_until - led_from, Fraction(0))
    assert overlap <= config.max_overlap(drift=float(DRIFT)) + 1e-9
