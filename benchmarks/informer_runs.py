"""What bench_informers.py measures: a server of prebuilt bytes and its readers, each a process of its own.

The server (peers/clientgo/server; peers/python/server.py where there is no Go) lists pods page by page, holds the
events back until its gate is opened, and then sends them as fast as they are read. A peer opens the gate when its last
handler has seen the last pod, so list and watch are measured apart. The peers are peers/clientgo/informer and the
programs in peers/python; all answer with the same JSON object.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import gopeer
from report import Figures, LeftOut

PEERS = Path(__file__).parent / "peers"
TIMEOUT = 300.0

LIST, WATCH = "list objects/s", "watch events/s"
LIST_CPU, WATCH_CPU = "list CPU us", "watch CPU us"
LIST_PEAK, WATCH_PEAK = "MB after list", "MB after watch"
START_CPU = "start CPU ms"
SERVER = "server CPU %"


class Server:
    """A server in a process of its own; a context manager.

    :param watch_list: it streams the list to those who ask for that
    :param bookmark: seconds between the bookmarks of a quiet watch
    :param go: take the one in Go where it can be built
    """

    def __init__(
        self, pods: int, events: int, *, watch_list: bool = False, bookmark: float = 60.0, go: bool = True
    ) -> None:
        self.pods, self.events = pods, events
        options = [f"--pods={pods}", f"--events={events}", f"--bookmark={bookmark:g}s"]
        options += ["--watch-list"] * watch_list
        command = [sys.executable, str(PEERS / "python" / "server.py")]
        if go:
            with suppress(LeftOut):
                command = [str(gopeer.build("server"))]
        self._process = subprocess.Popen(
            [*command, f"--template={PEERS / 'pod.json'}", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server did not start: {self._process.wait()}")
        self.url: str = json.loads(line)["url"]

    def set_gate(self, *, opened: bool) -> None:
        """Let the events go, or hold them back."""
        self._control(f"/bench/gate?open={str(opened).lower()}")

    def cpu(self) -> float:
        """Seconds of processor time that it has used."""
        return float(self._control("/bench/usage")["cpu"])

    def _control(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(urllib.request.Request(self.url + path, method="POST")) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@dataclass(frozen=True, slots=True)
class Peer:
    """A program that reads from a server. `needs`: a Python package without which it is left out."""

    name: str
    command: Callable[[], list[str]]
    needs: str = ""
    python: str = ""

    def run(self, server: Server, *options: str, visible: bool = False) -> dict[str, Any]:
        """Run it to its end, the server's gate closed at first, and give what it said. `visible`: show its messages.

        Raises LeftOut if it cannot be had, RuntimeError if it failed.
        """
        if self.needs:
            _require(self.python, self.needs)
        command = [*self.command(), f"--server={server.url}", f"--pods={server.pods}", *options]
        server.set_gate(opened=False)
        messages = None if visible else subprocess.PIPE
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=messages, text=True, timeout=TIMEOUT)
        if ran.returncode:
            last = "\n".join((ran.stderr or "").splitlines()[-25:])
            raise RuntimeError(f"{self.name} failed ({ran.returncode}):\n{last}")
        answer: dict[str, Any] = json.loads(ran.stdout)
        return answer

    def throughput(self, server: Server, *options: str) -> Figures:
        """A list and a watch. Raises as `run` does."""
        before = server.cpu()
        found = self.run(server, f"--events={server.events}", *options)
        used = server.cpu() - before
        listed, watched = found["list"], found["watch"]
        return {
            LIST: listed["objects"] / listed["wall"],
            WATCH: watched["objects"] / watched["wall"],
            LIST_CPU: 1e6 * listed["cpu"] / listed["objects"],
            WATCH_CPU: 1e6 * watched["cpu"] / watched["objects"],
            LIST_PEAK: listed["peak"] / 2**20,
            WATCH_PEAK: watched["peak"] / 2**20,
            START_CPU: 1e3 * found["startup_cpu"],
            SERVER: 100 * used / (listed["wall"] + watched["wall"]),
        }

    def latency(self, server: Server, count: int) -> Figures:
        """Events on demand, one at a time. Raises as `run` does."""
        delays = sorted(self.run(server, f"--latency={count}", "--interval=20ms")["delays"])
        if len(delays) != count:
            raise RuntimeError(f"{self.name}: {len(delays)} of {count} events arrived")
        return {"median ms": 1e3 * delays[count // 2], "p99 ms": 1e3 * delays[count * 99 // 100]}


@functools.cache
def _require(python: str, package: str) -> None:
    if subprocess.run([python, "-c", f"import {package}"], stderr=subprocess.PIPE).returncode:
        raise LeftOut(f"{package} is not installed")


def _python(python: str, name: str, script: str, *options: str, needs: str = "") -> Peer:
    return Peer(name, lambda: [python, str(PEERS / "python" / script), *options], needs, python)


def _go(name: str, *options: str) -> Peer:
    return Peer(name, lambda: [str(gopeer.build("informer")), *options])


OURS = "ours"
GO_JSON, GO_PROTOBUF, GO_DYNAMIC = "go-json", "go-protobuf", "go-dynamic"
FLOOR, PARSED = "floor", "parsed"
OTHERS = ("official", "kopf", "lightkube", "kubernetes-asyncio")


def peers(python: str) -> dict[str, Peer]:
    """Every peer by what it is called on the command line; the Python ones run on that interpreter."""
    return {
        OURS: _python(python, "pysedna", "ours.py"),
        GO_JSON: _go("client-go typed, JSON", "--mode=json"),
        GO_PROTOBUF: _go("client-go typed, protobuf", "--mode=protobuf"),
        GO_DYNAMIC: _go("client-go dynamic", "--mode=dynamic"),
        FLOOR: _python(python, "http.client, bytes read only", "plain.py"),
        PARSED: _python(python, "http.client, orjson, a dict", "plain.py", "--parse=1"),
        "official": _python(python, "kubernetes SharedInformer", "official.py"),
        "kopf": _python(python, "kopf", "with_kopf.py", needs="kopf"),
        "lightkube": _python(python, "lightkube, no informer", "with_lightkube.py", needs="lightkube"),
        "kubernetes-asyncio": _python(
            python, "kubernetes_asyncio, no informer", "with_kubernetes_asyncio.py", needs="kubernetes_asyncio"
        ),
    }


def facts(python: str, packages: Sequence[str]) -> tuple[str, dict[str, str]]:
    """What an interpreter is called, and the versions of the packages that it has."""
    text = (
        "import importlib.metadata as m, json, platform, sys\n"
        "has = {d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()}\n"
        "free = '' if getattr(sys, '_is_gil_enabled', lambda: True)() else ' free-threaded'\n"
        "print(json.dumps([f'{platform.python_implementation()} {platform.python_version()}{free}', has]))\n"
    )
    name, has = json.loads(subprocess.run([python, "-c", text], stdout=subprocess.PIPE, check=True).stdout)
    return name, {package: has[package] for package in packages if package in has}
