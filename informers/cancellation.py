"""`Cancellation`: a switch that ends requests from another thread."""

from __future__ import annotations

import threading

from informers.connection import Exchange

__all__ = ["Cancellation"]


class Cancellation:
    """Ends the requests that are made under it (`Transport.under`): those in flight, and for good. Thread-safe."""

    def __init__(self) -> None:
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
        with self._lock:
            self._exchanges.add(exchange)
            cancelled = self.cancelled.is_set()
        if cancelled:
            exchange.abort()

    def discard(self, exchange: Exchange) -> None:
        """The exchange is over, or somebody else's to end."""
        with self._lock:
            self._exchanges.discard(exchange)
