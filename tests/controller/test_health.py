"""/healthz, /readyz and /metrics."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from pysedna.controller.errors import AddressUnavailable
from pysedna.controller.health import Check, HealthServer, answer, parse_address
from pysedna.controller.metrics import CollectorRegistry, ControllerMetrics


def ok() -> None:
    return None


def broken() -> None:
    raise RuntimeError("no answer from http://10.0.0.1:6443")


def groups(**readyz: Check) -> dict[str, dict[str, Check]]:
    return {"healthz": {"ping": ok}, "readyz": dict(readyz)}


def test_all_well_is_200_ok() -> None:
    reply = answer("/healthz", groups())
    assert reply is not None
    assert (reply.status, reply.body) == (200, b"ok")


def test_a_failed_check_is_500_and_says_which_and_why() -> None:
    reply = answer("/readyz", groups(caches=broken, other=ok))
    assert reply is not None
    assert reply.status == 500
    assert reply.body.decode().splitlines() == [
        "[-]caches failed: no answer from http://10.0.0.1:6443",
        "[+]other ok",
        "readyz check failed",
    ]


def test_verbose_lists_the_checks() -> None:
    reply = answer("/readyz?verbose", groups(a=ok, b=ok))
    assert reply is not None
    assert reply.body.decode().splitlines() == ["[+]a ok", "[+]b ok", "readyz check passed"]


def test_excluded_checks_are_not_run() -> None:
    reply = answer("/readyz?exclude=a&exclude=b", groups(a=broken, b=broken, c=ok))
    assert reply is not None
    assert reply.status == 200


def test_excluding_an_unknown_check_is_said() -> None:
    reply = answer("/readyz?verbose&exclude=nobody", groups(a=ok))
    assert reply is not None
    assert reply.status == 200
    assert "'nobody'" in reply.body.decode()


def test_each_check_has_a_path_of_its_own() -> None:
    checks = groups(a=broken, b=ok)
    bad, good = answer("/readyz/a", checks), answer("/readyz/b", checks)
    assert bad is not None
    assert good is not None
    assert (bad.status, good.status) == (500, 200)


@pytest.mark.parametrize("target", ["/", "/nothing", "/readyz/nobody", "/healthz/a/b"])
def test_unknown_paths_are_not_answered(target: str) -> None:
    assert answer(target, groups(a=ok)) is None


@pytest.mark.parametrize(
    ("text", "pair"),
    [("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:8080", ("::1", 8080)), (":9", ("", 9))],
)
def test_addresses_are_read(text: str, pair: tuple[str, int]) -> None:
    assert parse_address(text) == pair


@pytest.mark.parametrize("text", ["localhost", "localhost:http", "localhost:70000", ""])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_address(text)


@pytest.fixture
def server() -> Iterator[HealthServer]:
    registry = CollectorRegistry()
    ControllerMetrics(registry).register("jobs", 2)
    server = HealthServer("127.0.0.1:0", groups(caches=broken), registry)
    server.start()
    yield server
    server.stop()


def get(server: HealthServer, path: str, method: str = "GET") -> tuple[int, str, str]:
    request = urllib.request.Request(f"http://{server.address}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, reply.headers["Content-Type"], reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_it_is_served_over_http(server: HealthServer) -> None:
    assert get(server, "/healthz") == (200, "text/plain; charset=utf-8", "ok")
    assert get(server, "/readyz")[0] == 500
    assert get(server, "/nothing")[0] == 404
    assert get(server, "/healthz", "HEAD") == (200, "text/plain; charset=utf-8", "")


def test_metrics_are_served_and_start_at_zero(server: HealthServer) -> None:
    status, content_type, body = get(server, "/metrics")
    assert status == 200
    assert content_type.startswith("text/plain")
    assert 'controller_runtime_max_concurrent_reconciles{controller="jobs"} 2.0' in body
    assert 'controller_runtime_reconcile_total{controller="jobs",result="error"} 0.0' in body
    assert 'controller_runtime_reconcile_errors_total{controller="jobs"} 0.0' in body
    assert 'controller_runtime_terminal_reconcile_errors_total{controller="jobs"} 0.0' in body
    assert 'controller_runtime_reconcile_time_seconds_bucket{controller="jobs",le="60.0"} 0.0' in body


def test_an_address_in_use_is_named(server: HealthServer) -> None:
    assert server.address is not None
    second = HealthServer(server.address, groups(), CollectorRegistry())
    with pytest.raises(AddressUnavailable, match=r"127\.0\.0\.1:\d+: Address already in use"):
        second.start()
    assert second.address is None


def test_a_silent_client_does_not_hold_up_the_stop(server: HealthServer) -> None:
    assert server.address is not None
    host, port = parse_address(server.address)
    with socket.create_connection((host, port)):
        stopper = threading.Thread(target=server.stop)
        stopper.start()
        stopper.join(5)
        assert not stopper.is_alive()
    assert server.address is None
