"""Garbage collection: who goes with an owner, who stays, and who is waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any
    Eventually = Callable[[Callable[[], object]], None]
    Family = Callable[..., Json]

FINALIZER = "example.com/hold"


def _reference(owner: Json, **more: Any) -> Json:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        **more,
    }


@pytest.fixture
def maps(core: str) -> str:
    return f"{core}/configmaps"


@pytest.fixture
def add(api: Api, maps: str) -> Family:
    """add(name, owner, ..., finalizers=[...]) makes a ConfigMap; owners are objects or references."""

    def make(name: str, *owners: Json, **metadata: Any) -> Json:
        references = [each if "uid" in each else _reference(each) for each in owners]
        made: Json = api.create(maps, {"metadata": {"name": name, "ownerReferences": references, **metadata}})
        assert made["kind"] == "ConfigMap", made
        return made

    return make


@pytest.fixture
def gone(api: Api, maps: str) -> Callable[[str], bool]:
    return lambda name: api.get(f"{maps}/{name}").get("code") == 404


@pytest.fixture
def release(api: Api, maps: str) -> Callable[[str], None]:
    """Takes the finalizers of these cases off an object, and leaves those of the garbage collector."""

    def take(name: str) -> None:
        kept = [each for each in api.get(f"{maps}/{name}")["metadata"]["finalizers"] if each != FINALIZER]
        api.merge(f"{maps}/{name}", {"metadata": {"finalizers": kept}})

    return take


def test_what_is_owned_goes_after_its_owner_and_so_do_its_own(
    api: Api, maps: str, add: Family, gone: Callable[[str], bool], eventually: Eventually
) -> None:
    owner = add("owner")
    child = add("child", owner)
    add("grandchild", child)
    add("other")
    assert api.delete(f"{maps}/owner")["status"] == "Success"
    assert gone("owner")
    eventually(lambda: gone("child") and gone("grandchild"))
    assert not gone("other")


def test_whose_owners_are_absent_from_the_start_is_collected(
    add: Family, gone: Callable[[str], bool], eventually: Eventually
) -> None:
    add("child", {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "no-such-uid"})
    eventually(lambda: gone("child"))


def test_an_owner_is_known_by_its_uid_and_not_by_its_name(
    add: Family, gone: Callable[[str], bool], eventually: Eventually
) -> None:
    owner = add("owner")
    add("child", {**_reference(owner), "uid": "that-of-a-predecessor"})
    eventually(lambda: gone("child"))
    assert not gone("owner")


def test_of_two_owners_one_goes_and_the_child_stays_without_that_reference(
    api: Api, maps: str, add: Family, gone: Callable[[str], bool], eventually: Eventually
) -> None:
    first, second = add("first"), add("second")
    add("child", first, second)
    api.delete(f"{maps}/first")
    eventually(lambda: api.get(f"{maps}/child")["metadata"]["ownerReferences"] == [_reference(second)])
    api.delete(f"{maps}/second")
    eventually(lambda: gone("child"))


def test_orphaned_children_stay_and_lose_their_reference(
    api: Api, maps: str, add: Family, gone: Callable[[str], bool], eventually: Eventually
) -> None:
    owner = add("owner")
    add("child", owner)
    marked = api.delete(f"{maps}/owner", {"propagationPolicy": "Orphan"})
    assert marked["metadata"]["finalizers"] == ["orphan"]
    eventually(lambda: gone("owner"))
    assert "ownerReferences" not in api.get(f"{maps}/child")["metadata"]


def test_in_the_foreground_an_owner_waits_for_those_that_block_it(
    api: Api, maps: str, add: Family, gone: Callable, release: Callable, eventually: Eventually
) -> None:
    owner = add("owner")
    add("blocking", _reference(owner, blockOwnerDeletion=True), finalizers=[FINALIZER])
    add("other", owner, finalizers=[FINALIZER])
    marked = api.delete(f"{maps}/owner", {"propagationPolicy": "Foreground"})
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    eventually(lambda: "deletionTimestamp" in api.get(f"{maps}/blocking")["metadata"])
    eventually(lambda: "deletionTimestamp" in api.get(f"{maps}/other")["metadata"])
    assert not gone("owner")
    release("blocking")
    eventually(lambda: gone("owner"))
    assert not gone("other")
    release("other")


def test_in_the_background_nobody_waits(
    api: Api, maps: str, add: Family, gone: Callable, release: Callable, eventually: Eventually
) -> None:
    owner = add("owner")
    add("blocking", _reference(owner, blockOwnerDeletion=True), finalizers=[FINALIZER])
    api.delete(f"{maps}/owner")
    assert gone("owner")
    eventually(lambda: "deletionTimestamp" in api.get(f"{maps}/blocking")["metadata"])
    release("blocking")


def test_a_child_of_another_kind_or_namespace_is_told_apart(
    api: Api, core: str, maps: str, add: Family, gone: Callable[[str], bool], eventually: Eventually
) -> None:
    owner = add("owner")
    api.create(f"{core}/secrets", {"metadata": {"name": "child", "ownerReferences": [_reference(owner)]}})
    # An owner in another namespace cannot be: whoever names one is treated as if it had none.
    foreign = api.get("/api/v1/namespaces/kube-system/serviceaccounts/default")
    if foreign.get("kind") == "ServiceAccount":
        add("foreign", foreign)
        eventually(lambda: gone("foreign"))
    api.delete(f"{maps}/owner")
    eventually(lambda: api.get(f"{core}/secrets/child").get("code") == 404)
