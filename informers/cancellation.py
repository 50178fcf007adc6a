"""`Cancellation`: a switch that ends requests from another thread, and the pace at which their answers may come."""

from __future__ import annotations

import threading

from informers.connection import Exchange

__all__ = ["Cancellation"]


class Cancellation:
    """Ends the requests that are made under it (`Transport.under`): those in flight, and for good. Thread-safe.

    With a `pace` (bytes a second) the time given for a request is the time without progress: each `pace` bytes of the
    answer give it another second.
    """

    def __init__(self, pace: float | None = None) -> None:
        self._pace = pace
        self._lock = threading.Lock()
        self._exchanges: set[Exchange] = set()
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        """Shut down the sockets in use; later requests are cut as they connect. Does not block. Idempotent."""
        with self._lock:
            self.cancelled.set()
            exchanges = [*self._exchanges]
        for exchange in exchanges:
            exchange.abort()

    def add(self, exchange: Exchange) -> None:
        """Put an exchange under this switch."""
        exchange.pace = self._pace
        with self._lock:
            self._exchanges.add(exchange)
            cancelled = self.cancelled.is_set()
        if cancelled:
            exchange.abort()

    def discard(self, exchange: Exchange) -> None:
        """The exchange is over, or somebody else's to end."""
        exchange.pace = None
        with self._lock:
            self._exchanges.discard(exchange)
