"""What kubectl is refused by the embedded cluster; what it can do is in the cases for both clusters."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any
    Kubectl = Callable[..., str]

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH"),
]
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def environment(kubeconfig_file: Path, tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(kubeconfig_file), "HOME": str(tmp_path)}


@pytest.fixture
def kubectl(environment: dict[str, str]) -> Kubectl:
    """kubectl(*args, stdin=..., fails=False, **environment) -> its output; of both streams when it should fail."""

    def run(*args: str, stdin: object = None, fails: bool = False, **extra: str) -> str:
        text = stdin if isinstance(stdin, str) else json.dumps(stdin)
        done = subprocess.run(
            ["kubectl", *args],
            input=text if stdin is not None else None,
            capture_output=True,
            text=True,
            env={**environment, **extra},
            timeout=60,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr if fails else done.stdout

    return run


def test_apply_on_the_server_is_refused_with_a_hint(kubectl: Kubectl, deployment: Json) -> None:
    assert "use a real API server" in kubectl("apply", "--server-side", "-f", "-", stdin=deployment, fails=True)


def test_what_is_not_done_is_refused_with_a_hint(api: Api, kubectl: Kubectl, pod: Callable[..., Json]) -> None:
    api("POST", PODS, pod("a"))
    assert "use a real API server" in kubectl("logs", "a", fails=True)
    assert "use a real API server" in kubectl("exec", "a", "--", "ls", fails=True)
    assert "dry-run=client" in kubectl("create", "configmap", "c", "--from-literal=a=b", fails=True)
