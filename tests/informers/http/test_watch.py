"""Watches over real sockets: events as they come, lines of any length, an end from any thread, honest failures."""

import itertools
import json
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from informers import (
    ClientClosed,
    ConnectionReset,
    ExpiredError,
    ForbiddenError,
    KindNotFoundError,
    MalformedResponseError,
    RequestTimeout,
)
from informers.chunks import Dechunker
from informers.watch import Lines


def line(kind="ADDED", name="a", version="1", **extra):
    metadata = {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": version}
    return json.dumps({"type": kind, "object": {"kind": "Pod", "metadata": metadata, **extra}}).encode() + b"\n"


def stream_of(*pieces, end=b"0\r\n\r\n"):
    """A handler that sends these pieces as chunks, then the end, and keeps the connection open."""

    def handle(connection, request):
        connection.start_chunks()
        for piece in pieces:
            connection.chunk(piece)
        connection.send(end)
        connection.wait_for_end()

    return handle


def pods(connect, server):
    return connect(server).resource("v1", "Pod")


def test_events_come_in_order_and_the_stream_ends_with_the_answer(serve, connect):
    server = serve(stream_of(line(), line("MODIFIED", version="2"), line("BOOKMARK", "", "9")))
    with pods(connect, server).watch(resource_version="0") as stream:
        seen = [(event.type, event.object.resource_version) for event in stream]
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("BOOKMARK", "9")]


def test_options_are_sent_as_the_api_names_them(serve, connect):
    server = serve(stream_of())
    resource = pods(connect, server)
    list(
        resource.watch(
            namespace="ns", label_selector="a=b", field_selector="metadata.name=x", resource_version="5",
            timeout_seconds=7.4, send_initial_events=True,
        )
    )  # fmt: skip
    path, _, query = server.asked[-1].path.partition("?")
    assert path == "/api/v1/namespaces/ns/pods"
    assert sorted(query.split("&")) == [
        "allowWatchBookmarks=true", "fieldSelector=metadata.name%3Dx", "labelSelector=a%3Db", "resourceVersion=5",
        "resourceVersionMatch=NotOlderThan", "sendInitialEvents=true", "timeoutSeconds=7", "watch=true",
    ]  # fmt: skip
    list(resource.watch(allow_bookmarks=False))
    assert server.asked[-1].path == "/api/v1/pods?watch=true"


def test_lines_may_be_of_any_length_and_cut_anywhere(serve, connect):
    big = line(name="big", data="x" * 3_000_000)
    whole = line() + big + line(name="c")
    server = serve(stream_of(*(whole[at : at + 70_001] for at in range(0, len(whole), 70_001))))
    events = list(pods(connect, server).watch())
    assert [event.object.name for event in events] == ["a", "big", "c"]
    assert len(events[1].object["data"]) == 3_000_000


def test_an_answer_without_chunks_is_read_to_its_end(serve, connect):
    def handle(connection, request):
        connection.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + line() + line(name="b"))
        connection.close()

    assert [event.object.name for event in pods(connect, serve(handle)).watch()] == ["a", "b"]


def test_close_from_another_thread_ends_a_read_that_waits(serve, connect):
    stream = pods(connect, serve(stream_of(line(), end=b""))).watch()
    assert next(stream).object.name == "a"
    timer = threading.Timer(0.2, stream.close)
    timer.start()
    started = time.monotonic()
    assert list(stream) == []
    assert time.monotonic() - started < 0.2 + 0.1 + 0.2  # the timer's wait, the promise, a loaded machine
    timer.join()
    stream.close()
    assert list(stream) == []


def test_close_before_the_first_read(serve, connect):
    stream = pods(connect, serve(stream_of(line()))).watch()
    stream.close()
    assert list(stream) == []


def test_closing_the_client_ends_its_watches(serve, connect):
    client = connect(serve(stream_of(line(), end=b"")))
    stream = client.resource("v1", "Pod").watch()
    next(stream)
    timer = threading.Timer(0.1, client.close)
    timer.start()
    with pytest.raises(ClientClosed):
        next(stream)
    timer.join()


def test_an_error_event_is_raised_and_ends_the_stream(serve, connect):
    status = {"type": "ERROR", "object": {"kind": "Status", "reason": "Expired", "message": "too old", "code": 410}}
    stream = pods(connect, serve(stream_of(line(), json.dumps(status).encode() + b"\n", end=b""))).watch()
    assert next(stream).type == "ADDED"
    with pytest.raises(ExpiredError, match="too old"):
        next(stream)
    assert list(stream) == []


def test_an_unreadable_event_is_counted_and_left_out(serve, connect, caplog):
    bad = b'{"type":"MODIFIED","object":{"metadata":{"name":"bad","namespace":"ns","uid":5}}}\n'
    stream = pods(connect, serve(stream_of(line(), bad, b"not json\n", b"\n", line(name="b")))).watch()
    assert [event.object.name for event in stream] == ["a", "b"]
    assert stream.unreadable == 2
    assert stream.last_unreadable == "unknown of something without a readable key"
    assert "ns/bad" in caplog.text


def drop(*pieces):
    def handle(connection, request):
        connection.start_chunks()
        for piece in pieces:
            connection.chunk(piece)
        connection.close()

    return handle


def test_a_stream_that_is_cut_off_is_no_end(serve, connect):
    stream = pods(connect, serve(drop(line()))).watch()
    assert next(stream).object.name == "a"
    with pytest.raises(ConnectionReset, match="before the answer was whole"):
        next(stream)
    assert list(stream) == []


def test_half_an_event_is_no_event(serve, connect):
    stream = pods(connect, serve(stream_of(line(), line(name="b")[:-20]))).watch()
    assert next(stream).object.name == "a"
    with pytest.raises(ConnectionReset):
        next(stream)


@pytest.mark.parametrize("garbage", [b"zz\r\n{}\r\n", b"-5\r\n", b"\r\n", b"x" * 5000])
def test_what_is_no_chunk_is_told(serve, connect, garbage):
    stream = pods(connect, serve(stream_of(end=garbage))).watch()
    with pytest.raises(MalformedResponseError):
        next(stream)


def test_a_server_that_outlives_its_time_is_taken_for_dead(serve, connect, monkeypatch):
    monkeypatch.setattr("informers.watch._GRACE", -0.7)
    stream = pods(connect, serve(stream_of(line(), end=b""))).watch(timeout_seconds=1)
    assert next(stream).object.name == "a"
    with pytest.raises(RequestTimeout):
        next(stream)


def test_the_opening_has_a_deadline_the_stream_has_not(serve, connect):
    def handle(connection, request):
        connection.start_chunks()
        connection.server.stopping.wait(0.5)
        connection.chunk(line())
        connection.send(b"0\r\n\r\n")

    assert [event.object.name for event in pods(connect, serve(handle)).watch(timeout=0.3)] == ["a"]


def test_a_server_that_does_not_open_the_stream_in_time(serve, connect):
    with pytest.raises(RequestTimeout):
        pods(connect, serve(lambda connection, request: connection.wait_for_end())).watch(timeout=0.3)


@pytest.mark.parametrize(
    ("code", "body", "error"),
    [
        (403, {"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}, ForbiddenError),
        (410, {"kind": "Status", "reason": "Expired", "message": "no", "code": 410}, ExpiredError),
        (404, b"404 page not found", KindNotFoundError),
    ],
)
def test_a_refused_watch_raises_at_once(serve, connect, code, body, error):
    server = serve(lambda connection, request: connection.answer(body, code))
    with pytest.raises(error):
        pods(connect, server).watch()


def test_a_compressed_stream_is_refused(serve, connect):
    def handle(connection, request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n")
        connection.close()

    with pytest.raises(MalformedResponseError, match="compressed"):
        pods(connect, serve(handle)).watch()


def test_metadata_only_asks_for_it(serve, connect):
    def handle(connection, request):
        partial = b'{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'
        connection.start_chunks()
        connection.chunk(partial + b'"metadata":{"name":"a"}}}\n')
        connection.send(b"0\r\n\r\n")

    server = serve(handle)
    (event,) = pods(connect, server).watch(metadata_only=True)
    assert (event.object.kind, event.object.api_version) == ("Pod", "v1")
    assert "as=PartialObjectMetadata;" in server.asked[-1].headers["accept"]


def chunked(payload, sizes):
    at, found = 0, b""
    for size in sizes:
        piece, at = payload[at : at + size], at + size
        if piece:
            found += f"{len(piece):x}".encode() + b";ext=1\r\n" + piece + b"\r\n"
    return found + b"0\r\n\r\n"


def pieces_of(data, cuts):
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


@given(st.binary(max_size=200), st.lists(st.integers(1, 50), max_size=20), st.lists(st.integers(0, 400), max_size=12))
def test_chunks_are_taken_apart_wherever_the_socket_cuts(payload, sizes, cuts):
    sizes = [*sizes, len(payload) + 1]
    decoder = Dechunker()
    found = [piece for data in pieces_of(chunked(payload, sizes), cuts) for piece in decoder.feed(data)]
    assert b"".join(found) == payload
    assert all(found)
    assert decoder.finished


@given(
    st.lists(st.binary(max_size=20).map(lambda text: text.replace(b"\n", b"")), max_size=6),
    st.lists(st.integers(0, 120)),
)
def test_lines_are_whole_wherever_the_pieces_end(texts, cuts):
    lines = Lines()
    data = b"\n".join([*texts, b"rest"])
    found = [one for piece in pieces_of(data, cuts) for one in lines.feed(piece)]
    assert [one.removesuffix(b"\n") for one in found] == [text for text in texts if text]
    assert lines.pending == b"rest"


def answered_with(head, body):
    """A handler that gives one whole answer and keeps the connection open."""

    def handle(connection, request):
        connection.send(b"HTTP/1.1 " + head + f"\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        connection.wait_for_end()

    return handle


def test_an_answer_of_a_given_length_ends_there_though_the_connection_stays_open(serve, connect):
    body = line() + line(name="b")
    server = serve(answered_with(b"200 OK\r\nContent-Type: application/json", body))
    assert [event.object.name for event in pods(connect, server).watch()] == ["a", "b"]


def test_an_answer_that_is_shorter_than_it_says_was_cut_off(serve, connect):
    def handle(connection, request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + line())
        connection.close()

    stream = pods(connect, serve(handle)).watch()
    assert next(stream).object.name == "a"
    with pytest.raises(ConnectionReset):
        next(stream)


@pytest.mark.parametrize(
    ("head", "body", "message"),
    [
        (b"200 OK\r\nContent-Type: text/html", b"<html>\n</html>\n", "comes as text/html"),
        (b"204 No Content", b"", "status 204"),
        (b"202 Accepted", b"{}", "status 202"),
    ],
)
def test_what_is_no_stream_is_refused_when_it_is_opened(serve, connect, head, body, message):
    with pytest.raises(MalformedResponseError, match=message):
        pods(connect, serve(answered_with(head, body))).watch()


@pytest.mark.parametrize("chunks", [True, False])
def test_a_line_that_never_ends_is_given_up(serve, connect, monkeypatch, chunks):
    monkeypatch.setattr("informers.watch._LONGEST_LINE", 100_000)

    def handle(connection, request):
        if chunks:
            connection.start_chunks()
        else:
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            (connection.chunk if chunks else connection.send)(b" " * 10_000)

    stream = pods(connect, serve(handle)).watch()
    with pytest.raises(MalformedResponseError, match="100000 bytes"):
        next(stream)


def test_a_deletion_that_cannot_be_read_is_an_error_since_only_a_new_list_tells_what_is_gone(serve, connect):
    bad = b'{"type":"DELETED","object":{"metadata":{"name":"bad","namespace":"ns","uid":5}}}\n'
    stream = pods(connect, serve(stream_of(line(), bad, line(name="b")))).watch()
    assert next(stream).object.name == "a"
    with pytest.raises(MalformedResponseError, match="deletion of ns/bad"):
        next(stream)
    assert list(stream) == []
