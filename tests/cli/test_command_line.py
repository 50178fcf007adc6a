"""The `pysedna` command as a user meets it: output, exit codes, and one clear line when something is wrong."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from informers import Client
from pysedna.api.crds import crds
from pysedna.cli import cli
from pysedna.cli import manager as manager_command


def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pysedna", *words], capture_output=True, text=True, timeout=60, check=False, **options
    )


def one_error_line(result: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, result.stderr
    return lines[0]


@pytest.fixture
def refused() -> Iterator[str]:
    """The URL of a port that nobody listens on, kept reserved so that nobody will."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def write_kubeconfig(path: Path, server: str) -> str:
    YAML().dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "users": [{"name": "test", "user": {}}],
        },
        path,
    )
    return str(path)


def test_crds_come_out_as_yaml_that_reads_back_the_same() -> None:
    result = CliRunner().invoke(cli, ["crds"])
    assert result.exit_code == 0
    assert [dict(one) for one in YAML(typ="safe").load_all(result.output)] == crds()


def test_a_closed_pipe_is_no_traceback() -> None:
    result = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m pysedna crds | head -n 1"], capture_output=True, text=True, check=True
    )
    assert result.stdout == "---\n"
    assert "Traceback" not in result.stderr


def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "pysedna", "crds"]
        result = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert "No space left" in one_error_line(result)


@pytest.mark.parametrize("command", ["demo", "manager", "localcluster", "crds"])
def test_each_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(cli, [command, "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.output


def test_the_command_line_itself_imports_nothing_heavy() -> None:
    code = "import sys, pysedna.cli; print(sorted(sys.modules.keys() & {'kubernetes', 'aiohttp', 'rich', 'msgspec'}))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_an_unknown_controller_is_refused_with_the_names_there_are() -> None:
    result = CliRunner().invoke(cli, ["manager", "--controllers", "federatedlearningjob,nonsense"])
    assert result.exit_code == 2
    assert "nonsense" in result.output
    assert "federatedlearningjob, jointinferenceservice" in result.output


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--http", "nonsense"),
        ("--http", "127.0.0.1:99999"),
        ("--namespace", ""),
        ("--namespace", "a/b"),
        ("--lease-name", ""),
        ("--lease-name", "A/B"),
        ("--lease-namespace", "Kube"),
    ],
)
def test_an_option_that_cannot_be_meant_is_wrong_usage_and_named(option: str, value: str) -> None:
    result = run("manager", option, value)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert option in result.stderr


def test_unsafe_election_times_are_refused_with_the_rule() -> None:
    result = CliRunner().invoke(cli, ["manager", "--lease-duration", "5", "--renew-deadline", "10"])
    assert result.exit_code == 2
    assert "5" in result.output
    assert "10" in result.output
    assert "Traceback" not in result.output


def test_a_kubeconfig_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("{not yaml: [")
    result = run("manager", "--kubeconfig", str(path))
    assert result.returncode == 1
    assert str(path) in one_error_line(result)


def test_a_controller_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "no_such_module:setup", manager_command.GROUP)
    monkeypatch.setattr(manager_command, "entry_points", lambda group: [broken])
    with pytest.raises(click.ClickException, match=r"broken \(no_such_module:setup\)"):
        manager_command.load_controllers("all")


def test_a_controller_that_is_no_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = EntryPoint("wrong", "os:sep", manager_command.GROUP)
    monkeypatch.setattr(manager_command, "entry_points", lambda group: [wrong])
    with pytest.raises(click.ClickException, match="wrong: os:sep is not a function"):
        manager_command.load_controllers("wrong")


def test_the_demo_asks_for_a_kubeconfig_where_one_is_needed() -> None:
    result = CliRunner().invoke(cli, ["demo", "--simulate-nodes"])
    assert result.exit_code == 2
    assert "--kubeconfig" in result.output


def test_the_demo_names_a_server_that_does_not_answer(tmp_path: Path, refused: str) -> None:
    result = run("demo", "--kubeconfig", write_kubeconfig(tmp_path / "config", refused))
    assert result.returncode == 1
    assert refused.removeprefix("http://") in result.stdout
    assert "refused" in result.stdout.lower()
    assert "Traceback" not in result.stdout + result.stderr


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    """The command in the background, with stdout and stderr in one pipe; killed if the test fails."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pysedna", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_a_manager_without_a_server_says_so_and_goes_on_trying(tmp_path: Path, refused: str) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "config", refused)
    with started("manager", "--kubeconfig", kubeconfig, "--http", "127.0.0.1:0") as process:
        assert process.stdout is not None
        address = refused.removeprefix("http://")
        line = next(line for line in process.stdout if address in line and "refused" in line.lower())
        assert "Traceback" not in line
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_the_metrics_of_a_manager_count_its_requests(tmp_path: Path, refused: str) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "config", refused)
    port = free_port()
    with started("manager", "--kubeconfig", kubeconfig, "--http", f"127.0.0.1:{port}") as process:
        assert process.stdout is not None
        next(line for line in process.stdout if "refused" in line.lower())
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            metrics = answer.read().decode()
    host = refused.removeprefix("http://")
    assert f'rest_client_requests_total{{code="<error>",host="{host}",method="GET"}}' in metrics


def test_an_http_address_that_is_taken_is_one_line(tmp_path: Path, refused: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        kubeconfig = write_kubeconfig(tmp_path / "config", refused)
        result = run("manager", "--kubeconfig", kubeconfig, "--http", address, "--no-leader-elect")
    assert result.returncode == 1
    assert address in one_error_line(result)


def test_a_port_that_is_taken_ends_the_localcluster_with_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = run("localcluster", "--port", port, "--log-level", "error")
    assert result.returncode == 1
    assert port in one_error_line(result)


@pytest.mark.parametrize("nodes", ["A B", "one,one"])
def test_names_that_no_nodes_can_have_are_wrong_usage(nodes: str) -> None:
    result = run("localcluster", "--nodes", nodes)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "Usage:" in result.stderr


@pytest.mark.parametrize(
    ("command", "module", "extra"), [("localcluster", "aiohttp", "localcluster"), ("demo", "rich", "demo")]
)
def test_a_command_whose_extra_is_missing_says_what_to_install(command: str, module: str, extra: str) -> None:
    code = f"import sys; sys.modules[{module!r}] = None; import pysedna.cli; pysedna.cli.main()"
    result = subprocess.run(
        [sys.executable, "-c", code, command], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 1
    line = one_error_line(result)
    assert f"needs {module}" in line
    assert f"pip install 'pysedna[{extra}]'" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_localcluster_serves_until_it_is_asked_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    kubeconfig = tmp_path / "config"
    words = ["localcluster", "--nodes", "alpha,beta", "--kubeconfig-out", str(kubeconfig), "--log-level", "error"]
    with started(*words) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "listening on http://127.0.0.1:" in line
        assert str(kubeconfig) in line
        with Client.from_kubeconfig(str(kubeconfig)) as client:
            nodes = client.resource("v1", "Node")
            assert nodes.wait_until("beta", lambda node: node is not None, timeout=20)
        process.send_signal(number)
        assert process.wait(30) == 0


def test_localcluster_may_be_asked_to_stop_at_once() -> None:
    with started("localcluster", "--log-level", "error") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_a_damaged_state_file_is_refused_by_name_and_kept(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    state.write_bytes(b"this is no database, but it is somebody's file" * 40)
    before = state.read_bytes()
    result = run("localcluster", "--state", str(state), "--log-level", "error")
    assert result.returncode == 1
    assert str(state) in one_error_line(result)
    assert state.read_bytes() == before
