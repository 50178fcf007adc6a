"""`LeaderElector`: the threads' shell around `leaderelection.core.ElectorCore`.

While a candidate, the thread in `run` does the attempts itself. While leading there are three: a renewer, which is the
only one that speaks to the lock; the worker; and the thread in `run`, now a watchdog, which never waits for the lock,
so that a request that hangs cannot keep it from ending the term at its deadline.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from leaderelection.clock import WAKE_INTERVAL, BootClock, Clock
from leaderelection.config import Config
from leaderelection.core import ElectorCore, Record, Write
from leaderelection.errors import (
    AlreadyRunning,
    ConfigError,
    LockConflict,
    LockError,
    NotLeading,
    NotRenewed,
    WorkerFailed,
    WorkerStuck,
)
from leaderelection.leadership import ElectionEvent, EventType, Leadership
from leaderelection.lock import Lock
from leaderelection.metrics import ElectorMetrics, MetricsProvider

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LeaderElector"]

_log = logging.getLogger(__name__)
_RELEASE_ATTEMPTS = 3


class _Outcome:
    """How a worker ended, if it has."""

    def __init__(self) -> None:
        self.done = False
        self.error: BaseException | None = None


class LeaderElector:
    """Campaigns for a lock, and runs a worker for as long as it leads.

    The worker is `on_started_leading`: called on a thread of its own with a `Leadership`, it shall return soon after
    `leadership.stop` is set. If it returns before, the term ends; if it raises, `run` raises `WorkerFailed` (unless it
    is the `NotLeading` of a term that was lost). Renewals go on until it has returned, so nobody else leads meanwhile;
    only then the lock is released. When the term is *lost* (not renewed by its deadline, or another holder was seen)
    there is nothing to renew or to release.

    The other callbacks run on the elector's threads: they must return soon, and what they raise is logged.

    :param lock: where the record lives; only one elector of a process should use a lock with one identity
    :param identity: who we are; unique for each run of a process (host name and a random part), never reused
    :param on_stopped_leading: called once after each worker that returned, before the lock is released
    :param on_new_leader: called with the identity of each leader that is seen, once a term, ourselves included
    :param on_event: called with each `ElectionEvent`
    :param on_stuck: called when the worker does not return in time, before `run` raises `WorkerStuck`; the process
        should exit then, since nothing else can stop the worker
    :param release_on_stop: give the lock back when a term ended by our own will; otherwise others wait till it runs out
    :param worker_timeout: seconds that a worker may take to return after it was told to; None waits without limit
    :param name: for threads, messages and the metrics' label; by default that of the lock
    :param rng: draws the candidates' jitter
    :raises ConfigError: see `Config.validate`; also for an empty identity and a worker_timeout that is no time
    """

    def __init__(
        self,
        lock: Lock,
        identity: str,
        config: Config = Config(),  # noqa: B008 - immutable
        *,
        on_started_leading: Callable[[Leadership], None],
        on_stopped_leading: Callable[[], None] | None = None,
        on_new_leader: Callable[[str], None] | None = None,
        on_event: Callable[[ElectionEvent], None] | None = None,
        on_stuck: Callable[[], None] | None = None,
        release_on_stop: bool = True,
        worker_timeout: float | None = None,
        name: str = "",
        clock: Clock | None = None,
        rng: random.Random | None = None,
        metrics: MetricsProvider | None = None,
    ) -> None:
        config.validate()
        if not isinstance(identity, str) or not identity:
            raise ConfigError(f"identity must be a str that is not empty, not {identity!r}")
        if worker_timeout is not None and not worker_timeout >= 0:
            raise ConfigError(f"worker_timeout must be at least 0 or None, not {worker_timeout!r}")
        self.identity = identity
        self.config = config
        self.name = name or str(lock)
        self._lock = lock
        self._on_started_leading = on_started_leading
        self._on_stopped_leading = on_stopped_leading
        self._on_new_leader = on_new_leader
        self._on_event = on_event
        self._on_stuck = on_stuck
        self._release_on_stop = release_on_stop
        self._worker_timeout = math.inf if worker_timeout is None else worker_timeout
        self._clock: Clock = BootClock() if clock is None else clock
        self._rng = random.Random() if rng is None else rng
        self._metrics: ElectorMetrics | None = None if metrics is None else metrics.elector(self.name)
        self._core = ElectorCore(identity, config)
        self._changed = threading.Condition()  # guards the core and everything below
        self._running = False
        self._attempting = False
        self._leadership: Leadership | None = None
        self._worker: threading.Thread | None = None
        self._announced = ("", -1)
        self._failed_attempts = 0
        self._set_metric(False)

    # -- asking ------------------------------------------------------------------------------------------------------

    def is_leader(self) -> bool:
        """True if we lead at this moment."""
        with self._changed:
            return self._core.leads(self._clock.now())

    @property
    def leader(self) -> str:
        """The identity of the leader as last seen; empty if there is none."""
        with self._changed:
            return self._core.holder

    @property
    def failed_attempts(self) -> int:
        """How many attempts to read or write the lock have failed so far; lost races do not count."""
        return self._failed_attempts

    def check(self, tolerance: float = 0.0) -> None:
        """For health endpoints: raise `NotRenewed` if a worker of ours runs although its lease ran out.

        :param tolerance: seconds after the end of the lease that are still fine
        """
        leadership = self._leadership
        if leadership is None:
            return
        lease_end = leadership.deadline - self.config.renew_deadline + self.config.lease_duration
        late = self._clock.now() - lease_end - tolerance
        if late > 0:
            raise NotRenewed(
                f"{self.name}: the worker of term {leadership.number} still runs, but the lease was not renewed and "
                f"ran out {late + tolerance:.1f} s ago"
            )

    # -- running -----------------------------------------------------------------------------------------------------

    def run(self, stop: threading.Event) -> None:
        """Campaign until elected, then lead until the term ends: one campaign and one term at most. Blocks.

        Setting `stop` ends it: a campaign within `WAKE_INTERVAL` (0.25 s) and the time of a request under way, a term
        when the worker has returned. All threads that it started have ended when it returns (but for a stuck worker).
        It may be called again.

        :raises WorkerFailed: the worker raised
        :raises WorkerStuck: the worker did not return in time, now or in an earlier run
        :raises AlreadyRunning: it runs on another thread
        """
        with self._changed:
            if self._running:
                raise AlreadyRunning(f"{self.name}: the elector runs already")
            if self._worker is not None and self._worker.is_alive():
                raise WorkerStuck(f"{self.name}: the worker of an earlier term still runs")
            self._running = True
            self._core.resign()  # an interrupted run may have left a term
            self._leadership = None
        try:
            won = self._campaign(stop)
            if won is not None and not stop.is_set():
                self._lead(won, stop)
            else:
                self._resign()
                self._leadership = None
                self._release()
        finally:
            self._settle_down()

    def _settle_down(self) -> None:
        """Whatever ended `run`, foreign code that exits included: who does not run does not lead."""
        with self._changed:
            self._running = False
            self._core.resign()
            if self._leadership is not None and not self._leadership.over:
                self._leadership.end("the elector has stopped", lost=False)
                self._set_metric(False)

    def _campaign(self, stop: threading.Event) -> Leadership | None:
        while not stop.is_set():
            with self._changed:
                self._leadership = None
                self._core.campaign()
            self._attempt()
            with self._core_locked() as core:
                core.expire(self._clock.now())
            if (won := self._elected()) is not None:
                return won
            with self._changed:
                until = self._clock.now() + self._core.candidate_delay(self._rng.random())
                while not stop.is_set() and (now := self._clock.now()) < until:
                    self._clock.wait(self._changed, min(until - now, WAKE_INTERVAL))
        return None

    def _elected(self) -> Leadership | None:
        with self._changed:
            leadership = self._leadership
            return None if leadership is None or leadership.over else leadership

    def _lead(self, leadership: Leadership, stop: threading.Event) -> None:
        self._attempting = True
        outcome = _Outcome()
        worker = threading.Thread(target=self._work, args=(leadership, outcome), name=f"leader {self.name}")
        worker.daemon = True  # a stuck one must not keep the process from exiting
        renewer = threading.Thread(target=self._renew, name=f"renewer {self.name}", daemon=True)
        self._worker = worker
        self._emit(EventType.STARTED_LEADING, leadership.number, f"{self.identity} became leader")
        try:
            renewer.start()
            worker.start()
            stuck = not self._watch(leadership, outcome, stop)
            if not stuck:
                worker.join()
                self._call(self._on_stopped_leading)
                self._emit(EventType.STOPPED_LEADING, leadership.number, f"{self.identity} stopped leading")
        except BaseException:  # interrupted: what runs must still end
            leadership.end("the elector was interrupted", lost=True)
            self._stop_renewing(renewer)
            self._resign()
            if worker.ident is not None:
                worker.join(min(self._worker_timeout, threading.TIMEOUT_MAX))
            raise
        self._stop_renewing(renewer)
        self._resign()
        if stuck:
            message = f"{self.name}: the worker still runs {self._worker_timeout} s after it was told to stop"
            _log.error(message)
            self._call(self._on_stuck)
            raise WorkerStuck(message)
        self._leadership = None
        if not leadership.lost:
            self._release()
        error = outcome.error
        if error is not None and not (leadership.lost and isinstance(error, NotLeading)):
            raise WorkerFailed(f"{self.name}: the worker failed: {error!r}") from error

    def _watch(self, leadership: Leadership, outcome: _Outcome, stop: threading.Event) -> bool:
        """Wait for the worker to end, and tell it to when it is time. False if it did not in the time it has."""
        give_up_at = math.inf
        told = False
        while True:
            with self._core_locked() as core:
                if outcome.done:
                    return True
                now = self._clock.now()
                core.expire(now)
                if not told and (stop.is_set() or core.term is None):
                    told = True
                    give_up_at = now + self._worker_timeout
                    leadership.stop.set()
                if now >= give_up_at:
                    return False
                until = min(now + WAKE_INTERVAL, give_up_at)
                if core.term is not None:
                    until = min(until, core.term.deadline)
                if core.term is not None or leadership.over:  # else this was the loss: tell of it first
                    self._clock.wait(self._changed, until - now)

    def _work(self, leadership: Leadership, outcome: _Outcome) -> None:
        try:
            self._on_started_leading(leadership)
        except BaseException as error:  # noqa: BLE001 - raised again by run
            _log.error("%s: the worker of term %s failed", self.name, leadership.number, exc_info=error)
            outcome.error = error
        with self._changed:
            outcome.done = True
            self._changed.notify_all()

    def _renew(self) -> None:
        next_at = self._clock.now() + self.config.retry_period
        while True:
            with self._changed:
                while self._attempting and self._core.term is not None and (now := self._clock.now()) < next_at:
                    self._clock.wait(self._changed, min(next_at - now, WAKE_INTERVAL))
                if not self._attempting or self._core.term is None:
                    return
                next_at = self._clock.now() + self.config.retry_period
            self._attempt()

    def _stop_renewing(self, renewer: threading.Thread) -> None:
        with self._changed:
            self._attempting = False
            self._changed.notify_all()
        if renewer.ident is not None:
            renewer.join()  # a request under way ends by its own time-out

    # -- speaking to the lock ----------------------------------------------------------------------------------------

    def _attempt(self) -> None:
        """One attempt to acquire or to renew. Whatever goes wrong is reported; what is known now is in the core."""
        try:
            with self._core_locked() as core:
                write = core.begin(self._clock.now(), _wall())
                leading = core.term is not None
            if write is not None:
                try:
                    self._write(write)
                    return
                except LockConflict as error:
                    _log.debug("%s: renewal refused, reading: %s", self.name, error)
            if leading and self._metrics is not None:
                self._call(self._metrics.slow_path)
            found = self._lock.get(self._timeout())
            record = None if found is None else self._checked(found)
            with self._core_locked() as core:
                write = core.saw(record, self._clock.now(), _wall())
            if write is not None:
                self._write(write)
        except LockConflict as error:
            _log.info("%s: somebody else was faster: %s", self.name, error)
        except Exception as error:  # noqa: BLE001 - whatever a lock raises is a failed attempt; the next one may do
            self._failed_attempts += 1
            _log.warning("%s: attempt to acquire or renew failed: %s: %s", self.name, type(error).__name__, error)
            self._emit(EventType.ATTEMPT_FAILED, -1, f"{type(error).__name__}: {error}")

    def _write(self, write: Write) -> None:
        timeout = self._timeout()
        with self._changed:
            self._core.sent(write, self._clock.now())
        if write.replaces is None:
            stored = self._checked(self._lock.create(write.record, timeout))
        else:
            stored = self._checked(self._lock.update(write.record, write.replaces, timeout))
        with self._core_locked() as core:
            core.acknowledged(stored, self._clock.now())

    def _checked(self, answer: object) -> Record:
        """What a lock answered; raises `LockError` if that is no record."""
        if not isinstance(answer, Record):
            raise LockError(f"{self.name} answered with {answer!r:.80} where a Record is wanted")
        return answer

    def _timeout(self) -> float:
        """How long the next request may take: not past the deadline, since its answer would be worth nothing."""
        with self._changed:
            term = self._core.term
            left = math.inf if term is None else term.deadline - self._clock.now()
        return max(min(self.config.attempt_timeout, left), 0.001)

    def _release(self) -> None:
        """Give the lock back if it is ours, whatever happened before. Takes one `attempt_timeout` at most."""
        if not self._release_on_stop or not self._core.may_hold():
            return
        until = self._clock.now() + self.config.attempt_timeout
        for _ in range(_RELEASE_ATTEMPTS):
            left = until - self._clock.now()
            if left <= 0:
                break
            try:
                found = self._lock.get(left)
                write = self._core.release(None if found is None else self._checked(found), _wall())
                if write is None or write.replaces is None:
                    return
                left = max(until - self._clock.now(), 0.001)
                stored = self._checked(self._lock.update(write.record, write.replaces, left))
            except Exception as error:  # noqa: BLE001 - it may be tried again, and runs out by itself otherwise
                _log.warning("%s: release failed: %s: %s", self.name, type(error).__name__, error)
                continue
            with self._core_locked() as core:
                core.released(stored, self._clock.now())
            self._emit(EventType.RELEASED, stored.transitions, f"{self.identity} released the lock")
            return
        _log.warning("%s: the lock could not be released and will run out", self.name)

    def _resign(self) -> None:
        """End the term, if there is still one, by our own will."""
        with self._core_locked() as core:
            core.resign()

    # -- telling others ----------------------------------------------------------------------------------------------

    @contextmanager
    def _core_locked(self) -> Iterator[ElectorCore]:
        """The core, with the lock held. Afterwards whoever must know of what has changed is told, without the lock."""
        with self._changed:
            yield self._core
            calls = self._settle()
        for call in calls:
            call()

    def _settle(self) -> list[Callable[[], None]]:
        """Bring the leadership in line with the core. Gives what is to be called when the lock is free."""
        calls: list[Callable[[], None]] = []
        term, leadership = self._core.term, self._leadership
        if term is not None:
            if leadership is None:
                self._leadership = Leadership(term, self._clock)
                self._set_metric(True)
            else:
                leadership.renewed(term)
        elif leadership is not None and not leadership.over:
            loss = self._core.loss
            leadership.end(loss or "the elector has stopped", lost=bool(loss))
            self._set_metric(False)
            if loss:
                calls.append(partial(self._report_loss, leadership.number, loss))
        seen = self._core.observed
        if seen is not None and self._core.holder and self._announced != (seen.holder, seen.transitions):
            self._announced = (seen.holder, seen.transitions)
            calls.append(partial(self._report_leader, seen.holder, seen.transitions))
        self._changed.notify_all()
        return calls

    def _report_loss(self, term: int, why: str) -> None:
        _log.warning("%s: %s lost term %s: %s", self.name, self.identity, term, why)
        self._emit(EventType.LOST, term, why)

    def _report_leader(self, holder: str, term: int) -> None:
        _log.info("%s: %s leads term %s", self.name, holder, term)
        if self._on_new_leader is not None:
            self._call(partial(self._on_new_leader, holder))
        self._emit(EventType.NEW_LEADER, term, f"{holder} leads")

    def _set_metric(self, leads: bool) -> None:
        if self._metrics is not None:
            self._call(partial(self._metrics.leading, leads))

    def _emit(self, type_: EventType, term: int, message: str) -> None:
        if self._on_event is not None:
            self._call(partial(self._on_event, ElectionEvent(type_, self.identity, term, message)))

    def _call(self, callback: Callable[[], None] | None) -> None:
        if callback is None:
            return
        try:
            callback()
        except Exception:  # noqa: BLE001 - a callback's error must not end a term
            _log.exception("%s: a callback failed", self.name)


def _wall() -> int:
    """The wall clock in microseconds since 1970: written for others to read, never judged by."""
    return time.time_ns() // 1000
