"""The rules of an election, pure: observations and the time in, what to write and whether we lead out.

An *attempt* is a few requests to the lock. The shell (or a simulator) carries them out and reports what happened:

    core.campaign()                            we want to lead; asked for again after each term
    write = core.begin(now, wall)              a leader renews at once; None: read first
    write = core.saw(record, now, wall)        after a read: what to write now, if anything
    core.sent(write, now)                      just before a write goes out
    core.acknowledged(record, now)             when it was answered; a failed write needs no report

What makes it safe:

- A leader's deadline counts from the moment when its last acknowledged write was *sent*. Once passed, the term is over.
- A standby waits, on its own clock, as long as the *holder* has written, from when it saw the last change (of uid and
  resourceVersion or, in a lock that lies about these, of anything). Times in the record are information for others, and
  are never compared with a clock.
- Writes name the version they replace, so only one of those who wait can win.
- A record counts as ours only if it carries a renew time that this core wrote, so that another process with our
  identity is seen as what it is: somebody else. That also recognises a write whose answer was lost.
- Whoever sees another holder stops at once.
- A Lease that was seen and is gone counts as held for one more lease duration, since its last holder may still lead.
  Terms (the record's transitions) go on counting over that.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from leaderelection.config import Config

__all__ = ["ElectorCore", "FencingToken", "Record", "Term", "Version", "Write"]

_REMEMBERED_WRITES = 16


class Version(NamedTuple):
    """What identifies one state of the lock: it changes with every write and every re-creation."""

    uid: str
    resource_version: str


_NO_VERSION = Version("", "")


@dataclass(frozen=True, slots=True)
class Record:
    """What the lock says. Times are microseconds since 1970 by the writer's wall clock, for people to read.

    A lock may be foreign code, so what cannot be a record is refused when it is made: TypeError or ValueError.
    """

    holder: str = ""
    """The identity of the leader; empty if the lock was released."""
    lease_duration: int | None = None
    """Whole seconds, above 0, that others wait after a change; None if the writer left it out."""
    acquire_time: int | None = None
    renew_time: int | None = None
    transitions: int = 0
    """The term: one more for each new leadership."""
    version: Version = _NO_VERSION
    """Set by the lock; empty in a record that is to be written."""
    origin: object = field(default=None, compare=False, repr=False)
    """Whatever the lock wants to get back when this record is replaced; nobody else looks at it."""

    def __post_init__(self) -> None:
        if not isinstance(self.holder, str):
            raise TypeError(f"a holder is a str, not {self.holder!r}")
        if not isinstance(self.transitions, int):
            raise TypeError(f"transitions are an int, not {self.transitions!r}")
        for value in (self.lease_duration, self.acquire_time, self.renew_time):
            if not isinstance(value, int | None):
                raise TypeError(f"durations and times are whole numbers or None, not {value!r}")
        if self.lease_duration is not None and self.lease_duration < 1:
            raise ValueError(f"a lease duration must be at least 1 or None, not {self.lease_duration}")
        version = self.version
        if not isinstance(version, Version) or not all(isinstance(part, str) for part in version):
            raise TypeError(f"a version is a Version of two str, not {version!r}")


@dataclass(frozen=True, slots=True)
class Write:
    """A write to carry out: create if `replaces` is None, else replace exactly that version."""

    record: Record
    replaces: Version | None
    acquires: bool
    """True if it begins a term, False if it renews or releases one."""


class FencingToken(NamedTuple):
    """Says which term an act belongs to. Ordered within one `lease_uid`: a resource refuses less than it has seen.

    `resource_version` is that of the write that acquired the lease (or re-created it in that term).
    """

    term: int
    resource_version: int
    lease_uid: str


@dataclass(slots=True)
class Term:
    """A term that we lead."""

    number: int
    deadline: float
    token: FencingToken
    record: Record
    """The latest record of ours that we know of."""


class ElectorCore:
    """The state of one candidate. Not thread-safe. `now` is the candidate's own clock and must not go backwards.

    `wall` is the wall clock in microseconds since 1970. It is only written, never judged by.
    """

    def __init__(self, identity: str, config: Config) -> None:
        self.identity = identity
        self.config = config
        self.term: Term | None = None
        """The term that we lead; its deadline may have passed unless `expire` was just called."""
        self.loss = ""
        """Why the last term ended before its time; empty if it did not."""
        self.observed: Record | None = None
        """The last record seen, also after it is gone."""
        self._candidate = False
        self._observed_at = 0.0
        self._gone = False
        self._highest_term = -1
        self._last_led = -1
        self._last_wall = 0
        # By renew time: what this core sent, and when.
        self._writes: OrderedDict[int, tuple[Write, float]] = OrderedDict()

    # -- do we lead --------------------------------------------------------------------------------------------------

    def leads(self, now: float) -> bool:
        """True if we may act at this moment."""
        return self.term is not None and now < self.term.deadline

    def expire(self, now: float) -> bool:
        """End the term if its deadline has passed. True if that happened now."""
        if self.term is None or now < self.term.deadline:
            return False
        self._lose(f"no renewal was acknowledged within {self.config.renew_deadline} s of being sent")
        return True

    def resign(self) -> None:
        """End the term or the campaign by our own will; the record stays until it is released or runs out."""
        self._end()

    @property
    def holder(self) -> str:
        """The holder as last seen; empty if there is none or the lock is gone."""
        return "" if self.observed is None or self._gone else self.observed.holder

    def campaign(self) -> None:
        """Want to lead, until a term ends: a new one is only begun after this was called again."""
        self._candidate = True

    # -- an attempt --------------------------------------------------------------------------------------------------

    def begin(self, now: float, wall: int) -> Write | None:
        """Begin an attempt: what to write at once, or None if the lock must be read first."""
        self.expire(now)
        if self.term is None or self._gone:
            return None
        return self._renewal(self.term, self.term.record, wall)

    def saw(self, record: Record | None, now: float, wall: int) -> Write | None:
        """Take in what a read gave (None: there is no lock); `now` is after the answer. Gives what to write now."""
        self.expire(now)
        self._observe(record, now)
        term = self.term
        if term is not None:
            return self._as_leader(term, record, now, wall)
        if not self._candidate:
            return None
        if record is None:
            return self._acquisition(None, wall) if self._free(None, now) else None
        if self._written_by_us(record):
            if self._confirm(record, now):
                return None
            # Ours, but not led (any more): nobody else has written since, so it can be taken anew.
            return self._acquisition(record, wall)
        return self._acquisition(record, wall) if self._free(record, now) else None

    def sent(self, write: Write, now: float) -> None:
        """A write is about to go out: `now` is what its acknowledgement will count from."""
        assert write.record.renew_time is not None
        self._writes[write.record.renew_time] = (write, now)
        while len(self._writes) > _REMEMBERED_WRITES:
            self._writes.popitem(last=False)

    def acknowledged(self, record: Record, now: float) -> None:
        """A write was answered with the record as it is stored."""
        self.expire(now)
        self._observe(record, now)
        if self.term is None or self._still_ours(self.term, record):
            self._confirm(record, now)

    def release(self, record: Record | None, wall: int) -> Write | None:
        """After a read: the write that gives the lock back, or None if it is not ours (any more)."""
        if record is None or not self._written_by_us(record):
            return None
        # 0 would be refused by the API; with 1, whoever does not understand an empty holder waits a second.
        empty = replace(record, holder="", lease_duration=1, renew_time=self._stamp(wall), version=_NO_VERSION)
        return Write(empty, record.version, acquires=False)

    def released(self, record: Record, now: float) -> None:
        """The release was answered. What was sent before can no longer be done, since its version is gone."""
        self._observe(record, now)
        self._writes.clear()

    def may_hold(self) -> bool:
        """True if the lock may carry our name: something was sent since the last release."""
        return bool(self._writes)

    def candidate_delay(self, random: float) -> float:
        """Seconds from one attempt of a candidate to the next; `random` is drawn uniformly from [0, 1)."""
        return self.config.retry_period * (1 + self.config.jitter * random)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _observe(self, record: Record | None, now: float) -> None:
        if record is None:
            if self.observed is not None and not self._gone:
                # The last holder may have renewed between our last look and the deletion: the wait begins again.
                self._gone, self._observed_at = True, now
            return
        if self.observed is None or self._gone or record != self.observed:
            self._observed_at = now
        self.observed, self._gone = record, False
        self._highest_term = max(self._highest_term, record.transitions)

    def _free(self, record: Record | None, now: float) -> bool:
        """Whether somebody who does not hold the lock may take it."""
        if record is None:
            if self.observed is None:
                return True
            written = self.observed.lease_duration or 0
            return now - self._observed_at >= max(written, self.config.stored_duration)
        if not record.holder:
            return True
        return now - self._observed_at >= (record.lease_duration or self.config.stored_duration)

    def _as_leader(self, term: Term, record: Record | None, now: float, wall: int) -> Write | None:
        if record is None:  # deleted: made anew in the same term, so that nobody need stop
            ours = replace(term.record, origin=None)
            return replace(self._renewal(term, ours, wall), replaces=None)
        if not self._still_ours(term, record):
            return None
        self._confirm(record, now)
        return self._renewal(term, term.record, wall)

    def _still_ours(self, term: Term, record: Record) -> bool:
        """Whether what the lock says is of our term; ends it if not."""
        if record.holder != self.identity:
            self._lose(f"{record.holder!r} holds the lock" if record.holder else "somebody released the lock")
        elif not self._written_by_us(record) or record.transitions != term.number:
            self._lose(f"another process holds the lock as {record.holder!r}")
        else:
            return True
        return False

    def _written_by_us(self, record: Record) -> bool:
        if record.holder != self.identity or record.renew_time is None:
            return False
        entry = self._writes.get(record.renew_time)
        return entry is not None and entry[0].record.transitions == record.transitions

    def _confirm(self, record: Record, now: float) -> bool:
        """`record` is stored; if we wrote it, that write is acknowledged as of when it was sent. True if we lead."""
        if record.renew_time is None or not self._written_by_us(record):
            return False
        write, sent_at = self._writes[record.renew_time]
        deadline = sent_at + self.config.renew_deadline
        term = self.term
        if term is not None:
            if term.number == record.transitions:
                if record.version.uid != term.token.lease_uid:
                    term.token = _token(record)
                if record.renew_time >= (term.record.renew_time or 0):
                    term.record = record  # unless the read was behind
                term.deadline = max(term.deadline, deadline)
        elif self._candidate and write.acquires and record.transitions > self._last_led and now < deadline:
            self.loss = ""
            self.term = Term(record.transitions, deadline, _token(record), record)
        return self.term is not None

    def _acquisition(self, record: Record | None, wall: int) -> Write:
        stamp = self._stamp(wall)
        ours = Record(
            holder=self.identity,
            lease_duration=self.config.stored_duration,
            acquire_time=stamp,
            renew_time=stamp,
            transitions=self._highest_term + 1,
            origin=None if record is None else record.origin,
        )
        return Write(ours, None if record is None else record.version, acquires=True)

    def _renewal(self, term: Term, record: Record, wall: int) -> Write:
        ours = replace(
            record,
            lease_duration=self.config.stored_duration,
            renew_time=self._stamp(wall),
            transitions=term.number,
            version=_NO_VERSION,
        )
        return Write(ours, record.version, acquires=False)

    def _stamp(self, wall: int) -> int:
        """A renew time that this core never used before: it marks the write, even if the wall clock stands or steps."""
        self._last_wall = max(wall, self._last_wall + 1)
        return self._last_wall

    def _lose(self, why: str) -> None:
        self.loss = why
        self._end()

    def _end(self) -> None:
        self._candidate = False
        if self.term is not None:
            self._last_led = max(self._last_led, self.term.number)
            self.term = None


def _token(record: Record) -> FencingToken:
    version = record.version.resource_version
    # Longer ones are no versions of etcd, and int() refuses some thousands of digits.
    number = int(version) if version.isdecimal() and len(version) <= 20 else 0
    return FencingToken(record.transitions, number, record.version.uid)
