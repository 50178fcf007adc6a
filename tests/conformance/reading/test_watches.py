"""Watches: what they show, in which order, and how they end."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from informers import ExpiredError, SharedInformer

if TYPE_CHECKING:
    from pysedna.testing import Cluster

    Json = dict[str, Any]
    Api = Any

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
END = {"k8s.io/initial-events-end": "true"}
LIST_FIRST = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


def add(api: Api, path: str, name: str, **labels: str) -> str:
    answer = api.post(path, {"metadata": {"name": name, "labels": labels}})
    assert answer.status == 201
    return str(answer.version)


def start(api: Api, path: str) -> str:
    """The version from which on a watch sees what the case does."""
    return str(api.get(path).version)


# What they show


def test_each_write_is_one_event_with_its_version_in_the_order_of_the_writes(api: Api, maps: str) -> None:
    stream = api.watch(maps, resourceVersion=start(api, maps))
    versions = [add(api, maps, "a"), add(api, maps, "b")]
    versions.append(api.patch(f"{maps}/a", {"data": {"x": "y"}}).version)
    api.delete(f"{maps}/a")
    versions.append(add(api, maps, "a"))
    events = [stream.next() for _ in range(5)]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("ADDED", "a"),
    ]
    seen = [event["object"]["metadata"]["resourceVersion"] for event in events]
    assert seen[:3] + seen[4:] == versions
    assert seen == sorted(seen, key=int)
    assert {event["object"]["kind"] for event in events} == {"ConfigMap"}


def test_a_watch_resumes_after_any_version(api: Api, maps: str) -> None:
    first = start(api, maps)
    written = [add(api, maps, name) for name in "abcd"]
    for index, version in enumerate([first, *written[:-1]]):
        stream = api.watch(maps, resourceVersion=version)
        assert [stream.next()["object"]["metadata"]["resourceVersion"] for _ in written[index:]] == written[index:]


def test_a_delete_carries_the_last_state_and_a_new_version(api: Api, maps: str) -> None:
    add(api, maps, "a", on="yes")
    last = api.patch(f"{maps}/a", {"data": {"x": "y"}})
    stream = api.watch(maps, resourceVersion=last.version)
    api.delete(f"{maps}/a")
    event = stream.next()
    assert (event["type"], event["object"]["data"]) == ("DELETED", {"x": "y"})
    metadata = event["object"]["metadata"]
    assert (metadata["uid"], metadata["labels"]) == (last.metadata["uid"], {"on": "yes"})
    assert int(metadata["resourceVersion"]) > int(last.version)


def test_a_finalizer_makes_of_a_delete_a_change_and_then_the_delete(api: Api, maps: str) -> None:
    body = {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}
    stream = api.watch(maps, resourceVersion=api.post(maps, body).version)
    api.delete(f"{maps}/a")
    marked = stream.next()
    assert (marked["type"], "deletionTimestamp" in marked["object"]["metadata"]) == ("MODIFIED", True)
    api.patch(f"{maps}/a", {"metadata": {"finalizers": None}})
    gone = stream.next()
    assert gone["type"] == "DELETED"
    assert int(gone["object"]["metadata"]["resourceVersion"]) > int(marked["object"]["metadata"]["resourceVersion"])


def test_a_pod_is_marked_before_it_is_deleted_even_without_a_wait(
    api: Api, pods: str, pod: Callable[..., Json]
) -> None:
    for spec, query in [({}, {}), ({"nodeName": "n1"}, {"gracePeriodSeconds": "0"})]:
        stream = api.watch(pods, resourceVersion=api.post(pods, pod("a", **spec)).version)
        answer = api.delete(f"{pods}/a", **query)
        assert (answer.json["kind"], answer.metadata["deletionGracePeriodSeconds"]) == ("Pod", 0)
        events = [stream.next() for _ in "md"]
        assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
        assert [event["object"]["metadata"]["generation"] for event in events] == [2, 2]
        assert all(event["object"]["metadata"]["deletionGracePeriodSeconds"] == 0 for event in events)


def test_what_changes_nothing_is_no_event(api: Api, maps: str) -> None:
    stream = api.watch(maps, resourceVersion=add(api, maps, "a"))
    api.patch(f"{maps}/a", {"metadata": {"labels": None}})
    api.put(f"{maps}/a", {"metadata": {"name": "a"}}, dryRun="All")
    api.post(maps, {"metadata": {"name": "b"}}, dryRun="All")
    api.delete(f"{maps}/a", dryRun="All")
    add(api, maps, "c")
    assert stream.seen(1) == [("ADDED", "c")]


def test_a_status_is_an_event_too(api: Api, pods: str, pod: Callable[..., Json]) -> None:
    stream = api.watch(pods, resourceVersion=api.post(pods, pod("a")).version)
    api.patch(f"{pods}/a/status", {"status": {"message": "hello"}})
    event = stream.next()
    assert (event["type"], event["object"]["status"]["message"]) == ("MODIFIED", "hello")


def test_a_watch_of_a_namespace_sees_nothing_of_others(api: Api, maps: str, namespace: str) -> None:
    begin = start(api, maps)
    one, every = api.watch(maps, resourceVersion=begin), api.watch("/api/v1/configmaps", resourceVersion=begin)
    other = f"{namespace}-b"
    assert api.post("/api/v1/namespaces", {"metadata": {"name": other}}).status == 201
    add(api, f"/api/v1/namespaces/{other}/configmaps", f"there-{namespace}")
    add(api, maps, f"here-{namespace}")
    assert one.seen(1)[0] == ("ADDED", f"here-{namespace}")
    ours = (event["object"]["metadata"]["name"] for event in every)
    assert [next(name for name in ours if namespace in name) for _ in "ab"] == [
        f"there-{namespace}",
        f"here-{namespace}",
    ]
    api.delete(f"/api/v1/namespaces/{other}")


def test_custom_resources_are_watched_from_their_first_moment(
    api: Api, widgets: str, widget: Callable[..., Json]
) -> None:
    stream = api.watch(widgets, resourceVersion=start(api, widgets))
    assert api.post(widgets, widget("a")).status == 201
    api.patch(f"{widgets}/a/status", {"status": {"size": 1}})
    event = stream.next()
    assert (event["type"], event["object"]["spec"]) == ("ADDED", {"size": 1, "mode": "a"})
    event = stream.next()
    assert (event["type"], event["object"]["status"]) == ("MODIFIED", {"size": 1})


# Selectors


def test_entering_a_label_selector_is_added_and_leaving_it_is_deleted(api: Api, maps: str) -> None:
    stream = api.watch(maps, resourceVersion=start(api, maps), labelSelector="on=yes")
    add(api, maps, "a", on="no")
    api.patch(f"{maps}/a", {"metadata": {"labels": {"on": "yes"}}})
    api.patch(f"{maps}/a", {"data": {"x": "y"}})
    left = api.patch(f"{maps}/a", {"metadata": {"labels": {"on": "no"}}, "data": {"x": "z"}})
    api.delete(f"{maps}/a")
    add(api, maps, "b", on="yes")
    assert stream.seen(2) == [("ADDED", "a"), ("MODIFIED", "a")]
    event = stream.next()
    metadata = event["object"]["metadata"]
    assert (event["type"], metadata["labels"], event["object"]["data"]) == ("DELETED", {"on": "yes"}, {"x": "y"})
    assert metadata["resourceVersion"] == left.version
    assert stream.seen(1) == [("ADDED", "b")]


def test_a_pod_that_is_bound_enters_the_selector_of_its_node(
    api: Api, pods: str, pod: Callable[..., Json], namespace: str
) -> None:
    stream = api.watch(pods, resourceVersion=start(api, pods), fieldSelector="spec.nodeName=n1")
    waiting = api.watch(pods, resourceVersion=start(api, pods), fieldSelector="spec.nodeName=")
    assert api.post(pods, pod("a")).status == 201
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    assert api.post(f"{pods}/a/binding", binding).status == 201
    assert stream.seen(1) == [("ADDED", "a")]
    assert waiting.seen(2) == [("ADDED", "a"), ("DELETED", "a")]


def test_one_object_is_watched_by_its_name(api: Api, maps: str) -> None:
    stream = api.watch(maps, fieldSelector="metadata.name=b")
    for name in "abc":
        add(api, maps, name)
    api.delete(f"{maps}/b")
    assert stream.seen(2) == [("ADDED", "b"), ("DELETED", "b")]


# Beginnings and bookmarks


@pytest.mark.parametrize("query", [{}, {"resourceVersion": ""}, {"resourceVersion": "0"}])
def test_without_a_version_the_present_comes_first(api: Api, maps: str, query: Json) -> None:
    add(api, maps, "a")
    last = add(api, maps, "b")
    api.get(maps, resourceVersion=last)  # "0" shows what the server's cache holds, which holds that now
    stream = api.watch(maps, **query)
    assert sorted(stream.seen(2)) == [("ADDED", "a"), ("ADDED", "b")]
    add(api, maps, "c")
    assert stream.seen(1) == [("ADDED", "c")]


@pytest.mark.parametrize("query", [LIST_FIRST, {"resourceVersion": ""}, {"resourceVersion": "0"}])
def test_the_present_ends_with_an_annotated_bookmark_where_bookmarks_are_allowed(
    api: Api, maps: str, query: Json
) -> None:
    add(api, maps, "a")
    last = add(api, maps, "b")
    api.get(maps, resourceVersion=last)
    stream = api.watch(maps, allowWatchBookmarks="true", **query)
    assert sorted(stream.seen(2)) == [("ADDED", "a"), ("ADDED", "b")]
    event = stream.next()
    found = event["object"]
    assert (event["type"], found["kind"], found["apiVersion"]) == ("BOOKMARK", "ConfigMap", "v1")
    assert found["metadata"]["annotations"] == END
    assert int(found["metadata"]["resourceVersion"]) >= int(last)
    add(api, maps, "c")
    assert stream.seen(1) == [("ADDED", "c")]


def test_the_end_of_nothing_is_told_too(api: Api, maps: str) -> None:
    add(api, maps, "a")
    query = {**LIST_FIRST, "labelSelector": "on=yes", "allowWatchBookmarks": "true"}
    assert api.watch(maps, **query).next()["object"]["metadata"]["annotations"] == END


def test_the_end_of_the_present_is_not_told_where_bookmarks_are_not_allowed(api: Api, maps: str) -> None:
    add(api, maps, "a")
    stream = api.watch(maps, **LIST_FIRST)
    assert stream.seen(1) == [("ADDED", "a")]
    add(api, maps, "b")
    assert stream.seen(1) == [("ADDED", "b")]


def test_the_present_may_be_left_out(api: Api, maps: str) -> None:
    add(api, maps, "a")
    stream = api.watch(maps, sendInitialEvents="false", resourceVersionMatch="NotOlderThan")
    add(api, maps, "b")
    assert stream.seen(1) == [("ADDED", "b")]


def test_bookmarks_tell_the_version_and_nothing_more(api: Api, maps: str) -> None:
    begin = start(api, maps)
    add(api, maps, "a", on="no")
    stream = api.watch(
        maps, allowWatchBookmarks="true", resourceVersion=begin, labelSelector="on=yes", timeoutSeconds="5"
    )
    events = list(stream)
    assert {event["type"] for event in events} == {"BOOKMARK"}
    for event in events:
        assert (event["object"]["kind"], list(event["object"]["metadata"])) == ("ConfigMap", ["resourceVersion"])
    last = events[-1]["object"]["metadata"]["resourceVersion"]
    assert int(last) > int(begin)
    resumed = api.watch(maps, resourceVersion=last)
    add(api, maps, "b")
    assert resumed.seen(1) == [("ADDED", "b")]


@pytest.mark.parametrize(
    "query",
    [
        {"sendInitialEvents": "true"},
        {"sendInitialEvents": "false"},
        {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
    ],
)
def test_initial_events_and_a_match_go_together(api: Api, maps: str, query: Json) -> None:
    answer = api.get(maps, watch="true", **query)
    assert answer.refused(422, "Invalid")["details"]["kind"] == "ListOptions"
    assert answer.causes == [("FieldValueForbidden", "resourceVersionMatch")]


# Ends


def test_a_watch_ends_in_good_order_after_its_timeout(api: Api, maps: str) -> None:
    add(api, maps, "a")
    assert [event["type"] for event in api.watch(maps, timeoutSeconds="1")] == ["ADDED"]


def test_anything_but_no_means_to_watch(api: Api, maps: str) -> None:
    begin = start(api, maps)
    add(api, maps, "a")
    for word in ("1", "True", "yes"):
        [event] = api.watch(maps, watch=word, timeoutSeconds="1", resourceVersion=begin)
        assert event["type"] == "ADDED"
    for word in ("0", "false"):
        assert api.get(maps, watch=word).json["kind"] == "ConfigMapList"


def test_an_expired_version_is_an_error_event_in_a_200(api: Api, cluster: Cluster, maps: str) -> None:
    old = add(api, maps, "a")
    add(api, maps, "b")
    cluster.compact()
    [event] = api.watch(maps, resourceVersion=old)
    status = event["object"]
    assert (event["type"], status["kind"], status["code"], status["reason"]) == ("ERROR", "Status", 410, "Expired")
    assert status["message"].startswith(f"too old resource version: {old} (")
    with pytest.raises(ExpiredError), cluster.client.resource("v1", "ConfigMap").watch(resource_version=old) as watch:
        next(watch)


def test_a_present_from_the_future_is_an_error_event(api: Api, maps: str) -> None:
    future = int(start(api, maps)) + 1_000_000
    [event] = api.watch(maps, resourceVersion=future, timeoutSeconds="10", **LIST_FIRST)
    status = event["object"]
    assert (event["type"], status["code"], status["reason"]) == ("ERROR", 504, "Timeout")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_a_definition_that_goes_shows_its_objects_deleted_and_ends_their_watches(
    api: Api, group: str, widgets: str, widget: Callable[..., Json]
) -> None:
    for name in "ab":
        assert api.post(widgets, widget(name)).status == 201
    streams = [api.watch(widgets), api.watch(f"/apis/{group}/v1/widgets", resourceVersion=start(api, widgets))]
    assert streams[0].seen(2) == [("ADDED", "a"), ("ADDED", "b")]
    api.delete(f"{DEFINITIONS}/widgets.{group}")
    for stream in streams:
        events = [(event["type"], event["object"]["metadata"]["name"]) for event in stream]
        assert sorted(each for each in events if each[0] == "DELETED") == [("DELETED", "a"), ("DELETED", "b")]


def test_a_definition_that_comes_back_is_watched_anew(
    cluster: Cluster, api: Api, group: str, widgets: str, widget: Callable[..., Json], eventually: Any
) -> None:
    definition = cluster.client.resource("apiextensions.k8s.io/v1", "CustomResourceDefinition").get(f"widgets.{group}")
    assert api.post(widgets, widget("old")).status == 201
    old = start(api, widgets)
    api.delete(f"{DEFINITIONS}/widgets.{group}")
    eventually(lambda: api.get(f"{DEFINITIONS}/widgets.{group}").status == 404)
    eventually(lambda: api.get(widgets).status == 404)
    made = definition.to_dict()
    cluster.install_crds([{**made, "metadata": {"name": made["metadata"]["name"]}}])
    assert api.get(widgets).names == []
    stream = api.watch(widgets, resourceVersion=start(api, widgets))
    assert api.post(widgets, widget("new")).status == 201
    assert stream.seen(1) == [("ADDED", "new")]
    assert int(start(api, widgets)) > int(old)


def test_dropped_watches_end_and_may_begin_anew(api: Api, cluster: Cluster, maps: str) -> None:
    stream = api.watch(maps, resourceVersion=start(api, maps))
    add(api, maps, "a")
    assert stream.seen(1) == [("ADDED", "a")]
    cluster.drop_watches()
    with suppress(urllib3.exceptions.ProtocolError):  # cut or ended in good order: either is an end
        assert list(stream) == []
    stream = api.watch(maps, resourceVersion=start(api, maps))
    add(api, maps, "b")
    assert stream.seen(1) == [("ADDED", "b")]


@pytest.mark.slow
def test_an_informer_follows_through_dropped_watches_and_forced_410s(
    api: Api, cluster: Cluster, maps: str, namespace: str, eventually: Any
) -> None:
    informer = SharedInformer(cluster.client.resource("v1", "ConfigMap").list_watch(namespace=namespace))
    informer.start()
    try:
        informer.wait_for_sync(timeout=30)
        for name, disturb in [("a", cluster.drop_watches), ("b", cluster.compact)]:
            add(api, maps, name)
            disturb()
            add(api, maps, f"{name}-later")
            api.delete(f"{maps}/{name}")
            present = api.get(maps).names
            eventually(lambda names=present: sorted(each.name for each in informer.indexer.list()) == names)
    finally:
        assert informer.stop(timeout=10)


@pytest.mark.slow
def test_a_reader_that_stops_reading_slows_nobody_and_is_cut_off(api: Api, maps: str) -> None:
    begin = start(api, maps)
    rounds, size, longer_than_the_patience_of_the_server = 250, 100_000, 4.0
    with ThreadPoolExecutor(1) as pool, connect(api, f"{maps}?watch=true&resourceVersion={begin}") as stuck:
        assert stuck.recv(15) == b"HTTP/1.1 200 OK"
        seen = pool.submit(api.watch(maps, resourceVersion=begin).seen, rounds + 1)
        began = time.monotonic()
        add(api, maps, "a")
        for number in range(rounds):
            assert api.patch(f"{maps}/a", {"data": {"x": f"{number}" + "y" * size}}).status == 200
        assert len(seen.result(timeout=60)) == rounds + 1
        time.sleep(max(0.0, began + longer_than_the_patience_of_the_server - time.monotonic()))
        received, ended = drained(stuck)
    assert ended
    assert received < rounds * size, "it was not cut off"


def connect(api: Api, path: str) -> socket.socket:
    """A connection that has asked for `path` and has little room for the answer."""
    scheme, _, host = api.address.partition("://")
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(30)
    plain.connect((host.rpartition(":")[0], int(host.rpartition(":")[2])))
    connection = plain
    if scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = context.wrap_socket(plain)
    headers = "".join(f"{name}: {value}\r\n" for name, value in api.credentials.items())
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
    return connection


def drained(connection: socket.socket) -> tuple[int, bool]:
    """How many bytes are still to be had, and whether it came to an end."""
    count = 0
    try:
        while data := connection.recv(1 << 20):
            count += len(data)
            if data.endswith(b"0\r\n\r\n"):
                break
    except TimeoutError:
        return count, False
    except OSError:
        pass
    return count, True
