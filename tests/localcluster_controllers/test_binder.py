"""Binding pods: what becomes of a pod that goes with its namespace, and of a refusal that is meant."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from informers import Indexer, Lister, ObjectKey
from informers.errors import ForbiddenError
from informers.testing import FakeClient
from pysedna.controller import Context
from pysedna.localcluster.controllers.nodes import Binder
from workqueue.testing import FakeClock

KEY = ObjectKey("ns", "p")
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def bind(refusal: ForbiddenError) -> None:
    client, cache = FakeClient(POD), Indexer()
    cache.replace(client.stored("v1", "Pod"))
    client.fail_next("create", "Pod", refusal)
    binder = Binder(Lister(cache, "v1 Pod"), [("n1", {})])
    binder.reconcile(KEY, Context(client=client, stop=threading.Event(), clock=FakeClock(), gate=lambda: None))


def test_a_pod_that_goes_with_its_namespace_is_no_failure() -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace ns is being terminated"}
    bind(ForbiddenError("unable to create new content", details={"causes": [cause]}))


def test_any_other_refusal_is_one() -> None:
    with pytest.raises(ForbiddenError):
        bind(ForbiddenError("no"))
