"""client-go's seven metrics."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest
from prometheus_client import CollectorRegistry

from workqueue import WorkQueue
from workqueue.metrics import PrometheusMetricsProvider
from workqueue.testing import FakeClock


class Reader:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry

    def __call__(self, metric: str, name: str = "q") -> float | None:
        return self.registry.get_sample_value(f"workqueue_{metric}", {"name": name})


def test_the_numbers_are_those_of_client_go(clock: FakeClock) -> None:
    provider = PrometheusMetricsProvider()
    read = Reader(provider.registry)
    queue: WorkQueue[str] = WorkQueue("q", clock=clock, metrics=provider)
    assert (read("adds_total"), read("depth")) == (0, 0)
    queue.add("foo")
    assert (read("adds_total"), read("depth")) == (1, 1)
    clock.advance(50e-6)
    queue.get()
    assert read("depth") == 0
    assert read("queue_duration_seconds_sum") == pytest.approx(50e-6)
    for _ in range(5):  # while it is in process
        queue.add("foo")
    assert (read("adds_total"), read("depth")) == (2, 1)
    clock.advance(25e-6)
    queue.done("foo")
    assert read("work_duration_seconds_sum") == pytest.approx(25e-6)
    assert read("depth") == 1
    assert queue.get_batch(5) == ["foo"]
    assert read("queue_duration_seconds_sum") == pytest.approx(75e-6)
    assert read("queue_duration_seconds_count") == 2
    clock.advance(0.001)
    assert read("unfinished_work_seconds") == pytest.approx(0.001)
    assert read("longest_running_processor_seconds") == pytest.approx(0.001)
    queue.done("foo")
    assert read("unfinished_work_seconds") == 0
    assert read("work_duration_seconds_count") == 2
    queue.add_rate_limited("foo")
    queue.add_after("bar", 0)
    assert (read("retries_total"), read("adds_total"), read("depth")) == (2, 3, 1)


def test_the_seven_names_and_the_label_name() -> None:
    registry = CollectorRegistry()
    provider = PrometheusMetricsProvider(registry)
    assert provider.registry is registry
    queue: WorkQueue[str] = WorkQueue("q", metrics=provider)
    queue.add("a")
    queue.done(queue.get())
    names = {(family.name, sample.labels["name"]) for family in registry.collect() for sample in family.samples}
    assert names == {
        ("workqueue_depth", "q"),
        ("workqueue_adds", "q"),  # the family; its sample has the suffix _total
        ("workqueue_queue_duration_seconds", "q"),
        ("workqueue_work_duration_seconds", "q"),
        ("workqueue_unfinished_work_seconds", "q"),
        ("workqueue_longest_running_processor_seconds", "q"),
        ("workqueue_retries", "q"),
    }


def test_a_queue_without_a_name_is_not_reported() -> None:
    provider = PrometheusMetricsProvider()
    queue: WorkQueue[str] = WorkQueue(metrics=provider)
    queue.add("a")
    queue.done(queue.get())
    assert Reader(provider.registry)("adds_total", "") is None


def test_queues_of_one_name_are_added_up_and_a_gone_one_keeps_its_counters() -> None:
    provider = PrometheusMetricsProvider()
    read = Reader(provider.registry)
    first: WorkQueue[str] = WorkQueue("q", metrics=provider)
    second: WorkQueue[str] = WorkQueue("q", metrics=provider)
    other: WorkQueue[str] = WorkQueue("other", metrics=provider)
    first.add("a")
    second.add("a")
    other.add("a")
    assert (read("adds_total"), read("depth"), read("adds_total", "other")) == (2, 2, 1)
    del first
    gc.collect()
    assert (read("adds_total"), read("depth")) == (2, 1)


def test_two_providers_live_side_by_side() -> None:
    providers = [PrometheusMetricsProvider(), PrometheusMetricsProvider()]
    queues: list[WorkQueue[str]] = [WorkQueue("q", metrics=provider) for provider in providers]
    queues[0].add("a")
    assert [Reader(provider.registry)("adds_total") for provider in providers] == [1, 0]


def test_the_package_does_not_import_prometheus_client() -> None:
    code = "import sys, workqueue, workqueue.metrics; assert 'prometheus_client' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
