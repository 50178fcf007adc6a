"""Namespaces are emptied before they go, and have a service account from the start."""

from __future__ import annotations

from typing import Any

import pytest

from informers.errors import ApiError


def test_a_deleted_namespace_is_emptied_and_goes(kit: Any, client: Any) -> None:
    kit.create("ConfigMap", "a")
    kit.create("Secret", "b")
    kit.pod("p")
    client.resource("v1", "Namespace").delete(kit.namespace)
    client.resource("v1", "Namespace").wait_until(kit.namespace, lambda obj: obj is None, 60)
    assert kit.list("ConfigMap") == kit.list("Secret") == kit.list("Pod") == []


def test_it_waits_for_what_a_finalizer_holds(kit: Any, client: Any) -> None:
    kit.create("ConfigMap", "held", metadata={"finalizers": ["example.com/hold"]})
    namespaces = client.resource("v1", "Namespace")
    namespaces.delete(kit.namespace)
    kit.wait("ConfigMap", "held", lambda obj: obj.deletion_timestamp)
    assert namespaces.get(kit.namespace)["status"]["phase"] == "Terminating"
    with pytest.raises(ApiError):
        kit.create("ConfigMap", "late")
    client.resource("v1", "ConfigMap").patch(f"{kit.namespace}/held", {"metadata": {"finalizers": None}})
    namespaces.wait_until(kit.namespace, lambda obj: obj is None, 60)


def test_each_has_a_service_account_that_comes_back(kit: Any) -> None:
    first = kit.wait("ServiceAccount", "default", lambda obj: obj is not None)
    kit.delete("ServiceAccount", "default")
    kit.wait("ServiceAccount", "default", lambda obj: obj is not None and obj.uid != first.uid)
