"""The informers' benchmark runs to its end, and its two servers say the same. How fast is not asked."""

import http.client
import json
import math
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import gopeer
import pytest
from informer_runs import LIST, WATCH, Server
from report import LeftOut

SmokeRun = Callable[..., dict[str, Any]]

FIRST_EVENT = 20_000_001  # what the servers' versions of events begin with
OTHER_CLIENTS = {"kopf", "lightkube, no informer", "kubernetes_asyncio, no informer"}
OURS = {
    "200 pods, 200 events": {"pysedna", "http.client, bytes read only", "http.client, orjson, a dict"},
    "Python clients, 200 pods, 200 events": {"pysedna", "kubernetes SharedInformer"},
    "list streamed by a watch, 200 pods, 200 events": {"pysedna"},
    "in other settings, 200 pods, 200 events": {
        "pysedna",
        "the same, index by a Python function",
        "the same, handlers read labels and status",
    },
    "size of the cache, 200 events": {"pysedna, 50 pods", "pysedna, 200 pods", "pysedna, 1,000 pods"},
    "handlers of one informer": {"pysedna, 1 handlers", "pysedna, 10 handlers"},
    "garbage collector": {"as it is", "gc.freeze() after the list", "gc.disable()"},
    "event to reconcile, 20 events, one at a time": {"pysedna"},
    "50 idle informers, 0.5 s": {"pysedna"},
}


def get(server: Server, path: str) -> bytes:
    """What a server answers, to its end."""
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read()


def documents(lines: bytes) -> list[Any]:
    """The events of a watch."""
    return [json.loads(line) for line in lines.splitlines()]


def versions(events: list[Any]) -> list[int]:
    """The version of each event."""
    return [int(event["object"]["metadata"]["resourceVersion"]) for event in events]


def rows(data: dict[str, Any]) -> dict[str, set[str]]:
    """The rows of each table; every one of their figures must be a number, and no rate may be nothing."""
    for group in data["groups"]:
        for name, rounds in group["rounds"].items():
            for figures in rounds:
                assert all(math.isfinite(value) for value in figures.values()), name
                assert all(figures[column] > 0 for column in (LIST, WATCH) if column in figures), name
    return {group["title"]: set(group["rows"]) for group in data["groups"]}


def test_the_server_pages_a_list_and_names_what_is_left() -> None:
    with Server(7, 0, go=False) as server:
        first, last = (json.loads(get(server, f"/api/v1/pods?limit=5&continue={token}")) for token in (0, 5))
    assert first["metadata"] == {"resourceVersion": "20000000", "continue": "5", "remainingItemCount": 2}
    assert last["metadata"] == {"resourceVersion": "20000000"}
    uids = [pod["metadata"]["uid"] for pod in first["items"] + last["items"]]
    assert len(set(uids)) == len(uids) == 7


def test_pods_are_as_large_as_the_document_says() -> None:
    with Server(1, 0, go=False) as server:
        (pod,) = json.loads(get(server, "/api/v1/pods"))["items"]
    size, managed = (len(json.dumps(part, separators=(",", ":"))) for part in (pod, pod["metadata"]["managedFields"]))
    assert 6000 < size < 7000
    assert 0.3 < managed / size < 0.4


def test_a_watch_gets_the_events_after_its_version_once_the_gate_is_open() -> None:
    with Server(3, 5, go=False) as server:
        assert get(server, "/api/v1/pods?watch=1&resourceVersion=20000000&timeoutSeconds=1") == b""
        server.set_gate(opened=True)
        events = documents(get(server, "/api/v1/pods?watch=1&resourceVersion=20000003&timeoutSeconds=1"))
    assert [event["type"] for event in events] == ["MODIFIED", "MODIFIED"]
    assert versions(events) == [FIRST_EVENT + 3, FIRST_EVENT + 4]


def test_a_list_is_streamed_only_by_a_server_that_can() -> None:
    path = "/api/v1/pods?watch=1&sendInitialEvents=true&timeoutSeconds=1"
    with Server(3, 0, go=False) as server:
        assert json.loads(get(server, path))["code"] == 422
    with Server(3, 0, go=False, watch_list=True) as server:
        server.set_gate(opened=True)
        *pods, end = documents(get(server, path))
    assert [event["type"] for event in pods] == ["ADDED"] * 3
    assert end["type"] == "BOOKMARK"
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.slow
def test_informers_are_measured_without_go(smoke_run: SmokeRun) -> None:
    data = smoke_run("informers")
    assert {title: names - OTHER_CLIENTS for title, names in rows(data).items()} == OURS
    assert any("client-go typed, JSON" in note and "no Go" in note for note in data["notes"])


def _require_go() -> None:
    try:
        gopeer.build("server")
    except LeftOut as reason:
        pytest.skip(str(reason))


@pytest.mark.kube
def test_both_servers_say_the_same() -> None:
    _require_go()
    with Server(50, 20, watch_list=True) as theirs, Server(50, 20, watch_list=True, go=False) as ours:
        for path in ("/api/v1/pods", "/api/v1/pods?limit=20", "/api/v1/pods?limit=20&continue=40", "/api/v1", "/apis"):
            assert json.loads(get(ours, path)) == json.loads(get(theirs, path))
        closed = "/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion=20000000"
        assert get(ours, closed) == get(theirs, closed) == b""
        for server in (ours, theirs):
            server.set_gate(opened=True)
        for query in ("resourceVersion=20000000", "resourceVersion=20000007", "sendInitialEvents=true"):
            path = f"/api/v1/pods?watch=true&timeoutSeconds=1&{query}"
            assert documents(get(ours, path)) == documents(get(theirs, path))


@pytest.mark.kube
def test_informers_are_measured_beside_client_go(smoke_run: SmokeRun) -> None:
    _require_go()
    data = smoke_run("informers", go=True)
    found = rows(data)
    assert {"client-go typed, JSON", "client-go typed, protobuf"} <= found["200 pods, 200 events"]
    assert "client-go dynamic" in found["in other settings, 200 pods, 200 events"]
    assert "client-go typed, protobuf" in found["50 idle informers, 0.5 s"]
    assert all(goal["value"] is not None for goal in data["goals"])
