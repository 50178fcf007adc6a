"""One request, one deadline, no hidden retry; errors that say what happened and whether a write may be applied."""

import errno
import socket
import threading
import time

import pytest

from informers import (
    BadRequestError,
    ClientClosed,
    ConnectionRefused,
    ConnectionReset,
    DnsError,
    InternalError,
    KindNotFoundError,
    MalformedResponseError,
    NotFoundError,
    ObjectKey,
    RequestTimeout,
    ServiceUnavailableError,
    TooManyRequestsError,
    TransportError,
)
from informers.errors import UnauthorizedError

POD = {"metadata": {"name": "a", "namespace": "ns"}}
STORED = {"apiVersion": "v1", "kind": "Pod", "metadata": {**POD["metadata"], "uid": "u", "resourceVersion": "1"}}


def status(code, reason, message="no", **details):
    return {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


def elapsed(call):
    start = time.monotonic()
    call()
    return time.monotonic() - start


def test_a_request_and_its_answer(serve, connect, traces):
    server = serve(lambda connection, request: connection.answer(STORED))
    pods = connect(server).resource("v1", "Pod")
    obj = pods.get("ns/a")
    assert (obj.key, obj.uid) == (ObjectKey("ns", "a"), "u")
    assert [request.path for request in server.asked] == ["/api/v1", "/api/v1/namespaces/ns/pods/a"]
    assert server.connections == 1
    assert (traces[-1].method, traces[-1].status, traces[-1].attempt, traces[-1].verb) == ("GET", 200, 1, "get")
    assert traces[-1].received_bytes > 50


def test_names_are_quoted_in_paths(serve, connect):
    server = serve(lambda connection, request: connection.answer(STORED))
    connect(server).resource("v1", "Node").get(ObjectKey("", "a b/../c?d"))
    assert server.asked[-1].path == "/api/v1/nodes/a%20b%2F..%2Fc%3Fd"


def test_nothing_listens(connect):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(ConnectionRefused, match="refused") as caught:
        connect(url).resource("v1", "Pod").get("ns/a")
    assert url in str(caught.value)
    assert caught.value.address == url
    assert caught.value.retriable
    assert not caught.value.maybe_applied


def test_a_host_that_cannot_be_reached_is_no_timeout(connect, monkeypatch):
    def unreachable(*arguments, **options):
        raise OSError(errno.EHOSTUNREACH, "No route to host")

    monkeypatch.setattr("informers.connection.create_connection", unreachable)
    with pytest.raises(TransportError, match="no connection: No route to host") as caught:
        connect("http://127.0.0.1:1").raw("GET", "/version")
    assert not isinstance(caught.value, TimeoutError)


def test_a_name_that_does_not_resolve(connect):
    with pytest.raises(DnsError, match="cannot be resolved") as caught:
        connect("http://no-such-host.invalid:6443").raw("GET", "/version")
    assert "no-such-host.invalid" in str(caught.value)


def hang(connection, request):
    connection.wait_for_end()


def drip_head(connection, request):
    while not connection.server.stopping.wait(0.05):
        connection.send(b"H" if not connection.server.stopping.is_set() else b"")


def drip_header_lines(connection, request):
    connection.send(b"HTTP/1.1 200 OK\r\n")
    while not connection.server.stopping.wait(0.05):
        connection.send(b"X-A: b\r\n")


def drip_body(connection, request):
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not connection.server.stopping.wait(0.05):
        connection.send(b"x")


def drip_chunks(connection, request):
    connection.start_chunks()
    while not connection.server.stopping.wait(0.05):
        connection.chunk(b"x")


@pytest.mark.parametrize("handler", [hang, drip_head, drip_header_lines, drip_body, drip_chunks])
def test_the_deadline_holds_however_slowly_the_server_answers(serve, connect, handler):
    client = connect(serve(handler))

    def call():
        with pytest.raises(RequestTimeout, match="no answer within the time given") as caught:
            client.raw("GET", "/x", timeout=0.4)
        assert isinstance(caught.value, TimeoutError)

    assert 0.3 < elapsed(call) < 1.5


def test_a_connection_that_timed_out_is_not_used_again(serve, connect):
    def handle(connection, request):
        if request.path == "/slow":
            connection.wait_for_end()
        connection.answer({"path": request.path})

    server = serve(handle)
    client = connect(server)
    with pytest.raises(RequestTimeout):
        client.raw("GET", "/slow", timeout=0.2)
    assert client.raw("GET", "/fast") == b'{"path": "/fast"}'
    assert server.connections == 2


def test_a_server_that_does_not_accept_connections_in_time(connect):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
            client = connect(f"http://127.0.0.1:{listener.getsockname()[1]}")
            with pytest.raises(RequestTimeout):
                client.raw("GET", "/x", timeout=0.4)
        finally:
            for filler in fillers:
                filler.close()


def test_a_reset_before_the_answer(serve, connect):
    client = connect(serve(lambda connection, request: connection.reset()))
    with pytest.raises(ConnectionReset) as caught:
        client.raw("GET", "/x")
    assert not caught.value.maybe_applied


def test_a_connection_closed_without_an_answer(serve, connect):
    client = connect(serve(lambda connection, request: connection.close()))
    with pytest.raises(ConnectionReset, match="before the answer began"):
        client.raw("GET", "/x")


def test_half_a_body(serve, connect):
    def handle(connection, request):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        connection.close()

    with pytest.raises(ConnectionReset, match="before the answer was whole"):
        connect(serve(handle)).raw("GET", "/x")


def test_half_a_chunked_body(serve, connect):
    def handle(connection, request):
        connection.start_chunks()
        connection.chunk(b"{")
        connection.close()

    with pytest.raises(ConnectionReset, match="before the answer was whole"):
        connect(serve(handle)).raw("GET", "/x")


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9\r\n", b"\x15\x03\x01\x00\x02\x02\x16\r\n\r\n"])
def test_what_answers_is_no_http_server(serve, connect, answer):
    def handle(connection, request):
        connection.send(answer)
        connection.close()

    with pytest.raises(MalformedResponseError, match="no HTTP server"):
        connect(serve(handle)).raw("GET", "/x")


@pytest.mark.parametrize(("handler", "error"), [(hang, RequestTimeout), (lambda c, r: c.reset(), ConnectionReset)])
def test_a_write_whose_answer_is_lost_may_have_been_applied(serve, connect, handler, error):
    pods = connect(serve(handler)).resource("v1", "Pod")
    with pytest.raises(error) as caught:
        pods.create(POD, timeout=0.3)
    assert caught.value.maybe_applied
    assert (caught.value.verb, caught.value.resource, caught.value.key) == ("create", "pods", ObjectKey("ns", "a"))


def test_a_write_that_was_never_sent_was_not_applied(serve, connect):
    server = serve(lambda connection, request: connection.answer(STORED))
    pods = connect(server).resource("v1", "Pod")
    pods.get("ns/a")
    server.stop()
    with pytest.raises(TransportError) as caught:
        pods.create(POD)
    assert caught.value.maybe_applied is (not isinstance(caught.value, ConnectionRefused))


def test_a_write_is_sent_once(serve, connect):
    server = serve(lambda connection, request: connection.reset())
    pods = connect(server).resource("v1", "Pod")
    with pytest.raises(ConnectionReset):
        pods.create(POD)
    assert [request.method for request in server.asked] == ["GET", "POST"]


@pytest.mark.parametrize(
    ("code", "applied"), [(500, True), (504, True), (503, True), (409, False), (422, False), (403, False)]
)
def test_an_answer_says_whether_a_write_may_have_been_applied(serve, connect, code, applied):
    server = serve(lambda connection, request: connection.answer(status(code, ""), code))
    with pytest.raises(Exception, match="no") as caught:
        connect(server).resource("v1", "Pod").create(POD)
    assert caught.value.maybe_applied is applied


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_redirects_are_refused_not_followed(serve, connect, code):
    def handle(connection, request):
        connection.answer(b"", code, headers="Location: http://elsewhere.example/\r\n")

    server = serve(handle)
    with pytest.raises(MalformedResponseError, match=r"redirects to http://elsewhere\.example/"):
        connect(server).resource("v1", "Pod").get("ns/a")
    assert len(server.asked) == 2


def test_what_the_server_asks_to_repeat_is_repeated_within_the_deadline(serve, connect, traces):
    answers = [429, 503, 200]

    def handle(connection, request):
        code = answers.pop(0)
        body = STORED if code == 200 else status(code, "TooManyRequests" if code == 429 else "ServiceUnavailable")
        connection.answer(body, code, headers="Retry-After: 0\r\n" if code == 503 else "Retry-After: 1\r\n")

    server = serve(handle)
    pods = connect(server).resource("v1", "Pod")
    assert pods.create(POD).uid == "u"
    assert [(trace.attempt, trace.status) for trace in traces[1:]] == [(1, 429), (2, 503), (3, 200)]
    assert all(request.json == server.asked[1].json for request in server.asked[2:])


def test_a_wait_beyond_the_deadline_is_not_begun(serve, connect):
    def handle(connection, request):
        connection.answer(status(429, "TooManyRequests"), 429, headers="Retry-After: 60\r\n")

    pods = connect(serve(handle)).resource("v1", "Pod")

    def call():
        with pytest.raises(TooManyRequestsError) as caught:
            pods.get("ns/a", timeout=5)
        assert caught.value.retry_after == 60

    assert elapsed(call) < 3


def test_a_server_that_is_busy_for_ever_is_not_asked_for_ever(serve, connect):
    server = serve(lambda connection, request: connection.answer(status(429, ""), 429, headers="Retry-After: 0\r\n"))
    with pytest.raises(TooManyRequestsError):
        connect(server, timeout=None).resource("v1", "Pod").get("ns/a")
    assert len(server.asked) == 11


def test_503_without_a_wish_is_not_repeated(serve, connect):
    server = serve(lambda connection, request: connection.answer(b"upstream gone", 503))
    with pytest.raises(ServiceUnavailableError, match="upstream gone"):
        connect(server).resource("v1", "Pod").get("ns/a")
    assert len(server.asked) == 2


def test_closing_the_client_ends_a_wait_that_the_server_asked_for(serve, connect):
    asked = threading.Event()

    def handle(connection, request):
        connection.answer(status(429, ""), 429, headers="Retry-After: 60\r\n")
        asked.set()

    client = connect(serve(handle), timeout=None)
    closer = threading.Thread(target=lambda: (asked.wait(10), client.close()))
    closer.start()
    with pytest.raises(ClientClosed):
        client.raw("GET", "/x")
    closer.join()


def test_failures_that_are_no_status_are_still_errors(serve, connect):
    server = serve(lambda connection, request: connection.answer(b"<html>bad gateway</html>", 500))
    with pytest.raises(InternalError, match="bad gateway"):
        connect(server).raw("GET", "/x")


def test_plain_http_to_a_tls_port_tells_what_the_server_said(serve, connect):
    server = serve(
        lambda connection, request: connection.answer(b"Client sent an HTTP request to an HTTPS server.\n", 400)
    )
    with pytest.raises(BadRequestError, match="HTTPS server"):
        connect(server).raw("GET", "/x")


def test_an_object_that_is_not_there_and_a_kind_that_is_not_served_are_told_apart(serve, connect):
    def handle(connection, request):
        named = request.path.endswith("/a")
        body = status(404, "NotFound", name="a", kind="pods") if named else b"404 page not found\n"
        connection.answer(body, 404)

    server = serve(handle)
    client = connect(server)
    pods = client.resource("v1", "Pod")
    with pytest.raises(NotFoundError) as caught:
        pods.get("ns/a")
    assert not isinstance(caught.value, KindNotFoundError)
    with pytest.raises(KindNotFoundError):
        pods.list()
    with pytest.raises(KindNotFoundError):
        pods.list()
    assert [request.path for request in server.asked].count("/api/v1") == 2  # looked up again after it was gone


def test_a_kind_that_is_missing_is_asked_for_again(serve, connect):
    served = []

    def handle(connection, request):
        if request.path == "/apis/x.io/v1" and served:
            connection.answer({"resources": [{"name": "foos", "kind": "Foo", "namespaced": True, "verbs": []}]})
        elif request.path.startswith("/apis/x.io/v1/"):
            connection.answer({"metadata": {}, "items": []})
        else:
            connection.answer(b"404 page not found", 404)

    foos = connect(serve(handle)).resource("x.io/v1", "Foo")
    with pytest.raises(KindNotFoundError, match=r"Foo in x\.io/v1"):
        foos.list()
    served.append(True)
    assert len(foos.list()) == 0


def test_an_answer_that_is_no_json(serve, connect):
    client = connect(serve(lambda connection, request: connection.answer(b"<html>login here</html>")))
    with pytest.raises(MalformedResponseError, match="login here"):
        client.resource("v1", "Pod").get("ns/a")
    with pytest.raises(MalformedResponseError, match="login here"):
        client.resource("v1", "Pod").list()


def test_a_closed_client_says_so(serve, connect):
    client = connect(serve(lambda connection, request: connection.answer(STORED)))
    client.raw("GET", "/x")
    client.close()
    client.close()
    with pytest.raises(ClientClosed):
        client.raw("GET", "/x")


def test_closing_the_client_ends_requests_in_flight(serve, connect):
    arrived = threading.Event()

    def handle(connection, request):
        arrived.set()
        connection.wait_for_end()

    client = connect(serve(handle), timeout=None)
    closer = threading.Thread(target=lambda: (arrived.wait(10), client.close()))
    closer.start()

    def call():
        with pytest.raises(ClientClosed):
            client.raw("GET", "/x")

    assert elapsed(call) < 5
    closer.join()


def test_the_clients_own_rate_limit_spreads_requests(serve, connect):
    server = serve(lambda connection, request: connection.answer(STORED))
    client = connect(server, qps=20, burst=2)
    assert elapsed(lambda: [client.raw("GET", "/x") for _ in range(6)]) > 0.15
    with pytest.raises(RequestTimeout, match="rate limit"):
        client.raw("GET", "/x", timeout=0.001)


def test_a_broken_tracing_hook_changes_nothing(serve):
    from informers import Client

    def hook(trace):
        raise RuntimeError("hook")

    server = serve(lambda connection, request: connection.answer(STORED))
    with Client.from_url(server.url, on_request=hook) as client:
        assert client.resource("v1", "Pod").get("ns/a").uid == "u"


def test_traces_hold_no_secrets(serve, kubeconfig, traces):
    from informers import Client

    server = serve(lambda connection, request: connection.answer(STORED))
    path = kubeconfig(server.url.replace("://", "://me:pw@"), {"token": "s3cret"})
    with Client.from_kubeconfig(path, on_request=traces.append) as client:
        client.resource("v1", "Pod").create({**POD, "data": "hidden"})
        assert "pw" not in client.server
    text = repr(traces) + repr(client)
    for secret in ("s3cret", "pw", "hidden"):
        assert secret not in text


def test_requests_name_their_sender_and_whom_they_act_for(serve, connect):
    from informers import Impersonation

    server = serve(lambda connection, request: connection.answer(STORED))
    whom = Impersonation("bob", groups=["g1", "g2"], uid="u1", extra={"a/b": "c"})
    connect(server, user_agent="me/1", impersonate=whom).raw("GET", "/x")
    headers = server.asked[-1].headers
    assert headers["user-agent"] == "me/1"
    assert headers["impersonate-user"] == "bob"
    assert headers["impersonate-group"] == "g1,g2"
    assert headers["impersonate-uid"] == "u1"
    assert headers["impersonate-extra-a%2fb"] == "c"
    connect(server).raw("GET", "/x")
    assert "pysedna" in server.asked[-1].headers["user-agent"]


def test_sockets_notice_a_dead_peer(serve, connect, monkeypatch):
    seen = {}
    original = socket.socket.setsockopt

    def setsockopt(sock, level, option, value):
        seen[level, option] = value
        return original(sock, level, option, value)

    monkeypatch.setattr(socket.socket, "setsockopt", setsockopt)
    connect(serve(lambda connection, request: connection.answer(STORED))).raw("GET", "/x")
    assert seen[socket.SOL_SOCKET, socket.SO_KEEPALIVE] == 1
    assert seen[socket.IPPROTO_TCP, socket.TCP_KEEPIDLE] == 15
    assert seen[socket.IPPROTO_TCP, socket.TCP_KEEPINTVL] == 5
    assert seen[socket.IPPROTO_TCP, socket.TCP_KEEPCNT] == 3
    assert seen[socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT] == 30_000


def test_many_threads_share_a_client(serve, connect):
    server = serve(lambda connection, request: connection.answer({**STORED, "path": request.path}))
    pods = connect(server).resource("v1", "Pod")
    wrong = []

    def ask(number):
        for turn in range(20):
            name = f"p{number}-{turn}"
            if not pods.get(f"ns/{name}")["path"].endswith(name):
                wrong.append(name)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_401_is_final_where_nothing_can_be_loaded_again(serve, connect):
    server = serve(lambda connection, request: connection.answer(status(401, "Unauthorized"), 401))
    with pytest.raises(UnauthorizedError):
        connect(server).resource("v1", "Pod").get("ns/a")
    assert len(server.asked) == 2
