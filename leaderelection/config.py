"""The durations of an election, and what they guarantee.

Let L be the lease duration as it is stored (whole seconds), D the renew deadline, R the retry period, J the jitter, and
every clock run at a rate within [1 - drift, 1 + drift] of real time. A leader stops D after it *sent* its last
acknowledged renewal; a standby waits L after it *saw* the last change. So nobody leads before the last one stopped if

    margin = L / (1 + drift) - D / (1 - drift) - stall - exit_time >= 0

and otherwise they overlap by at most -margin. `stall` is the longest time that the process may stand still around the
deadline (garbage collection, a paused VM, starvation), `exit_time` how long effects go on after it was told to stop.
`stall` has no bound in general: only fencing excludes the act of a leader that slept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from leaderelection.errors import ConfigError

__all__ = ["Config"]

_MAX_LEASE_DURATION = 2**31 - 1  # an int32 in the API


@dataclass(frozen=True)
class Config:
    """All durations in seconds. The defaults are client-go's. An elector refuses what `validate` refuses."""

    lease_duration: float = 15.0
    """How long others wait after the last change that they saw. Whole seconds, since that is what is stored."""
    renew_deadline: float = 10.0
    """How long a leader goes on after it sent the last renewal that was acknowledged."""
    retry_period: float = 2.0
    """How long after one attempt to acquire or renew begins the next one does."""
    request_timeout: float | None = None
    """How long one request may take. None: (renew_deadline - retry_period) / 2, so that a second attempt fits."""
    jitter: float = 1.2
    """A candidate waits up to this many retry periods more, drawn at random, so that not all try at once."""

    @property
    def attempt_timeout(self) -> float:
        """How long one request may take: `request_timeout`, or its default."""
        if self.request_timeout is not None:
            return self.request_timeout
        return (self.renew_deadline - self.retry_period) / 2

    @property
    def stored_duration(self) -> int:
        """The lease duration as it is written: whole seconds."""
        return math.floor(self.lease_duration)

    def validate(self) -> None:
        """Raise `ConfigError`, naming the first rule that is broken and the numbers, unless an elector can use this."""
        for name in ("lease_duration", "renew_deadline", "retry_period"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ConfigError(f"{name} must be above 0 and finite, not {value!r}")
        if not 0 <= self.jitter < math.inf:
            raise ConfigError(f"jitter must be at least 0 and finite, not {self.jitter!r}")
        if self.lease_duration != self.stored_duration:
            raise ConfigError(
                f"lease_duration must be whole seconds: {self.lease_duration} would be stored as {self.stored_duration}"
                ", and others would take over sooner than this leader expects"
            )
        if self.lease_duration > _MAX_LEASE_DURATION:
            raise ConfigError(f"lease_duration must be at most {_MAX_LEASE_DURATION}, not {self.lease_duration}")
        if not self.renew_deadline < self.lease_duration:
            raise ConfigError(
                f"renew_deadline must be below lease_duration: {self.renew_deadline} is not below {self.lease_duration}"
                ", so a leader could go on when the next one has started"
            )
        if not self.retry_period < self.renew_deadline:
            raise ConfigError(
                f"retry_period must be below renew_deadline: {self.retry_period} is not below {self.renew_deadline}, "
                "so no renewal could be sent in time"
            )
        timeout = self.attempt_timeout
        if not 0 < timeout <= self.renew_deadline - self.retry_period:
            raise ConfigError(
                f"request_timeout must be above 0 and at most renew_deadline - retry_period: {timeout!r} is not within "
                f"{self.renew_deadline} - {self.retry_period}, so a renewal could not be answered in time"
            )

    def safe(self, *, drift: float = 0.0, stall: float = 0.0, exit_time: float = 0.0) -> bool:
        """True if retry_period < renew_deadline < lease_duration and `margin` is not negative."""
        ordered = self.retry_period < self.renew_deadline < self.lease_duration
        return ordered and self.margin(drift=drift, stall=stall, exit_time=exit_time) >= 0

    def margin(self, *, drift: float = 0.0, stall: float = 0.0, exit_time: float = 0.0) -> float:
        """Seconds to spare between the end of one leader and the start of the next (formula: see the module).

        :param drift: by which share of real time any clock may be wrong, at least 0 and below 1
        :param stall: the longest time the process may stand still around its deadline
        :param exit_time: how long effects go on after the worker was told to stop
        """
        _check_share("drift", drift)
        _check_time("stall", stall)
        _check_time("exit_time", exit_time)
        return self.stored_duration / (1 + drift) - self.renew_deadline / (1 - drift) - stall - exit_time

    def max_overlap(self, *, drift: float = 0.0, stall: float = 0.0, exit_time: float = 0.0) -> float:
        """For how many seconds two leaders may act at most; 0 if `margin` is not negative."""
        return max(0.0, -self.margin(drift=drift, stall=stall, exit_time=exit_time))

    def max_failover(self, *, drift: float = 0.0, latency: float = 0.0) -> float:
        """Seconds from the last write of a leader that crashed until a standby leads, at most, if the API answers.

        L / (1 - drift) + 2 R (1 + J) / (1 - drift) + 3 latency: the wait, one poll before and one after it, and a read,
        a read and a write that take `latency` each.
        """
        _check_share("drift", drift)
        _check_time("latency", latency)
        polls = 2 * self.retry_period * (1 + self.jitter)
        return (self.lease_duration + polls) / (1 - drift) + 3 * latency


def _check_share(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, not {value!r}")


def _check_time(name: str, value: float) -> None:
    if not value >= 0:
        raise ValueError(f"{name} must be at least 0, not {value!r}")
