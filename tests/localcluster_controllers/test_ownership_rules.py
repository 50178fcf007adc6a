"""When an object goes because its owners went."""

from __future__ import annotations

from typing import Any

import pytest

from informers import Object
from pysedna.localcluster.controllers.ownership_rules import (
    FOREGROUND,
    ORPHAN,
    Delete,
    Leave,
    Owner,
    OwnerStep,
    Release,
    Unblock,
    judge,
    owner_step,
)

SOLID, ABSENT, WAITING = Owner.SOLID, Owner.ABSENT, Owner.WAITING


def obj(
    name: str = "x", *owners: str, finalizers: tuple[str, ...] = (), deleting: bool = False, block: bool = True
) -> Object:
    references = [
        {"apiVersion": "v1", "kind": "K", "name": uid, "uid": uid, "blockOwnerDeletion": block} for uid in owners
    ]
    metadata: dict[str, Any] = {
        "name": name,
        "uid": name,
        "resourceVersion": "1",
        "finalizers": list(finalizers),
        "ownerReferences": references,
    }
    if deleting:
        metadata["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    return Object.from_dict({"apiVersion": "v1", "kind": "K", "metadata": metadata})


@pytest.mark.parametrize(
    ("rule", "subject", "owners", "verdict"),
    [
        ("no owners: stays", obj(), {}, Leave()),
        ("all there: stays", obj("x", "a", "b"), {"a": SOLID, "b": SOLID}, Leave()),
        ("the only one is gone: goes", obj("x", "a"), {"a": ABSENT}, Delete("Background")),
        ("both are gone: goes", obj("x", "a", "b"), {"a": ABSENT, "b": ABSENT}, Delete("Background")),
        ("one of two is gone: stays, without it", obj("x", "a", "b"), {"a": ABSENT, "b": SOLID}, Release(("a",))),
        ("one of two waits: stays, without it", obj("x", "a", "b"), {"a": WAITING, "b": SOLID}, Release(("a",))),
        ("the only one waits for it: goes", obj("x", "a"), {"a": WAITING}, Delete("Background")),
        ("being deleted already: stays", obj("x", "a", deleting=True), {"a": ABSENT}, Leave()),
        ("not looked up: counts as there", obj("x", "a"), {}, Leave()),
        ("asked to orphan: goes so", obj("x", "a", finalizers=(ORPHAN,)), {"a": ABSENT}, Delete("Orphan")),
        ("asked for foreground: goes so", obj("x", "a", finalizers=(FOREGROUND,)), {"a": ABSENT}, Delete("Foreground")),
    ],
)
def test_what_becomes_of_a_dependent(rule: str, subject: Object, owners: dict[str, Owner], verdict: Any) -> None:
    assert judge(subject, owners, []) == verdict


def test_a_dependent_with_dependents_goes_in_the_foreground_when_its_owner_waits() -> None:
    assert judge(obj("rs", "a"), {"a": WAITING}, [obj("pod", "rs")]) == Delete("Foreground")


def test_a_cycle_of_waiting_owners_is_opened() -> None:
    waiting = obj("a", "x", finalizers=(FOREGROUND,), deleting=True)
    assert judge(obj("x", "a"), {"a": WAITING}, [waiting]) == (Unblock(("a",)), Delete("Foreground"))


def test_an_owner_waits_for_the_dependents_that_block_it() -> None:
    owner = obj("o", finalizers=(FOREGROUND,), deleting=True)
    child = obj("c", "o")
    assert owner_step(owner, [child]) == OwnerStep(examine=(child,))
    assert owner_step(owner, []) == OwnerStep(done=FOREGROUND)


def test_a_dependent_that_does_not_block_is_not_waited_for_but_goes_too() -> None:
    child = obj("c", "o", block=False)
    owner = obj("o", finalizers=(FOREGROUND,), deleting=True)
    assert owner_step(owner, [child]) == OwnerStep(examine=(child,), done=FOREGROUND)


def test_an_owner_that_orphans_lets_go_of_its_dependents_first() -> None:
    owner = obj("o", finalizers=(ORPHAN,), deleting=True)
    child = obj("c", "o")
    assert owner_step(owner, [child]) == OwnerStep(release=(child,))
    assert owner_step(owner, []) == OwnerStep(done=ORPHAN)


def test_an_owner_with_other_finalizers_is_not_the_collectors_business() -> None:
    assert owner_step(obj("o", finalizers=("example.com/x",), deleting=True), [obj("c", "o")]) == OwnerStep()
    assert owner_step(obj("o", finalizers=(FOREGROUND,)), [obj("c", "o")]) == OwnerStep()
