"""Keeps the endpoint of a client fresh: loads its source again when credentials expire or are refused.

One thread does it for all who wait, a daemon of its own, since a plugin may take up to a minute and a request must not
wait longer than its deadline; who gives up leaves the loading to those after it.
"""

from __future__ import annotations

import logging
import threading
import time

from informers.config import Endpoint, Source
from informers.errors import ConfigError

__all__ = ["Credentials"]

_log = logging.getLogger(__name__)
_PAUSE_AFTER_FAILURE = 5.0


class _Renewal:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.error: ConfigError | None = None


class Credentials:
    """The current endpoint of one client. Thread-safe. The constructor loads it and raises ConfigError."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._endpoint = source.load()
        self._running: _Renewal | None = None
        self._not_before = 0.0

    @property
    def renewable(self) -> bool:
        """Whether loading again can help against a refusal."""
        return self._source.renewable

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint as it is."""
        return self._endpoint

    def current(self, timeout: float | None) -> Endpoint:
        """Give an endpoint whose credentials have not expired, as far as one can be had within `timeout` seconds.

        If loading fails the old one is given: whether it is still good is for the server to say.
        """
        endpoint = self._endpoint
        if endpoint.expires is None or time.monotonic() < max(endpoint.expires, self._not_before):
            return endpoint
        try:
            return self.renew(endpoint, timeout)
        except (ConfigError, TimeoutError) as error:
            _log.warning("credentials for %s could not be renewed: %s", endpoint.server, error)
            return self._endpoint

    def renew(self, stale: Endpoint, timeout: float | None) -> Endpoint:
        """Load again, unless somebody did since `stale` was given out; wait for it for at most `timeout` seconds.

        Raises ConfigError if it fails, TimeoutError if it is not done in time (it goes on).
        """
        with self._lock:
            if self._endpoint is not stale:
                return self._endpoint
            renewal = self._running
            if renewal is None:
                renewal = self._running = _Renewal()
                threading.Thread(
                    target=self._load, args=(renewal, stale), name="informers-credentials", daemon=True
                ).start()
        if not renewal.done.wait(timeout):
            raise TimeoutError("loading the credentials again takes too long")
        if renewal.error is not None:
            raise renewal.error
        return self._endpoint

    def _load(self, renewal: _Renewal, stale: Endpoint) -> None:
        fresh: Endpoint | None = None
        try:
            fresh = self._source.load(stale)
        except ConfigError as error:
            renewal.error = error
        except Exception as error:  # noqa: BLE001 - waiters must learn of anything that the official loader raises
            renewal.error = ConfigError(f"loading the configuration again failed: {type(error).__name__}: {error}")
        with self._lock:
            self._running = None
            if fresh is not None:
                self._endpoint = fresh
            else:
                self._not_before = time.monotonic() + _PAUSE_AFTER_FAILURE
        if fresh is not None and fresh.pool is not stale.pool:
            stale.pool.clear()
        renewal.done.set()

    def close(self) -> None:
        """Close idle connections."""
        self._endpoint.pool.clear()
