"""Deployments and their ReplicaSets. Nobody simulates the node of their pods: the case says when they are ready."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any
    Make = Callable[..., Json]
    Eventually = Callable[[Callable[[], object]], None]

REVISION = "deployment.kubernetes.io/revision"
NOW = "2026-01-01T00:00:00Z"
IMAGE_2 = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}}}


class Workload:
    """One Deployment `d`, its ReplicaSets and its pods."""

    def __init__(self, api: Api, core: str, apps: str, eventually: Eventually) -> None:
        self.api = api
        self.core = core
        self.apps = apps
        self.path = f"{apps}/deployments/d"
        self.eventually = eventually

    def get(self) -> Json:
        found: Json = self.api.get(self.path)
        return found

    def replica_sets(self) -> dict[str, Json]:
        """By image."""
        items = self.api.get(f"{self.apps}/replicasets")["items"]
        return {each["spec"]["template"]["spec"]["containers"][0]["image"]: each for each in items}

    def pods(self) -> list[Json]:
        found = self.api.get(f"{self.core}/pods")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def replicas(self) -> dict[str, int]:
        return {image: each["spec"]["replicas"] for image, each in self.replica_sets().items()}

    def work(self) -> None:
        """What nodes would do: all pods become ready, those that are being deleted end."""
        for pod in self.api.get(f"{self.core}/pods")["items"]:
            path = f"{self.core}/pods/{pod['metadata']['name']}"
            if "deletionTimestamp" in pod["metadata"]:
                self.api.delete(path, gracePeriodSeconds="0")
            elif pod["status"]["phase"] == "Pending":
                ready = {"type": "Ready", "status": "True", "lastTransitionTime": NOW}
                self.api.merge(f"{path}/status", {"status": {"phase": "Running", "conditions": [ready]}})

    def until(self, condition: Callable[[], object]) -> None:
        """Works until the condition holds."""

        def step() -> object:
            self.work()
            return condition()

        self.eventually(step)

    def condition(self, kind: str) -> tuple[str, str]:
        conditions = {each["type"]: each for each in self.get()["status"].get("conditions") or []}
        found = conditions.get(kind, {})
        return found.get("status", ""), found.get("reason", "")

    def complete(self) -> bool:
        found = self.get()
        told, wanted = found["status"], found["spec"]["replicas"]
        counts = {told.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")}
        return told.get("observedGeneration") == found["metadata"]["generation"] and counts == {wanted}


@pytest.fixture
def roll(api: Api, core: str, apps: str, eventually: Eventually) -> Workload:
    return Workload(api, core, apps, eventually)


def test_a_deployment_has_a_replica_set_that_has_its_pods(api: Api, apps: str, workload: Make, roll: Workload) -> None:
    made = api.create(f"{apps}/deployments", workload(replicas=2))
    assert made["status"] == {}
    roll.eventually(lambda: len(roll.pods()) == 2)
    assert roll.condition("Available") == ("False", "MinimumReplicasUnavailable")
    roll.until(roll.complete)
    assert roll.condition("Available") == ("True", "MinimumReplicasAvailable")
    roll.eventually(lambda: roll.condition("Progressing") == ("True", "NewReplicaSetAvailable"))

    [replica_set] = roll.replica_sets().values()
    digest = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"d-{digest}"
    assert replica_set["metadata"]["annotations"][REVISION] == "1"
    assert replica_set["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"] == "2"
    assert replica_set["spec"]["selector"]["matchLabels"] == {"app": "d", "pod-template-hash": digest}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": made["metadata"]["uid"]}
    assert replica_set["metadata"]["ownerReferences"] == [{**owner, "controller": True, "blockOwnerDeletion": True}]
    for pod in roll.pods():
        assert pod["metadata"]["name"].startswith(f"d-{digest}-")
        assert pod["metadata"]["labels"] == {"app": "d", "pod-template-hash": digest}
        [owner] = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("ReplicaSet", replica_set["metadata"]["uid"])
    assert roll.get()["metadata"]["annotations"] == {REVISION: "1"}
    assert roll.get()["metadata"]["generation"] == 1


def test_a_new_template_rolls_out_within_its_bounds(api: Api, apps: str, workload: Make, roll: Workload) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    api.create(f"{apps}/deployments", workload(replicas=3, strategy=strategy))
    roll.until(roll.complete)
    api.strategic(roll.path, IMAGE_2)
    roll.eventually(lambda: roll.replicas() == {"busybox:1": 3, "busybox:2": 1})
    roll.eventually(lambda: len(roll.pods()) == 4)
    assert roll.replicas() == {"busybox:1": 3, "busybox:2": 1}
    roll.eventually(lambda: roll.get()["status"].get("updatedReplicas") == 1)

    def bounded() -> bool:
        alive = [pod for pod in roll.pods() if pod["status"]["phase"] in ("Pending", "Running")]
        ready = [pod for pod in alive if pod["status"]["phase"] == "Running"]
        assert len(alive) <= 4
        assert len(ready) >= 3
        return roll.complete()

    roll.until(bounded)
    assert roll.replicas() == {"busybox:1": 0, "busybox:2": 3}
    found = roll.replica_sets()
    revisions = {image: each["metadata"]["annotations"][REVISION] for image, each in found.items()}
    assert revisions == {"busybox:1": "1", "busybox:2": "2"}
    assert roll.get()["metadata"]["annotations"] == {REVISION: "2"}

    back = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox:1"}]}}}}
    api.strategic(roll.path, back)
    roll.until(lambda: roll.complete() and roll.replicas() == {"busybox:1": 3, "busybox:2": 0})
    assert roll.get()["metadata"]["annotations"] == {REVISION: "3"}
    assert roll.replica_sets()["busybox:1"]["metadata"]["uid"] == found["busybox:1"]["metadata"]["uid"]


def test_recreate_starts_nothing_before_the_old_pods_are_gone(
    api: Api, apps: str, workload: Make, roll: Workload
) -> None:
    api.create(f"{apps}/deployments", workload(replicas=2, strategy={"type": "Recreate"}))
    roll.until(roll.complete)
    api.strategic(roll.path, IMAGE_2)
    roll.eventually(lambda: roll.pods() == [])
    assert roll.replicas() == {"busybox:1": 0}
    roll.until(lambda: roll.complete() and roll.replicas() == {"busybox:1": 0, "busybox:2": 2})


def test_a_paused_deployment_is_scaled_and_not_rolled_out(api: Api, apps: str, workload: Make, roll: Workload) -> None:
    api.create(f"{apps}/deployments", workload(replicas=1))
    roll.until(roll.complete)
    api.strategic(roll.path, {"spec": {"paused": True, **IMAGE_2["spec"]}})
    roll.eventually(lambda: roll.condition("Progressing") == ("Unknown", "DeploymentPaused"))
    api.merge(f"{roll.path}/scale", {"spec": {"replicas": 2}})
    roll.eventually(lambda: roll.replicas() == {"busybox:1": 2})
    api.merge(roll.path, {"spec": {"paused": None}})
    roll.until(lambda: roll.complete() and roll.replicas() == {"busybox:1": 0, "busybox:2": 2})


def test_old_replica_sets_are_kept_as_far_as_the_limit_says(
    api: Api, apps: str, workload: Make, roll: Workload
) -> None:
    api.create(f"{apps}/deployments", workload(replicas=0, revisionHistoryLimit=1))
    for number in (1, 2, 3):
        image = f"busybox:{number}"
        api.strategic(roll.path, {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
        roll.eventually(lambda image=image: image in roll.replicas())
    roll.eventually(lambda: set(roll.replicas()) == {"busybox:2", "busybox:3"})


def test_a_pod_of_a_replica_set_that_goes_is_made_again(
    api: Api, core: str, apps: str, workload: Make, roll: Workload
) -> None:
    api.create(f"{apps}/replicasets", workload("r", replicas=2))
    roll.eventually(lambda: len(roll.pods()) == 2)
    [first, _] = (pod["metadata"]["name"] for pod in roll.pods())
    api.delete(f"{core}/pods/{first}", gracePeriodSeconds="0")
    roll.eventually(lambda: len(roll.pods()) == 2)
    assert first not in [pod["metadata"]["name"] for pod in roll.pods()]
    roll.until(lambda: api.get(f"{apps}/replicasets/r")["status"].get("readyReplicas") == 2)


def test_a_deployment_takes_its_replica_sets_and_pods_with_it(
    api: Api, core: str, apps: str, workload: Make, roll: Workload
) -> None:
    api.create(f"{apps}/deployments", workload(replicas=2))
    roll.eventually(lambda: len(roll.pods()) == 2)
    api.delete(roll.path, {"propagationPolicy": "Foreground"})
    roll.until(lambda: roll.get().get("code") == 404)
    assert roll.replica_sets() == {}
    assert roll.api.get(f"{core}/pods")["items"] == []
