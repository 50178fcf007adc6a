"""The benchmarks are scripts: their modules are found the way a script in their folder finds them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))

SmokeRun = Callable[..., dict[str, Any]]


@pytest.fixture
def smoke_run(tmp_path: Path) -> SmokeRun:
    """Runs a benchmark with --quick, and gives what it wrote; without Go unless asked for."""

    def run(name: str, *, go: bool = False) -> dict[str, Any]:
        file = tmp_path / "figures" / f"{name}.json"
        ran = subprocess.run(
            [sys.executable, str(BENCHMARKS / f"bench_{name}.py"), "--quick", "--json", str(file)],
            env=dict(os.environ) if go else {**os.environ, "PATH": "/nowhere"},
            capture_output=True,
            text=True,
            timeout=380,
        )
        assert ran.returncode == 0, ran.stderr
        figures: dict[str, Any] = json.loads(file.read_text())
        for group in figures["groups"]:
            assert group["title"] in ran.stdout
        return figures

    return run
