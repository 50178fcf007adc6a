"""TLS: who is trusted, what a server that speaks none looks like, and handshakes that hang."""

import json
import socket
import struct
import threading
import time

import pytest

from informers import Client, ClientClosed, ConnectionReset, RequestTimeout, TlsError, TransportError

POD = {"metadata": {"name": "a", "namespace": "ns"}}
STORED = {"apiVersion": "v1", "kind": "Pod", "metadata": {**POD["metadata"], "uid": "u", "resourceVersion": "1"}}


def elapsed(call):
    start = time.monotonic()
    call()
    return time.monotonic() - start


def test_tls_with_the_right_authority(serve, server_tls, certificates, kubeconfig):
    server = serve(lambda connection, request: connection.answer(STORED), tls=server_tls)
    path = kubeconfig(server.url, **{"certificate-authority": str(certificates / "ca.crt")})
    with Client.from_kubeconfig(path) as client:
        assert client.resource("v1", "Pod").get("ns/a").uid == "u"


def test_tls_with_the_wrong_authority(serve, server_tls, certificates, kubeconfig):
    server = serve(lambda connection, request: connection.answer(STORED), tls=server_tls)
    path = kubeconfig(server.url, **{"certificate-authority": str(certificates / "other.crt")})
    with (
        Client.from_kubeconfig(path) as client,
        pytest.raises(TlsError, match="certificate is not accepted") as caught,
    ):
        client.resource("v1", "Pod").create(POD)
    assert server.url in str(caught.value)
    assert not caught.value.retriable
    assert not caught.value.maybe_applied


def test_tls_to_a_server_that_speaks_none(serve, kubeconfig, certificates):
    def handle(connection, request):
        connection.answer(b"what?", 400)

    server = serve(handle)
    url = server.url.replace("http:", "https:")
    path = kubeconfig(url, **{"certificate-authority": str(certificates / "ca.crt")})
    with Client.from_kubeconfig(path) as client, pytest.raises(TransportError) as caught:
        client.raw("GET", "/x", timeout=3)
    assert isinstance(caught.value, TlsError | ConnectionReset)


@pytest.mark.parametrize("read", [0, 10, 4000], ids=["at once", "in the first message", "after the first message"])
@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
def test_a_server_that_goes_away_during_the_handshake_may_come_back(kubeconfig, certificates, read, reset):
    linger = struct.pack("ii", 1, 0)

    def serve(listener):
        for _ in range(20):
            accepted, _ = listener.accept()
            with accepted:
                if read:
                    accepted.recv(read)
                if reset:
                    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        path = kubeconfig(url, **{"certificate-authority": str(certificates / "ca.crt")})
        serving = threading.Thread(target=serve, args=(listener,))
        serving.start()
        with Client.from_kubeconfig(path) as client:
            for _ in range(20):
                with pytest.raises(ConnectionReset, match="broke while connecting") as caught:
                    client.raw("GET", "/x", timeout=10)
                assert caught.value.retriable
        serving.join()


def test_a_handshake_that_hangs_ends_at_the_deadline(kubeconfig, certificates):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        path = kubeconfig(url, **{"certificate-authority": str(certificates / "ca.crt")})
        with Client.from_kubeconfig(path) as client:

            def call():
                with pytest.raises(RequestTimeout):
                    client.raw("GET", "/x", timeout=0.3)

            assert elapsed(call) < 2


def test_closing_ends_a_handshake_that_hangs(kubeconfig, certificates):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        path = kubeconfig(url, **{"certificate-authority": str(certificates / "ca.crt")})
        client = Client.from_kubeconfig(path, timeout=None)

        def accept_then_close():
            accepted, _ = listener.accept()
            with accepted:
                accepted.recv(1)
                client.close()

        closer = threading.Thread(target=accept_then_close)
        closer.start()
        with pytest.raises(ClientClosed):
            client.raw("GET", "/x")
        closer.join()


def line(name):
    event = {"type": "ADDED", "object": {"metadata": {"name": name, "namespace": "ns", "uid": name}}}
    return json.dumps(event).encode() + b"\n"


@pytest.fixture
def watch(serve, server_tls, certificates, kubeconfig):
    """The client and an open watch over TLS that has given its first event and waits for the next."""

    def handle(connection, request):
        connection.start_chunks()
        connection.chunk(line("a"))
        connection.wait_for_end()

    server = serve(handle, tls=server_tls)
    path = kubeconfig(server.url, **{"certificate-authority": str(certificates / "ca.crt")})
    with Client.from_kubeconfig(path) as client:
        stream = client.resource("v1", "Pod").watch()
        assert next(stream).object.name == "a"
        yield client, stream


def test_a_watch_is_closed_from_another_thread(watch):
    _, stream = watch
    found, ended = [], []

    def read():
        found.extend(stream)
        ended.append(time.monotonic())

    reader = threading.Thread(target=read)
    reader.start()
    reader.join(0.2)
    assert reader.is_alive(), "it waits inside the session"
    closed = time.monotonic()
    stream.close()
    reader.join(10)
    assert found == []
    assert ended[0] - closed < 0.1 + 0.2  # the promise, a loaded machine


def test_a_watch_may_be_closed_by_many_threads_at_once_and_read_meanwhile(serve, server_tls, certificates, kubeconfig):
    def handle(connection, request):
        connection.start_chunks()
        while not connection.server.stopping.is_set():
            connection.chunk(line("a") * 50)

    server = serve(handle, tls=server_tls)
    path = kubeconfig(server.url, **{"certificate-authority": str(certificates / "ca.crt")})
    with Client.from_kubeconfig(path) as client:
        for _ in range(20):
            stream = client.resource("v1", "Pod").watch()
            for _ in range(60):
                next(stream)
            closers = [threading.Thread(target=stream.close) for _ in range(4)]
            for closer in closers:
                closer.start()
            left = sum(1 for _ in stream)  # ends, without an error
            for closer in closers:
                closer.join(10)
            assert left < 10**6
            assert stream.closed


def test_closing_the_client_ends_a_watch(watch):
    client, stream = watch
    timer = threading.Timer(0.1, client.close)
    timer.start()
    with pytest.raises(ClientClosed):
        next(stream)
    timer.join()
