"""What the cases share: raw requests with plain answers, objects, definitions, and patience.

Each case takes the fixture `cluster` (through one of these or itself) and so runs on the embedded cluster and on a
real API server.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from informers.client import Client
from informers.errors import ApiError
from pysedna.testing import Cluster

Json = dict[str, Any]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Api:
    """Requests as they go over the wire; the answer is the decoded body, a `Status` too."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def __call__(
        self, method: str, path: str, body: object = None, *, content: str = "application/json", **query: str
    ) -> Json:
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = self.client.raw(method, path, query=query, body=data, headers={"Content-Type": content})
        except ApiError as error:
            return error.to_status()
        found: Json = json.loads(answer)
        return found

    def get(self, path: str, **query: str) -> Json:
        return self("GET", path, **query)

    def table(self, path: str) -> Json:
        """A list as kubectl asks for it."""
        found: Json = json.loads(self.client.raw("GET", path, headers={"Accept": TABLE}))
        return found

    def create(self, path: str, body: Json, **query: str) -> Json:
        return self("POST", path, body, **query)

    def replace(self, path: str, body: Json, **query: str) -> Json:
        return self("PUT", path, body, **query)

    def merge(self, path: str, patch: object, **query: str) -> Json:
        return self("PATCH", path, patch, content="application/merge-patch+json", **query)

    def json_patch(self, path: str, patch: object, **query: str) -> Json:
        return self("PATCH", path, patch, content="application/json-patch+json", **query)

    def strategic(self, path: str, patch: object, **query: str) -> Json:
        return self("PATCH", path, patch, content="application/strategic-merge-patch+json", **query)

    def delete(self, path: str, options: Json | None = None, **query: str) -> Json:
        return self("DELETE", path, options, **query)


@pytest.fixture
def api(cluster: Cluster) -> Api:
    return Api(cluster.client)


@pytest.fixture
def core(namespace: str) -> str:
    """The path of the core group in the case's namespace."""
    return f"/api/v1/namespaces/{namespace}"


@pytest.fixture
def apps(namespace: str) -> str:
    """The path of the group apps in the case's namespace."""
    return f"/apis/apps/v1/namespaces/{namespace}"


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], None]:
    """eventually(condition) waits until it is true, a minute at most."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.02)

    return wait


@pytest.fixture
def pod() -> Callable[..., Json]:
    """Pods of it go to a node that nobody simulates, so that only the case writes their status."""

    def make(name: str = "p", **spec: Any) -> Json:
        containers = [{"name": "main", "image": "busybox:1"}]
        return {"metadata": {"name": name}, "spec": {"nodeName": "nowhere", "containers": containers, **spec}}

    return make


@pytest.fixture
def workload(pod: Callable[..., Json]) -> Callable[..., Json]:
    """Deployments and ReplicaSets."""

    def make(name: str = "d", **spec: Any) -> Json:
        template = {"metadata": {"labels": {"app": name}}, "spec": pod()["spec"]}
        selector = {"matchLabels": {"app": name}}
        return {"metadata": {"name": name}, "spec": {"selector": selector, "template": template, **spec}}

    return make


@pytest.fixture
def define(api: Api, cluster: Cluster, namespace: str) -> Iterator[Callable[..., str]]:
    """define(spec, ...) serves Widgets of a group of the case's own, and gives the path of those in its namespace.

    `spec` is the schema of that member, `root` more of the schema, `versions` more versions than v1; all other
    arguments are members of v1.
    """
    group = f"{namespace}.example.com"

    def make(
        spec: Json | None = None, *, root: Json | None = None, versions: tuple[Json, ...] = (), **members: Any
    ) -> str:
        schema = {"type": "object", "properties": {"spec": spec or {"type": "object"}}, **(root or {})}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **members}
        names = {"plural": "widgets", "kind": "Widget"}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version, *versions]},
        }
        cluster.install_crds([definition])
        return f"/apis/{group}/v1/namespaces/{namespace}/widgets"

    yield make
    api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}")


@pytest.fixture
def widget(namespace: str) -> Callable[..., Json]:
    def make(name: str = "w", *, version: str = "v1", **spec: Any) -> Json:
        api_version = f"{namespace}.example.com/{version}"
        return {"apiVersion": api_version, "kind": "Widget", "metadata": {"name": name}, "spec": spec}

    return make
