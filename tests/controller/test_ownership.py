"""Owner references and the mapping from children to owners."""

from __future__ import annotations

from typing import Any

import pytest

from informers import Object, ObjectKey
from pysedna.controller import owner_reference, owners, rfc3339, set_condition


def reference(api_version: str = "apps/v1", kind: str = "Deployment", name: str = "web", **more: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": True, **more}


def test_a_reference_names_version_kind_name_and_uid_and_blocks_deletion(make_object: Any) -> None:
    assert owner_reference(make_object("web", uid="u1")) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "web",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_an_object_that_no_server_has_stored_cannot_own() -> None:
    with pytest.raises(ValueError, match="ns/web cannot own anything: it has no uid"):
        owner_reference(
            Object.from_dict({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "ns"}})
        )


@pytest.mark.parametrize(
    ("references", "found"),
    [
        ([], []),
        ([reference()], ["web"]),
        ([reference("apps/v1beta2")], ["web"]),
        ([reference("extensions/v1")], []),
        ([reference(kind="ReplicaSet")], []),
        ([reference(controller=False)], []),
        ([reference(name="a", controller=False), reference(name="b")], ["b"]),
        ([reference("not/an/api/version")], []),
    ],
    ids=["none", "match", "other version", "other group", "other kind", "not controller", "one controls", "unreadable"],
)
def test_owners_match_by_group_and_kind(references: list[dict], found: list[str], make_object: Any) -> None:
    child = make_object(metadata={"ownerReferences": references})
    keys = owners(("apps/v1", "Deployment"))(child)
    assert list(keys) == [ObjectKey("ns", name) for name in found]


def test_all_owners_count_when_asked(make_object: Any) -> None:
    child = make_object(metadata={"ownerReferences": [reference(name="a", controller=False), reference(name="b")]})
    assert len(list(owners(("apps/v1", "Deployment"), controller_only=False)(child))) == 2


def test_a_cluster_scoped_owner_has_no_namespace(make_object: Any) -> None:
    child = make_object(metadata={"ownerReferences": [reference("v1", "Node", "n1")]})
    assert list(owners(("v1", "Node"), cluster_scoped=True)(child)) == [ObjectKey("", "n1")]


NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def test_a_new_condition_is_appended() -> None:
    assert set_condition([{"type": "A", "status": "True"}], "Ready", True, reason="Up", message="all up", now=NOW) == [
        {"type": "A", "status": "True"},
        {"type": "Ready", "status": "True", "reason": "Up", "message": "all up", "lastTransitionTime": NOW},
    ]


def test_the_transition_time_moves_with_the_status_only() -> None:
    first = set_condition([], "Ready", "Unknown", reason="Starting", now=NOW)
    told = set_condition(first, "Ready", "Unknown", reason="StillStarting", observed_generation=2, now=LATER)
    moved = set_condition(told, "Ready", False, reason="Down", now=LATER)
    assert told[0]["lastTransitionTime"] == NOW
    assert told[0]["observedGeneration"] == 2
    assert moved[0]["lastTransitionTime"] == LATER


def test_saying_the_same_again_changes_nothing_and_arguments_are_left_alone() -> None:
    first = set_condition([], "Ready", True, reason="Up", now=NOW)
    again = set_condition(first, "Ready", True, reason="Up", now=LATER)
    assert again == first
    assert again[0] is not first[0]


def test_times_are_utc_in_whole_seconds() -> None:
    assert rfc3339(0.9) == "1970-01-01T00:00:00Z"
