"""The controller of JointInferenceService: a Deployment in the cloud, one at the edge, and the Service between them.

`children` says what a service wants, `changes` what is missing, `progress` what its status is; all three are pure.
"""

from __future__ import annotations

from pysedna.controller import Controller, Manager
from pysedna.edge import EdgeSink
from pysedna.jobs.joint_inference.behaviour import JointInference
from pysedna.jobs.options import JobOptions
from pysedna.jobs.wiring import add_job_controller

__all__ = ["JointInference", "setup"]


def setup(manager: Manager, *, options: JobOptions | None = None, sink: EdgeSink | None = None) -> Controller:
    """Add the controller to a manager. `sink` hears what concerns the edge; None: nobody does."""
    return add_job_controller(manager, JointInference(), options=options, sink=sink)
