"""The official Python client: typed, dynamic, and its watch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import client, dynamic, watch

if TYPE_CHECKING:
    from pysedna.testing import Cluster

    Json = dict[str, Any]


def test_typed_calls_and_their_errors(official: client.ApiClient, namespace: str, deployment: Json) -> None:
    apps, core = client.AppsV1Api(official), client.CoreV1Api(official)
    created = apps.create_namespaced_deployment(namespace, deployment)
    assert (created.metadata.generation, created.spec.template.spec.restart_policy) == (1, "Always")
    apps.patch_namespaced_deployment_scale("d", namespace, {"spec": {"replicas": 4}})
    assert apps.read_namespaced_deployment("d", namespace).spec.replicas == 4
    assert [each.metadata.name for each in apps.list_namespaced_deployment(namespace).items] == ["d"]
    apps.delete_namespaced_deployment("d", namespace)
    assert apps.list_namespaced_deployment(namespace).items == []
    with pytest.raises(client.ApiException) as failure:
        core.read_namespaced_pod("none", namespace)
    assert (failure.value.status, failure.value.reason) == (404, "Not Found")


def test_the_watch_follows_changes(official: client.ApiClient, namespace: str, pod: Callable[..., Json]) -> None:
    core, watcher, seen = client.CoreV1Api(official), watch.Watch(), []
    core.create_namespaced_pod(namespace, pod("a"))
    for event in watcher.stream(core.list_namespaced_pod, namespace, timeout_seconds=30):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "ADDED":
            core.delete_namespaced_pod("a", namespace)
        if event["type"] == "DELETED":
            watcher.stop()
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_the_dynamic_client_handles_custom_resources(
    cluster: Cluster,
    official: client.ApiClient,
    namespace: str,
    group: str,
    definition: Json,
    widget: Callable[..., Json],
    tmp_path: Path,
) -> None:
    cluster.install_crds([definition])
    found = dynamic.DynamicClient(official, cache_file=str(tmp_path / "discovery"))
    resource = found.resources.get(api_version=f"{group}/v1", kind="Widget")
    created = resource.create(widget("w"), namespace=namespace)
    assert created.spec.mode == "a"
    body = {"metadata": {"name": "w"}, "spec": {"size": 9}}
    patched = resource.patch(body=body, namespace=namespace, content_type="application/merge-patch+json")
    assert patched.spec.size == 9
    assert [each.metadata.name for each in resource.get(namespace=namespace).items] == ["w"]
    events = resource.watch(namespace=namespace, resource_version=created.metadata.resourceVersion, timeout=30)
    assert next(iter(events))["object"].spec.size == 9
    resource.delete(name="w", namespace=namespace)
    with pytest.raises(dynamic.exceptions.NotFoundError):
        resource.get(name="w", namespace=namespace)
