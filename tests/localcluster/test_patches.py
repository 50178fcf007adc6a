"""Patches as pure functions: merge, strategic and their directives."""

from __future__ import annotations

from typing import Any

import pytest

from informers.errors import BadRequestError
from pysedna.localcluster.patches import merged
from pysedna.localcluster.strategic import merge


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ({}, {"a": None}, {}),
    ],
)
def test_merge_patches_follow_rfc_7386(target: Any, patch: Any, result: Any) -> None:
    assert merged(target, patch) == result


def container(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, **members}


AB = {"containers": [container("a", image="1", env=[{"name": "X", "value": "1"}]), container("b", image="2")]}


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        pytest.param(
            AB,
            {"containers": [container("b", image="3"), container("c", image="4")]},
            {"containers": [AB["containers"][0], container("b", image="3"), container("c", image="4")]},
            id="items are merged by key, the server's earlier ones stay in front",
        ),
        pytest.param(
            AB,
            {"containers": [container("a", env=[{"name": "Y", "value": "2"}, {"name": "X", "$patch": "delete"}])]},
            {
                "containers": [
                    container("a", image="1", env=[{"name": "Y", "value": "2"}]),
                    container("b", image="2"),
                ]
            },
            id="$patch delete takes one item away, nested lists are merged too",
        ),
        pytest.param(
            AB,
            {"containers": [container("c"), {"$patch": "replace"}]},
            {"containers": [container("c")]},
            id="$patch replace in a list replaces it",
        ),
        pytest.param(
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
            id="$retainKeys drops the other members",
        ),
        pytest.param(
            {"labels": {"a": "1", "b": "2"}},
            {"labels": {"$patch": "replace", "c": "3"}},
            {"labels": {"c": "3"}},
            id="$patch replace in a map replaces it",
        ),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {}, id="$patch delete in a map removes it"),
        pytest.param({"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}, id="other lists are replaced"),
        pytest.param(
            {"finalizers": ["a", "b"]},
            {"finalizers": ["b", "c"]},
            {"finalizers": ["a", "b", "c"]},
            id="finalizers join",
        ),
        pytest.param(
            {"finalizers": ["a", "b"]},
            {"$deleteFromPrimitiveList/finalizers": ["a"]},
            {"finalizers": ["b"]},
            id="$deleteFromPrimitiveList",
        ),
        pytest.param(
            AB,
            {
                "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}],
                "containers": [container("c")],
            },
            {"containers": [container("c"), AB["containers"][1], AB["containers"][0]]},
            id="$setElementOrder",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80, "name": "x"}]},
            {"ports": [{"containerPort": 80, "name": "y"}, {"containerPort": 81}]},
            {"ports": [{"containerPort": 80, "name": "y"}, {"containerPort": 81}]},
            id="a container's ports go by containerPort",
        ),
        pytest.param(
            {"ports": [{"port": 80}]},
            {"ports": [{"port": 81}, {"port": 80, "$patch": "delete"}]},
            {"ports": [{"port": 81}]},
            id="a service's ports go by port",
        ),
        pytest.param(
            AB,
            {"containers": [container("c")]},
            {"containers": [container("c"), *AB["containers"]]},
            id="new items lead",
        ),
        pytest.param({"a": 1}, {"a": None, "b": {"c": None}}, {"b": {}}, id="null removes"),
    ],
)
def test_strategic_merge(target: Any, patch: Any, result: Any) -> None:
    assert merge(target, patch) == result


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(BadRequestError, match="does not contain declared merge key: name"):
        merge(AB, {"containers": [{"image": "x"}]})
    with pytest.raises(BadRequestError, match="Unknown patch type"):
        merge({}, {"$patch": "jump"})


def test_the_target_is_left_alone() -> None:
    before = {"containers": [container("a", image="1")]}
    merge(before, {"containers": [container("a", image="2")]})
    assert before == {"containers": [container("a", image="1")]}
