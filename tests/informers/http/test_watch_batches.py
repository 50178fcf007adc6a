"""A watch read in batches: all that has come at once, in order; what ends it is told after what came before."""

from __future__ import annotations

import json

import pytest

from informers import ExpiredError, MalformedResponseError


def line(kind: str, name: str, version: int) -> bytes:
    metadata = {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"metadata": metadata}}).encode() + b"\n"


def chunks(*payloads: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(payload), payload) for payload in payloads)


@pytest.fixture
def read(serve, connect):
    """read(bytes) -> the stream of a watch whose chunks arrive in one piece."""
    streams = []

    def open_(data: bytes):
        def handle(connection, request):
            connection.start_chunks()
            connection.send(data)
            connection.wait_for_end()

        stream = connect(serve(handle)).resource("v1", "Pod").watch(resource_version="1")
        streams.append(stream)
        return stream

    yield open_
    for stream in streams:
        stream.close()


def batches(stream) -> list[str]:
    found = []
    while batch := stream.read_batch():
        found.extend(f"{event.type} {event.object.name}@{event.object.resource_version}" for event in batch)
    return found


END = b"0\r\n\r\n"


@pytest.mark.parametrize(
    "framed",
    [
        lambda lines: chunks(*lines),
        lambda lines: chunks(b"".join(lines)),
        lambda lines: chunks(*[b"".join(lines)[at : at + 7] for at in range(0, len(b"".join(lines)), 7)]),
        lambda lines: chunks(*[lines[0] + lines[1][:9], lines[1][9:], *lines[2:]]),
        lambda lines: b"".join(b"%X;x=1\r\n%b\r\n" % (len(each), each) for each in lines),
    ],
    ids=["a chunk a line", "one chunk", "tiny chunks", "a line across chunks", "chunks with extensions"],
)
def test_every_event_comes_once_and_in_order_however_they_are_framed(read, framed):
    lines = [line("MODIFIED", "a", version) for version in range(2, 200)]
    lines.insert(50, b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"50"}}}\n')
    expected = [f"MODIFIED a@{version}" for version in range(2, 200)]
    expected.insert(50, "BOOKMARK @50")
    assert batches(read(framed(lines) + END)) == expected


def test_an_unreadable_event_is_left_out_and_counted(read):
    stream = read(chunks(line("ADDED", "a", 2), b"no json\n", line("ADDED", "b", 3)) + END)
    assert batches(stream) == ["ADDED a@2", "ADDED b@3"]
    assert stream.unreadable == 1


def test_the_error_that_ends_a_stream_comes_after_the_events_before_it(read):
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    error = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    stream = read(chunks(line("ADDED", "a", 2), error))
    assert [event.object.name for event in stream.read_batch()] == ["a"]
    for _ in range(2):
        with pytest.raises(ExpiredError, match="too old"):
            stream.read_batch()


def test_an_unreadable_deletion_comes_after_the_events_before_it(read):
    stream = read(chunks(line("ADDED", "a", 2), b'{"type":"DELETED","object":{"metadata":{"name":"b","uid":5}}}\n'))
    assert [event.object.name for event in stream.read_batch()] == ["a"]
    with pytest.raises(MalformedResponseError, match="deletion of b"):
        stream.read_batch()


def test_a_closed_stream_has_no_more_batches(read):
    stream = read(chunks(line("ADDED", "a", 2)))
    assert stream.read_batch()
    stream.close()
    assert stream.read_batch() == []
