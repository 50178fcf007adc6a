"""The Sedna controllers: one package a kind of job, and the parts that they share beside them, one concept a file.

Everything that decides is pure; `reconciler` reads the caches and acts, `wiring` puts it under a manager. A kind is
added to a manager by its `setup(manager, options=, sink=)`, which the entry points `pysedna.controllers` name.
"""

from __future__ import annotations

from pysedna.jobs.errors import ChildrenNotWritten, JobsError
from pysedna.jobs.options import JobOptions

__all__ = ["ChildrenNotWritten", "JobOptions", "JobsError"]
