"""A manager's part in a leader election: when its leader group starts, and whether it may act now.

The elector runs on a thread of its own. When the election is won the leader group starts; the term is held until
the manager cancels the election, which it does after everything else has stopped, or until the lease is lost,
which ends the manager.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import leaderelection
from informers import ObjectKey
from leaderelection.metrics import MetricsProvider
from pysedna.controller.errors import LeadershipLost, NotLeading
from pysedna.controller.runnables import RunnableGroup

if TYPE_CHECKING:
    from informers import Client

_log = logging.getLogger(__name__)
# The manager has waited for its workers before it cancels the election; what still runs then will not return soon.
_WORKER_TIMEOUT = 0.5


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """How a manager takes part in an election.

    `lock`: the Lease, as a key or "namespace/name". `identity`: who this process is; None makes one of host name,
    process id and a random part, so that a restarted process is never mistaken for its predecessor.
    """

    lock: ObjectKey | str
    config: leaderelection.Config = field(default_factory=lambda: leaderelection.Config())
    identity: str | None = None


def new_identity() -> str:
    """Host name, process id and eight random hexadecimal digits."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


class Campaign:
    """One run of a manager through an election.

    `on_failure` is told, once, of LeadershipLost or of the error that ended the elector.
    """

    def __init__(
        self,
        settings: LeaderElection,
        client: Client,
        leaders: RunnableGroup,
        *,
        name: str,
        on_failure: Callable[[BaseException], None],
        metrics: MetricsProvider | None = None,
    ) -> None:
        lock = ObjectKey.parse(settings.lock) if isinstance(settings.lock, str) else settings.lock
        self.identity = settings.identity or new_identity()
        self._leaders = leaders
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._closed = False
        self._cancel = threading.Event()
        self._leadership: leaderelection.Leadership | None = None
        self._elector = leaderelection.LeaderElector(
            leaderelection.LeaseLock(client, lock),
            self.identity,
            settings.config,
            on_started_leading=self._lead,
            worker_timeout=_WORKER_TIMEOUT,
            name=name,
            metrics=metrics,
        )
        self._thread = threading.Thread(target=self._run, name="election", daemon=True)

    def start(self) -> None:
        """Begin to campaign."""
        self._thread.start()

    def guard(self) -> None:
        """Raise NotLeading unless this process may still act as the leader at this moment."""
        leadership = self._leadership
        if leadership is None:
            raise NotLeading("this manager has not been elected")
        try:
            leadership.guard()
        except leaderelection.NotLeading as error:
            raise NotLeading(str(error)) from error

    def check(self) -> None:
        """For /healthz: raise when the elector believes in a lease that it failed to renew."""
        self._elector.check()

    def is_leader(self) -> bool:
        """Whether the lease is held now."""
        return self._elector.is_leader()

    def close(self) -> None:
        """The manager begins to stop: from now on the election cannot be won; a term that runs goes on until
        `cancel`.
        """
        with self._lock:
            self._closed = True
            if self._leadership is None:
                self._cancel.set()

    def cancel(self, timeout: float | None) -> bool:
        """End the term and give the lease back, if the leader group has ended; False when the elector still runs
        after `timeout`.
        """
        self._cancel.set()
        if self._thread.ident is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._elector.run(self._cancel)
        except leaderelection.WorkerStuck as error:
            _log.error("the lease is left to expire: %s", error)
        except Exception as error:  # noqa: BLE001 - whatever ends the elector ends the manager
            self._on_failure(error)
            return
        if not self._cancel.is_set():
            self._on_failure(LeadershipLost(f"{self.identity} lost the lease"))

    def _lead(self, leadership: leaderelection.Leadership) -> None:
        with self._lock:
            if self._closed:
                return
            self._leadership = leadership
        _log.info("%s was elected", self.identity)
        self._leaders.start()
        leadership.stop.wait()
        if not self._cancel.is_set():
            self._leaders.begin_stop()
            self._on_failure(LeadershipLost(f"{self.identity} lost the lease: {leadership.lost or 'the term ended'}"))
        # A term whose workers still run must not be given back: as long as this does not return, the elector does not
        # release.
        self._leaders.join()
