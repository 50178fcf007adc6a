"""A list of a reflector may be of any size: what comes at a pace is not cut off, what drips is."""

from __future__ import annotations

import json
import time
from collections import deque

import pytest

from informers import RequestTimeout, SharedInformer, SyncTimeout
from informers.protocol import ProtocolConfig

PAGED = ProtocolConfig(watch_list=False, page_size=0)


def listed(count: int) -> bytes:
    items = [
        {
            "metadata": {"name": f"p{number}", "namespace": "ns", "uid": str(number), "resourceVersion": "1"},
            "x": "x" * 1000,
        }
        for number in range(count)
    ]
    return json.dumps(
        {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": items}
    ).encode()


def in_pieces(body: bytes, size: int, pause: float):
    def handle(connection, request):
        if "watch=" in request.path:
            connection.wait_for_end()
            return
        connection.send(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        for start in range(0, len(body), size):
            if connection.server.stopping.wait(pause):
                return
            connection.send(body[start : start + size])

    return handle


def test_a_list_that_takes_longer_than_the_time_out_arrives_while_it_makes_progress(serve, connect):
    body = listed(300)
    server = serve(in_pieces(body, len(body) // 8 + 1, 0.1))  # some 40 KiB at a time: each is good for 0.6 s
    page = connect(server).resource("v1", "Pod").list_watch().list(timeout=0.4)
    assert len(page.items) == 300


def test_a_list_that_drips_ends(serve, connect):
    server = serve(in_pieces(listed(300), 1, 0.02))
    start = time.monotonic()
    with pytest.raises(RequestTimeout):
        connect(server).resource("v1", "Pod").list_watch().list(timeout=0.4)
    assert time.monotonic() - start < 10


def test_for_everybody_else_the_time_is_the_total(serve, connect):
    body = listed(300)
    server = serve(in_pieces(body, len(body) // 8 + 1, 0.1))
    with pytest.raises(RequestTimeout):
        connect(server).resource("v1", "Pod").list(timeout=0.4)


def test_a_watch_that_is_busy_does_not_outlive_its_time(serve, connect, monkeypatch):
    monkeypatch.setattr("informers.watch._GRACE", 0.2)
    line = (
        json.dumps({"type": "ADDED", "object": {"metadata": {"name": "a", "padding": "x" * 100_000}}}).encode() + b"\n"
    )

    def handle(connection, request):
        connection.start_chunks()
        while not connection.server.stopping.wait(0.01):
            connection.chunk(line)

    stream = connect(serve(handle)).resource("v1", "Pod").list_watch().watch(timeout_seconds=0.2, timeout=5.0)
    with pytest.raises(RequestTimeout):
        deque(stream, maxlen=0)


def test_an_informer_syncs_with_a_slow_and_huge_list_and_gives_up_on_a_drip(serve, connect):
    body = listed(300)
    for pieces, size in ((8, len(body) // 8 + 1), (0, 1)):
        source = connect(serve(in_pieces(body, size, 0.1))).resource("v1", "Pod").list_watch()
        informer = SharedInformer(source, protocol=PAGED, request_timeout=0.4)
        informer.start()
        if pieces:
            informer.wait_for_sync(20)
            assert len(informer.lister.list()) == 300
        else:
            with pytest.raises(SyncTimeout, match="no answer within the time given"):
                informer.wait_for_sync(1.5)
        assert informer.stop(10)
