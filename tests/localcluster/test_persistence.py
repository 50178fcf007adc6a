"""The state file: what was acknowledged is there again, and a file that cannot be trusted is refused untouched."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from pysedna.localcluster.backend import Backend
from pysedna.localcluster.errors import StateFileError
from pysedna.localcluster.persistence import StateFile

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any

MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVER = """
import sys, threading
from pysedna.localcluster.server import ApiServer
server = ApiServer(host="127.0.0.1", port=0, state=sys.argv[1], history_limit=1000, bookmark_interval=10, stall=30)
server.start()
print(server.address, flush=True)
threading.Event().wait()
"""


def test_everything_comes_back_as_it_was_and_versions_go_on(
    serve: Callable[..., Api], tmp_path: Path, widgets: Json, widget: Callable[..., Json]
) -> None:
    state = tmp_path / "state"
    first = serve(state=state)
    first("POST", DEFINITIONS, widgets)
    first("POST", "/apis/ex.io/v1/namespaces/default/widgets", widget("w"))
    for name in "ab":
        first("POST", MAPS, {"metadata": {"name": name}})
    first("DELETE", f"{MAPS}/a")
    before = {
        path: first.get(path).json for path in (MAPS, "/apis/ex.io/v1/widgets", "/api/v1/namespaces", DEFINITIONS)
    }
    assert first.server.stop(timeout=10)
    second = serve(state=state)
    assert {path: second.get(path).json for path in before} == before
    version = int(second("POST", MAPS, {"metadata": {"name": "c"}}).metadata["resourceVersion"])
    assert version == int(before[MAPS]["metadata"]["resourceVersion"]) + 1
    [event] = second.watch(f"{MAPS}?watch=1&resourceVersion=2")
    assert event["object"]["reason"] == "Expired"


def test_a_restart_on_an_old_port_is_possible_at_once(serve: Callable[..., Api], tmp_path: Path) -> None:
    first = serve(state=tmp_path / "state")
    first.get("/version")
    assert first.server.stop(timeout=10)
    assert serve(state=tmp_path / "state", port=int(first.address.rpartition(":")[2])).get("/version").status == 200


def start(state: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(state)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.parametrize(
    ("seed", "kills"),
    [(0, 2), *(pytest.param(seed, 20, marks=[pytest.mark.slow, pytest.mark.timeout(300)]) for seed in range(1, 6))],
)
def test_a_server_killed_at_any_moment_has_lost_nothing_that_it_acknowledged(
    tmp_path: Path, seed: int, kills: int
) -> None:
    """The kill comes while writes flow. What was answered must be there; what was under way may or may not be."""
    rng, state = random.Random(seed), tmp_path / "state"
    acknowledged: dict[str, str] = {}
    newest = 0
    for _ in range(kills):
        process, address = start(state)
        with urllib3.PoolManager(retries=False, timeout=10) as pool:
            listing = json.loads(pool.request("GET", address + MAPS).data)
            stored = {item["metadata"]["name"]: item["data"]["n"] for item in listing["items"]}
            assert {name: stored.get(name) for name in acknowledged} == acknowledged
            assert int(listing["metadata"]["resourceVersion"]) >= newest
            assassin = threading.Timer(rng.uniform(0, 0.1), process.kill)
            assassin.start()
            try:
                for number in itertools.count():
                    name, value = f"m{rng.randrange(10)}", f"{number}-{rng.random()}"
                    acknowledged.pop(name, None)
                    newest = max(newest, write(pool, address, name, value, exists=name in stored))
                    stored[name] = acknowledged[name] = value
            except urllib3.exceptions.HTTPError:
                pass  # the server is dead, and the write under way has no answer
            assassin.join()
        kill(process)


def write(pool: urllib3.PoolManager, address: str, name: str, value: str, *, exists: bool) -> int:
    """Give the version under which the write was acknowledged."""
    body = json.dumps({"metadata": {"name": name}, "data": {"n": value}}).encode()
    method, path = ("PUT", f"{MAPS}/{name}") if exists else ("POST", MAPS)
    answer = pool.request(method, address + path, body=body, headers={"Content-Type": "application/json"})
    assert answer.status in (200, 201), answer.data
    return int(json.loads(answer.data)["metadata"]["resourceVersion"])


def sound(path: Path) -> Path:
    with closing(StateFile(path)):
        pass
    return path


def refuse(path: Path) -> str:
    before = path.read_bytes()
    with pytest.raises(StateFileError) as failure:
        StateFile(path)
    assert path.read_bytes() == before
    assert str(failure.value).startswith(f"state file {path}: ")
    return failure.value.problem


def execute(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement, values)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("hello, this is not a database")
    assert refuse(path) == "is not an SQLite database (its header is wrong)"


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    execute(path, "CREATE TABLE cats (name TEXT)")
    assert refuse(path) == "is an SQLite database of another program"


def test_a_damaged_page_is_refused(tmp_path: Path) -> None:
    path = sound(tmp_path / "state")
    body = path.read_bytes()
    path.write_bytes(body[:4096] + b"\xff" * (len(body) - 4096))
    assert "is damaged" in refuse(path)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = sound(tmp_path / "state")
    path.write_bytes(path.read_bytes()[:5000])
    assert "is damaged" in refuse(path)


@pytest.mark.parametrize(
    ("statement", "values", "problem"),
    [
        ("INSERT INTO objects VALUES ('pods', 'a/b', ?)", [b"{nonsense"], r"is damaged: pods a/b is no object"),
        ("INSERT INTO objects VALUES ('pods', 'a/b', ?)", [b"{}"], r"is damaged: pods a/b is no object"),
        (
            "INSERT INTO objects VALUES ('pods', 'a/b', ?)",
            [b'{"metadata": {"resourceVersion": "77"}}'],
            r"is damaged: pods a/b is newer than the newest version 1",
        ),
        ("DELETE FROM state", [], "is damaged: it holds no version"),
        ("DROP TABLE objects", [], "is damaged|no such table"),
        ("PRAGMA user_version = 9", [], "has layout 9, this program reads layout 1"),
    ],
)
def test_content_that_cannot_be_true_is_refused(
    tmp_path: Path, statement: str, values: list[Any], problem: str
) -> None:
    path = sound(tmp_path / "state")
    execute(path, statement, *values)
    assert re.search(problem, refuse(path))


def test_objects_that_nothing_defines_are_refused(tmp_path: Path) -> None:
    path = sound(tmp_path / "state")
    execute(path, "INSERT INTO objects VALUES ('cats.ex.io', 'a/b', ?)", b'{"metadata": {"resourceVersion": "1"}}')
    with pytest.raises(StateFileError, match=r"holds cats.ex.io, which it does not define"):
        Backend(state=StateFile(path), committed=lambda event: None)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match="is not a file"):
        StateFile(tmp_path)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match="unable to open"):
        StateFile(tmp_path / "nowhere" / "state")


def test_a_second_server_on_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with closing(StateFile(path)), pytest.raises(StateFileError, match="is in use by another process"):
        StateFile(path)


def test_a_write_that_cannot_be_kept_is_not_acknowledged(serve: Callable[..., Api], tmp_path: Path) -> None:
    api = serve(state=tmp_path / "state")

    def fail(event: object) -> None:
        raise StateFileError("state", "disk I/O error")

    api.server.call(lambda: setattr(api.server.backend.store, "_journal", fail))
    assert api("POST", MAPS, {"metadata": {"name": "a"}}).status == 500
    assert api.get(f"{MAPS}/a").status == 404


def test_a_copy_of_the_file_of_a_killed_server_starts_too(tmp_path: Path) -> None:
    process, address = start(tmp_path / "state")
    with urllib3.PoolManager() as pool:
        body = json.dumps({"metadata": {"name": "a"}}).encode()
        pool.request("POST", address + MAPS, body=body, headers={"Content-Type": "application/json"})
    kill(process)
    (tmp_path / "copy").mkdir()
    for file in tmp_path.glob("state*"):
        shutil.copy(file, tmp_path / "copy")
    with closing(StateFile(tmp_path / "copy" / "state")) as state:
        assert "a" in [obj["metadata"]["name"] for resource, obj in state.objects() if resource == "configmaps"]
