"""Deployments, ReplicaSets and pods on a real server, with simulated nodes."""

from __future__ import annotations

from typing import Any

import pytest

from informers import Object

APPS = "apps/v1"
LABELS = {"app": "web"}


def template(image: str = "web:1", **annotations: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"labels": LABELS}
    if annotations:
        metadata["annotations"] = {f"simulate.pysedna.io/{k.replace('_', '-')}": v for k, v in annotations.items()}
    return {"metadata": metadata, "spec": {"containers": [{"name": "web", "image": image}]}}


def deployment(kit: Any, replicas: int = 3, *, pod: dict[str, Any] | None = None, **spec: Any) -> Object:
    body = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": pod or template(), **spec}
    return kit.create("Deployment", "web", api_version=APPS, spec=body)


def rolled_out(obj: Object | None) -> bool:
    assert obj is not None
    wanted, status = obj["spec"]["replicas"], obj.get("status") or {}
    numbers = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return status.get("observedGeneration") == obj.generation and numbers == [wanted] * 3


def wait_rolled_out(kit: Any) -> Object:
    return kit.wait("Deployment", "web", rolled_out, api_version=APPS)


def active(kit: Any) -> list[Object]:
    return [pod for pod in kit.list("Pod") if pod.deletion_timestamp is None]


def conditions(obj: Object) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one.get("reason", "")) for one in obj["status"]["conditions"]}


def patch(kit: Any, change: dict[str, Any]) -> None:
    kit.client.resource(APPS, "Deployment").patch(f"{kit.namespace}/web", change)


def test_a_deployment_gets_its_pods_through_one_replica_set(kit: Any) -> None:
    deployment(kit)
    done = wait_rolled_out(kit)
    (replica_set,) = kit.list("ReplicaSet", api_version=APPS)
    assert replica_set.controller.uid == done.uid
    pods = active(kit)
    assert [pod.controller.uid for pod in pods] == [replica_set.uid] * 3
    assert all(pod.labels["pod-template-hash"] == replica_set.labels["pod-template-hash"] for pod in pods)
    assert conditions(done)["Available"] == ("True", "MinimumReplicasAvailable")
    assert conditions(done)["Progressing"] == ("True", "NewReplicaSetAvailable")
    assert done.annotations["deployment.kubernetes.io/revision"] == "1"


def test_a_deleted_pod_is_replaced_by_one(kit: Any) -> None:
    deployment(kit)
    wait_rolled_out(kit)
    victim = active(kit)[0]
    kit.delete("Pod", victim.name)
    kit.gone("Pod", victim.name)
    wait_rolled_out(kit)
    assert len(active(kit)) == 3


def test_a_deleted_replica_set_comes_back(kit: Any) -> None:
    deployment(kit, 2)
    wait_rolled_out(kit)
    (old,) = kit.list("ReplicaSet", api_version=APPS)
    kit.delete("ReplicaSet", old.name, api_version=APPS)
    kit.wait("ReplicaSet", old.name, lambda obj: obj is not None and obj.uid != old.uid, api_version=APPS)
    wait_rolled_out(kit)


@pytest.mark.parametrize("replicas", [5, 1, 0])
def test_scaling_changes_the_number_and_nothing_else(kit: Any, replicas: int, eventually: Any) -> None:
    deployment(kit)
    before = {pod.uid for pod in active(kit)} if wait_rolled_out(kit) else set()
    patch(kit, {"spec": {"replicas": replicas}})
    wait_rolled_out(kit)
    after = {pod.uid for pod in eventually(lambda: len(active(kit)) == replicas and [*active(kit), None]) if pod}
    assert len(after & before) == min(replicas, 3)


def test_a_new_template_rolls_without_falling_below_or_above(kit: Any, client: Any) -> None:
    deployment(kit, 4, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    wait_rolled_out(kit)
    start = client.resource("v1", "Pod").list(namespace=kit.namespace)
    present = {pod.uid: pod for pod in start.items}
    patch(kit, {"spec": {"template": template("web:2")}})
    most, fewest = 0, 99
    with client.resource("v1", "Pod").watch(namespace=kit.namespace, resource_version=start.resource_version) as stream:
        for event in stream:
            if event.type == "BOOKMARK":
                continue
            present[event.object.uid] = event.object
            if event.type == "DELETED":
                del present[event.object.uid]
            living = [pod for pod in present.values() if pod.deletion_timestamp is None]
            ready = [pod for pod in living if _is_ready(pod)]
            most, fewest = max(most, len(living)), min(fewest, len(ready))
            if (
                len(living) == 4
                and all(pod["spec"]["containers"][0]["image"] == "web:2" for pod in ready)
                and len(ready) == 4
            ):
                break
    assert most <= 5
    assert fewest >= 4
    done = wait_rolled_out(kit)
    assert done.annotations["deployment.kubernetes.io/revision"] == "2"


def _is_ready(pod: Object) -> bool:
    found = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in found)


def test_recreate_starts_nothing_before_the_old_pods_are_gone(kit: Any, client: Any) -> None:
    slow = template("web:1", stop_seconds="0.3")
    deployment(kit, 2, pod=slow, strategy={"type": "Recreate"})
    wait_rolled_out(kit)
    start = client.resource("v1", "Pod").list(namespace=kit.namespace)
    old = {pod.uid for pod in start.items}
    patch(kit, {"spec": {"template": template("web:2")}})
    fresh: set[str] = set()
    with client.resource("v1", "Pod").watch(namespace=kit.namespace, resource_version=start.resource_version) as stream:
        for event in stream:
            if event.type == "DELETED":
                old.discard(event.object.uid)
            if event.type == "ADDED":
                assert old == set()
                fresh.add(event.object.uid)
                if len(fresh) == 2:
                    break
    wait_rolled_out(kit)


def test_going_back_uses_the_old_replica_set_again(kit: Any) -> None:
    deployment(kit, 1)
    wait_rolled_out(kit)
    (first,) = kit.list("ReplicaSet", api_version=APPS)
    patch(kit, {"spec": {"template": template("web:2")}})
    wait_rolled_out(kit)
    patch(kit, {"spec": {"template": template("web:1")}})
    done = kit.wait(
        "Deployment",
        "web",
        lambda obj: rolled_out(obj) and obj.annotations["deployment.kubernetes.io/revision"] == "3",
        api_version=APPS,
    )
    assert done is not None
    again = kit.get("ReplicaSet", first.name, api_version=APPS)
    assert again.uid == first.uid
    assert len(kit.list("ReplicaSet", api_version=APPS)) == 2


def test_old_replica_sets_beyond_the_limit_go(kit: Any, eventually: Any) -> None:
    deployment(kit, 1, revisionHistoryLimit=1)
    wait_rolled_out(kit)
    for number in (2, 3, 4):
        patch(kit, {"spec": {"template": template(f"web:{number}")}})
        wait_rolled_out(kit)

    def images() -> list[str]:
        sets = kit.list("ReplicaSet", api_version=APPS)
        return sorted(one["spec"]["template"]["spec"]["containers"][0]["image"] for one in sets)

    eventually(lambda: images() == ["web:3", "web:4"])


def test_a_change_of_labels_of_the_deployment_rolls_nothing(kit: Any) -> None:
    deployment(kit, 2)
    wait_rolled_out(kit)
    before = {pod.uid for pod in active(kit)}
    patch(kit, {"metadata": {"labels": {"team": "edge"}}})
    wait_rolled_out(kit)
    assert {pod.uid for pod in active(kit)} == before


def _waits_for_its_next_start(pod: Object) -> bool:
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("waiting" in one["state"] and one["restartCount"] > 0 for one in containers)


def test_pods_that_crash_make_it_unavailable(kit: Any, eventually: Any) -> None:
    crashing = template("web:1", run_seconds="0", exit_code="1")
    deployment(kit, 1, pod=crashing)
    found = kit.wait(
        "Deployment",
        "web",
        lambda obj: obj.get("status", {}).get("unavailableReplicas") == 1 and obj["status"].get("conditions"),
        api_version=APPS,
    )
    assert conditions(found)["Available"] == ("False", "MinimumReplicasUnavailable")
    (pod,) = eventually(lambda: active(kit))
    crashed = kit.wait("Pod", pod.name, _waits_for_its_next_start)
    assert crashed["status"]["phase"] == "Running"
    assert crashed["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"


def test_a_rollout_that_does_not_come_on_is_told_after_its_deadline(kit: Any) -> None:
    never = template("web:1", start_seconds="3600")
    deployment(kit, 1, pod=never, progressDeadlineSeconds=1)
    found = kit.wait(
        "Deployment",
        "web",
        lambda obj: (
            conditions(obj).get("Progressing", ("", ""))[0] == "False"
            if obj.get("status", {}).get("conditions")
            else False
        ),
        api_version=APPS,
    )
    assert conditions(found)["Progressing"] == ("False", "ProgressDeadlineExceeded")


def test_a_paused_deployment_scales_but_does_not_roll(kit: Any, eventually: Any) -> None:
    deployment(kit, 1)
    wait_rolled_out(kit)
    patch(kit, {"spec": {"paused": True, "template": template("web:2"), "replicas": 2}})
    eventually(lambda: len(active(kit)) == 2)
    assert {pod["spec"]["containers"][0]["image"] for pod in active(kit)} == {"web:1"}
    patch(kit, {"spec": {"paused": None}})
    wait_rolled_out(kit)
    assert {pod["spec"]["containers"][0]["image"] for pod in active(kit)} == {"web:2"}


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_everything_goes_with_the_deployment(kit: Any, propagation: str, eventually: Any) -> None:
    deployment(kit)
    wait_rolled_out(kit)
    kit.delete("Deployment", "web", api_version=APPS, propagation=propagation)
    eventually(lambda: not kit.list("Pod") and not kit.list("ReplicaSet", api_version=APPS))


def test_a_replica_set_alone_keeps_its_number(kit: Any, eventually: Any) -> None:
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template()}
    kit.create("ReplicaSet", "rs", api_version=APPS, spec=spec)
    found = kit.wait(
        "ReplicaSet", "rs", lambda obj: obj.get("status", {}).get("availableReplicas") == 2, api_version=APPS
    )
    assert found["status"]["observedGeneration"] == found.generation
    for pod in active(kit):
        kit.delete("Pod", pod.name, grace_period=0)
    eventually(lambda: len([pod for pod in active(kit) if _is_ready(pod)]) == 2)
