"""A server on a free loopback port and a plain HTTP client for it, so that tests see bytes and codes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import urllib3

from pysedna.localcluster.cluster import kubeconfig
from pysedna.localcluster.server import ApiServer

Json = dict[str, Any]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


class Answer:
    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.text = response.data.decode()

    @property
    def json(self) -> Json:
        found: Json = json.loads(self.text)
        return found

    @property
    def metadata(self) -> Json:
        found: Json = self.json["metadata"]
        return found

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.json["items"]]


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
        events = [self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    def close(self) -> None:
        self.response.close()


class Api:
    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.address = server.address
        self._pool = urllib3.PoolManager(maxsize=32, retries=False, timeout=30)
        self._streams: list[Stream] = []

    def __call__(
        self, method: str, path: str, body: object = None, *, content: str = "application/json", **headers: str
    ) -> Answer:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"Content-Type": content, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return Answer(self._pool.request(method, self.address + path, body=data, headers=sent))

    def get(self, path: str, **headers: str) -> Answer:
        return self("GET", path, **headers)

    def merge(self, path: str, patch: object) -> Answer:
        return self("PATCH", path, patch, content="application/merge-patch+json")

    def watch(self, path: str, **headers: str) -> Stream:
        response = self._pool.request("GET", self.address + path, preload_content=False, headers=headers)
        assert response.status == 200, response.data
        stream = Stream(response)
        self._streams.append(stream)
        return stream

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
        self._pool.clear()


@pytest.fixture
def serve() -> Iterator[Callable[..., Api]]:
    """serve(state=..., bookmark_interval=..., ...) starts a server of its own; all are stopped at the end."""
    with ExitStack() as stack:

        def start(
            *,
            state: Path | None = None,
            history_limit: int = 10_000,
            bookmark_interval: float = 10.0,
            stall: float = 30.0,
            port: int = 0,
        ) -> Api:
            server = ApiServer(
                host="127.0.0.1",
                port=port,
                state=state,
                history_limit=history_limit,
                bookmark_interval=bookmark_interval,
                stall=stall,
            )
            server.start()
            stack.callback(server.stop)
            return stack.enter_context(closing(Api(server)))

        yield start


@pytest.fixture
def api(serve: Callable[..., Api]) -> Api:
    return serve()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """eventually(condition) waits for it, half a minute at most."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.01)

    return wait


@pytest.fixture
def kubeconfig_file(api: Api, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig(api.address)))
    return path


@pytest.fixture
def pod() -> Callable[..., Json]:
    def make(name: str = "p", **spec: Any) -> Json:
        containers = [{"name": "main", "image": "busybox:1"}]
        return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}

    return make


@pytest.fixture
def deployment() -> Json:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "d"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


def widget_schema() -> Json:
    return {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 10},
                    "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                    "name": {"type": "string", "pattern": "^x", "maxLength": 4},
                    "port": {"x-kubernetes-int-or-string": True},
                    "nothing": {"type": "string", "nullable": True},
                    "list": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "required": ["when"],
                            "properties": {
                                "when": {"type": "string", "format": "date-time"},
                                "count": {"type": "integer", "default": 3},
                            },
                        },
                    },
                    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }


@pytest.fixture
def schema() -> Json:
    return widget_schema()


def widget_definition() -> Json:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        "schema": {"openAPIV3Schema": widget_schema()},
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {
                "name": "Ready",
                "type": "string",
                "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
                "priority": 1,
            },
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "selectableFields": [{"jsonPath": ".spec.mode"}],
    }
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


@pytest.fixture
def widgets() -> Json:
    """A definition of Widgets: the schema above, a status, a scale, printer columns, a selectable field."""
    return widget_definition()


@pytest.fixture(scope="session")
def widgets_json() -> Json:
    """The same for tests that only read it."""
    return widget_definition()


@pytest.fixture
def widget() -> Callable[..., Json]:
    def make(name: str = "w", **spec: Any) -> Json:
        return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1, **spec}}

    return make
