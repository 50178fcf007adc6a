"""The life of a simulated pod: which status at which moment, and when to look again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from pysedna.localcluster.controllers.node_options import PREFIX, NodeOptions
from pysedna.localcluster.controllers.pod_lifecycle import PodLook, look

T0 = 1_800_000_000.0  # a whole second
Json = dict[str, Any]


def pod(**spec: Any) -> Json:
    annotations = spec.pop("annotations", {})
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "annotations": annotations},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "img"}], **spec},
        "status": {"phase": "Pending"},
    }


@dataclass
class Life:
    """Looks at one pod again and again, and writes what each look says, as the node does."""

    pod: Json
    options: NodeOptions = field(default_factory=lambda: NodeOptions(start_seconds=1.0, stop_seconds=2.0))
    moments: Mapping[str, float] = field(default_factory=dict)
    last: PodLook = field(default_factory=lambda: PodLook({}))

    def at(self, seconds: float) -> Life:
        self.last = look(
            self.pod, T0 + seconds, self.options, moments=self.moments, pod_ip="10.244.0.2", host_ip="127.0.0.1"
        )
        self.moments = self.last.moments
        self.pod = {**self.pod, "status": self.last.status}
        return self

    def deleted(self, grace: int = 30) -> Life:
        times = {"deletionTimestamp": "2027-01-15T08:00:00Z", "deletionGracePeriodSeconds": grace}
        self.pod = {**self.pod, "metadata": {**self.pod["metadata"], **times}}
        return self

    @property
    def status(self) -> Json:
        return self.last.status

    @property
    def phase(self) -> str:
        return self.status["phase"]

    @property
    def wake(self) -> float | None:
        return None if self.last.wake is None else self.last.wake - T0

    def container(self, index: int = 0, name: str = "containerStatuses") -> Json:
        return self.status[name][index]

    @property
    def conditions(self) -> dict[str, str]:
        return {one["type"]: one["status"] for one in self.status["conditions"]}


def test_first_a_pod_is_pending_with_its_address_and_containers_being_created() -> None:
    life = Life(pod()).at(0)
    assert (life.phase, life.wake) == ("Pending", 1.0)
    assert life.container()["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert (life.status["podIP"], life.status["hostIP"]) == ("10.244.0.2", "127.0.0.1")
    assert life.status["startTime"] == "2027-01-15T08:00:00Z"
    assert life.conditions["Ready"] == "False"
    assert life.conditions["PodScheduled"] == life.conditions["Initialized"] == "True"


def test_then_it_runs_and_is_ready_for_ever() -> None:
    life = Life(pod()).at(0).at(1)
    assert (life.phase, life.wake) == ("Running", None)
    assert life.container()["state"] == {"running": {"startedAt": "2027-01-15T08:00:01Z"}}
    assert life.container()["ready"]
    assert life.conditions["Ready"] == life.conditions["ContainersReady"] == "True"


def test_looking_again_changes_nothing() -> None:
    life = Life(pod()).at(0)
    first = life.status
    assert life.at(0.4).status == first
    running = life.at(1).status
    assert life.at(500).status == running


def test_a_pod_on_the_network_of_its_host_has_the_address_of_its_host() -> None:
    assert Life(pod(hostNetwork=True)).at(0).status["podIP"] == "127.0.0.1"


def test_what_others_wrote_into_the_status_is_kept() -> None:
    before = pod()
    before["status"]["conditions"] = [{"type": "edge.example/Linked", "status": "True", "lastTransitionTime": "x"}]
    assert Life(before).at(0).conditions["edge.example/Linked"] == "True"


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [("Never", 0, "Succeeded"), ("Never", 3, "Failed"), ("OnFailure", 0, "Succeeded")],
)
def test_a_pod_that_is_not_restarted_ends(policy: str, code: int, phase: str) -> None:
    options = NodeOptions(start_seconds=1, run_seconds=5, exit_code=code)
    life = Life(pod(restartPolicy=policy), options).at(0).at(1)
    assert life.wake == 6
    life.at(6)
    assert (life.phase, life.wake) == (phase, None)
    ended = life.container()["state"]["terminated"]
    assert (ended["exitCode"], ended["startedAt"], ended["finishedAt"]) == (
        code,
        "2027-01-15T08:00:01Z",
        "2027-01-15T08:00:06Z",
    )
    assert life.conditions["Ready"] == "False"
    assert life.at(100).phase == phase


@pytest.mark.parametrize(("policy", "code"), [("Always", 0), ("Always", 1), ("OnFailure", 1)])
def test_a_pod_that_is_restarted_stays_running_and_backs_off(policy: str, code: int) -> None:
    options = NodeOptions(start_seconds=0, run_seconds=5, exit_code=code, backoff_base=10)
    life = Life(pod(restartPolicy=policy), options).at(0).at(5)
    # The first restart does not wait.
    assert life.phase == "Running"
    assert life.container()["restartCount"] == 1
    assert life.container()["lastState"]["terminated"]["exitCode"] == code
    # The second one does, 10 s; the phase stays.
    life.at(10)
    assert life.phase == "Running"
    assert life.container()["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert life.conditions["Ready"] == "False"
    assert life.wake == 20
    assert life.at(19.9).container()["restartCount"] == 1
    assert life.at(20).container()["restartCount"] == 2
    # The third one twice as long.
    assert life.at(25).wake == 45


def test_the_back_off_has_an_upper_limit() -> None:
    options = NodeOptions(start_seconds=0, run_seconds=0, exit_code=1, backoff_base=10, backoff_max=15)
    life = Life(pod(), options).at(0)
    now = 0.0
    waits = []
    for _ in range(4):
        assert life.wake is not None
        waits.append(life.wake - now)
        now = life.wake
        life.at(now)
    assert waits == [10, 15, 15, 15]


def test_a_container_that_takes_no_time_at_all_is_looked_at_again_soon() -> None:
    life = Life(pod(), NodeOptions(start_seconds=0, run_seconds=0, exit_code=1, backoff_base=0)).at(0)
    assert life.wake == pytest.approx(0.05)


def test_a_container_that_ran_long_is_forgiven_its_crashes() -> None:
    options = NodeOptions(start_seconds=0, run_seconds=700, exit_code=1, backoff_base=10, backoff_max=300)
    life = Life(pod(), options).at(0)
    for restarts in range(1, 5):
        life.at(700 * restarts)
        assert life.container()["restartCount"] == restarts
        assert "running" in life.container()["state"]


def test_the_present_start_time_counts_when_the_node_was_restarted() -> None:
    options = NodeOptions(start_seconds=0, run_seconds=5, exit_code=0)
    life = Life(pod(restartPolicy="Never"), options).at(0)
    life.moments = {}
    assert life.at(2).wake == 5


def test_exact_times_count_within_a_second() -> None:
    options = NodeOptions(start_seconds=0.05, run_seconds=0.2)
    life = Life(pod(restartPolicy="Never"), options).at(0.9)
    assert life.wake == pytest.approx(0.95)
    assert life.at(0.96).phase == "Running"
    assert life.wake == pytest.approx(1.15)


def test_init_containers_run_first_one_after_the_other() -> None:
    options = NodeOptions(start_seconds=1, init_seconds=2)
    life = Life(pod(initContainers=[{"name": "a"}, {"name": "b"}]), options).at(0)
    first, second = life.status["initContainerStatuses"]
    assert first["state"] == second["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert life.conditions["Initialized"] == "False"
    life.at(1)
    assert "running" in life.container(0, "initContainerStatuses")["state"]
    assert "waiting" in life.container(1, "initContainerStatuses")["state"]
    life.at(3)
    assert life.container(0, "initContainerStatuses")["state"]["terminated"]["exitCode"] == 0
    assert life.phase == "Pending"
    life.at(4).at(6)
    assert life.conditions["Initialized"] == "True"
    assert life.phase == "Pending"
    assert life.at(7).phase == "Running"


def test_an_init_container_that_fails_ends_a_pod_that_is_never_restarted() -> None:
    options = NodeOptions(start_seconds=0, init_exit_code=1)
    life = Life(pod(initContainers=[{"name": "a"}], restartPolicy="Never"), options).at(0)
    assert life.phase == "Failed"
    assert "waiting" in life.container()["state"]


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_an_init_container_that_fails_is_tried_again_else(policy: str) -> None:
    options = NodeOptions(start_seconds=0, init_seconds=1, init_exit_code=1)
    life = Life(pod(initContainers=[{"name": "a"}], restartPolicy=policy), options).at(0).at(1)
    assert life.phase == "Pending"
    assert life.container(0, "initContainerStatuses")["restartCount"] == 1


def test_a_sidecar_holds_nobody_up_and_runs_on() -> None:
    life = Life(pod(initContainers=[{"name": "side", "restartPolicy": "Always"}])).at(0).at(1).at(2)
    assert life.phase == "Running"
    assert "running" in life.container(0, "initContainerStatuses")["state"]
    assert life.conditions["Initialized"] == "True"


def test_a_deleted_pod_runs_until_it_has_stopped_then_ends_and_is_removed() -> None:
    life = Life(pod()).at(0).at(1).deleted()
    life.at(10)
    assert (life.phase, life.last.remove, life.wake) == ("Running", False, 12)
    life.at(12)
    assert life.last.remove
    assert life.phase == "Failed"
    assert life.container()["state"]["terminated"]["exitCode"] == 143


def test_a_shorter_grace_period_cuts_the_stop_short() -> None:
    life = Life(pod()).at(0).at(1).deleted(grace=1).at(10)
    assert life.wake == 11
    assert life.at(11).last.remove


def test_a_pod_that_has_ended_is_removed_at_once() -> None:
    options = NodeOptions(start_seconds=0, run_seconds=1, stop_seconds=60)
    assert Life(pod(restartPolicy="Never"), options).at(0).at(1).deleted().at(2).last.remove


def test_what_is_held_by_finalizers_only_is_not_removed_again() -> None:
    life = Life(pod()).at(0).at(1).deleted(grace=0).at(2)
    assert life.phase == "Failed"
    assert not life.last.remove
    assert not life.at(3).last.remove


def test_a_pod_that_somebody_else_ended_is_left_as_it_is() -> None:
    evicted = {**pod(), "status": {"phase": "Failed", "reason": "Evicted"}}
    life = Life(evicted).at(0)
    assert (life.status, life.wake) == ({"phase": "Failed", "reason": "Evicted"}, None)


def test_a_pod_says_by_annotations_how_it_behaves() -> None:
    annotations = {
        PREFIX + "start-seconds": "3",
        PREFIX + "run-seconds": "0.5",
        PREFIX + "exit-code": "7",
        PREFIX + "stop-seconds": "9",
    }
    options = NodeOptions().for_pod(annotations)
    assert (options.start_seconds, options.run_seconds, options.exit_code, options.stop_seconds) == (3, 0.5, 7, 9)
    life = Life(pod(restartPolicy="Never", annotations=annotations)).at(0)
    assert life.wake == 3
    assert life.at(3).at(3.5).container()["state"]["terminated"]["exitCode"] == 7


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", ""])
def test_an_annotation_that_makes_no_sense_is_ignored(text: str) -> None:
    assert NodeOptions().for_pod({PREFIX + "start-seconds": text, PREFIX + "exit-code": text}) == NodeOptions()


def test_several_containers_end_a_pod_together() -> None:
    both = [{"name": "a"}, {"name": "b"}]
    options = NodeOptions(start_seconds=0, run_seconds=1, exit_code=0)
    life = Life(pod(containers=both, restartPolicy="Never"), options).at(0).at(1)
    assert [one["name"] for one in life.status["containerStatuses"]] == ["a", "b"]
    assert life.phase == "Succeeded"
