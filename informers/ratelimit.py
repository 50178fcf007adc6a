"""Client-side rate limit: a token bucket that can say beforehand how long a request would have to wait (pure)."""

from __future__ import annotations

__all__ = ["TokenBucket"]


class TokenBucket:
    """`burst` tokens, refilled at `qps` a second. Not thread-safe: the caller serialises."""

    def __init__(self, qps: float, burst: int) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a rate limit needs qps > 0 and burst >= 1, not {qps} and {burst}")
        self._qps = qps
        self._burst = burst
        self._free_at = float("-inf")

    def reserve(self, now: float, max_wait: float | None) -> float | None:
        """Take a token; give the seconds to wait before using it. None, and no token taken, if that is too long."""
        # the moment at which the bucket would have been empty before this token, had it never been full
        start = max(self._free_at, now - self._burst / self._qps)
        wait = max(0.0, start + 1 / self._qps - now)
        if max_wait is not None and wait > max_wait:
            return None
        self._free_at = start + 1 / self._qps
        return wait
