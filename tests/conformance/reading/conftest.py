"""What the cases about reading use: plain HTTP, so that they see codes, headers and bytes.

The clusters are shared by all cases, so each case keeps to a namespace, or to a definition, of its own.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

import pytest
import urllib3
from kubernetes import config

from pysedna.localcluster import LocalCluster
from pysedna.testing import Cluster

Json = dict[str, Any]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.fixture(scope="session")
def embedded_cluster() -> Iterator[LocalCluster]:
    """As everywhere, but soon out of patience with who does not read."""
    with LocalCluster(nodes=(), stall=1.0) as cluster:
        yield cluster


class Answer:
    """What came back, whatever the code was."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.text = response.data.decode()

    def __repr__(self) -> str:
        return f"{self.status} {self.text}"

    @property
    def json(self) -> Json:
        found: Json = json.loads(self.text)
        return found

    @property
    def metadata(self) -> Json:
        found: Json = self.json["metadata"]
        return found

    @property
    def version(self) -> str:
        return str(self.metadata["resourceVersion"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.json["items"]]

    @property
    def causes(self) -> list[tuple[str, str]]:
        """(reason, field) of each cause of a Status."""
        return [(each.get("reason", ""), each.get("field", "")) for each in self.json["details"].get("causes", [])]

    def refused(self, status: int, reason: str) -> Json:
        """The Status, after a look at its code and reason."""
        found = self.json
        assert self.status == status, self
        assert (found["kind"], found["apiVersion"], found["status"]) == ("Status", "v1", "Failure")
        assert (found["code"], found.get("reason", "")) == (status, reason), self
        return found


class Stream:
    """The events of an open watch, one `next` each."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self.response = response
        self._lines = self._split()

    def _split(self) -> Iterator[bytes]:
        rest = b""
        for chunk in self.response.stream(1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines

    def __iter__(self) -> Iterator[Json]:
        return (json.loads(line) for line in self._lines)

    def next(self) -> Json:
        found: Json = json.loads(next(self._lines))
        return found

    def seen(self, count: int) -> list[tuple[str, str]]:
        """Type and name of the next events."""
        events = [self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


class Api:
    """Plain HTTP with the credentials of the cluster's kubeconfig, so that cases see codes, headers and bytes."""

    def __init__(self, cluster: Cluster) -> None:
        official = config.new_client_from_config(cluster.kubeconfig)
        self.address = cluster.address
        self.pool: urllib3.PoolManager = official.rest_client.pool_manager
        self.credentials: dict[str, str] = {}
        official.update_params_for_auth(self.credentials, [], ["BearerToken"], "", "GET", None)
        self._streams: list[Stream] = []

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        content: str = "application/json",
        **headers: str,
    ) -> Answer:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {**self.credentials, "Content-Type": content}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return Answer(
            self.pool.request(method, self.url(path, query), body=data, headers=sent, retries=False, timeout=60)
        )

    def url(self, path: str, query: Mapping[str, object] | None = None) -> str:
        return self.address + path + (f"?{urlencode(query)}" if query else "")

    def get(self, path: str, *, accept: str = "application/json", **query: object) -> Answer:
        return self("GET", path, query=query, Accept=accept)

    def post(self, path: str, body: object, **query: object) -> Answer:
        return self("POST", path, body, query=query)

    def put(self, path: str, body: object, **query: object) -> Answer:
        return self("PUT", path, body, query=query)

    def delete(self, path: str, body: object = None, **query: object) -> Answer:
        return self("DELETE", path, body, query=query)

    def patch(self, path: str, patch: object, *, type: str = "merge", **query: object) -> Answer:
        content = {"json": "json-patch", "merge": "merge-patch", "strategic": "strategic-merge-patch"}[type]
        return self("PATCH", path, patch, query=query, content=f"application/{content}+json")

    def watch(self, path: str, *, accept: str = "application/json", **query: object) -> Stream:
        response = self.pool.request(
            "GET",
            self.url(path, {"watch": "true", **query}),
            headers={**self.credentials, "Accept": accept},
            preload_content=False,
            retries=False,
            timeout=60,
        )
        assert response.status == 200, response.data
        stream = Stream(response)
        self._streams.append(stream)
        return stream

    def close(self) -> None:
        for stream in self._streams:
            stream.response.close()
        self.pool.clear()


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Api]:
    with closing(Api(cluster)) as api:
        yield api


@pytest.fixture
def maps(namespace: str) -> str:
    """The path of the case's ConfigMaps."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
def pods(namespace: str) -> str:
    """The path of the case's Pods."""
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.fixture
def pod() -> Callable[..., Json]:
    """pod(name, **spec): one that no controller touches, as it names its scheduler."""

    def make(name: str = "p", **spec: Any) -> Json:
        containers = [{"name": "main", "image": "busybox:1"}]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": containers, "schedulerName": "nobody", **spec},
        }

    return make


@pytest.fixture
def deployment() -> Json:
    """A Deployment `d` of two pods."""
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "d"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """eventually(condition) waits for it, a minute at most: an informer backs off from a server that was away."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.02)

    return wait


def widget_definition(group: str) -> Json:
    """A definition of namespaced Widgets with a status, printer columns and a selectable field."""
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
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
        ],
        "selectableFields": [{"jsonPath": ".spec.mode"}],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [version],
        },
    }


@pytest.fixture
def group(cluster: Cluster, api: Api) -> Iterator[str]:
    """A group, this case's alone, in which Widgets are defined and served."""
    name = f"{secrets.token_hex(4)}.example.com"
    cluster.install_crds([widget_definition(name)])
    yield name
    api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{name}")


@pytest.fixture
def widgets(group: str, namespace: str) -> str:
    """The path of the case's Widgets."""
    return f"/apis/{group}/v1/namespaces/{namespace}/widgets"


@pytest.fixture
def widget(group: str) -> Callable[..., Json]:
    """widget(name, **spec)"""

    def make(name: str = "w", **spec: Any) -> Json:
        return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1, **spec}}

    return make
