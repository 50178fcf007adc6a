"""What the cases about other people's clients use: kubectl, and objects to handle."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from pysedna.testing import Cluster

Json = dict[str, Any]


@pytest.fixture
def environment(cluster: Cluster, tmp_path: Path) -> dict[str, str]:
    """For kubectl: the cluster's kubeconfig, and a home (of caches) of the case's own."""
    return {**os.environ, "KUBECONFIG": cluster.kubeconfig, "HOME": str(tmp_path)}


@pytest.fixture
def kubectl(environment: dict[str, str], namespace: str) -> Callable[..., str]:
    """kubectl(*args, stdin=..., fails=False, **environment) -> its output; of both streams when it should fail."""

    def run(*args: str, stdin: object = None, fails: bool = False, **extra: str) -> str:
        text = stdin if isinstance(stdin, str) else json.dumps(stdin)
        done = subprocess.run(
            ["kubectl", "-n", namespace, *args],
            input=text if stdin is not None else None,
            capture_output=True,
            text=True,
            env={**environment, **extra},
            timeout=60,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr if fails else done.stdout

    return run


@pytest.fixture
def official(cluster: Cluster) -> Iterator[client.ApiClient]:
    """The official Python client."""
    with config.new_client_from_config(cluster.kubeconfig) as api_client:
        yield api_client


@pytest.fixture
def pod() -> Callable[..., Json]:
    """pod(name, **spec): one that no scheduler binds."""

    def make(name: str = "p", **spec: Any) -> Json:
        containers = [{"name": "main", "image": "busybox:1"}]
        spec = {"containers": containers, "schedulerName": "nobody", **spec}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    return make


@pytest.fixture
def deployment() -> Json:
    """A Deployment `d` of two pods."""
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "d"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


@pytest.fixture
def group(cluster: Cluster) -> Iterator[str]:
    """The name of a group that is this case's alone; whatever is defined in it as Widgets goes with the case."""
    name = f"{secrets.token_hex(4)}.example.com"
    yield name
    definitions = cluster.client.resource("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    if definitions.list(field_selector=f"metadata.name=widgets.{name}").items:
        definitions.delete(f"widgets.{name}")


@pytest.fixture
def definition(group: str) -> Json:
    """A definition of Widgets with a scale, a printer column and a short name."""
    spec = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 10},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        },
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["w" + group[:8]]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


@pytest.fixture
def widget(group: str) -> Callable[..., Json]:
    """widget(name, **spec)"""

    def make(name: str = "w", **spec: Any) -> Json:
        return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1, **spec}}

    return make
