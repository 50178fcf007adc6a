"""Cells, ages and JSONPath, as pure functions."""

from __future__ import annotations

from typing import Any

import pytest

from pysedna.localcluster import tables
from pysedna.localcluster.jsonpath import JSONPath
from pysedna.localcluster.kinds import built_in, version_priority

NOW = 1_600_000_100.0
STAMP = "2020-09-13T12:26:40Z"  # 100 s before


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (179 * 60, "179m"),
        (3 * 3600 + 60, "3h1m"),
        (9 * 3600, "9h"),
        (47 * 3600, "47h"),
        (48 * 3600 + 3600, "2d1h"),
        (30 * 86400, "30d"),
        (800 * 86400, "2y70d"),
        (4000 * 86400, "10y"),
    ],
)
def test_ages_are_shown_in_two_units_at_most(seconds: float, text: str) -> None:
    assert tables.human_duration(seconds) == text


def pod(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "creationTimestamp": STAMP},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        "status": {"phase": "Running", **status},
    }


def state(**members: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"ready": members.pop("ready", False), "restartCount": 0, "state": members}]}


@pytest.mark.parametrize(
    ("status", "cell"),
    [
        ({}, "Running"),
        ({"phase": "Pending"}, "Pending"),
        ({"reason": "Evicted", "phase": "Failed"}, "Evicted"),
        (state(waiting={"reason": "ImagePullBackOff"}), "ImagePullBackOff"),
        (state(terminated={"reason": "Completed", "exitCode": 0}), "Completed"),
        (state(terminated={"exitCode": 3}), "ExitCode:3"),
        (state(terminated={"signal": 9}), "Signal:9"),
        (state(running={}, ready=True), "Running"),
    ],
)
def test_the_status_of_a_pod_tells_its_trouble_first(status: dict[str, Any], cell: str) -> None:
    assert tables.cells(built_in("Pod"), pod(**status), now=NOW)[2] == cell


def test_a_pod_with_one_container_done_and_one_running_is_running() -> None:
    statuses = [
        {"ready": True, "state": {"running": {}}},
        {"ready": False, "state": {"terminated": {"reason": "Completed"}}},
    ]
    assert tables.cells(built_in("Pod"), pod(containerStatuses=statuses), now=NOW)[1:3] == ["1/2", "Running"]


@pytest.mark.parametrize(
    ("kind", "obj", "cells"),
    [
        ("Namespace", {"status": {"phase": "Active"}}, ["x", "Active", "100s"]),
        ("ConfigMap", {"kind": "ConfigMap", "data": {"a": "", "b": ""}, "binaryData": {"c": ""}}, ["x", 3, "100s"]),
        ("Secret", {"kind": "Secret", "type": "Opaque", "data": {"a": ""}}, ["x", "Opaque", 1, "100s"]),
        ("Lease", {"spec": {"holderIdentity": "me"}}, ["x", "me", "100s"]),
        ("ServiceAccount", {}, ["x", "100s"]),
        (
            "Service",
            {"spec": {"type": "NodePort", "clusterIP": "1.2.3.4", "ports": [{"port": 80, "nodePort": 30000}]}},
            ["x", "NodePort", "1.2.3.4", "<none>", "80:30000/TCP", "100s", "<none>"],
        ),
        (
            "ReplicaSet",
            {"spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}}, "status": {"replicas": 1}},
            ["x", 2, 1, 0, "100s", "", "", "a=b"],
        ),
        (
            "Node",
            {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            ["x", "NotReady,SchedulingDisabled", "<none>", "100s", "", "<none>", "<none>", *["<unknown>"] * 3],
        ),
        (
            "Event",
            {
                "involvedObject": {"kind": "Pod", "name": "p"},
                "type": "Normal",
                "reason": "R",
                "message": "hello\n",
                "lastTimestamp": STAMP,
                "count": 4,
                "source": {"component": "me", "host": "h"},
            },
            ["100s", "Normal", "R", "pod/p", "", "me, h", "hello", "<unknown>", "4", "x"],
        ),
    ],
)
def test_rows_of_built_in_kinds(kind: str, obj: dict[str, Any], cells: list[Any]) -> None:
    obj = {"metadata": {"name": "x", "creationTimestamp": STAMP}, **obj}
    assert tables.cells(built_in(kind), obj, now=NOW) == cells
    assert len(tables.headings(built_in(kind))) == len(cells)


OBJ = {
    "metadata": {"annotations": {"a.b/c": "1"}},
    "list": [{"type": "A", "n": 1}, {"type": "B", "n": 2}],
    "map": {"x": 1, "y": 2},
    "flag": True,
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".flag", [True]),
        ("flag", [True]),
        ("{.flag}", [True]),
        (".list[0].n", [1]),
        (".list[-1].n", [2]),
        (".list[9].n", []),
        (".list[*].n", [1, 2]),
        ('.list[?(@.type=="B")].n', [2]),
        (".list[?(@.type!='B')].n", [1]),
        (".metadata.annotations['a.b/c']", ["1"]),
        (r".metadata.annotations.a\.b/c", ["1"]),
        (".map[*]", [1, 2]),
        (".nothing.at.all", []),
        ("", [OBJ]),
    ],
)
def test_json_paths(path: str, found: list[Any]) -> None:
    assert JSONPath(path).find(OBJ) == found


@pytest.mark.parametrize("path", ["..a", ".a[", ".a[?(@.b)]", ".a[1:2]"])
def test_json_paths_outside_the_subset_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="unsupported JSONPath"):
        JSONPath(path)


def test_versions_are_preferred_by_stability_then_number() -> None:
    versions = ["v1alpha1", "foo", "v2", "v1beta2", "v10", "v1beta1", "v1"]
    assert sorted(versions, key=version_priority) == ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]
