"""Dependents go when their owners are gone, on a real server, whatever their kinds."""

from __future__ import annotations

from typing import Any

import pytest

from informers import Object
from pysedna.controller import owner_reference

MAP = "ConfigMap"


def owned_by(owner: Object, *, block: bool = True) -> dict[str, Any]:
    return owner_reference(owner, controller=False, block_owner_deletion=block)


def test_a_dependent_goes_after_its_owner(kit: Any) -> None:
    owner = kit.create(MAP, "owner")
    kit.create("Secret", "child", owners=[owned_by(owner)])
    kit.delete(MAP, "owner")
    kit.gone("Secret", "child")


def test_a_chain_goes_link_by_link(kit: Any) -> None:
    first = kit.create(MAP, "a")
    second = kit.create("Secret", "b", owners=[owned_by(first)])
    kit.create(MAP, "c", owners=[owned_by(second)])
    kit.delete(MAP, "a")
    kit.gone(MAP, "c")


def test_an_object_made_for_an_owner_that_is_gone_already_goes(kit: Any) -> None:
    owner = kit.create(MAP, "owner")
    kit.delete(MAP, "owner")
    kit.create(MAP, "late", owners=[owned_by(owner)])
    kit.gone(MAP, "late")


def test_another_object_under_the_owners_name_is_not_the_owner(kit: Any) -> None:
    owner = kit.create(MAP, "owner")
    kit.delete(MAP, "owner")
    kit.create(MAP, "owner")
    kit.create(MAP, "late", owners=[owned_by(owner)])
    kit.gone(MAP, "late")
    assert kit.get(MAP, "owner") is not None


def test_of_two_owners_one_goes_and_the_dependent_stays_without_it(kit: Any) -> None:
    first, second = kit.create(MAP, "first"), kit.create(MAP, "second")
    kit.create("Secret", "child", owners=[owned_by(first), owned_by(second)])
    kit.delete(MAP, "first")
    child = kit.wait("Secret", "child", lambda obj: obj is not None and len(obj.owner_references) == 1)
    assert child.owner_references[0].uid == second.uid
    kit.delete(MAP, "second")
    kit.gone("Secret", "child")


def test_foreground_deletion_waits_for_the_dependents_that_block(kit: Any) -> None:
    owner = kit.create(MAP, "owner")
    kit.create(MAP, "held", owners=[owned_by(owner)], metadata={"finalizers": ["example.com/hold"]})
    kit.create(MAP, "free", owners=[owned_by(owner, block=False)], metadata={"finalizers": ["example.com/hold"]})
    kit.delete(MAP, "owner", propagation="Foreground")
    kit.wait(MAP, "held", lambda obj: obj.deletion_timestamp)
    kit.wait(MAP, "free", lambda obj: obj.deletion_timestamp)
    assert "foregroundDeletion" in kit.get(MAP, "owner").finalizers
    kit.client.resource("v1", MAP).patch(f"{kit.namespace}/held", {"metadata": {"finalizers": None}})
    kit.gone(MAP, "owner")
    assert kit.get(MAP, "free") is not None


def test_orphaned_dependents_stay_without_their_owner(kit: Any) -> None:
    owner = kit.create(MAP, "owner")
    kit.create("Secret", "child", owners=[owned_by(owner)])
    kit.delete(MAP, "owner", propagation="Orphan")
    kit.gone(MAP, "owner")
    child = kit.get("Secret", "child")
    assert child is not None
    assert child.owner_references == ()
    assert child.deletion_timestamp is None


def test_a_cycle_of_owners_does_not_wait_for_ever(kit: Any) -> None:
    first = kit.create(MAP, "a")
    second = kit.create(MAP, "b", owners=[owned_by(first)])
    references = {"metadata": {"ownerReferences": [owned_by(second)]}}
    kit.client.resource("v1", MAP).patch(first.key, references)
    kit.delete(MAP, "a", propagation="Foreground")
    kit.gone(MAP, "a")
    kit.gone(MAP, "b")


def test_a_cluster_scoped_owner_counts_too(kit: Any) -> None:
    node = kit.client.resource("v1", "Node").create({"metadata": {"name": f"x-{kit.namespace}"}, "spec": {}})
    kit.create(MAP, "child", owners=[owned_by(node)])
    kit.client.resource("v1", "Node").delete(node.key)
    kit.gone(MAP, "child")


def test_an_owner_in_another_namespace_does_not_count(kit: Any, client: Any) -> None:
    other = client.resource("v1", MAP).create({"metadata": {"name": "far", "namespace": "default"}})
    kit.create(MAP, "child", owners=[owned_by(other)])
    kit.gone(MAP, "child")
    client.resource("v1", MAP).delete(other.key)


@pytest.fixture
def widgets(cluster: Any, client: Any, request: pytest.FixtureRequest) -> Any:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    cluster.install_crds([crd])
    yield "example.com/v1"
    definitions = client.resource("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    if definitions.list(field_selector="metadata.name=widgets.example.com").items:
        definitions.delete("widgets.example.com")
    definitions.wait_until("widgets.example.com", lambda obj: obj is None, 60)


def test_kinds_that_come_later_own_and_are_owned(kit: Any, widgets: str) -> None:
    owner = kit.create("Widget", "owner", api_version=widgets)
    middle = kit.create(MAP, "middle", owners=[owned_by(owner)])
    kit.create("Widget", "leaf", api_version=widgets, owners=[owned_by(middle)])
    kit.delete("Widget", "owner", api_version=widgets)
    kit.gone(MAP, "middle")
    kit.gone("Widget", "leaf", api_version=widgets)


def test_what_the_objects_of_a_kind_own_goes_with_the_kind(kit: Any, widgets: str, client: Any) -> None:
    owner = kit.create("Widget", "owner", api_version=widgets)
    kit.create(MAP, "child", owners=[owned_by(owner)])
    client.resource("apiextensions.k8s.io/v1", "CustomResourceDefinition").delete("widgets.example.com")
    kit.gone(MAP, "child")
