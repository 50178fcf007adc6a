"""Public bug reports about informers, in Go and in other languages: what was reported there cannot happen here.

`ELSEWHERE` says which rule of the other test files holds each of them off; those below have tests of their own. The
second half are the faults of the official Python client's informer (37.0), by what a user sees of them.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import threading
from pathlib import Path

import pytest

from informers import Client, ProtocolConfig, SharedInformer
from informers.testing import FakeListWatch, HistoryChecker

PROTOCOL, REFLECTOR, INFORMER, LIFE = "test_protocol", "test_reflector", "test_shared_informer", "test_informer_life"

ELSEWHERE = {
    "kubernetes#65012, client-go#374: after a network failure a watch is dead, and nobody notices":
        f"{REFLECTOR}.test_a_silent_stream_is_closed_and_opened_again",
    "external-dns#1458: a broken stream has no time-out":
        "http/test_watch.test_a_server_that_outlives_its_time_is_taken_for_dead",
    "kubernetes#140890, #139716, #135895, #129408, openyurt#2745: a server that never ends the streamed list hangs all":
        "http/test_streamed_lists.test_what_one_reader_found_out_the_next_one_knows",
    "kubernetes-client/python#868, #819, #2223, #728, #700: a watch that fails loses events, or hangs":
        f"{REFLECTOR}.test_after_any_failure_the_sink_equals_the_source",
    "kopf#585, #787, #996, #1145, #957, #1276: operators are told nothing after some hours":
        "test_informer_status.test_a_server_that_went_silent_is_noticed_said_and_lags_until_it_speaks",
    "fabric8#1782, #2994, javascript#494, kube-rs#117: no deletes are told after a list":
        f"{INFORMER}.test_a_gap_with_a_delete_gives_the_last_known_state",
    "java#666, javascript#596, kube-rs#1209: a failing server is asked without a pause":
        "test_protocol_pace.test_no_server_is_asked_in_a_loop",
    "client-go#904, kdashboard#59, kubernetes_asyncio#327: 410 on connect is met with the same version for ever":
        f"{PROTOCOL}.test_410_relists_whether_it_comes_on_connect_or_in_the_stream",
    "fabric8#2612, aws-iam-authenticator#523, java#616: an expired token is used for ever":
        "http/test_config.test_refused_credentials_are_loaded_again_once",
    "kubernetes#91073, #94316, #107133: a version from a newer server is too large for ever":
        f"{PROTOCOL}.test_a_version_of_no_use_to_the_server_makes_the_next_list_consistent_at_once",
    "kubernetes#83810: an object is missing after it was deleted and listed":
        "test_delta_fifo.test_replace_with_a_delete_delta_in_the_queue_loses_neither",
    "kubernetes#86015, fabric8#7899: nobody can tell a list from a resync":
        f"{INFORMER}.test_a_relist_delivers_only_what_changed",
    "kubernetes#124337, client-go#1348: a resync transforms again":
        "test_delta_fifo.test_the_transform_runs_once_on_entry_and_not_on_tombstones_or_sync",
    "kubernetes#27004, #27984: a stale update after the delete": "test_event_rules.test_rule",
    "kubernetes#133565, #22878, ovn-kubernetes#3252: a re-created object is told as an update":
        f"{INFORMER}.test_deleted_and_recreated_in_a_gap_is_a_delete_and_an_add_and_the_cache_holds_the_new_one",
    "fabric8#3969, client-go#529, #902: unchanged objects are told of after a list":
        f"{INFORMER}.test_a_relist_delivers_only_what_changed",
    "fabric8#2812: a resync lists": f"{LIFE}.test_each_handler_is_resynced_at_its_own_period",
    "kuma#17065, calico#12741: OnDelete is given something that is no object":
        "test_handlers.test_each_event_calls_its_function_and_on_event",
    "controller-runtime#1464, #403, #343, #1622, kuberay#715: the cache does not have what was just written":
        f"{LIFE}.test_wait_for_reads_your_writes",
    "kubernetes#137314, client-go#1326, #121474, #89880: a slow handler takes all memory":
        f"{INFORMER}.test_a_slow_handler_is_bounded_and_holds_up_nobody",
    "kubernetes#136509, #137282: adding a handler and stopping wait for each other":
        f"{LIFE}.test_handlers_may_come_and_go_while_events_flow",
    "kubernetes#93641: a handler that failed once is never called again":
        f"{INFORMER}.test_an_exception_in_a_handler_is_counted_and_ends_nothing",
    "kubernetes#129024: a handler that failed on an initial object never syncs":
        "test_informer_upstream_cases.test_a_handler_that_always_fails_is_told_of_everything",
    "client-go#675, kubernetes#92777, #118482: an informer asked for after the start never runs":
        "test_factory.test_informers_asked_for_after_the_start_run_at_once",
    "kubernetes#84959: empty index values are kept":
        "test_indexer.test_the_last_key_of_a_value_takes_the_value_with_it",
    "controller-runtime#1653, kubeswift#460: a missing right hangs the start without a word":
        "test_informer_status.test_who_waits_for_sync_logs_why_every_ten_seconds_and_learns_since_when",
    "kubernetes#87794, #15683, #6770, controller-runtime#647: all come back, or resync, at one moment":
        "test_backoff.test_the_wait_doubles_from_base_to_cap_and_stays_there",
    # kubernetes.informer.SharedInformer
    "python: 45 requests in 2 s where each watch is refused": "test_protocol_pace.test_no_server_is_asked_in_a_loop",
    "python: 6,901 requests in 2 s where each watch ends at once":
        f"{PROTOCOL}.test_a_server_that_ends_each_answer_at_once_is_never_asked_in_a_loop",
    "python: 16 lists in 2 s where each stream says 410": f"{PROTOCOL}.test_410_after_410_backs_off",
    "python: one unreadable event is fetched for ever, and nothing after it":
        "test_informer_status.test_what_could_not_be_read_is_counted_and_named",
    "python: one list of everything, without pages": f"{REFLECTOR}.test_pages_are_of_the_size_asked_for",
    "python: bookmarks and time-outs are not asked for": "http/test_watch.test_options_are_sent_as_the_api_names_them",
    "python: a resync tells of everything by a new list": f"{LIFE}.test_each_handler_is_resynced_at_its_own_period",
    "python: deletes are told before the cache knows": f"{INFORMER}.test_the_cache_is_ahead_of_the_handler",
    "python: a late handler is not told of what is there":
        f"{INFORMER}.test_a_late_handler_sees_everything_and_misses_nothing",
    "python: stop() from a handler raises": f"{LIFE}.test_a_handler_may_stop_its_informer",
    "python: stop() waits for a list in flight": "test_informer_http.test_stop_ends_a_request_that_gets_no_answer",
    "python: a stop may be lost between two watches":
        f"{REFLECTOR}.test_a_stop_while_the_watch_is_opened_closes_it",
    "python: one slow handler holds the watch up": f"{INFORMER}.test_a_slow_handler_is_bounded_and_holds_up_nobody",
    "python: after a lost version the world is added again":
        f"{PROTOCOL}.test_synthetic_added_events_do_not_move_the_version",
    "python: who changes an object changes the cache": "test_object.test_nothing_in_it_can_be_changed",
}  # fmt: skip

TESTS = Path(__file__).parent


@pytest.mark.parametrize("report", ELSEWHERE)
def test_a_rule_holds_it_off(report: str) -> None:
    file, name = ELSEWHERE[report].rsplit(".", 1)
    text = (TESTS / f"{file}.py").read_text()
    assert re.search(rf"^def {name}\(", text, re.MULTILINE), ELSEWHERE[report]


def test_watches_that_end_in_time_are_not_worth_a_word(informers, pod, caplog):
    """kubernetes#102464: a front end that ends watches each minute fills the log with errors."""
    caplog.set_level(logging.INFO)
    source = FakeListWatch([pod("a")])
    informer, checker = informers(source), HistoryChecker()
    informer.add_event_handler(on_event=checker)
    informer.start()
    checker.wait_for(lambda: source.objects().values())
    for count in range(2, 8):
        source.add(pod(f"p{count}"))
        checker.wait_for(lambda: source.objects().values())
        source.drop_watches()
        source.wait_for_requests("watch", count)
    assert [record.message for record in caplog.records if record.name.startswith("informers")] == []


# ---- what servers and their users put into answers


def item(name: str, version: str, **members: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": version}, **members}


BAD_ITEMS = [
    {"metadata": {"name": "no-uid-text", "namespace": "ns", "uid": 5}},
    {"spec": {}},
    {"metadata": None},
    {"metadata": {"namespace": "ns"}},
    None,
    "text",
    [],
]
ODD_BUT_GOOD = [
    item("null-lists", "x1", spec={"containers": None, "subsets": None}, status=None),
    item("unknown", "x2", whatIsThis={"a": [None, {"b": 1e300}]}, spec={"containers": []}),
    item("annotated", "x3")
    | {"metadata": item("annotated", "x3")["metadata"] | {"annotations": {"a": None}, "finalizers": None}},  # type: ignore[operator]
]
BAD_EVENTS = [
    b"{",
    b"not json at all",
    b"null",
    b'{"type":"MODIFIED"}',
    b'{"type":"ADDED","object":null}',
    b'{"type":"ADDED","object":{"metadata":{}}}',
    b'{"type":"MODIFIED","object":{"metadata":{"name":"annotated","namespace":"ns","uid":[]}}}',
    b'{"type":7,"object":{"metadata":{"name":"x"}}}',
    b"\xff\xfe",
]


def event(kind: str, obj: object) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode()


@pytest.fixture
def odd_server():
    """A server whose versions are no numbers, with bad items in its list and bad events before each good one."""
    discovery = {"resources": [{"name": "pods", "namespaced": True, "kind": "Pod", "verbs": ["list", "watch"]}]}
    listed = {"kind": "PodList", "metadata": {"resourceVersion": "list-1"}, "items": [*BAD_ITEMS, *ODD_BUT_GOOD]}
    events = [
        *BAD_EVENTS,
        event("MODIFIED", item("unknown", "x4", padding="x" * 3_000_000)),
        *BAD_EVENTS,
        event("SOMETHING NEW", item("unknown", "x5")),
        event("DELETED", item("null-lists", "x6")),
        event("ADDED", item("last", "x7")),
    ]
    stop = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as file:
            while path := file.readline().decode().partition(" ")[2]:
                while file.readline().strip():
                    pass
                if "watch=" in path:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    for line in events:
                        connection.sendall(b"%x\r\n%b\n\r\n" % (len(line) + 1, line))
                    stop.wait(60)
                    return
                body = json.dumps(listed if "pods" in path else discovery).encode()
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    def accept() -> None:
        while not stop.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=answer, args=(connection,)))
            threads[-1].start()

    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept)
        accepting.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        stop.set()
        listener.shutdown(socket.SHUT_RDWR)
    for thread in (accepting, *threads):
        thread.join(10)
        assert not thread.is_alive()


def test_whatever_is_in_an_answer_what_follows_is_delivered(odd_server):
    """python#376, #627, #2214, and what pydantic refuses: null lists, null annotations, unknown members."""
    checker, told = HistoryChecker(), threading.Event()
    with Client.from_url(odd_server) as client:
        informer = SharedInformer(client.resource("v1", "Pod").list_watch(), protocol=ProtocolConfig(watch_list=False))
        informer.add_event_handler(on_event=checker)
        informer.add_event_handler(on_add=lambda obj, is_initial: obj.name == "last" and told.set())
        informer.start()
        assert told.wait(20), informer.status()
        assert sorted(obj.name for obj in informer.lister.list()) == ["annotated", "last", "unknown"]
        large = informer.lister.get("ns/unknown")
        assert len(large["padding"]) == 3_000_000
        assert large.kind == "Pod"
        status = informer.status()
        assert status.unreadable == len(BAD_ITEMS) + 2 * len(BAD_EVENTS)
        assert status.last_unreadable
        assert status.internal_errors == 0
        assert status.sources[0].resource_version == "x7"
        assert informer.stop(10)
    checker.check()
