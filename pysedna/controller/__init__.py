"""What controllers are written with: a manager that starts and stops everything, controllers, and the usual helpers.

A controller is a function `reconcile(key, context)` that compares what should be with what is and does the
difference. `Manager` runs it when something it watches changed, retries it with backoff when it raises, and lets
only one of several processes act.
"""

from pysedna.controller.context import BoundClient, BoundResource, Context
from pysedna.controller.controller import Controller, ControllerStatus, Reconcile, Reconciler
from pysedna.controller.election import LeaderElection
from pysedna.controller.errors import (
    AddressUnavailable,
    Cancelled,
    ControllerError,
    DuplicateName,
    LeadershipLost,
    ManagerStopped,
    NotLeading,
    RunnableFailed,
    ShutdownTimeout,
    TemporaryError,
    TerminalError,
)
from pysedna.controller.manager import Manager
from pysedna.controller.ownership import (
    create_or_update,
    ensure_finalizer,
    owner_reference,
    owners,
    remove_finalizer,
    rfc3339,
    set_condition,
)
from pysedna.controller.predicates import (
    Predicate,
    all_of,
    annotation_changed,
    any_of,
    generation_changed,
    label_changed,
    label_selector,
    negate,
    resource_version_changed,
)
from pysedna.controller.recorder import EventRecorder
from pysedna.controller.result import Result
from pysedna.controller.runnables import Runnable
from pysedna.controller.sources import LOW_PRIORITY, Watch

__all__ = [
    "LOW_PRIORITY",
    "AddressUnavailable",
    "BoundClient",
    "BoundResource",
    "Cancelled",
    "Context",
    "Controller",
    "ControllerError",
    "ControllerStatus",
    "DuplicateName",
    "EventRecorder",
    "LeaderElection",
    "LeadershipLost",
    "Manager",
    "ManagerStopped",
    "NotLeading",
    "Predicate",
    "Reconcile",
    "Reconciler",
    "Result",
    "Runnable",
    "RunnableFailed",
    "ShutdownTimeout",
    "TemporaryError",
    "TerminalError",
    "Watch",
    "all_of",
    "annotation_changed",
    "any_of",
    "create_or_update",
    "ensure_finalizer",
    "generation_changed",
    "label_changed",
    "label_selector",
    "negate",
    "owner_reference",
    "owners",
    "remove_finalizer",
    "resource_version_changed",
    "rfc3339",
    "set_condition",
]
