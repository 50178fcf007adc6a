"""Names of children. Each is a function of the job's name, the worker's type and its index, so there can be only one.

Two managers that both act cannot create a second worker: the API server answers AlreadyExists. The prefixes are
upstream's (`<job>-<worker type>-`, `<service>-deployment-<worker type>`); the random suffix of its pods is the index
here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pysedna.jobs.problems import INVALID_NAME, NAME_TOO_LONG, Problem

LABEL_LIMIT = 63  # a label value, and a Service's name
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def pod_name(job: str, worker_type: str, index: int) -> str:
    """The pod of one worker of a job."""
    return f"{job}-{worker_type}-{index}"


def deployment_name(service: str, worker_type: str) -> str:
    """The Deployment of one worker of a service."""
    return f"{service}-deployment-{worker_type}"


def autoscaler_name(deployment: str) -> str:
    """The HorizontalPodAutoscaler of a Deployment."""
    return f"hpa-{deployment}"


def service_name(job: str, worker_type: str) -> str:
    """The Service in front of a worker."""
    return f"{job}-{worker_type}"


def service_host(name: str, namespace: str) -> str:
    """The host under which workers reach a Service; no cluster domain, so that EdgeMesh resolves it too."""
    return f"{name}.{namespace}"


def app_label(service: str, worker_type: str) -> str:
    """The value of the label `app.sedna.io` on a Deployment."""
    return f"{service}-{worker_type.capitalize()}-svc"


def worker_name(prefix: str, job: str, index: int | None = None) -> str:
    """WORKER_NAME: the same for a replacement as for the worker it replaces."""
    return f"{prefix}-{job}" if index is None else f"{prefix}-{job}-{index}"


def check_names(job: str, *, services: Iterable[str], labels: Iterable[str]) -> Problem | None:
    """Whether the names made of a job's name are names that Kubernetes accepts; what to change if not.

    `services` are names of Services, `labels` are label values; each is the job's name with something added.
    """
    for kind, values in (("its Service would be called", services), ("a label of its workers would be", labels)):
        for value in values:
            if len(value) > LABEL_LIMIT:
                most = LABEL_LIMIT - (len(value) - len(job))
                return Problem(
                    NAME_TOO_LONG,
                    f"the name {job!r} has {len(job)} characters: {kind} {value!r}, and that may have {LABEL_LIMIT}; "
                    f"use a name of at most {most} characters",
                )
    for value in services:
        if not _SERVICE.fullmatch(value):
            return Problem(
                INVALID_NAME,
                f"its Service would be called {value!r}, which is no name for a Service: use a name that begins with a "
                f"lower-case letter and has lower-case letters, digits and '-' only",
            )
    return None
