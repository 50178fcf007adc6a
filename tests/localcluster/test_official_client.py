"""The official Python client against the embedded cluster: typed, dynamic, and its watch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import client, config, dynamic, watch

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any


@pytest.fixture
def official(kubeconfig_file: Path) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(kubeconfig_file)) as api_client:
        yield api_client


def test_typed_calls_and_their_errors(official: client.ApiClient, deployment: Json) -> None:
    apps, core = client.AppsV1Api(official), client.CoreV1Api(official)
    created = apps.create_namespaced_deployment("default", deployment)
    assert (created.metadata.generation, created.spec.template.spec.restart_policy) == (1, "Always")
    apps.patch_namespaced_deployment_scale("d", "default", {"spec": {"replicas": 4}})
    assert apps.read_namespaced_deployment("d", "default").spec.replicas == 4
    assert [each.metadata.name for each in apps.list_namespaced_deployment("default").items] == ["d"]
    apps.delete_namespaced_deployment("d", "default")
    assert apps.list_namespaced_deployment("default").items == []
    with pytest.raises(client.ApiException) as failure:
        core.read_namespaced_pod("none", "default")
    assert (failure.value.status, failure.value.reason) == (404, "Not Found")


def test_the_watch_follows_changes(official: client.ApiClient, pod: Callable[..., Json]) -> None:
    core, watcher, seen = client.CoreV1Api(official), watch.Watch(), []
    core.create_namespaced_pod("default", pod("a"))
    for event in watcher.stream(core.list_namespaced_pod, "default", timeout_seconds=30):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 1:
            core.delete_namespaced_pod("a", "default")
        else:
            watcher.stop()
    assert seen == [("ADDED", "a"), ("DELETED", "a")]


def test_the_dynamic_client_finds_custom_resources(
    official: client.ApiClient, widgets: Json, widget: Callable[..., Json], tmp_path: Path
) -> None:
    found = dynamic.DynamicClient(official, cache_file=str(tmp_path / "discovery"))
    found.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition").create(widgets)
    resource = found.resources.get(api_version="ex.io/v1", kind="Widget")
    assert resource.create(widget("w"), namespace="default").spec.mode == "a"
    body = {"metadata": {"name": "w"}, "spec": {"size": 9}}
    patched = resource.patch(body=body, namespace="default", content_type="application/merge-patch+json")
    assert patched.spec.size == 9
    assert [each.metadata.name for each in resource.get(namespace="default").items] == ["w"]
