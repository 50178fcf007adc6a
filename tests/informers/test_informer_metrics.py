"""Metrics of informers: what a scrape shows is what `status()` says."""

from __future__ import annotations

import gc

import pytest

from informers.metrics import PrometheusMetricsProvider
from informers.testing import FakeListWatch

pytest.importorskip("prometheus_client")


def test_a_scrape_shows_the_informers_numbers(informers, pod):
    provider = PrometheusMetricsProvider()

    def value(name, **labels):
        return provider.registry.get_sample_value(name, {"name": "pods", **labels})

    def broken(obj):
        raise ValueError("no")

    informer = informers(FakeListWatch([pod("a"), pod("b")]), name="pods", metrics=provider, indexers={"x": broken})
    assert value("informer_synced") == 0
    assert value("informer_lag_seconds") is None
    registration = informer.add_event_handler(on_event=broken)
    informer.start()
    registration.wait_for_sync(10)
    assert value("informer_synced") == 1
    assert value("informer_objects") == 2
    assert 0 <= value("informer_lag_seconds") < 60
    assert value("informer_queued_items") == 0
    assert value("informer_store_resource_version") == 2
    assert value("informer_index_errors_total", index="x") == 2
    assert value("reflector_watches_total") == 1
    assert value("reflector_events_total") == 3
    assert value("reflector_failures_total") == 0
    handler = registration.name
    assert value("informer_handler_delivered_total", handler=handler) == 2
    assert value("informer_handler_failed_total", handler=handler) == 2
    assert value("informer_handler_pending", handler=handler) == 0


def test_informers_of_one_name_are_added_up_and_dead_ones_go(pod):
    from informers import SharedInformer

    provider = PrometheusMetricsProvider()
    made = [SharedInformer(FakeListWatch(), name="pods", metrics=provider) for _ in range(2)]
    for informer in made:
        informer._indexer.add(pod("a"))
    assert provider.registry.get_sample_value("informer_objects", {"name": "pods"}) == 2
    made.clear()
    del informer
    gc.collect()
    assert provider.registry.get_sample_value("informer_objects", {"name": "pods"}) is None
