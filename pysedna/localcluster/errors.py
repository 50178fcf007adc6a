"""Errors of the embedded cluster itself (what its API answers are `informers.errors.ApiError`).

LocalClusterError
├── StateFileError      the --state file cannot be used; the message names it and says what is wrong
├── StartError          the server could not start (port taken, no loopback address, ...)
└── NotRunningError     a call that needs a started cluster
"""


class LocalClusterError(Exception):
    """Base of everything that this package raises on its own account."""


class StateFileError(LocalClusterError):
    """The state file is damaged, foreign or in use. It was left as it is."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"state file {path}: {problem}")
        self.path = path
        self.problem = problem


class StartError(LocalClusterError):
    """The server could not start; the message gives the address and the reason."""


class NotRunningError(LocalClusterError):
    """The cluster has not been started, or was stopped."""
