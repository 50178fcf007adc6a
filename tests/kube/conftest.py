"""Programs of ours on client-go, in the Go module `clientgo`: built when the first test asks for one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pysedna.testing.binaries import WITHOUT_GO
from pysedna.testing.build import GoMissingError, find_go

MODULE = Path(__file__).parent / "clientgo"

Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build_program(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """build_program("build" or "test", "-c" ..., package="./name") -> its path; skips where there is no Go."""
    folder = tmp_path_factory.mktemp("clientgo")

    def build(*command: str, package: str) -> Path:
        try:
            go = find_go()
        except GoMissingError:
            pytest.skip(f"a program on client-go is to be built: {WITHOUT_GO}")
        path = folder / Path(package).name
        arguments = [go, *command, "-trimpath", "-buildvcs=false", "-o", str(path), package]
        done = subprocess.run(arguments, cwd=MODULE, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return path

    return build
