"""Bodies in chunks: read whole whatever the chunks are, and the connection is good for the next request."""

from __future__ import annotations

import time

import pytest

from informers.errors import MalformedResponseError, TransportError

BODY = bytes(range(256)) * 40


def in_chunks(size: int, *, end: str = "0\r\n\r\n", extension: str = "") -> bytes:
    pieces = [BODY[at : at + size] for at in range(0, len(BODY), size)]
    return b"".join(f"{len(one):X}{extension}\r\n".encode() + one + b"\r\n" for one in pieces) + end.encode()


@pytest.mark.parametrize(
    "sent",
    [
        in_chunks(len(BODY)),
        in_chunks(1000),
        in_chunks(7, extension=";name=value"),
        in_chunks(4096, end="0;last\r\nX-Checksum: 1\r\nX-More: 2\r\n\r\n"),
    ],
    ids=["one", "some", "many with extensions", "with trailers"],
)
@pytest.mark.parametrize("pause_at", [None, 1, -1, -2, -3, -6, 5000])
def test_a_chunked_body_is_whole_and_its_connection_is_used_again(serve, connect, sent, pause_at):
    def handler(connection, request):
        connection.start_chunks()
        if pause_at is None:
            connection.send(sent)
        else:  # the rest comes in a packet of its own, nearly always: right if it does not, too
            connection.send(sent[:pause_at])
            time.sleep(0.001)
            connection.send(sent[pause_at:])

    server = serve(handler)
    client = connect(server)
    assert [client.raw("GET", f"/{number}") for number in range(3)] == [BODY] * 3
    assert server.connections == 1


@pytest.mark.parametrize("end", [b"", b"zz\r\n", b"-5\r\nabc\r\n", b"5\r\nab", b"x" * 5000])
def test_a_chunked_body_that_breaks_off_or_is_none_is_an_error(serve, connect, end):
    def handler(connection, request):
        connection.start_chunks()
        connection.chunk(BODY)
        connection.send(end)
        connection.close()

    with pytest.raises(TransportError) as caught:
        connect(serve(handler)).raw("GET", "/x")
    assert caught.value.retriable


def test_trailers_without_end_are_refused_with_their_connection(serve, connect):
    def handler(connection, request):
        connection.start_chunks()
        connection.chunk(b"{}")
        if server.connections > 1:
            connection.send(b"0\r\n\r\n")
            return
        connection.send(b"0\r\n")
        while not server.stopping.is_set():
            connection.send(b"X-Trailer: " + b"x" * 1000 + b"\r\n")

    server = serve(handler)
    client = connect(server)
    with pytest.raises(MalformedResponseError, match="trailers"):
        client.raw("GET", "/x")
    assert client.raw("GET", "/x") == b"{}"
