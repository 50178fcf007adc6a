"""How a Deployment is rolled from one template to the next: tables, and random rollouts that must keep their bounds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysedna.localcluster.controllers.rollout import (
    REVISION,
    Bounds,
    Rollout,
    bounds,
    find_new,
    is_complete,
    new_replica_set,
    plan,
    status,
    template_hash,
)

NOW = 1_800_000_000.0
Json = dict[str, Any]


def template(version: int = 1) -> Json:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": f"web:{version}"}]}}


def deployment(replicas: int = 4, version: int = 1, *, surge: Any = 1, unavailable: Any = 0, **spec: Any) -> Json:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    body = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(version),
        "strategy": rolling,
        **spec,
    }
    return {"metadata": {"name": "web", "namespace": "ns", "uid": "d", "generation": 2}, "spec": body, "status": {}}


def replica_set(version: int, replicas: int, available: int | None = None, *, revision: int = 0, **more: Any) -> Json:
    told = replicas if available is None else available
    return {
        "metadata": {
            "name": f"web-{version}",
            "uid": f"rs-{version}",
            "creationTimestamp": f"2027-01-15T0{version}:00:00Z",
            "generation": 1,
            "annotations": {REVISION: str(revision or version)},
            **more,
        },
        "spec": {"replicas": replicas, "template": template(version)},
        "status": {"replicas": replicas, "readyReplicas": told, "availableReplicas": told, "observedGeneration": 1},
    }


def scaled(found: Rollout) -> dict[str, int]:
    return {one.replica_set["metadata"]["name"]: one.replicas for one in found.scale}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (4, "25%", "25%", Bounds(1, 1)),
        (10, "25%", "25%", Bounds(3, 2)),
        (1, "25%", "25%", Bounds(1, 0)),
        (3, 0, 0, Bounds(0, 1)),
        (3, "0%", 1, Bounds(0, 1)),
        (2, 5, 5, Bounds(5, 2)),
    ],
)
def test_shares_of_pods_are_rounded_up_for_surge_and_down_for_unavailable(
    replicas: int, surge: Any, unavailable: Any, expected: Bounds
) -> None:
    assert bounds(deployment(replicas, surge=surge, unavailable=unavailable)) == expected


STEPS: list[tuple[str, Json, list[Json], dict[str, int]]] = [
    ("the new one grows into the surge", deployment(4, 2), [replica_set(1, 4), replica_set(2, 0)], {"web-2": 1}),
    ("nothing while the new pod is not there yet", deployment(4, 2), [replica_set(1, 4), replica_set(2, 1, 0)], {}),
    ("an old pod goes for each new one", deployment(4, 2), [replica_set(1, 4), replica_set(2, 1)], {"web-1": 3}),
    (
        "without surge an old one goes first",
        deployment(4, 2, surge=0, unavailable=1),
        [replica_set(1, 4), replica_set(2, 0)],
        {"web-1": 3},
    ),
    (
        "old pods that are not available hold nobody up",
        deployment(4, 2, unavailable=1),
        [replica_set(1, 4, 1), replica_set(2, 1, 1)],
        {"web-1": 2},
    ),
    ("scaled up", deployment(6, 1), [replica_set(1, 4)], {"web-1": 6}),
    ("scaled down", deployment(2, 1), [replica_set(1, 4)], {"web-1": 2}),
    (
        "the oldest goes first",
        deployment(2, 3),
        [replica_set(1, 1), replica_set(2, 1), replica_set(3, 1)],
        {"web-1": 0},
    ),
    ("all there: nothing", deployment(4, 2), [replica_set(1, 0), replica_set(2, 4)], {}),
]


@pytest.mark.parametrize(("rule", "subject", "sets", "expected"), STEPS, ids=[step[0] for step in STEPS])
def test_a_rolling_update_step(rule: str, subject: Json, sets: list[Json], expected: dict[str, int]) -> None:
    found = plan(subject, sets, [])
    assert scaled(found) == expected
    assert found.create is None


def test_a_new_template_gets_a_replica_set_no_larger_than_the_surge() -> None:
    found = plan(deployment(4, 2), [replica_set(1, 4, revision=7)], [])
    assert found.create is not None
    assert found.create["spec"]["replicas"] == 1
    assert found.create["metadata"]["annotations"][REVISION] == "8"
    assert plan(deployment(4, 1), [], []).create["spec"]["replicas"] == 4  # type: ignore[index]


def test_one_that_is_being_deleted_does_nothing() -> None:
    subject = deployment(4, 2)
    subject["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    assert plan(subject, [replica_set(1, 4)], []) == Rollout()


def pod_of(version: int, **more: Any) -> Json:
    owner = {"uid": f"rs-{version}", "controller": True}
    return {"metadata": {"name": "p", "ownerReferences": [owner], **more}, "status": {"phase": "Running"}}


def test_recreate_goes_down_waits_and_only_then_up() -> None:
    subject = deployment(2, 2, strategy={"type": "Recreate"})
    assert scaled(plan(subject, [replica_set(1, 2)], [pod_of(1)])) == {"web-1": 0}
    leaving = pod_of(1, deletionTimestamp="2027-01-15T08:00:00Z")
    waiting = plan(subject, [replica_set(1, 0)], [leaving])
    assert (waiting.create, waiting.scale) == (None, ())
    up = plan(subject, [replica_set(1, 0)], [])
    assert up.create is not None
    assert up.create["spec"]["replicas"] == 2


def test_an_old_template_that_comes_back_gets_the_newest_revision() -> None:
    sets = [replica_set(1, 0, revision=1), replica_set(2, 4, revision=2)]
    found = plan(deployment(4, 1), sets, [])
    assert found.new is sets[0]
    assert found.revision == 3


def test_history_is_cut_when_nothing_is_left_to_scale_down() -> None:
    sets = [replica_set(1, 0), replica_set(2, 0), replica_set(3, 4)]
    found = plan(deployment(4, 3, revisionHistoryLimit=1), sets, [])
    assert [one["metadata"]["name"] for one in found.remove] == ["web-1"]
    assert plan(deployment(4, 3), sets, []).remove == ()


def test_the_hash_does_not_depend_on_the_order_of_fields() -> None:
    one, two = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert template_hash(one) == template_hash(two) != template_hash(one, 1)
    assert len(template_hash(one)) == 10


def test_the_new_one_is_found_by_its_template_whatever_its_hash() -> None:
    made = new_replica_set(deployment(4, 2), 1, 2)
    assert find_new(deployment(4, 2), [replica_set(1, 4), made]) is made
    assert find_new(deployment(4, 3), [made]) is None


def test_the_status_adds_up_and_says_what_holds() -> None:
    sets = [replica_set(1, 3, 3), replica_set(2, 1, 0)]
    found, wake = status(deployment(4, 2, progressDeadlineSeconds=60), sets, NOW, new=sets[1])
    numbers = {name: value for name, value in found.items() if name != "conditions"}
    assert numbers == {
        "observedGeneration": 2,
        "replicas": 4,
        "updatedReplicas": 1,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "unavailableReplicas": 1,
    }
    held = {one["type"]: (one["status"], one["reason"]) for one in found["conditions"]}
    assert held == {
        "Available": ("False", "MinimumReplicasUnavailable"),
        "Progressing": ("True", "NewReplicaSetCreated"),
    }
    assert wake == NOW + 60


def test_saying_the_same_again_writes_nothing_and_the_deadline_stays() -> None:
    subject = deployment(4, 2, progressDeadlineSeconds=60)
    sets = [replica_set(1, 3, 3), replica_set(2, 1, 0)]
    subject["status"], _ = status(subject, sets, NOW, new=sets[1])
    again, wake = status(subject, sets, NOW + 30, new=sets[1])
    assert again == subject["status"]
    assert wake == NOW + 60


def test_a_rollout_past_its_deadline_says_so_and_progress_makes_it_good_again() -> None:
    subject = deployment(4, 2, progressDeadlineSeconds=60)
    sets = [replica_set(1, 3, 3), replica_set(2, 1, 0)]
    subject["status"], _ = status(subject, sets, NOW, new=sets[1])
    subject["status"], wake = status(subject, sets, NOW + 60, new=sets[1])
    assert _reason(subject) == ("False", "ProgressDeadlineExceeded")
    assert wake is None
    subject["status"], _ = status(subject, [sets[0], replica_set(2, 1, 1)], NOW + 70, new=replica_set(2, 1, 1))
    assert _reason(subject) == ("True", "ReplicaSetUpdated")


def _reason(subject: Json) -> tuple[str, str]:
    found = next(one for one in subject["status"]["conditions"] if one["type"] == "Progressing")
    return found["status"], found["reason"]


class Simulation:
    """A Deployment, its ReplicaSets and the availability of their pods, moved step by step."""

    def __init__(self, replicas: int, surge: int, unavailable: int) -> None:
        self.subject = deployment(replicas, 1, surge=surge, unavailable=unavailable)
        self.sets: list[Json] = [replica_set(1, replicas)]

    def roll_to(self, version: int) -> None:
        self.subject = {**self.subject, "spec": {**self.subject["spec"], "template": template(version)}}

    def step(self) -> bool:
        """One reconcile; whether it did anything."""
        found = plan(self.subject, self.sets, [])
        if found.create is not None:
            version = int(found.create["spec"]["template"]["spec"]["containers"][0]["image"].split(":")[1])
            self.sets.append(replica_set(version, found.create["spec"]["replicas"], 0, revision=found.revision))
        for one in found.scale:
            one.replica_set["spec"]["replicas"] = one.replicas
            told = one.replica_set["status"]
            told["replicas"] = one.replicas
            told["availableReplicas"] = min(told["availableReplicas"], one.replicas)
        return found.create is not None or bool(found.scale)

    def become_available(self, index: int, pods: int) -> None:
        one = self.sets[index % len(self.sets)]
        told = one["status"]
        told["availableReplicas"] = min(one["spec"]["replicas"], told["availableReplicas"] + pods)

    def total(self) -> int:
        return sum(one["spec"]["replicas"] for one in self.sets)

    def available(self) -> int:
        return sum(one["status"]["availableReplicas"] for one in self.sets)


MOVES = st.one_of(
    st.tuples(st.just("roll"), st.integers(1, 4)),
    st.tuples(st.just("step"), st.just(0)),
    st.tuples(st.just("ready"), st.integers(0, 3)),
)


@settings(max_examples=300, deadline=None)
@given(
    replicas=st.integers(1, 8),
    surge=st.integers(0, 3),
    unavailable=st.integers(0, 3),
    moves=st.lists(MOVES, max_size=40),
)
def test_random_rollouts_keep_their_bounds_and_come_to_an_end(
    replicas: int, surge: int, unavailable: int, moves: list[tuple[str, int]]
) -> None:
    world = Simulation(replicas, surge, unavailable)
    limit = bounds(world.subject)
    for move, value in moves:
        if move == "roll":
            world.roll_to(value)
        elif move == "step":
            world.step()
        else:
            world.become_available(value, 1)
        assert world.total() <= replicas + limit.surge
        assert world.available() >= replicas - limit.unavailable
    for _ in range(200):
        acted = world.step()
        for index in range(len(world.sets)):
            world.become_available(index, replicas)
        if not acted and not world.step():
            break
    new = find_new(world.subject, world.sets)
    assert new is not None
    assert new["spec"]["replicas"] == replicas == world.total()
    told, _ = status(world.subject, world.sets, NOW, new=new)
    told["updatedReplicas"] = new["spec"]["replicas"]
    assert is_complete(world.subject, told)
