"""What `Cluster` promises, on the embedded one and on the real one."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from informers import Client, ObjectKey
from informers.errors import ConnectionReset, ExpiredError
from pysedna.testing import Cluster

WAIT = 60.0


@pytest.fixture
def definition() -> dict[str, Any]:
    group = f"{secrets.token_hex(4)}.example.com"
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"parts.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "parts", "singular": "part", "kind": "Part", "listKind": "PartList"},
            "versions": [version],
        },
    }


@pytest.fixture
def installed(cluster: Cluster, definition: dict[str, Any]) -> Iterator[dict[str, Any]]:
    cluster.install_crds([definition])
    yield definition
    cluster.client.resource("apiextensions.k8s.io/v1", "CustomResourceDefinition").delete(
        definition["metadata"]["name"]
    )


def test_the_kubeconfig_leads_to_the_address(cluster: Cluster) -> None:
    with Client.from_kubeconfig(cluster.kubeconfig) as client:
        assert client.server == cluster.address == cluster.client.server
        assert json.loads(client.raw("GET", "/version"))["major"] == "1"


def test_an_installed_kind_can_be_used_at_once_and_installed_again(
    cluster: Cluster, installed: dict[str, Any], namespace: str
) -> None:
    parts = cluster.client.resource(f"{installed['spec']['group']}/v1", "Part")
    made = parts.create({"metadata": {"name": "a", "namespace": namespace}, "spec": {"size": 1}})
    cluster.install_crds([installed])
    assert parts.get(made.key)["spec"]["size"] == 1


def test_versions_from_before_a_compaction_are_expired(cluster: Cluster, namespace: str) -> None:
    maps = cluster.client.resource("v1", "ConfigMap")
    old = maps.create({"metadata": {"name": "a", "namespace": namespace}}).resource_version
    maps.create({"metadata": {"name": "b", "namespace": namespace}})
    cluster.compact()
    with (
        pytest.raises(ExpiredError),
        maps.watch(namespace=namespace, resource_version=old, timeout_seconds=10) as watch,
    ):
        next(iter(watch))
    assert {item.name for item in maps.list(namespace=namespace).items} >= {"a", "b"}


def test_dropped_watches_end(cluster: Cluster, namespace: str) -> None:
    maps = cluster.client.resource("v1", "ConfigMap")
    version = maps.list(namespace=namespace).resource_version
    with maps.watch(namespace=namespace, resource_version=version, timeout_seconds=600) as watch:
        cluster.drop_watches()
        with suppress(ConnectionReset):  # or it ends as if its time were over
            for _ in watch:
                pass


def test_deleting_a_deployment_takes_what_it_owns(cluster: Cluster, namespace: str) -> None:
    deployments, pods = (cluster.client.resource(*kind) for kind in (("apps/v1", "Deployment"), ("v1", "Pod")))
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "any"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    key = ObjectKey(namespace, "a")
    deployments.create({"metadata": {"name": "a", "namespace": namespace}, "spec": spec})
    deployments.wait_until(
        key, lambda one: one is not None and one.get("status", {}).get("replicas") == 1, timeout=WAIT
    )
    (pod,) = pods.list(namespace=namespace).items
    deployments.delete(key, propagation="Background")
    pods.wait_until(pod.key, lambda one: one is None, timeout=WAIT)


def test_pods_run_on_simulated_nodes(cluster: Cluster, namespace: str, nodes: tuple[str, ...]) -> None:
    pods = cluster.client.resource("v1", "Pod")
    body = {"metadata": {"name": "a", "namespace": namespace}, "spec": {"containers": [{"name": "m", "image": "any"}]}}
    key = pods.create(body).key
    pod = pods.wait_until(key, lambda one: one is not None and one["status"]["phase"] == "Running", timeout=WAIT)
    assert pod is not None
    assert pod["spec"]["nodeName"] in nodes
