"""Whatever happens, and in whatever order it is seen, the children become what their job wants.

Two machines a kind: one manager, and two managers without any election that both act at once, interleaved between
single API calls over caches of different ages. The rules are what users, kubelets, networks and operators do.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from informers.errors import ConflictError, RequestTimeout, ServiceUnavailableError
from pysedna.jobs import federated_learning, joint_inference
from pysedna.testing import FakeRecorder


def _sibling(name: str) -> Any:
    found = sys.modules.get(f"jobs_{name}")
    if found is None:
        spec = importlib.util.spec_from_file_location(f"jobs_{name}", Path(__file__).with_name(f"{name}.py"))
        assert spec is not None
        assert spec.loader is not None
        found = sys.modules[f"jobs_{name}"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    return found


make, world = _sibling("conftest"), _sibling("world")

JOBS = ("a", "b")
FOREIGN = {"note": "not ours"}
jobs = st.sampled_from(JOBS)
numbers = st.integers(0, 5)


class Machine(RuleBasedStateMachine):
    """What both kinds of jobs have in common."""

    managers_count = 1
    kind: Any
    setup: Any
    check: Any  # what must hold of this kind once everything has settled
    cached: tuple[Any, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.cluster = world.Cluster()
        self.managers = [
            world.HandManager(self.cluster, [self.setup], recorder=FakeRecorder()) for _ in range(self.managers_count)
        ]
        self.foreign: dict[tuple[Any, str], Any] = {}

    def teardown(self) -> None:
        try:
            self.everything_settles()
        finally:
            for manager in self.managers:
                manager.kill()

    def manager(self, number: int) -> Any:
        return self.managers[number % len(self.managers)]

    def owned(self, kind: Any) -> list[Any]:
        return [obj for obj in self.cluster.all(kind) if "ownerReferences" in obj["metadata"]]

    # Users

    @rule(name=jobs, propagation=st.sampled_from(["Background", "Foreground"]))
    def delete_job(self, name: str, propagation: str) -> None:
        if self.cluster.find(self.kind, name) is not None:
            self.cluster.delete(self.kind, name, propagation=propagation)

    @rule(name=jobs, value=st.sampled_from("xy"))
    def label_job(self, name: str, value: str) -> None:
        if self.cluster.find(self.kind, name) is not None:
            self.cluster.patch(self.kind, name, {"metadata": {"labels": {"l": value}}})

    @rule(name=jobs)
    def scribble_on_status(self, name: str) -> None:
        if self.cluster.find(self.kind, name) is not None:
            self.cluster.patch(self.kind, name, {"status": {"active": 77}}, subresource="status")

    @rule(number=numbers)
    def model_comes_and_goes(self, number: int) -> None:
        name = ("model", "little", "big")[number % 3]
        if self.cluster.find(world.MODEL, name) is None:
            self.cluster.create(make.model(name))
        else:
            self.cluster.delete(world.MODEL, name)

    # The cluster

    @rule()
    def collect_garbage(self) -> None:
        self.cluster.collect()

    @rule()
    def kubelets(self) -> None:
        self.cluster.run_kubelets()

    @rule()
    def deployments(self) -> None:
        self.cluster.run_deployments()

    @rule()
    def compaction(self) -> None:
        self.cluster.api.compact()

    # Managers

    @rule(who=numbers, what=numbers, limit=st.sampled_from([1, 2, None]))
    def events_arrive(self, who: int, what: int, limit: int | None) -> None:
        self.manager(who).pull(self.cached[what % len(self.cached)], limit)

    @rule(who=numbers, what=numbers)
    def watch_is_lost(self, who: int, what: int) -> None:
        self.manager(who).relist(self.cached[what % len(self.cached)])

    @rule(who=numbers, which=numbers)
    def reconcile_begins(self, who: int, which: int) -> None:
        self.manager(who).begin(which)

    @rule(who=numbers)
    def reconcile_makes_one_call(self, who: int) -> None:
        self.manager(who).step()

    @rule(who=numbers)
    def everything_reaches_one_manager(self, who: int) -> None:
        self.manager(who).pull_all()
        self.manager(who).drain()

    @rule(who=numbers)
    def manager_dies_and_comes_back(self, who: int) -> None:
        self.manager(who).restart()

    @rule(who=numbers, error=st.sampled_from([ServiceUnavailableError, ConflictError, RequestTimeout]))
    def next_write_fails(self, who: int, error: Any) -> None:
        self.manager(who).fail_next = error("on purpose")

    # What must hold

    @invariant()
    def nobody_elses_objects_are_touched(self) -> None:
        for (kind, name), stored in self.foreign.items():
            assert self.cluster.find(kind, name) == stored

    @rule()
    def everything_settles(self) -> None:
        world.settle(self.cluster, *self.managers)
        self.check()
        writes = [len(manager.client.writes) for manager in self.managers]
        for manager in self.managers:
            manager.restart()
        world.settle(self.cluster, *self.managers)
        assert [len(manager.client.writes) for manager in self.managers] == writes, "a settled world is left in peace"

    def put_in_the_way(self, manifest: Any) -> None:
        key = ((manifest["apiVersion"], manifest["kind"]), manifest["metadata"]["name"])
        if self.cluster.find(*key) is None:
            self.cluster.create(manifest)
            self.cluster.run_kubelets()
            self.foreign[key] = self.cluster.find(*key)

    @precondition(lambda self: self.foreign)
    @rule(number=numbers)
    def what_was_in_the_way_goes(self, number: int) -> None:
        kind, name = list(self.foreign)[number % len(self.foreign)]
        del self.foreign[kind, name]
        self.cluster.delete(kind, name, grace=0)

    def condition(self, job: Any, type: str) -> str | None:
        conditions = (job.get("status") or {}).get("conditions") or []
        return next((condition["status"] for condition in conditions if condition["type"] == type), None)


class FederatedMachine(Machine):
    kind = world.FL
    setup = staticmethod(federated_learning.setup)
    cached = (world.FL, world.POD, world.SERVICE, world.MODEL, world.DATASET)

    @initialize()
    def references(self) -> None:
        self.cluster.create(make.model("model"))
        for index in range(3):
            self.cluster.create(make.dataset(f"data-{index}"))

    @rule(name=jobs, trainers=st.integers(0, 3))
    def create_job(self, name: str, trainers: int) -> None:
        if self.cluster.find(self.kind, name) is None:
            manifest = make.federated_manifest(name, trainers=trainers)
            manifest["metadata"] = {"name": name, "namespace": "ns"}
            self.cluster.create(manifest)

    @rule(name=jobs, trainers=st.integers(1, 3), size=st.sampled_from(["16", "32"]))
    def edit_job(self, name: str, trainers: int, size: str) -> None:
        if self.cluster.find(self.kind, name) is not None:
            spec = make.federated_manifest(name, trainers=trainers)["spec"]
            for worker in spec["trainingWorkers"]:
                worker["template"]["spec"]["containers"][0]["env"][0]["value"] = size
            self.cluster.patch(self.kind, name, {"spec": spec})

    @rule(number=numbers, force=st.booleans())
    def delete_pod(self, number: int, force: bool) -> None:
        pods = self.owned(world.POD)
        if pods:
            name = pods[number % len(pods)]["metadata"]["name"]
            self.cluster.delete(world.POD, name, grace=0 if force else None)

    @rule(number=numbers, phase=st.sampled_from(["Running", "Running", "Succeeded", "Succeeded", "Failed"]))
    def pod_moves_on(self, number: int, phase: str) -> None:
        pods = self.owned(world.POD)
        if pods:
            pod = pods[number % len(pods)]
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                self.cluster.set_phase(pod["metadata"]["name"], phase)

    @rule(name=jobs)
    def delete_service(self, name: str) -> None:
        found = self.cluster.find(world.SERVICE, f"{name}-aggregation")
        if found is not None and "ownerReferences" in found["metadata"]:
            self.cluster.delete(world.SERVICE, f"{name}-aggregation")

    @rule(name=jobs)
    def lead_a_service_astray(self, name: str) -> None:
        found = self.cluster.find(world.SERVICE, f"{name}-aggregation")
        if found is not None and "ownerReferences" in found["metadata"]:
            self.cluster.patch(world.SERVICE, f"{name}-aggregation", {"spec": {"selector": {"app": "other"}}})

    @rule(name=jobs, index=st.integers(0, 2))
    def somebody_takes_a_name(self, name: str, index: int) -> None:
        metadata = {"name": f"{name}-train-{index}", "namespace": "ns", "annotations": FOREIGN}
        self.put_in_the_way({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})

    @rule(number=numbers)
    def somebody_copies_our_labels(self, number: int) -> None:
        pods = self.owned(world.POD)
        if pods:
            labels = pods[number % len(pods)]["metadata"]["labels"]
            metadata = {"name": "copy", "namespace": "ns", "labels": labels, "annotations": FOREIGN}
            self.put_in_the_way({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})

    @invariant()
    def there_are_never_two_workers_with_one_index(self) -> None:
        workers = [
            tuple(pod["metadata"]["labels"][federated(name)] for name in ("uid", "worker-type", "worker-index"))
            for pod in self.owned(world.POD)
        ]
        assert len(workers) == len(set(workers))

    def check(self) -> None:
        found = self.cluster.all(self.kind)
        uids = {job["metadata"]["uid"] for job in found}
        for child in [*self.owned(world.POD), *self.owned(world.SERVICE)]:
            assert child["metadata"]["ownerReferences"][0]["uid"] in uids
        for job in found:
            self.check_job(job)

    def check_job(self, job: Any) -> None:
        uid, name = job["metadata"]["uid"], job["metadata"]["name"]
        pods = {
            pod["metadata"]["name"]: pod
            for pod in self.owned(world.POD)
            if pod["metadata"]["ownerReferences"][0]["uid"] == uid
        }
        active = [p for p in pods.values() if (p.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
        assert job["status"]["active"] == len(active)
        if self.condition(job, "Complete") == "True" or self.condition(job, "Failed") == "True":
            assert not active, "a finished job keeps no worker"
            return
        parsed = make.federated_job(job)
        names = federated_learning.children.worker_names(parsed)
        digest = federated_learning.children.job_hash(parsed.spec)
        current = [n for n in names if n in pods and pods[n]["metadata"]["labels"][federated("spec-hash")] == digest]
        blocked = len(names) == 1 or self.cluster.find(world.MODEL, "model") is None
        if blocked:
            assert self.condition(job, "Pending") == "True" or set(current) == set(names)
            return
        free = [n for n in names if (world.POD, n) not in self.foreign]
        assert sorted(pods) == sorted(free), "no worker is missing and none is surplus"
        assert sorted(current) == sorted(free), "none runs the old spec"
        assert self.cluster.find(world.SERVICE, f"{name}-aggregation")["spec"]["selector"] == {
            federated("name"): name,
            federated("uid"): uid,
            federated("worker-type"): "aggregation",
        }
        assert (self.condition(job, "Pending") == "True") == (len(free) < len(names))
        assert job["status"]["observedGeneration"] == job["metadata"]["generation"]


def federated(name: str) -> str:
    return f"federatedlearningjob.sedna.io/{name}"


class InferenceMachine(Machine):
    kind = world.JI
    setup = staticmethod(joint_inference.setup)
    cached = (world.JI, world.POD, world.SERVICE, world.DEPLOYMENT, world.MODEL)

    @initialize()
    def references(self) -> None:
        self.cluster.create(make.model("little"))
        self.cluster.create(make.model("big"))

    @rule(name=jobs)
    def create_service(self, name: str) -> None:
        if self.cluster.find(self.kind, name) is None:
            manifest = make.inference_manifest(name)
            manifest["metadata"] = {"name": name, "namespace": "ns"}
            self.cluster.create(manifest)

    @rule(name=jobs, value=st.sampled_from(["0.5", "0.9"]), node=st.sampled_from(["cloud", "other"]))
    def edit_service(self, name: str, value: str, node: str) -> None:
        if self.cluster.find(self.kind, name) is not None:
            mining = {"name": "IBT", "parameters": [{"key": "threshold_img", "value": value}]}
            cloud = {"template": {"spec": {"nodeName": node}}}
            self.cluster.patch(
                self.kind, name, {"spec": {"edgeWorker": {"hardExampleMining": mining}, "cloudWorker": cloud}}
            )

    @rule(number=numbers, propagation=st.sampled_from(["Background", "Foreground"]))
    def delete_deployment(self, number: int, propagation: str) -> None:
        found = self.owned(world.DEPLOYMENT)
        if found:
            name = found[number % len(found)]["metadata"]["name"]
            self.cluster.delete(world.DEPLOYMENT, name, propagation=propagation)

    @rule(number=numbers, replicas=st.integers(1, 3))
    def scale_deployment(self, number: int, replicas: int) -> None:
        found = self.owned(world.DEPLOYMENT)
        if found:
            name = found[number % len(found)]["metadata"]["name"]
            self.cluster.patch(world.DEPLOYMENT, name, {"spec": {"replicas": replicas}})

    @rule(number=numbers)
    def delete_pod(self, number: int) -> None:
        pods = self.owned(world.POD)
        if pods:
            self.cluster.delete(world.POD, pods[number % len(pods)]["metadata"]["name"], grace=0)

    @rule(number=numbers, waiting=st.booleans())
    def pod_crashes_or_gets_well(self, number: int, waiting: bool) -> None:
        pods = self.owned(world.POD)
        if pods:
            state = {"waiting": {"reason": "CrashLoopBackOff"}} if waiting else {"running": {}}
            status = {"containerStatuses": [{"name": "worker", "state": state}]}
            self.cluster.patch(
                world.POD, pods[number % len(pods)]["metadata"]["name"], {"status": status}, subresource="status"
            )

    @rule(name=jobs, suffix=st.sampled_from(["-deployment-edge", "-deployment-x", ""]))
    def somebody_has_a_deployment_like_ours(self, name: str, suffix: str) -> None:
        metadata = {"name": name + suffix, "namespace": "ns", "annotations": FOREIGN}
        template = {"metadata": {}, "spec": copy.deepcopy(make.template()["spec"])}
        manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template}}
        if self.cluster.find(world.DEPLOYMENT, name + suffix) is None:
            self.cluster.create(manifest)
            self.cluster.run_deployments()
            self.foreign[world.DEPLOYMENT, name + suffix] = self.cluster.find(world.DEPLOYMENT, name + suffix)

    def check(self) -> None:
        found = self.cluster.all(self.kind)
        uids = {job["metadata"]["uid"] for job in found}
        for child in [*self.owned(world.DEPLOYMENT), *self.owned(world.SERVICE)]:
            assert child["metadata"]["ownerReferences"][0]["uid"] in uids
        for job in found:
            self.check_service(job)

    def check_service(self, job: Any) -> None:
        uid, name = job["metadata"]["uid"], job["metadata"]["name"]
        parsed = make.inference_service(job)
        wanted = {
            f"{name}-deployment-{kind}": joint_inference.children.worker_hash(parsed.spec, kind)
            for kind, model in (("cloud", "big"), ("edge", "little"))
        }
        live = {
            found["metadata"]["name"]: found["metadata"]["labels"]["jointinferenceservice.sedna.io/spec-hash"]
            for found in self.owned(world.DEPLOYMENT)
            if found["metadata"]["ownerReferences"][0]["uid"] == uid
        }
        assert live.keys() <= wanted.keys()
        possible = {
            f"{name}-deployment-{kind}"
            for kind, model in (("cloud", "big"), ("edge", "little"))
            if self.cluster.find(world.MODEL, model) is not None
            and (world.DEPLOYMENT, f"{name}-deployment-{kind}") not in self.foreign
        }
        assert possible <= live.keys(), "no worker is missing"
        assert {key: live[key] for key in possible} == {key: wanted[key] for key in possible}, "none has the old spec"
        assert (self.condition(job, "Pending") == "True") == (live != wanted)
        assert self.cluster.find(world.SERVICE, f"{name}-cloud") is not None
        assert job["status"]["observedGeneration"] == job["metadata"]["generation"]
        assert job["status"]["active"] <= len(live)
        crashing = [
            pod
            for pod in self.owned(world.POD)
            if (pod["metadata"].get("labels") or {}).get("jointinferenceservice.sedna.io/uid") == uid
            and "waiting" in str(pod["status"].get("containerStatuses"))
        ]
        assert (job["status"]["failed"] > 0) == bool(crashing)


class TwoFederatedManagers(FederatedMachine):
    managers_count = 2


class TwoInferenceManagers(InferenceMachine):
    managers_count = 2


# A long search: JOBS_EXAMPLES=1000 pytest tests/jobs/test_state_machines.py --timeout 0
# Failures are shown as found: shrinking them takes longer than reading them.
PROFILE = settings(
    max_examples=int(os.environ.get("JOBS_EXAMPLES", "25")),
    stateful_step_count=60,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)

for machine in (FederatedMachine, InferenceMachine, TwoFederatedManagers, TwoInferenceManagers):
    machine.TestCase.settings = PROFILE

TestOneManagerOfFederatedJobs = FederatedMachine.TestCase
TestTwoManagersOfFederatedJobs = TwoFederatedManagers.TestCase
TestOneManagerOfInferenceServices = InferenceMachine.TestCase
TestTwoManagersOfInferenceServices = TwoInferenceManagers.TestCase
