"""Two elected managers while the API server is restarted, killed and frozen: one acts, never two, and all converges."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from informers import Client, Object, ObjectKey
from informers.errors import InformersError
from leaderelection import Config
from pysedna.api import crds
from pysedna.controller import LeaderElection, LeadershipLost, Manager
from pysedna.demo import objects
from pysedna.jobs import federated_learning
from pysedna.localcluster.controllers import setup_nodes
from pysedna.testing import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.slow]

NAMESPACE = "outages"
NODES = ("cloud-1", "edge-1", "edge-2")
CONFIG = Config(lease_duration=8, renew_deadline=5, retry_period=0.5)
SLACK = 1.5  # of a machine that has other things to do
WAIT = 60.0
JOB = ("sedna.io/v1alpha1", "FederatedLearningJob")
POD = ("v1", "Pod")


class Replica:
    """A manager that is started anew when it ends, as a Deployment would; its clients, its ends, when it led."""

    def __init__(self, name: str, kubeconfig: str) -> None:
        self.name = name
        self.ends: list[tuple[float, BaseException | None]] = []
        self.manager: Manager | None = None
        self._kubeconfig = kubeconfig
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"replica {name}")
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            with Client.from_kubeconfig(self._kubeconfig) as client:
                election = LeaderElection(ObjectKey(NAMESPACE, "lock"), CONFIG, self.name)
                manager = Manager(client, name=self.name, namespaces=[NAMESPACE], leader_election=election, http=None)
                federated_learning.setup(manager)
                self.manager = manager
                error: BaseException | None = None
                try:
                    manager.run(self._stop)
                except LeadershipLost as lost:
                    error = lost
                self.ends.append((time.monotonic(), error))

    def leads(self) -> bool:
        return self.manager is not None and self.manager.is_leader()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(WAIT)
        assert not self._thread.is_alive()


class Pair:
    """Two replicas, and somebody who never looks away."""

    def __init__(self, kubeconfig: str) -> None:
        self.replicas = [Replica(name, kubeconfig) for name in "ab"]
        self.both: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, name="onlooker")
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.wait(0.005):
            if len(self.leaders()) > 1:
                self.both.append(time.monotonic())

    def leaders(self) -> list[Replica]:
        return [one for one in self.replicas if one.leads()]

    def stop(self) -> None:
        for one in self.replicas:
            one.stop()
        self._stop.set()
        self._thread.join(WAIT)


@pytest.fixture
def plane(own_control_plane: ControlPlane) -> ControlPlane:
    own_control_plane.install_crds(crds())
    own_control_plane.client.resource("v1", "Namespace").create({"metadata": {"name": NAMESPACE}})
    return own_control_plane


@pytest.fixture
def nodes(plane: ControlPlane) -> Iterator[None]:
    with Client.from_kubeconfig(plane.kubeconfig) as client:
        manager = Manager(client, name="nodes", namespaces=[NAMESPACE], http=None)
        setup_nodes(manager, NODES)
        stop = threading.Event()
        thread = threading.Thread(target=manager.run, args=(stop,), name="simulated-nodes")
        thread.start()
        yield
        stop.set()
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def pair(plane: ControlPlane) -> Iterator[Pair]:
    pair = Pair(plane.kubeconfig)
    yield pair
    pair.stop()


def until(holds: Callable[[], Any], what: str, timeout: float = WAIT) -> Any:
    deadline = time.monotonic() + timeout
    while True:
        try:
            if found := holds():
                return found
        except InformersError as error:
            what = f"{what} ({error})"
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Job:
    """One federated job and its three workers."""

    def __init__(self, client: Client) -> None:
        self.client = client
        for manifest in (*objects.models(NAMESPACE), *objects.datasets(NAMESPACE, NODES)):
            client.resource(manifest["apiVersion"], manifest["kind"]).create(manifest)
        body = objects.federated_learning_job(NAMESPACE, NODES, batch_size="32", pin=True)
        client.resource(*JOB).create(body)

    def workers(self) -> dict[str, Object]:
        return {pod.name: pod for pod in self.client.resource(*POD).list(namespace=NAMESPACE).items}

    def whole(self) -> dict[str, Object]:
        """Its workers, once all of them run and the status says so."""

        def look() -> dict[str, Object] | None:
            status = self.client.resource(*JOB).get(ObjectKey(NAMESPACE, objects.JOB)).get("status") or {}
            pods = self.workers()
            running = [
                one for one in pods.values() if one["status"]["phase"] == "Running" and not one.deletion_timestamp
            ]
            return pods if len(running) == len(pods) == status.get("active") == 3 else None

        found: dict[str, Object] = until(look, "all workers of the job run")
        return found

    def lose(self, index: int) -> Object:
        pod = self.workers()[f"{objects.JOB}-train-{index}"]
        self.client.resource(*POD).delete(pod.key, uid=pod.uid)
        return pod

    def has_back(self, lost: Object) -> None:
        until(lambda: self.whole()[lost.name].uid != lost.uid, f"{lost.name} comes back")


@pytest.fixture
def lonely(plane: ControlPlane) -> Iterator[subprocess.Popen[str]]:
    """A process that leads on a Lease of its own."""
    words = ["manager", "--kubeconfig", plane.kubeconfig, "--namespace", "default", "--http", ""]
    words += ["--lease-name", "lonely", "--lease-duration", "8", "--renew-deadline", "5", "--retry-period", "0.5"]
    with subprocess.Popen(
        [sys.executable, "-m", "pysedna", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("nodes")
def test_through_every_outage_one_leads_at_most_and_the_job_becomes_whole_again(
    plane: ControlPlane, pair: Pair, lonely: subprocess.Popen[str]
) -> None:
    job = Job(plane.client)
    before = job.whole()

    plane.restart_api_server()
    after = job.whole()
    assert {pod.uid for pod in after.values()} == {pod.uid for pod in before.values()}, "a restart replaces nobody"
    job.has_back(job.lose(0))

    lost = job.lose(1)
    plane.kill_api_server()
    time.sleep(1)
    plane.restart_api_server()
    job.has_back(lost)

    leases = plane.client.resource("coordination.k8s.io/v1", "Lease")
    until(lambda: leases.get("default/lonely")["spec"].get("holderIdentity"), "the process leads")
    (leader,) = until(pair.leaders, "one leads")
    ended = len(leader.ends)
    lost = job.lose(0)
    plane.freeze()
    frozen = time.monotonic()
    until(lambda: not leader.leads(), "leadership is lost", CONFIG.renew_deadline + SLACK)
    until(lambda: len(leader.ends) > ended, "the manager ends")
    at, error = leader.ends[ended]
    assert isinstance(error, LeadershipLost)
    assert at - frozen <= CONFIG.renew_deadline + 2 * SLACK
    assert lonely.wait(WAIT) == 1
    assert time.monotonic() - frozen < CONFIG.renew_deadline + 4 * SLACK
    assert lonely.stderr is not None
    assert "lost the lease" in lonely.stderr.read()
    time.sleep(max(0.0, frozen + CONFIG.lease_duration + 1 - time.monotonic()))
    assert pair.leaders() == [], "nobody can lead without a server"
    plane.thaw()
    until(pair.leaders, "one leads again", CONFIG.max_failover() + SLACK)
    job.has_back(lost)
    assert pair.both == []
