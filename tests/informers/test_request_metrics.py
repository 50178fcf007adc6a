"""Requests in Prometheus, under client-go's names."""

from prometheus_client import CollectorRegistry

from informers import RequestTrace
from informers.metrics import RequestMetrics


def trace(status=200, verb="get", error=""):
    return RequestTrace(
        "GET", "https://api:6443/api/v1/pods?limit=5", verb, "pods", None, 1, 0.2, status, error, 10, 100
    )


def test_attempts_are_counted_by_code_and_timed_by_verb():
    registry = CollectorRegistry()
    seen = []
    metrics = RequestMetrics(registry, then=seen.append)
    for one in (trace(), trace(), trace(429), trace(None, error="refused"), trace(verb="list")):
        metrics(one)

    def requests(code):
        labels = {"code": code, "method": "GET", "host": "api:6443"}
        return registry.get_sample_value("rest_client_requests_total", labels)

    assert (requests("200"), requests("429"), requests("<error>")) == (3, 1, 1)
    labels = {"verb": "get", "host": "api:6443"}
    assert registry.get_sample_value("rest_client_request_duration_seconds_count", labels) == 4
    assert registry.get_sample_value("rest_client_response_size_bytes_sum", labels) == 400
    assert registry.get_sample_value("rest_client_request_size_bytes_sum", labels) == 40
    assert len(seen) == 5


def test_two_clients_may_have_registries_of_their_own():
    assert RequestMetrics().registry is not RequestMetrics().registry
