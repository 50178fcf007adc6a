"""One reader finds out that a server does not stream lists of a resource; the others of that client need not."""

from __future__ import annotations

import json

import pytest

from informers import ProtocolConfig, SharedInformer
from informers.backoff import BackoffConfig

QUICK = ProtocolConfig(backoff=BackoffConfig(base=0.01, cap=0.1), initial_silence=0.2)
EMPTY = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": []}
INVALID = {"kind": "Status", "status": "Failure", "code": 422, "reason": "Invalid", "message": "sendInitialEvents"}


def refuse(connection):
    connection.answer(INVALID, 422)


def say_nothing(connection):
    connection.start_chunks()
    connection.wait_for_end()


def cut(connection):
    connection.start_chunks()
    connection.close()


def end_bookmark_without_its_mark(connection):
    connection.start_chunks()
    metadata = {"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "yes"}}
    connection.chunk(json.dumps({"type": "BOOKMARK", "object": {"metadata": metadata}}).encode() + b"\n")
    connection.wait_for_end()


@pytest.fixture
def informers_of():
    made = []

    def make(client, **scope):
        informer = SharedInformer(client.resource("v1", "Pod").list_watch(**scope), protocol=QUICK)
        made.append(informer)
        informer.start()
        informer.wait_for_sync(20)
        return informer

    yield make
    for informer in made:
        assert informer.stop(10)


@pytest.mark.parametrize("streams", [refuse, say_nothing, end_bookmark_without_its_mark])
def test_what_one_reader_found_out_the_next_one_knows(serve, connect, informers_of, streams):
    def handle(connection, request):
        if "sendInitialEvents" in request.path:
            streams(connection)
        elif "watch=" in request.path:
            connection.start_chunks()
            connection.wait_for_end()
        else:
            connection.answer(EMPTY)

    server = serve(handle)
    client = connect(server)
    first = informers_of(client, label_selector="app=x")
    assert not first.status().sources[0].watch_list
    before = len(server.asked)
    second = informers_of(client, namespace="ns")
    assert not second.status().sources[0].watch_list
    assert not [request.path for request in server.asked[before:] if "sendInitialEvents" in request.path]
    informers_of(connect(server))
    assert [request.path for request in server.asked if "sendInitialEvents" in request.path][1:], "another client asks"


def test_one_cut_is_no_finding(serve, connect, informers_of):
    streams = []

    def handle(connection, request):
        if "sendInitialEvents" in request.path:
            streams.append(request.path)
            cut(connection)
        elif "watch=" in request.path:
            connection.start_chunks()
            connection.wait_for_end()
        else:
            connection.answer(EMPTY)

    client = connect(serve(handle))
    assert informers_of(client).status().sources[0].watch_list
    assert informers_of(client).status().sources[0].watch_list
    assert len(streams) == 2
