"""No object, however twisted, makes the server fail: it is stored and can be shown, or refused with a reason."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from informers.errors import ApiError
from pysedna.localcluster import tables
from pysedna.localcluster.backend import Backend, WriteOptions
from pysedna.localcluster.patches import MERGE, STRATEGIC

Json = dict[str, Any]

POD_SPEC: Json = {
    "volumes": [{"name": "v", "secret": {"secretName": "x"}}],
    "tolerations": [{"key": "a"}],
    "containers": [
        {
            "name": "m",
            "image": "b",
            "env": [{"name": "x", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}],
            "ports": [{"containerPort": 1}],
            "volumeMounts": [{"name": "v", "mountPath": "/x"}],
            "livenessProbe": {"initialDelaySeconds": 1},
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
        }
    ],
}
METADATA: Json = {
    "name": "x",
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "finalizers": ["a.b/c"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "1", "controller": True}],
}
WORKLOAD: Json = {
    "replicas": 2,
    "strategy": {"type": "RollingUpdate"},
    "selector": {"matchLabels": {"a": "d"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["d"]}]},
    "template": {"metadata": {"labels": {"a": "d"}}, "spec": POD_SPEC},
}
OBJECTS: dict[str, Json] = {
    "pods": {
        "spec": POD_SPEC,
        "status": {
            "phase": "Running",
            "containerStatuses": [{"restartCount": 1, "state": {"waiting": {"reason": "x"}}}],
        },
    },
    "deployments": {"spec": WORKLOAD, "status": {"readyReplicas": 1}},
    "replicasets": {"spec": WORKLOAD},
    "services": {"spec": {"type": "ClusterIP", "ports": [{"port": 80, "name": "x"}], "selector": {"a": "b"}}},
    "secrets": {"data": {"a": "b"}, "stringData": {"x": "y"}, "type": "Opaque"},
    "events": {
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "x"},
        "source": {"component": "x", "host": "y"},
        "lastTimestamp": "2020-01-01T00:00:00Z",
        "series": {"count": 1},
    },
    "leases": {"spec": {"leaseDurationSeconds": 1, "holderIdentity": "a"}},
    "namespaces": {"spec": {"finalizers": ["a"]}},
    "nodes": {
        "spec": {"taints": [{"key": "a"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "A", "address": "1"}]},
    },
}
TWISTED = st.sampled_from([None, 1, -5, 1.5, "x", "", [], {}, True, [1], ["a"], {"a": 1}, [{}], [None], {"a": None}])


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in members:
        yield (*path, name)
        yield from paths(member, (*path, name))


def twist(obj: Json, data: st.DataObject) -> Json:
    obj = copy.deepcopy(obj)
    for _ in range(data.draw(st.integers(1, 2))):
        *steps, last = data.draw(st.sampled_from(list(paths(obj)) or [("metadata",)]))
        node: Any = obj
        for step in steps:
            node = node[step]
        node[last] = copy.deepcopy(data.draw(TWISTED))
    return obj


def attempt(write: Any) -> None:
    try:
        write()
    except ApiError as error:
        failure = error
    else:
        return
    assert 400 <= failure.status < 500, failure
    assert failure.message


@pytest.mark.parametrize("plural", OBJECTS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_built_in_objects(plural: str, data: st.DataObject) -> None:
    backend = Backend(state=None, committed=lambda event: None)
    [kind] = [each for each in backend.kinds if each.resource.plural == plural]
    good = {"metadata": METADATA, **OBJECTS[plural]}
    key = kind.resource.key("default", "x")
    attempt(lambda: backend.create(kind, "default", twist(good, data), WriteOptions()))
    if backend.store.find(kind.resource, key) is None:
        attempt(lambda: backend.create(kind, "default", copy.deepcopy(good), WriteOptions()))
    for subresource in (None, "status"):
        attempt(lambda: backend.replace(kind, key, twist(good, data), subresource, WriteOptions()))  # noqa: B023
        for media_type in (MERGE, STRATEGIC):
            patch = twist(good, data)
            attempt(lambda: backend.patch(kind, key, media_type, patch, subresource, WriteOptions()))  # noqa: B023
    for stored in backend.store.list(kind.resource).items:
        assert len(tables.cells(kind, stored.object, now=time.time())) == len(tables.headings(kind))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_definitions_and_their_objects(data: st.DataObject, widgets_json: Json) -> None:
    backend = Backend(state=None, committed=lambda event: None)
    [definitions] = [each for each in backend.kinds if each.resource.kind == "CustomResourceDefinition"]
    attempt(lambda: backend.create(definitions, "", twist(widgets_json, data), WriteOptions()))
    for kind in backend.kinds.named("widgets.ex.io"):
        body = {"apiVersion": kind.api_version, "kind": kind.resource.kind, "metadata": {"name": "w"}}
        body["spec"] = {"size": 1, "list": [{"when": "x"}], "map": {"a": 1}, "raw": {}}
        attempt(lambda: backend.create(kind, "default", twist(body, data), WriteOptions()))  # noqa: B023
        for stored in backend.store.list(kind.resource).items:
            assert tables.cells(kind, stored.object, now=time.time())
