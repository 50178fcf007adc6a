"""What the controller runtime raises.

    ControllerError
    ├── TerminalError           raised by a reconcile: retrying cannot help, wait for the next change
    ├── TemporaryError          raised by a reconcile: nothing is wrong with the program, try again later
    ├── Cancelled               this run of a reconcile is over (the manager stops, or its time is up)
    ├── NotLeading              this run may not act: another manager may lead by now
    ├── DuplicateName           two controllers of one manager under one name
    ├── ManagerStopped          something was added to, or started on, a manager that stops or has stopped
    ├── AddressUnavailable      the HTTP address for health and metrics cannot be served
    ├── LeadershipLost          the lease was lost: the process must end
    ├── RunnableFailed          a runnable raised: the manager stopped everything else
    └── ShutdownTimeout         runnables still ran when the graceful time was over (also a TimeoutError)

`LeadershipLost` and `ShutdownTimeout` tell the caller that code of this process may still be running that must not act
any more; a command line ends the process on them.
"""

from __future__ import annotations

from collections.abc import Sequence


class ControllerError(Exception):
    """Base of everything that this package raises on purpose."""


class TerminalError(ControllerError):
    """Raised by a reconcile to say that a retry cannot help. The key is not queued again until its object changes."""


class TemporaryError(ControllerError):
    """Raised by a reconcile for what may pass by itself or by somebody's hand (a quota, a permission). The key is
    retried with backoff, as after any other error, but logged in one line: a trace would say nothing."""


class Cancelled(ControllerError):
    """The run is over. `overrun` says why: its time was up (True), or the manager stops (False)."""

    def __init__(self, message: str, *, overrun: bool = False) -> None:
        super().__init__(message)
        self.overrun = overrun


class NotLeading(ControllerError):
    """This manager does not hold the lease safely (any more), so this run may not act."""


class DuplicateName(ControllerError):
    """A controller of that name exists in this manager; names label metrics and logs, so they must differ."""


class ManagerStopped(ControllerError):
    """The manager stops or has stopped, so nothing can be added to it and it cannot be run again."""


class AddressUnavailable(ControllerError):
    """The address for health endpoints and metrics cannot be bound. `address` names it; the cause is the OSError."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot serve health and metrics on {address}: {reason}")
        self.address = address


class LeadershipLost(ControllerError):
    """The lease was lost while this manager led. Nothing was waited for: the process must end at once."""


class RunnableFailed(ControllerError):
    """A runnable raised. `name` says which; `__cause__` is what it raised."""

    def __init__(self, name: str, cause: BaseException) -> None:
        super().__init__(f"{name} failed: {type(cause).__name__}: {cause}")
        self.name = name


class ShutdownTimeout(ControllerError, TimeoutError):
    """Some runnables had not returned when the graceful time was over. `names` lists them."""

    def __init__(self, names: Sequence[str], seconds: float) -> None:
        super().__init__(f"still running {seconds:g} s after the stop: {', '.join(names)}")
        self.names = tuple(names)
