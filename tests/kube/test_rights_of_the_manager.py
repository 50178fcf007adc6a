"""The manager under the rights of deploy/rbac.yaml: it is refused nothing, and has no right to spare."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from informers import Client, NotFoundError, Object, ObjectKey
from informers.errors import ForbiddenError
from pysedna.api import crds
from pysedna.controller import Manager, owner_reference
from pysedna.demo import story as demo
from pysedna.demo.recorder import Recorder
from pysedna.demo.replicas import Replicas
from pysedna.demo.run import WATCHED
from pysedna.localcluster.controllers import setup_nodes
from pysedna.testing import BinariesMissingError, ControlPlane
from pysedna.testing.credentials import for_user, write_private

pytestmark = [pytest.mark.kube, pytest.mark.slow]

RBAC = "rbac.authorization.k8s.io/v1"
SEDNA = "sedna.io/v1alpha1"
AUTOSCALER = ("autoscaling/v2", "HorizontalPodAutoscaler")
ACCOUNT = "system:serviceaccount:default:pysedna-manager"
FILE = Path(__file__).parents[2] / "deploy" / "rbac.yaml"
NAMESPACE = "story"
NODES = ("cloud-1", "edge-1", "edge-2")
WAIT = 60.0
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}],
}
# What only a race, or an admission plugin instead of a request, makes use of.
SELDOM = {
    ("get", "", "pods"),
    ("get", "", "services"),
    ("get", "apps", "deployments"),
    ("update", "sedna.io", "federatedlearningjobs/finalizers"),
    ("update", "sedna.io", "jointinferenceservices/finalizers"),
}


def documents() -> list[dict[str, Any]]:
    return list(YAML(typ="safe", pure=True).load_all(FILE.read_text()))


def rules() -> list[dict[str, Any]]:
    return [rule for one in documents() if one["kind"] in ("Role", "ClusterRole") for rule in one["rules"]]


def granted() -> set[tuple[str, str, str]]:
    return {
        (verb, group, resource)
        for rule in rules()
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


class Audit:
    """What the API server notes of the manager's requests."""

    def __init__(self, folder: Path) -> None:
        self.policy, self.log = folder / "policy.json", folder / "audit.log"
        self.policy.write_text(json.dumps(POLICY))
        self._from = 0

    def begin(self) -> None:
        """Forget what was asked so far."""
        self._from = len(self._lines())

    def _lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def requests(self) -> Iterator[tuple[tuple[str, str, str], int]]:
        for line in self._lines()[self._from :]:
            event = json.loads(line)
            about = event.get("objectRef") or {}
            resource = "/".join(filter(None, (about.get("resource", ""), about.get("subresource", ""))))
            if resource:
                yield (event["verb"], about.get("apiGroup", ""), resource), event["responseStatus"].get("code", 0)


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return Audit(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="module")
def plane(audit: Audit) -> Iterator[ControlPlane]:
    """A control plane that notes who asked for what, and checks who may block the deletion of an owner."""
    arguments = [
        f"--audit-policy-file={audit.policy}",
        f"--audit-log-path={audit.log}",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    ]
    plane = ControlPlane(api_server_args=arguments)
    try:
        plane.start()
    except BinariesMissingError as error:
        pytest.skip(str(error))
    try:
        plane.install_crds(crds())
        plane.client.resource("v1", "Namespace").create({"metadata": {"name": NAMESPACE}})
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="module")
def kubeconfig(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manager's own, with the file applied as it is, and its Role in the story's namespace, where its Lease is."""
    here = {"namespace": NAMESPACE}
    for one in documents():
        plane.client.resource(one["apiVersion"], one["kind"]).create(one)
        if one["kind"] in ("Role", "RoleBinding"):
            again = {**one, "metadata": {**one["metadata"], **here}}
            plane.client.resource(one["apiVersion"], one["kind"]).create(again)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = "/api/v1/namespaces/default/serviceaccounts/pysedna-manager/token"
    headers = {"Content-Type": "application/json"}
    answer = json.loads(plane.client.raw("POST", path, body=json.dumps(request).encode(), headers=headers))
    text = for_user(plane.kubeconfig, user=ACCOUNT, token=answer["status"]["token"])
    return write_private(tmp_path_factory.mktemp("rights") / "kubeconfig", text)


@pytest.fixture(scope="module")
def itself(kubeconfig: Path) -> Iterator[Client]:
    """A client of the manager's account, whose rights are in force."""
    with Client.from_kubeconfig(kubeconfig) as client:
        deadline = time.monotonic() + WAIT
        while True:
            try:
                client.resource(SEDNA, "Model").list()
                with suppress(NotFoundError):
                    client.resource("coordination.k8s.io/v1", "Lease").get(ObjectKey(NAMESPACE, "pysedna-manager"))
                break
            except ForbiddenError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield client


@pytest.fixture
def nodes(plane: ControlPlane) -> Iterator[None]:
    manager = Manager(plane.client, name="nodes", namespaces=[NAMESPACE], http=None)
    setup_nodes(manager, NODES)
    stop = threading.Event()
    thread = threading.Thread(target=manager.run, args=(stop,), name="simulated-nodes")
    thread.start()
    yield
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


def limits_come_and_go(told: demo.Story) -> str:
    scalers, services = told.client.resource(*AUTOSCALER), told.resource("JointInferenceService")
    key = told.key(f"hpa-{demo.SERVICE}-deployment-cloud")

    def limit(value: Any, holds: Callable[[Object | None], bool]) -> None:
        services.patch(told.key(demo.SERVICE), {"spec": {"cloudWorker": {"hpa": value}}})
        scalers.wait_until(key, holds, WAIT)

    limit({"maxReplicas": 2}, lambda one: one is not None)
    limit({"maxReplicas": 3}, lambda one: one is not None and one["spec"]["maxReplicas"] == 3)
    limit(None, lambda one: one is None)
    return "made, replaced and deleted"


def service_is_led_astray(told: demo.Story) -> str:
    services = told.resource("Service")
    key = told.key(f"{demo.SERVICE}-cloud")
    before = services.get(key)["spec"]["selector"]
    services.patch(key, {"spec": {"selector": {"app": "somebody"}}})
    services.wait_until(key, lambda one: one is not None and one["spec"]["selector"] == before, WAIT)
    return "it leads to its workers again"


def secret_is_missing(told: demo.Story) -> str:
    jobs = told.resource("FederatedLearningJob")
    body = jobs.get(told.key(demo.JOB)).to_dict()
    model = {"url": "s3://bucket/model.pb", "format": "pb", "credentialName": "keys"}
    metadata = {"name": "secured", "namespace": told.namespace}
    told.resource("Model").create({"metadata": metadata, "spec": model})
    spec = {**body["spec"], "aggregationWorker": {**body["spec"]["aggregationWorker"], "model": {"name": "secured"}}}
    made = jobs.create({"metadata": metadata, "spec": spec})
    jobs.wait_until(made.key, lambda one: one is not None and reason(one) == "SecretNotFound", WAIT)
    annotations = {"s3-endpoint": "store:9000"}
    metadata = {"name": "keys", "namespace": told.namespace, "annotations": annotations}
    told.client.resource("v1", "Secret").create({"metadata": metadata})
    jobs.wait_until(made.key, lambda one: one is not None and one.get("status", {}).get("active") == 3, WAIT)
    jobs.delete(made.key, propagation="Foreground")
    jobs.wait_until(made.key, lambda one: one is None, WAIT)
    told.resource("Model").delete(told.key("secured"))
    return "waited for, used, and never read whole"


def reason(job: Object) -> str:
    conditions = job.get("status", {}).get("conditions", ())
    return next((one.get("reason", "") for one in conditions if one["type"] == "Pending"), "")


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("nodes", "itself")
def test_the_story_is_played_without_one_refusal_and_every_right_is_needed(
    plane: ControlPlane, kubeconfig: Path, audit: Audit, tmp_path: Path
) -> None:
    audit.begin()
    recorder = Recorder(plane.client, WATCHED, NAMESPACE)
    replicas = Replicas(plane.client, kubeconfig, NAMESPACE, tmp_path)
    told = demo.Story(plane.client, NAMESPACE, NODES, recorder, replicas, WAIT, True, lambda text: None)
    *steps, last = (step.play for step in demo.STEPS)
    recorder.start()
    replicas.start()
    try:
        for play in (*steps, limits_come_and_go, service_is_led_astray, secret_is_missing, last):
            play(told)
    finally:
        replicas.stop()
        recorder.stop()
    requests = list(audit.requests())
    assert [request for request, code in requests if code in (401, 403)] == []
    used = {request for request, _ in requests}
    assert used <= granted()
    idle = {right for right in granted() - used if right[0] != "list"}  # which a server without WatchList is asked for
    assert idle <= SELDOM
    assert {("watch", group, resource) for verb, group, resource in granted() if verb == "list"} <= used


def test_where_owners_are_protected_its_children_are_accepted_thanks_to_one_rule(
    plane: ControlPlane, itself: Client
) -> None:
    spec: Mapping[str, Any] = {
        "aggregationWorker": {
            "model": {"name": "m"},
            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
        "trainingWorkers": [],
    }
    metadata = {"name": "owner", "namespace": "default"}
    owner = plane.client.resource(SEDNA, "FederatedLearningJob").create({"metadata": metadata, "spec": spec})
    metadata = {"name": "child", "namespace": "default", "ownerReferences": [owner_reference(owner)]}
    child = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert itself.resource("v1", "Pod").create(child, dry_run=True).controller == owner_of(owner)
    others = [rule for rule in rules() if not any(name.endswith("/finalizers") for name in rule["resources"])]
    poorer = plane.add_user("poorer", rules=others)
    with pytest.raises(ForbiddenError, match="blockOwnerDeletion"):
        poorer.client.resource("v1", "Pod").create(child, dry_run=True)


def owner_of(owner: Object) -> Any:
    return Object.from_dict({"metadata": {"name": "x", "ownerReferences": [owner_reference(owner)]}}).controller
