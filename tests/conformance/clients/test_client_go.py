"""client-go: a program of ours, in the folder `clientgo`, goes through its rules against the cluster."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pysedna.api.crds import crds
from pysedna.testing.binaries import WITHOUT_GO
from pysedna.testing.build import GoMissingError, find_go

if TYPE_CHECKING:
    from pysedna.testing import Cluster

MODULE = Path(__file__).parent / "clientgo"

# as the real control plane, the program needs Go: both clusters are left to `make test-kube`
pytestmark = [
    pytest.mark.kube,
    pytest.mark.slow,
    pytest.mark.timeout(900),  # the first build compiles client-go
]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built once for all tests of the session."""
    try:
        go = find_go()
    except GoMissingError:
        pytest.skip(f"a program on client-go is to be built: {WITHOUT_GO}")
    path = tmp_path_factory.mktemp("clientgo") / "clientgo"
    command = [go, "build", "-trimpath", "-buildvcs=false", "-o", str(path), "."]
    done = subprocess.run(command, cwd=MODULE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


def test_a_program_on_client_go_finds_every_rule_to_hold(program: Path, cluster: Cluster, namespace: str) -> None:
    cluster.install_crds(definition for definition in crds() if definition["spec"]["names"]["kind"] == "Model")
    command = [str(program), "--kubeconfig", cluster.kubeconfig, "--namespace", namespace]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "ok"
