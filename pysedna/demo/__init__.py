"""The demo: the Sedna controllers played end to end on a cluster, every step checked (`pysedna demo`).

`story` says what is done and what must hold, `objects` what is applied, `recorder` and `history` see everything that
happens, `replicas` are the managers, `view` shows it, `run` puts it together. It needs the `demo` extra (rich and the
embedded cluster).
"""

from pysedna.demo.errors import DemoError, SetUpFailed, StepFailed
from pysedna.demo.run import DemoOptions, run_demo

__all__ = ["DemoError", "DemoOptions", "SetUpFailed", "StepFailed", "run_demo"]
