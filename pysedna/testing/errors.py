"""Errors of the real control plane in tests (what its API answers are `informers.errors.ApiError`).

ControlPlaneError
├── BinariesMissingError    a program is not there; the message says how to get it (tests skip with it)
├── BuildError              the programs could not be built; carries the end of the build's output
├── StartError              a server did not come up; carries the end of its log
├── NotRunningError         a call that needs a started control plane
├── NotOursError            USE_EXISTING_CLUSTER is set, and the call would need a control plane that we started
└── SettingError            (also ValueError) an environment variable cannot be used; the message names it
"""

__all__ = [
    "BinariesMissingError",
    "BuildError",
    "ControlPlaneError",
    "NotOursError",
    "NotRunningError",
    "SettingError",
    "StartError",
]


class ControlPlaneError(Exception):
    """Base of everything that the control plane raises on its own account."""


class BinariesMissingError(ControlPlaneError):
    """A program of the control plane is not on this machine; the message says how to get it."""


class BuildError(ControlPlaneError):
    """The programs of the control plane could not be built."""


class StartError(ControlPlaneError):
    """A server ended, or was not ready in time. `log` is the end of what it wrote."""

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(f"{message}; the end of its log:\n{log}" if log else message)
        self.log = log


class NotRunningError(ControlPlaneError):
    """The control plane, or the server that the call is about, has not been started or was stopped."""


class NotOursError(ControlPlaneError):
    """The cluster of the environment was not started here: it is not ours to stop, freeze or compact."""

    def __init__(self, action: str) -> None:
        super().__init__(f"cannot {action}: USE_EXISTING_CLUSTER is set, and that cluster was not started here")


class SettingError(ControlPlaneError, ValueError):
    """The value of an environment variable cannot be used."""
