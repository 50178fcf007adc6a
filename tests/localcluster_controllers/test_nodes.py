"""Simulated nodes on a real server."""

from __future__ import annotations

from typing import Any

import pytest

from informers import Object


def phase(wanted: str) -> Any:
    return lambda obj: obj is not None and (obj.get("status") or {}).get("phase") == wanted


def test_a_pod_is_bound_and_runs(kit: Any) -> None:
    kit.pod("p")
    running = kit.wait("Pod", "p", phase("Running"))
    assert running["spec"]["nodeName"] in ("n1", "n2")
    assert running["status"]["podIP"].startswith("10.244.")
    assert running["status"]["containerStatuses"][0]["ready"]


def test_pods_are_spread_over_the_nodes(kit: Any) -> None:
    for number in range(4):
        kit.pod(f"p{number}")
    nodes = [kit.wait("Pod", f"p{number}", phase("Running"))["spec"]["nodeName"] for number in range(4)]
    assert set(nodes) == {"n1", "n2"}


def test_each_pod_has_an_address_of_its_own(kit: Any) -> None:
    for number in range(3):
        kit.pod(f"p{number}")
    addresses = {kit.wait("Pod", f"p{number}", phase("Running"))["status"]["podIP"] for number in range(3)}
    assert len(addresses) == 3


def test_a_pod_that_names_its_node_runs_there(kit: Any) -> None:
    kit.pod("p", nodeName="n2")
    assert kit.wait("Pod", "p", phase("Running"))["spec"]["nodeName"] == "n2"


def test_a_node_selector_is_kept_to(kit: Any) -> None:
    for number in range(3):
        kit.pod(f"p{number}", nodeSelector={"kubernetes.io/hostname": "n2"})
        assert kit.wait("Pod", f"p{number}", phase("Running"))["spec"]["nodeName"] == "n2"


def _scheduled(obj: Object) -> Any:
    found = (obj.get("status") or {}).get("conditions") or ()
    return next((one for one in found if one["type"] == "PodScheduled"), None)


def test_a_pod_that_fits_no_node_says_so(kit: Any) -> None:
    kit.pod("p", nodeSelector={"gpu": "yes"})
    pod = kit.wait("Pod", "p", _scheduled)
    condition = _scheduled(pod)
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert pod["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    "spec", [{"nodeName": "elsewhere"}, {"schedulerName": "mine"}], ids=["another node", "another scheduler"]
)
def test_what_is_not_ours_is_left_alone(kit: Any, spec: dict) -> None:
    kit.pod("other", **spec)
    kit.pod("ours")
    kit.wait("Pod", "ours", phase("Running"))
    assert kit.get("Pod", "other")["status"]["phase"] == "Pending"


@pytest.mark.parametrize(("code", "wanted"), [("0", "Succeeded"), ("4", "Failed")])
def test_a_pod_ends_as_it_was_told_to(kit: Any, code: str, wanted: str) -> None:
    annotations = {"simulate.pysedna.io/run-seconds": "0.05", "simulate.pysedna.io/exit-code": code}
    kit.pod("p", annotations=annotations, restartPolicy="Never")
    ended = kit.wait("Pod", "p", phase(wanted))
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == int(code)


def test_a_deleted_pod_is_stopped_and_then_gone(kit: Any) -> None:
    kit.pod("p", annotations={"simulate.pysedna.io/stop-seconds": "0.2"})
    kit.wait("Pod", "p", phase("Running"))
    kit.delete("Pod", "p")
    stopping = kit.get("Pod", "p")
    assert stopping.deletion_timestamp is not None
    assert stopping["status"]["phase"] == "Running"
    kit.gone("Pod", "p")


def test_a_new_pod_under_the_name_of_a_stopping_one_is_another(kit: Any) -> None:
    first = kit.pod("p")
    kit.wait("Pod", "p", phase("Running"))
    kit.delete("Pod", "p")
    kit.gone("Pod", "p")
    second = kit.pod("p")
    running = kit.wait("Pod", "p", phase("Running"))
    assert running.uid == second.uid != first.uid


def test_a_pod_that_a_finalizer_holds_has_ended(kit: Any, client: Any) -> None:
    kit.create(
        "Pod", "p", metadata={"finalizers": ["example.com/hold"]}, spec={"containers": [{"name": "c", "image": "i"}]}
    )
    kit.wait("Pod", "p", phase("Running"))
    kit.delete("Pod", "p")
    held = kit.wait("Pod", "p", phase("Failed"))
    assert held["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    client.resource("v1", "Pod").patch(f"{kit.namespace}/p", {"metadata": {"finalizers": None}})
    kit.gone("Pod", "p")


def test_nodes_are_ready(client: Any, eventually: Any) -> None:
    def ready() -> dict[str, bool]:
        return {
            node.name: any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"])
            for node in client.resource("v1", "Node").list().items
            if node.name in ("n1", "n2") and (node.get("status") or {}).get("conditions")
        }

    eventually(lambda: ready() == {"n1": True, "n2": True})


def test_a_node_that_is_deleted_comes_back(client: Any) -> None:
    nodes = client.resource("v1", "Node")
    old = nodes.get("n1")
    nodes.delete("n1")
    nodes.wait_until("n1", lambda obj: obj is not None and obj.uid != old.uid, 60)
