"""What deploy/rbac.yaml allows is what the manager does: every request is allowed, and nothing is that none needs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from ruamel.yaml import YAML

from informers import Client, ObjectKey, RequestTrace
from informers.errors import InformersError
from leaderelection import Config
from pysedna.api import crds
from pysedna.controller import LeaderElection, Manager
from pysedna.jobs import federated_learning, joint_inference
from pysedna.localcluster import LocalCluster

MANIFEST = Path(__file__).parents[2] / "deploy" / "rbac.yaml"
SEDNA = "sedna.io/v1alpha1"
FL, JI = (SEDNA, "FederatedLearningJob"), (SEDNA, "JointInferenceService")
POD, SERVICE, DEPLOYMENT = ("v1", "Pod"), ("v1", "Service"), ("apps/v1", "Deployment")
AUTOSCALER = ("autoscaling/v2", "HorizontalPodAutoscaler")
LEASE = ObjectKey("default", "pysedna-manager")
PATIENCE = 30.0

Use = tuple[str, str, str]
"""Verb, API group, resource (with its subresource)."""

# The admission plugin OwnerReferencesPermissionEnforcement asks it of whoever sets blockOwnerDeletion.
FOR_ADMISSION = {
    ("update", "sedna.io", "federatedlearningjobs/finalizers"),
    ("update", "sedna.io", "jointinferenceservices/finalizers"),
}
_WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def use_of(method: str, url: str) -> Use | None:
    """What Kubernetes' authorizer makes of a request; None for what everybody may (discovery)."""
    parts = urlsplit(url)
    steps = parts.path.strip("/").split("/")
    group, rest = ("", steps[2:]) if steps[0] == "api" else (steps[1] if len(steps) > 1 else "", steps[3:])
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    if not rest:
        return None
    resource, name, *subresource = [*rest, ""] if len(rest) == 1 else rest
    if method == "GET":
        verb = "get" if name else "watch" if "watch" in parse_qs(parts.query) else "list"
    else:
        verb = _WRITES[method]
    return verb, group, "/".join([resource, *subresource])


def allowed() -> set[Use]:
    documents = [document for document in YAML(typ="safe").load_all(MANIFEST.read_text()) if "rules" in document]
    return {
        (verb, group, resource)
        for document in documents
        for rule in document["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def autoscalers() -> dict[str, Any]:
    """Stands in for autoscaling/v2, which the embedded cluster does not serve."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "horizontalpodautoscalers.autoscaling"},
        "spec": {
            "group": "autoscaling",
            "scope": "Namespaced",
            "names": {"plural": "horizontalpodautoscalers", "kind": "HorizontalPodAutoscaler"},
            "versions": [{"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


class Story:
    """Makes the manager do everything that it ever does."""

    def __init__(self, client: Client, make: Any) -> None:
        self.client, self.make = client, make

    def create(self, manifest: dict[str, Any]) -> None:
        namespace = {"namespace": "default"}
        named = {"metadata": {**manifest["metadata"], **namespace}}
        named["metadata"].pop("uid", None)
        named["metadata"].pop("resourceVersion", None)
        self.client.resource(manifest["apiVersion"], manifest["kind"]).create({**manifest, **named})

    def eventually(self, condition: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if condition():
                    return
            except (InformersError, KeyError):  # not there yet
                pass
            assert time.monotonic() < deadline, f"it did not happen in time: {what}"
            time.sleep(0.05)

    def find(self, kind: tuple[str, str], name: str) -> dict[str, Any]:
        return self.client.resource(*kind).get(ObjectKey("default", name)).to_dict()

    def patch(self, kind: tuple[str, str], name: str, patch: dict[str, Any]) -> None:
        self.client.resource(*kind).patch(ObjectKey("default", name), patch)

    def gone(self, kind: tuple[str, str], name: str) -> bool:
        return not [obj for obj in self.client.resource(*kind).list(namespace="default").items if obj.name == name]

    def tell(self) -> None:
        for name in ("model", "little", "big"):
            self.create(self.make.model(name))
        for name in ("data-0", "data-1"):
            self.create(self.make.dataset(name, "s3://store/d.csv", credentialName="keys"))
        self.create({"apiVersion": "v1", "kind": "Pod", **self.someone("defects-train-0")})
        self.create(self.make.federated_manifest())
        service = self.make.inference_manifest()
        service["spec"]["edgeWorker"]["hpa"] = {"maxReplicas": 2}
        self.create(service)
        self.eventually(lambda: self.find(JI, "helmets")["status"]["active"] == 2, "the service runs")
        self.eventually(lambda: self.find(FL, "defects")["status"]["conditions"], "the job waits for its Secret")
        self.create(self.make.secret("keys", **{"s3-endpoint": "store"}))
        self.eventually(lambda: self.find(POD, "defects-train-1"), "the job goes on")
        self.client.resource(*POD).delete(ObjectKey("default", "defects-train-0"), grace_period=0)
        self.eventually(lambda: self.find(FL, "defects")["status"]["active"] == 3, "the job runs")
        self.patch(SERVICE, "helmets-cloud", {"spec": {"selector": {"app": "other"}}})
        self.eventually(lambda: "app" not in self.find(SERVICE, "helmets-cloud")["spec"]["selector"], "it is set right")
        self.patch(JI, "helmets", {"spec": {"edgeWorker": {"hpa": {"maxReplicas": 3}}}})
        scaler = "hpa-helmets-deployment-edge"
        self.eventually(lambda: self.find(AUTOSCALER, scaler)["spec"]["maxReplicas"] == 3, "the limits change")
        mining = {"hardExampleMining": {"name": "other"}, "hpa": None}
        self.patch(JI, "helmets", {"spec": {"edgeWorker": mining}})
        self.eventually(lambda: self.gone(AUTOSCALER, scaler), "the limits go")
        self.patch(FL, "defects", {"spec": {"pretrainedModel": {"name": "big"}}})
        self.eventually(lambda: self.find(FL, "defects")["status"]["observedGeneration"] == 2, "the job rolls")
        self.eventually(lambda: self.find(FL, "defects")["status"]["active"] == 3, "the job runs again")

    def someone(self, name: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.fixture
def used(make: Any) -> Iterator[set[Use]]:
    """What a manager with all controllers asks for while everything happens to its jobs."""
    uses: set[Use] = set()

    def note(trace: RequestTrace) -> None:
        use = use_of(trace.method, trace.url)
        if use is not None:
            uses.add(use)

    stop = threading.Event()
    nodes = ["cloud", "edge-0", "edge-1"]
    with LocalCluster(nodes=nodes) as cluster, Client.from_kubeconfig(cluster.kubeconfig, on_request=note) as client:
        cluster.install_crds([*crds(), autoscalers()])
        manager = Manager(
            client, name="pysedna-manager", http=None, leader_election=LeaderElection(LEASE, Config(3, 2, 0.4))
        )
        for kind in (federated_learning, joint_inference):
            kind.setup(manager)
        thread = threading.Thread(target=manager.run, args=(stop,), name="gm")
        thread.start()
        try:
            Story(cluster.client, make).tell()
        finally:
            stop.set()
            thread.join(timeout=30)
        assert not thread.is_alive()
        yield uses


def test_the_manager_may_do_what_it_does_and_nothing_else(used: set[Use]) -> None:
    missing = used - allowed()
    assert not missing, "requests that deploy/rbac.yaml does not allow"
    # Whether a name that is taken has to be looked up, an event is told again, and what streams a list, depends on who
    # is faster.
    looked_up = {("get", "", "services"), ("get", "", "pods"), ("get", "apps", "deployments")}
    by_chance = {*looked_up, ("patch", "", "events")}
    lists = {use for use in allowed() if use[0] == "list"}
    assert allowed() - used - FOR_ADMISSION - by_chance - lists == set(), "permissions that nothing needs"


@pytest.mark.parametrize(
    ("method", "url", "use"),
    [
        ("GET", "http://h/api/v1/pods?watch=1", ("watch", "", "pods")),
        ("GET", "http://h/apis/apps/v1/namespaces/a/deployments", ("list", "apps", "deployments")),
        ("GET", "http://h/api/v1/namespaces/a", ("get", "", "namespaces")),
        (
            "PATCH",
            "http://h/apis/sedna.io/v1alpha1/namespaces/a/models/m/status",
            ("patch", "sedna.io", "models/status"),
        ),
        ("POST", "http://h/api/v1/namespaces/a/events", ("create", "", "events")),
        ("GET", "http://h/apis/sedna.io/v1alpha1", None),
        ("GET", "http://h/api/v1", None),
        ("GET", "http://h/apis", None),
    ],
)
def test_a_request_is_read_as_the_authorizer_reads_it(method: str, url: str, use: Use | None) -> None:
    assert use_of(method, url) == use
