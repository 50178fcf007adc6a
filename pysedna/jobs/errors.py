"""What reconciling a job raises, so that it is tried again with backoff.

JobsError
└── ChildrenNotWritten      some children could not be created, changed or deleted; the job's status says which and why
                            (also a TemporaryError of `pysedna.controller`)
"""

from __future__ import annotations

from collections.abc import Sequence

from pysedna.controller import TemporaryError


class JobsError(Exception):
    """Base of everything that this package raises on purpose."""


class ChildrenNotWritten(JobsError, TemporaryError):
    """Writes of children failed although the others were tried. `failures` are the errors, in the order of the
    writes."""

    def __init__(self, job: str, failures: Sequence[Exception]) -> None:
        super().__init__(f"{job}: {'; '.join(str(failure) for failure in failures)}")
        self.failures = tuple(failures)
