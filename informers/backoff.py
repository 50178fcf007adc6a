"""How long to wait before asking a server again (pure).

The waits double from `base` to `cap` and every wait is drawn at random from the upper half of its step, so that many
clients of a server that comes back do not all return at one moment. The figures are those of client-go's reflector
(0.8 s, factor 2, 30 s, forgotten after two quiet minutes); other than there, the random part stays below the cap, and
what works again for longer than the last wait ends the row, so that the next outage is met with short waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackoffConfig:
    """Bounds of a `Backoff`, in seconds.

    The n-th wait in a row (from 0) is drawn from [h/2, h] with h = min(2 * base * 2**n, cap). A failure that comes
    more than `reset_after` seconds after the one before starts at n = 0 again.
    """

    base: float = 0.8
    cap: float = 30.0
    reset_after: float = 120.0

    def __post_init__(self) -> None:
        if not 0 < self.base <= self.cap:
            raise ValueError(f"backoff needs 0 < base <= cap, not base={self.base} cap={self.cap}")


class Backoff:
    """The state of one row of failures. Not thread-safe: it belongs to whoever asks."""

    def __init__(self, config: BackoffConfig, random: Callable[[], float]) -> None:
        """`random` gives numbers from [0, 1)."""
        self._config = config
        self._random = random
        self._step = 0
        self._last: float | None = None
        self._last_wait = 0.0

    @property
    def failures(self) -> int:
        """Failures in the present row."""
        return self._step

    def next(self, now: float, *, cap: float | None = None) -> float:
        """Count a failure at `now` and return the seconds to wait; `cap` lowers the configured one for this wait."""
        config = self._config
        if self._last is not None and now - self._last > config.reset_after:
            self._step = 0
        self._last = now
        limit = config.cap if cap is None else min(cap, config.cap)
        # The exponent is bounded because 2.0**1024 overflows; the cap is reached long before.
        high = min(2.0 * config.base * 2.0 ** min(self._step, 60), limit)
        self._step += 1
        self._last_wait = high / 2.0 * (1.0 + self._random())
        return self._last_wait

    def worked(self, seconds: float) -> None:
        """What had failed then worked for `seconds`: the row is over if that is longer than the last wait was.

        Whatever fails after a while, again and again, is therefore asked for no more often than its waits grow past
        that while allow.
        """
        if seconds > self._last_wait:
            self._step = 0
