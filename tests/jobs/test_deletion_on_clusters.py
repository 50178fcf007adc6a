"""Jobs are deleted in each way that there is, and written by others, on both clusters, while a manager runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from informers import Client, Object, ObjectKey, Resource, SharedInformerFactory, retry_on_conflict
from informers.errors import ConflictError
from pysedna.api import crds
from pysedna.controller import Manager, ensure_finalizer, remove_finalizer
from pysedna.jobs import federated_learning, joint_inference
from pysedna.localcluster.controllers import setup_nodes
from pysedna.testing import Cluster

SEDNA = "sedna.io/v1alpha1"
FL, JI = (SEDNA, "FederatedLearningJob"), (SEDNA, "JointInferenceService")
DEPLOYMENT = ("apps/v1", "Deployment")
CHILDREN = (("v1", "Pod"), ("v1", "Service"), DEPLOYMENT)
NODES = ("cloud", "edge-0", "edge-1")
WAIT = 90.0  # the real garbage collector learns of a new kind within half a minute

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def key(namespace: str) -> Callable[[str], ObjectKey]:
    return lambda name: ObjectKey(namespace, name)


@pytest.fixture
def client(cluster: Cluster, namespace: str) -> Iterator[Client]:
    """With a manager of both kinds of jobs, and the nodes that they name."""
    cluster.install_crds(crds())
    manager = Manager(cluster.client, name="gm", namespaces=[namespace], http=None)
    federated_learning.setup(manager)
    joint_inference.setup(manager)
    setup_nodes(manager, NODES)
    stop = threading.Event()
    thread = threading.Thread(target=manager.run, args=(stop,), name="gm")
    thread.start()
    yield cluster.client
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


@pytest.fixture
def create(client: Client, namespace: str) -> Callable[..., Object]:
    def create(manifest: dict[str, Any], name: str | None = None) -> Object:
        metadata = {"name": name or manifest["metadata"]["name"], "namespace": namespace}
        return client.resource(manifest["apiVersion"], manifest["kind"]).create({**manifest, "metadata": metadata})

    return create


@pytest.fixture
def jobs(client: Client, create: Callable[..., Object], make: Any) -> Callable[..., list[Object]]:
    """jobs(name, ...) gives a job and a service of each name, all of whose workers run."""

    def made(*names: str) -> list[Object]:
        for name in ("model", "big", "little"):
            create(make.model(name))
        for number in range(2):
            create(make.dataset(f"data-{number}"))
        objects = [create(make.federated_manifest(), f"job-{name}") for name in names]
        objects += [create(make.inference_manifest(), f"service-{name}") for name in names]
        for one in objects:
            active = 3 if one.kind == FL[1] else 2
            client.resource(SEDNA, one.kind).wait_until(one.key, lambda live, active=active: runs(live, active), WAIT)
        return objects

    return made


def runs(job: Object | None, active: int) -> bool:
    return job is not None and job.get("status", {}).get("active") == active


def children(client: Client, namespace: str, owner: str) -> list[Object]:
    """What a job's name stands in front of, its own children and theirs."""
    found = [one for kind in CHILDREN for one in client.resource(*kind).list(namespace=namespace).items]
    return [one for one in found if one.name.startswith(owner)]


def test_a_job_takes_its_children_along_or_leaves_them_as_it_is_told(
    client: Client, namespace: str, jobs: Callable[..., list[Object]]
) -> None:
    made = jobs("background", "foreground", "orphan")
    factory = SharedInformerFactory(client, namespace=namespace)
    gone: dict[str, int] = {}
    with factory:
        for kind in (*CHILDREN, FL, JI):
            factory.informer(*kind).add_event_handler(
                on_delete=lambda obj, unknown: gone.__setitem__(obj.uid, int(obj.resource_version))
            )
        factory.wait_for_sync(WAIT)
        owned = {one.uid: children(client, namespace, one.name) for one in made}
        assert all(len(found) >= 4 for found in owned.values())
        for one in made:
            propagation: Any = one.name.partition("-")[2].capitalize()
            client.resource(SEDNA, one.kind).delete(one.key, propagation=propagation)
        for one in made:
            client.resource(SEDNA, one.kind).wait_until(one.key, lambda live: live is None, WAIT)
            for child in owned[one.uid]:
                if not one.name.endswith("orphan"):
                    client.resource(child.api_version, child.kind).wait_until(
                        child.key, lambda live, uid=child.uid: live is None or live.uid != uid, WAIT
                    )
    for one in made:
        left = children(client, namespace, one.name)
        if one.name.endswith("orphan"):
            assert {child.uid for child in left} == {child.uid for child in owned[one.uid]}
            assert [child.name for child in left if any(ref.uid == one.uid for ref in child.owner_references)] == []
        else:
            assert left == [], "nothing came back"
        if one.name.endswith("foreground"):
            own = [
                child for child in owned[one.uid] if child.controller is not None and child.controller.uid == one.uid
            ]
            assert own
            assert all(gone[child.uid] < gone[one.uid] for child in own), "the owner goes last"


def hold(resource: Resource, key: ObjectKey, finalizer: str) -> None:
    retry_on_conflict(lambda: ensure_finalizer(resource, resource.get(key), finalizer), attempts=12)


def let_go(resource: Resource, key: ObjectKey, finalizer: str) -> None:
    retry_on_conflict(lambda: remove_finalizer(resource, resource.get(key), finalizer), attempts=12)


class Reporter:
    """Reports rounds of training into a job's status, and puts finalizers on it and away, as fast as it can."""

    def __init__(self, client: Client, job: ObjectKey, number: int) -> None:
        self._jobs = client.resource(*FL)
        self._job, self._number = job, number
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=f"reporter {number}")
        self.thread.start()

    def _run(self) -> None:
        try:
            for step in range(8):
                self._report(f"round {step} of {self._number}")
                hold(self._jobs, self._job, f"example.com/reporter-{self._number}")
                if step % 2:
                    let_go(self._jobs, self._job, f"example.com/reporter-{self._number}")
        except BaseException as error:  # noqa: BLE001 - whatever it was, the test looks at it
            self.error = error

    def _report(self, message: str) -> None:
        """As a local controller: the whole status, on top of the version that was read."""
        while True:
            live = self._jobs.get(self._job).to_dict()
            told = {"type": "Training", "status": "True", "reason": "DoTraining", "message": message}
            live.setdefault("status", {}).setdefault("conditions", []).append(told)
            try:
                self._jobs.replace(live, subresource="status")
                return
            except ConflictError:
                continue


def test_no_word_of_others_is_lost_and_the_status_is_right_in_the_end(
    client: Client, namespace: str, jobs: Callable[..., list[Object]], key: Callable[[str], ObjectKey]
) -> None:
    (job, _service) = jobs("busy")
    reporters = [Reporter(client, job.key, number) for number in range(3)]
    pods = client.resource("v1", "Pod")
    lost = 0
    while any(one.thread.is_alive() for one in reporters) or lost < 3:
        live = {one.name: one for one in pods.list(namespace=namespace).items}.get("job-busy-train-0")
        if live is not None and live.deletion_timestamp is None:
            pods.delete(live.key, uid=live.uid)
            lost += 1
            pods.wait_until(live.key, lambda one, uid=live.uid: one is not None and one.uid != uid, WAIT)
    for one in reporters:
        one.thread.join()
        assert one.error is None
    resource = client.resource(*FL)
    after = resource.wait_until(job.key, lambda one: runs(one, 3), WAIT)
    assert after is not None
    told = [one["message"] for one in after["status"]["conditions"] if one.get("reason") == "DoTraining"]
    assert sorted(told) == sorted(f"round {step} of {number}" for number in range(3) for step in range(8))
    assert after.finalizers == ()
    assert after.generation == job.generation


def test_finalizers_and_status_hold_against_a_controller_that_writes_all_the_time(
    client: Client, namespace: str, jobs: Callable[..., list[Object]], key: Callable[[str], ObjectKey]
) -> None:
    jobs("rolled")
    deployments = client.resource(*DEPLOYMENT)
    name = key("service-rolled-deployment-cloud")

    def scale() -> None:
        for replicas in (3, 1, 4, 2) * 5:
            deployments.patch(name, {"spec": {"replicas": replicas}})

    thread = threading.Thread(target=scale, name="scaler")
    thread.start()
    try:
        while thread.is_alive():
            hold(deployments, name, "example.com/hold")
            let_go(deployments, name, "example.com/hold")
    finally:
        thread.join()
    hold(deployments, name, "example.com/hold")
    services = client.resource(*JI)
    services.wait_until(key("service-rolled"), lambda one: runs(one, 2), WAIT)
    assert deployments.get(name)["spec"]["replicas"] == 2, "replicas belong to the user"
    deployments.delete(name, propagation="Background")
    held = deployments.get(name)
    assert held.finalizers == ("example.com/hold",)
    assert held.deletion_timestamp is not None
    let_go(deployments, name, "example.com/hold")
    deployments.wait_until(name, lambda one: one is not None and one.uid != held.uid, WAIT)
