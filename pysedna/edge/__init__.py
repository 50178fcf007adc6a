"""The way to the edge: the seam through which jobs tell local controllers what concerns them."""

from __future__ import annotations

from pysedna.edge.errors import EdgeError, SinkUnavailable
from pysedna.edge.sink import EdgeSink, NullSink, Operation

__all__ = ["EdgeError", "EdgeSink", "NullSink", "Operation", "SinkUnavailable"]
