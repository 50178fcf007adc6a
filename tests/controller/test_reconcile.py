"""What a controller does with the outcomes of its reconcile, and what a run is given."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from informers import ObjectKey
from informers.errors import ConflictError, NotFoundError, RequestTimeout
from pysedna.controller import (
    Cancelled,
    Context,
    Controller,
    Manager,
    NotLeading,
    Result,
    TemporaryError,
    TerminalError,
    create_or_update,
    ensure_finalizer,
    remove_finalizer,
)
from workqueue.testing import FakeClock

CONFIG_MAP = ("v1", "ConfigMap")
WAIT = 20.0


class Script:
    """A reconcile that does one thing after the other, and says when it did how many."""

    def __init__(self, *steps: Any) -> None:
        self._steps = list(steps)
        self.contexts: list[Context] = []
        self._changed = threading.Condition()

    def reconcile(self, key: ObjectKey, context: Context) -> Any:
        with self._changed:
            self.contexts.append(context)
            step = self._steps.pop(0) if self._steps else None
            self._changed.notify_all()
        if isinstance(step, Exception):
            raise step
        return step(context) if callable(step) else step

    def ran(self, times: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.contexts) >= times, WAIT)
            assert len(self.contexts) == times


@pytest.fixture
def begin(cluster: Any, namespace: str, run: Any) -> Callable[..., tuple[Manager, Controller]]:
    """Runs a script over one object."""

    def begin(script: Script, **options: Any) -> tuple[Manager, Controller]:
        body = {"metadata": {"name": "one", "namespace": namespace}}
        cluster.client.resource(*CONFIG_MAP).create(body)
        clock = options.pop("clock", None)
        manager = Manager(cluster.client, name="m", namespaces=[namespace], http=None, clock=clock)
        controller = manager.controller("maps", CONFIG_MAP, script, **options)
        run(manager)
        return manager, controller

    return begin


def metric(manager: Manager, name: str, **labels: str) -> float:
    return manager.registry.get_sample_value(name, {"controller": "maps", **labels}) or 0.0


def test_an_error_is_retried_with_backoff_and_shown(
    begin: Any, eventually: Any, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script(ConflictError("changed meanwhile"), ConflictError("again"), None)
    manager, controller = begin(script)
    script.ran(3)
    eventually(lambda: controller.status().runs == 3 and controller.status().active == 0)
    status = controller.status()
    assert (status.failures, status.last_error) == (2, "ConflictError: again [409 Conflict]")
    assert metric(manager, "controller_runtime_reconcile_total", result="error") == 2
    assert metric(manager, "controller_runtime_reconcile_total", result="success") == 1
    assert metric(manager, "controller_runtime_reconcile_errors_total") == 2
    assert metric(manager, "controller_runtime_reconcile_panics_total") == 0
    record = next(record for record in caplog.records if record.levelno == logging.ERROR)
    assert f"maps: reconcile of {namespace}/one failed, will be retried: ConflictError" in record.getMessage()
    assert (record.controller, record.key) == ("maps", f"{namespace}/one")  # type: ignore[attr-defined]
    assert record.reconcile_id == script.contexts[0].reconcile_id  # type: ignore[attr-defined]


def test_failures_are_forgotten_after_a_success(begin: Any, eventually: Any, namespace: str) -> None:
    script = Script(OSError("x"), None)
    _, controller = begin(script)
    script.ran(2)
    eventually(lambda: controller.queue.num_requeues(ObjectKey(namespace, "one")) == 0)


def test_an_error_of_the_program_is_counted_apart_and_logged_with_its_trace(
    begin: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script(KeyError("spec"), None)
    manager, _ = begin(script)
    script.ran(2)
    eventually(lambda: metric(manager, "controller_runtime_reconcile_panics_total") == 1)
    assert any(record.exc_info for record in caplog.records)


def test_a_temporary_error_is_retried_and_logged_without_a_trace(
    begin: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script(TemporaryError("quota exceeded"), None)
    manager, _ = begin(script)
    script.ran(2)
    eventually(lambda: metric(manager, "controller_runtime_reconcile_errors_total") == 1)
    assert metric(manager, "controller_runtime_reconcile_panics_total") == 0
    (record,) = [record for record in caplog.records if "quota exceeded" in record.getMessage()]
    assert record.exc_info is None


def test_a_terminal_error_is_not_retried_before_the_object_changes(
    begin: Any, eventually: Any, cluster: Any, namespace: str
) -> None:
    script = Script(TerminalError("no such image"))
    manager, controller = begin(script)
    script.ran(1)
    eventually(lambda: metric(manager, "controller_runtime_terminal_reconcile_errors_total") == 1)
    assert controller.queue.statistics().waiting == 0
    cluster.client.resource(*CONFIG_MAP).patch(f"{namespace}/one", {"data": {"a": "b"}})
    script.ran(2)


def test_what_is_no_result_is_an_error_that_says_so(begin: Any, eventually: Any) -> None:
    script = Script(lambda context: True, None)
    _, controller = begin(script)
    script.ran(2)
    eventually(lambda: controller.status().last_error)
    assert controller.status().last_error == "TypeError: a reconcile returns a Result or None, not bool"


def test_requeue_after_comes_back_after_that_time(begin: Any, eventually: Any) -> None:
    clock = FakeClock()
    script = Script(Result(requeue_after=60.0, priority=-5), None)
    _, controller = begin(script, clock=clock)
    script.ran(1)
    eventually(lambda: controller.queue.statistics().waiting == 1)
    clock.advance(59)
    script.ran(1)
    clock.advance(1)
    script.ran(2)
    assert script.contexts[1].priority == -5


def test_a_retry_keeps_its_priority(begin: Any) -> None:
    script = Script(OSError("x"), None)
    begin(script)
    script.ran(2)
    assert [context.priority for context in script.contexts] == [-100, -100]


def test_a_run_that_outlives_its_timeout_is_counted_and_its_requests_are_not_sent(
    begin: Any, eventually: Any, cluster: Any, namespace: str
) -> None:
    clock = FakeClock()
    seen: list[Any] = []

    def slow(context: Context) -> None:
        seen.append(context.remaining())
        clock.advance(3)
        seen.append(context.remaining())
        with pytest.raises(Cancelled) as caught:
            context.client.resource(*CONFIG_MAP).get(f"{namespace}/one")
        seen.append(caught.value.overrun)
        context.check()

    script = Script(slow, None)
    manager, controller = begin(script, clock=clock, timeout=2.0)
    script.ran(1)
    eventually(lambda: controller.queue.statistics().waiting == 1)
    assert seen == [2.0, 0.0, True]
    assert metric(manager, "controller_runtime_reconcile_timeouts_total") == 1
    assert metric(manager, "controller_runtime_reconcile_total", result="error") == 1
    clock.advance(1)
    script.ran(2)


def test_a_run_that_is_late_but_succeeds_is_counted_as_both(begin: Any, eventually: Any) -> None:
    clock = FakeClock()
    manager, _ = begin(Script(lambda context: clock.advance(3)), clock=clock, timeout=2.0)
    eventually(lambda: metric(manager, "controller_runtime_reconcile_total", result="success") == 1)
    assert metric(manager, "controller_runtime_reconcile_timeouts_total") == 1


def test_a_request_gets_what_is_left_of_the_time(begin: Any, namespace: str) -> None:
    took: list[float] = []
    done = threading.Event()

    def waits(context: Context) -> None:
        began = time.monotonic()
        with pytest.raises((RequestTimeout, TimeoutError)):
            context.client.resource(*CONFIG_MAP).wait_until(f"{namespace}/one", lambda obj: obj is None)
        took.append(time.monotonic() - began)
        done.set()

    begin(Script(waits), timeout=0.3)
    assert done.wait(WAIT)
    assert 0.1 < took[0] < 5


def test_check_raises_when_the_manager_stops_but_requests_may_finish(
    begin: Any, run: Any, cluster: Any, namespace: str
) -> None:
    begun, results = threading.Event(), list[Any]()

    def reconcile(context: Context) -> None:
        begun.set()
        context.stop.wait(WAIT)
        results.append(context.client.resource(*CONFIG_MAP).get(f"{namespace}/one").name)
        try:
            context.check()
        except Cancelled as error:
            results.append(error.overrun)
            raise

    body = {"metadata": {"name": "one", "namespace": namespace}}
    cluster.client.resource(*CONFIG_MAP).create(body)
    manager = Manager(cluster.client, name="m", namespaces=[namespace], http=None)
    manager.controller("maps", CONFIG_MAP, Script(reconcile))
    running = run(manager)
    assert begun.wait(WAIT)
    assert running.end() is None
    assert results == ["one", False]
    assert metric(manager, "controller_runtime_reconcile_errors_total") == 0


def test_a_run_that_was_given_up_cannot_write_any_more(run: Any, cluster: Any, namespace: str) -> None:
    begun, go_on, outcome = threading.Event(), threading.Event(), list[Any]()
    over = threading.Event()

    def reconcile(context: Context) -> None:
        begun.set()
        go_on.wait(WAIT)
        try:
            context.client.resource(*CONFIG_MAP).delete(f"{namespace}/one")
        except Cancelled as error:
            outcome.append(str(error))
        finally:
            over.set()

    cluster.client.resource(*CONFIG_MAP).create({"metadata": {"name": "one", "namespace": namespace}})
    manager = Manager(cluster.client, name="m", namespaces=[namespace], http=None, graceful_timeout=0)
    manager.controller("maps", CONFIG_MAP, Script(reconcile))
    running = run(manager)
    assert begun.wait(WAIT)
    running.end()
    go_on.set()
    assert over.wait(WAIT)
    assert outcome == ["the manager has stopped without waiting any longer"]
    assert cluster.client.resource(*CONFIG_MAP).get(f"{namespace}/one").name == "one"


def test_nothing_is_sent_by_a_run_that_may_not_act(cluster: Any, namespace: str) -> None:
    def refuse() -> None:
        raise NotLeading("lost")

    context = Context(client=cluster.client, stop=threading.Event(), clock=FakeClock(), gate=refuse)
    with pytest.raises(NotLeading):
        context.check()
    with pytest.raises(NotLeading):
        context.client.resource(*CONFIG_MAP).create({"metadata": {"name": "no", "namespace": namespace}})
    with pytest.raises(NotLeading):
        next(context.client.resource(*CONFIG_MAP).iterate(namespace=namespace))
    assert cluster.client.resource(*CONFIG_MAP).list(namespace=namespace).items == []


# Helpers that write


def test_create_or_update_writes_only_what_differs(cluster: Any, namespace: str) -> None:
    resource = cluster.client.resource(*CONFIG_MAP)
    desired = {"metadata": {"name": "x", "namespace": namespace}}

    def want(value: str) -> Callable[[dict], None]:
        return lambda obj: obj.setdefault("data", {}).update(a=value)

    made, first = create_or_update(resource, desired, want("1"))
    same, second = create_or_update(resource, desired, want("1"))
    changed, third = create_or_update(resource, desired, want("2"))
    assert (first, second, third) == ("created", "unchanged", "updated")
    assert made.resource_version == same.resource_version != changed.resource_version
    assert changed["data"] == {"a": "2"}
    assert desired == {"metadata": {"name": "x", "namespace": namespace}}


def test_finalizers_are_added_and_removed_once(cluster: Any, namespace: str) -> None:
    resource = cluster.client.resource(*CONFIG_MAP)
    obj = resource.create({"metadata": {"name": "x", "namespace": namespace, "finalizers": ["example.com/other"]}})
    held = ensure_finalizer(resource, obj, "example.com/mine")
    assert list(held.finalizers) == ["example.com/other", "example.com/mine"]
    assert ensure_finalizer(resource, held, "example.com/mine") is held
    with pytest.raises(ConflictError):
        remove_finalizer(
            resource,
            obj.from_dict(
                {**held.to_dict(), "metadata": {**held.to_dict()["metadata"], "resourceVersion": obj.resource_version}}
            ),
            "example.com/mine",
        )
    resource.delete(held.key)
    marked = resource.get(held.key)
    left = remove_finalizer(resource, marked, "example.com/mine")
    assert left is not None
    assert list(left.finalizers) == ["example.com/other"]
    remove_finalizer(resource, left, "example.com/other")
    with pytest.raises(NotFoundError):
        resource.get(held.key)
    assert remove_finalizer(resource, left, "example.com/other") is None
