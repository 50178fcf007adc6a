"""The real control plane: who may do what on it, how it is disturbed, and that it comes back."""

from __future__ import annotations

import json
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from informers import Client, ObjectKey
from informers.errors import (
    AlreadyExistsError,
    ApiError,
    ConnectionRefused,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    RequestTimeout,
    TlsError,
)
from pysedna.testing import ControlPlane, NotOursError, NotRunningError, Settings

pytestmark = pytest.mark.kube
READ_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
WAIT = 30.0


@pytest.fixture
def own_namespace(control_plane: ControlPlane) -> Iterator[str]:
    name = f"plane-{secrets.token_hex(4)}"
    control_plane.client.resource("v1", "Namespace").create({"metadata": {"name": name}})
    yield name
    control_plane.client.resource("v1", "Namespace").delete(name)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """One that is disturbed."""
    with ControlPlane() as plane:
        yield plane


def test_the_server_is_verified_with_the_authority_that_it_made(control_plane: ControlPlane, tmp_path: Path) -> None:
    config = json.loads(Path(control_plane.kubeconfig).read_text())
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    distrustful = tmp_path / "kubeconfig"
    distrustful.write_text(json.dumps(config))
    with Client.from_kubeconfig(distrustful) as client, pytest.raises(TlsError):
        client.raw("GET", "/version")
    assert json.loads(control_plane.client.raw("GET", "/version"))["major"] == "1"


def test_credentials_are_for_nobody_else_to_read(control_plane: ControlPlane) -> None:
    files = [control_plane.folder / name for name in ("kubeconfig", "tokens.csv", "signing.key")]
    assert [oct(file.stat().st_mode & 0o777) for file in files] == ["0o600"] * 3
    assert oct(control_plane.folder.stat().st_mode & 0o777) == "0o700"


def test_a_user_may_do_what_the_rules_say_in_the_namespace_and_nothing_else(
    control_plane: ControlPlane, own_namespace: str
) -> None:
    user = control_plane.add_user("reader", rules=[READ_PODS], namespace=own_namespace)
    assert user.name == f"system:serviceaccount:{own_namespace}:reader"
    with Client.from_kubeconfig(user.kubeconfig) as client:
        assert client.resource("v1", "Pod").list(namespace=own_namespace).items == []
    with pytest.raises(ForbiddenError, match=user.name):
        user.client.resource("v1", "Pod").list(namespace="default")
    with pytest.raises(ForbiddenError):
        user.client.resource("v1", "ConfigMap").list(namespace=own_namespace)
    with pytest.raises(ForbiddenError):
        user.client.resource("v1", "Pod").delete_collection(namespace=own_namespace)


def test_a_user_without_a_namespace_may_do_it_everywhere(control_plane: ControlPlane) -> None:
    name = f"auditor-{secrets.token_hex(4)}"
    health = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
    one = {"verbs": ["get"], "apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["default"]}
    user = control_plane.add_user(name, rules=[READ_PODS, health, one])
    assert user.client.raw("GET", "/metrics")
    assert user.client.resource("v1", "Pod").list().resource_version
    assert user.client.resource("v1", "Namespace").get("default").name == "default"
    with pytest.raises(ForbiddenError):
        user.client.resource("v1", "Namespace").get("kube-system")
    with pytest.raises(AlreadyExistsError):
        control_plane.add_user(name, rules=[])


class Hook(BaseHTTPRequestHandler):
    """Refuses every object that it is asked about."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = {"message": f"not through {self.path.partition('?')[0]}"}
        answer = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        body = json.dumps({**review, "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def hook(control_plane: ControlPlane) -> Iterator[str]:
    """The address of a webhook that serves with the API server's own certificate."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(control_plane.certificate, control_plane.private_key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, name="webhook")
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_webhook_of_a_service_is_served_by_the_test(
    control_plane: ControlPlane, own_namespace: str, hook: str
) -> None:
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": own_namespace},
        "webhooks": [
            {
                "name": "all.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": own_namespace}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["*"]}],
                "clientConfig": {"service": {"namespace": "default", "name": "any", "path": "/check"}},
            }
        ],
    }
    for _ in range(2):  # the second replaces the first
        control_plane.install_webhooks([configuration], url=hook)
    kind = control_plane.client.resource("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
    try:
        secret = {"metadata": {"generateName": "a-", "namespace": own_namespace}}
        resource = control_plane.client.resource("v1", "Secret")
        refused = eventually_raises(lambda: resource.create(secret))
        assert "not through /check" in str(refused)
    finally:
        kind.delete(own_namespace)


def eventually_raises(call: Callable[[], object]) -> ApiError:
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        try:
            call()
        except ApiError as error:
            return error
    raise AssertionError("it was never refused")


def test_a_frozen_server_keeps_connections_and_does_not_answer(plane: ControlPlane) -> None:
    for _ in range(20):
        assert plane.client.raw("GET", "/readyz") == b"ok"
        plane.freeze()
        with pytest.raises(RequestTimeout):
            plane.client.raw("GET", "/readyz", timeout=0.05)
        plane.thaw()
    assert plane.client.raw("GET", "/readyz", timeout=WAIT) == b"ok"


def test_a_killed_server_refuses_connections_and_comes_back_with_its_data(plane: ControlPlane) -> None:
    user = plane.add_user("survivor", rules=[READ_PODS])
    made = plane.client.resource("v1", "ConfigMap").create({"metadata": {"name": "a", "namespace": "default"}})
    address = plane.address
    plane.kill_api_server()
    with pytest.raises(ConnectionRefused):
        plane.client.raw("GET", "/readyz")
    with pytest.raises(NotRunningError):
        plane.freeze()
    plane.restart_api_server()
    assert plane.address == address
    assert plane.client.resource("v1", "ConfigMap").get(made.key) == made
    assert user.client.resource("v1", "Pod").list().items == []


def test_a_frozen_server_can_be_restarted(plane: ControlPlane) -> None:
    plane.freeze()
    plane.restart_api_server()
    assert plane.client.raw("GET", "/readyz") == b"ok"


def test_after_a_compaction_an_old_continue_token_is_refused_with_a_new_one(plane: ControlPlane) -> None:
    maps = plane.client.resource("v1", "ConfigMap")
    for name in "bcd":
        maps.create({"metadata": {"name": name, "namespace": "default"}})
    page = maps.list(namespace="default", limit=1)
    plane.compact()
    with pytest.raises(ExpiredError) as caught:
        maps.list(namespace="default", limit=1, continue_=page.continue_)
    assert caught.value.status == 410
    with pytest.raises(ExpiredError), maps.watch(resource_version=page.resource_version, timeout_seconds=10) as watch:
        next(watch)
    plane.compact()
    assert len(maps.list(namespace="default").items) >= 3


def test_the_controllers_go_on_after_a_restart(plane: ControlPlane) -> None:
    plane.restart_api_server()
    name = f"later-{secrets.token_hex(4)}"
    plane.client.resource("v1", "Namespace").create({"metadata": {"name": name}})
    accounts = plane.client.resource("v1", "ServiceAccount")
    accounts.wait_until(ObjectKey(name, "default"), lambda one: one is not None, timeout=WAIT)


def test_logs_are_read_by_name(plane: ControlPlane) -> None:
    assert len(plane.log(lines=3).splitlines()) == 3
    assert plane.log("kube-controller-manager")
    with pytest.raises(KeyError):
        plane.log("kubelet")


@pytest.fixture
def existing(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ControlPlane:
    """What stands for the cluster of the environment."""
    monkeypatch.setenv("KUBECONFIG", plane.kubeconfig)
    return ControlPlane(settings=Settings(cache=tmp_path, use_existing_cluster=True))


def test_an_existing_cluster_is_used_and_left_without_our_users(plane: ControlPlane, existing: ControlPlane) -> None:
    with existing:
        assert existing.address == plane.address
        everywhere = existing.add_user("guest", rules=[READ_PODS])
        here = existing.add_user("guest", rules=[READ_PODS], namespace="kube-system")
        assert everywhere.client.resource("v1", "Pod").list().resource_version
        assert here.client.resource("v1", "Pod").list(namespace="kube-system").resource_version
    accounts = plane.client.resource("v1", "ServiceAccount")
    for home in ("default", "kube-system"):
        with pytest.raises(NotFoundError):
            accounts.get(ObjectKey(home, "guest"))
    roles = plane.client.resource("rbac.authorization.k8s.io/v1", "ClusterRole").list().items
    assert [role.name for role in roles if role.name.endswith(":guest")] == []
    assert plane.client.raw("GET", "/readyz") == b"ok"


def test_an_existing_cluster_is_not_ours_to_disturb(existing: ControlPlane) -> None:
    with existing:
        for disturb in (existing.freeze, existing.kill_api_server, existing.compact, existing.restart_api_server):
            with pytest.raises(NotOursError, match="USE_EXISTING_CLUSTER"):
                disturb()
