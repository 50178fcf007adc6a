"""The controller of FederatedLearningJob: one aggregator and its trainers, as bare pods under names that do not change.

`children` says what a job wants, `changes` what is missing, `progress` what its status is; all three are pure.
"""

from __future__ import annotations

from pysedna.controller import Controller, Manager
from pysedna.edge import EdgeSink
from pysedna.jobs.federated_learning.behaviour import FederatedLearning
from pysedna.jobs.options import JobOptions
from pysedna.jobs.wiring import add_job_controller

__all__ = ["FederatedLearning", "setup"]


def setup(manager: Manager, *, options: JobOptions | None = None, sink: EdgeSink | None = None) -> Controller:
    """Add the controller to a manager. `sink` hears what concerns the edge; None: nobody does."""
    return add_job_controller(manager, FederatedLearning(), options=options, sink=sink)
