"""Why a job cannot have its workers: a reason for programs and a sentence for people.

A problem is an ordinary result, not an exception: it becomes a condition and an event of the job, and everything else
of the job, and all other jobs, go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

INVALID_SPEC = "InvalidSpec"
NO_TRAINING_WORKERS = "NoTrainingWorkers"
NAME_TOO_LONG = "NameTooLong"
INVALID_NAME = "InvalidName"
PORT_CLASH = "PortClash"
MODEL_NOT_FOUND = "ModelNotFound"
MODEL_INVALID = "ModelInvalid"
DATASET_NOT_FOUND = "DatasetNotFound"
DATASET_INVALID = "DatasetInvalid"
SECRET_NOT_FOUND = "SecretNotFound"
SECRET_INVALID = "SecretInvalid"
INVALID_URL = "InvalidURL"
CREDENTIAL_CLASH = "CredentialClash"
NAME_TAKEN = "NameTaken"
REJECTED = "WorkerRejected"
AUTOSCALING_UNAVAILABLE = "AutoscalingUnavailable"


@dataclass(frozen=True, slots=True)
class Problem:
    """`reason` is one of the words above; `message` says what is wrong and what to change."""

    reason: str
    message: str


def combined(problems: Sequence[Problem]) -> Problem | None:
    """Several problems as one: the first reason, every different message. None if there are none."""
    if not problems:
        return None
    messages = list(dict.fromkeys(problem.message for problem in problems))
    return Problem(problems[0].reason, "; ".join(messages))
