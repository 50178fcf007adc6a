"""Watches over real sockets."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any

MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def add(api: Api, name: str, **labels: str) -> Json:
    answer = api("POST", MAPS, {"metadata": {"name": name, "labels": labels}})
    assert answer.status == 201
    found: Json = answer.json
    return found


def test_events_come_in_order_and_a_watch_resumes_anywhere(api: Api) -> None:
    start = api.get(MAPS).metadata["resourceVersion"]
    stream = api.watch(f"{MAPS}?watch=1&resourceVersion={start}")
    add(api, "a")
    version = api.merge(f"{MAPS}/a", {"data": {"x": "y"}}).metadata["resourceVersion"]
    api("DELETE", f"{MAPS}/a")
    assert stream.seen(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    resumed = api.watch(f"{MAPS}?watch=1&resourceVersion={version}")
    event = resumed.next()
    assert (event["type"], event["object"]["data"]) == ("DELETED", {"x": "y"})
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(version)


def test_selectors_turn_changes_into_arrivals_and_departures(api: Api) -> None:
    stream = api.watch(f"{MAPS}?watch=1&labelSelector=on%3Dyes&resourceVersion=1")
    add(api, "a", on="no")
    for value in ("yes", "no"):
        api.merge(f"{MAPS}/a", {"metadata": {"labels": {"on": value}}})
    assert stream.seen(2) == [("ADDED", "a"), ("DELETED", "a")]


def test_a_watch_ends_after_its_timeout(api: Api) -> None:
    add(api, "a")
    assert [event["type"] for event in api.watch(f"{MAPS}?watch=1&timeoutSeconds=1")] == ["ADDED"]


def test_bookmarks_come_regularly_and_before_the_end(serve: Callable[..., Api]) -> None:
    api = serve(bookmark_interval=0.05)
    stream = api.watch(f"{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=1")
    first = stream.next()
    assert (first["type"], first["object"]["kind"]) == ("BOOKMARK", "ConfigMap")
    assert list(first["object"]["metadata"]) == ["resourceVersion"]
    assert {event["type"] for event in stream} == {"BOOKMARK"}


def test_initial_events_end_with_their_bookmark(api: Api) -> None:
    for name in "ab":
        add(api, name)
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    stream = api.watch(f"{MAPS}?{query}")
    assert stream.seen(2) == [("ADDED", "a"), ("ADDED", "b")]
    bookmark = stream.next()
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    add(api, "c")
    assert stream.seen(1) == [("ADDED", "c")]


def test_initial_events_without_a_match_are_refused(api: Api) -> None:
    answer = api.get(f"{MAPS}?watch=1&sendInitialEvents=true")
    assert (answer.status, answer.json["details"]["causes"][0]["field"]) == (422, "resourceVersionMatch")


def test_a_compacted_version_is_an_error_event_in_a_200(api: Api) -> None:
    add(api, "a")
    api.server.call(api.server.backend.store.compact)
    [event] = api.watch(f"{MAPS}?watch=1&resourceVersion=1")
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert event["object"]["message"].startswith("too old resource version: 1 (")


def test_initial_events_from_the_future_are_an_error_event(api: Api) -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999"
    [event] = api.watch(f"{MAPS}?{query}")
    assert (event["type"], event["object"]["code"]) == ("ERROR", 504)


def test_metadata_and_tables_are_watched_too(api: Api) -> None:
    add(api, "a")
    add(api, "b")
    event = api.watch(f"{MAPS}?watch=1", Accept=METADATA).next()
    assert (event["object"]["kind"], event["object"]["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    stream = api.watch(f"{MAPS}?watch=1", Accept=TABLE)
    first, second = stream.next()["object"], stream.next()["object"]
    assert (len(first["columnDefinitions"]), second["columnDefinitions"]) == (3, None)
    assert [table["rows"][0]["cells"][0] for table in (first, second)] == ["a", "b"]


def test_a_definition_that_goes_ends_the_watches_of_its_objects(
    api: Api, widgets: Json, widget: Callable[..., Json]
) -> None:
    api("POST", DEFINITIONS, widgets)
    api("POST", "/apis/ex.io/v1/namespaces/default/widgets", widget("w"))
    stream = api.watch("/apis/ex.io/v1/widgets?watch=1")
    assert stream.seen(1) == [("ADDED", "w")]
    api("DELETE", f"{DEFINITIONS}/widgets.ex.io")
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in stream] == [("DELETED", "w")]


def test_dropped_watches_are_cut(api: Api, eventually: Callable[[Callable[[], bool]], None]) -> None:
    streams = [api.watch(f"{MAPS}?watch=1&resourceVersion=1") for _ in range(3)]
    api.server.drop_watches()
    eventually(lambda: api.server.watchers == 0)
    for stream in streams:
        with pytest.raises(Exception, match=r"Connection (broken|aborted|reset)|ended prematurely"):
            list(stream)


def test_a_reader_that_leaves_is_forgotten_at_once(api: Api, eventually: Callable[[Callable[[], bool]], None]) -> None:
    stream = api.watch(f"{MAPS}?watch=1&resourceVersion=1")
    assert api.server.watchers == 1
    stream.close()
    eventually(lambda: api.server.watchers == 0)


def test_a_reader_that_stops_slows_nobody_and_is_cut_off(
    serve: Callable[..., Api], eventually: Callable[[Callable[[], bool]], None]
) -> None:
    api = serve(stall=1.0)
    stuck = socket.create_connection(("127.0.0.1", int(api.address.rpartition(":")[2])))
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stuck.sendall(f"GET {MAPS}?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert stuck.recv(15) == b"HTTP/1.1 200 OK"
    reader = api.watch(f"{MAPS}?watch=1&resourceVersion=1")
    with ThreadPoolExecutor(1) as pool, closing(stuck):
        seen = pool.submit(reader.seen, 61)
        add(api, "a")
        for number in range(60):
            api.merge(f"{MAPS}/a", {"data": {"x": f"{number}" + "y" * 200_000}})
        assert len(seen.result(timeout=60)) == 61
        eventually(lambda: api.server.watchers == 1)


def test_stopping_the_server_ends_watches_at_once(serve: Callable[..., Api]) -> None:
    api = serve()
    stream = api.watch(f"{MAPS}?watch=1&resourceVersion=1")
    assert api.server.stop(timeout=5)
    assert list(stream) == []
