"""kubectl against the embedded cluster: what the documentation promises, command by command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any
    Kubectl = Callable[..., str]

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH"),
]
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def environment(kubeconfig_file: Path, tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(kubeconfig_file), "HOME": str(tmp_path)}


@pytest.fixture
def kubectl(environment: dict[str, str]) -> Kubectl:
    """kubectl(*args, stdin=..., fails=False, **environment) -> its output; of both streams when it should fail."""

    def run(*args: str, stdin: object = None, fails: bool = False, **extra: str) -> str:
        text = stdin if isinstance(stdin, str) else json.dumps(stdin)
        done = subprocess.run(
            ["kubectl", *args],
            input=text if stdin is not None else None,
            capture_output=True,
            text=True,
            env={**environment, **extra},
            timeout=60,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr if fails else done.stdout

    return run


def named(pod: Json) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def test_get_shows_tables_yaml_and_names(api: Api, kubectl: Kubectl, pod: Callable[..., Json]) -> None:
    api("POST", PODS, pod("a", nodeName="n1"))
    api("POST", PODS, pod("b"))
    lines = kubectl("get", "pods", "-o", "wide").splitlines()
    assert lines[0].split()[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert lines[1].split()[:4] == ["a", "0/1", "Pending", "0"]
    assert kubectl("get", "po", "-o", "name", "--field-selector", "spec.nodeName=n1") == "pod/a\n"
    assert json.loads(kubectl("get", "pod", "b", "-o", "json"))["spec"]["containers"][0]["image"] == "busybox:1"
    assert "pod/a" in kubectl("get", "all")
    assert '"nope" not found' in kubectl("get", "pod", "nope", fails=True)


def test_get_pages_through_many(api: Api, kubectl: Kubectl) -> None:
    for number in range(25):
        api("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"c{number:02}"}})
    assert len(kubectl("get", "cm", "--chunk-size=10", "--no-headers").splitlines()) == 25


def test_get_watch_follows_changes(api: Api, environment: dict[str, str], deployment: Json) -> None:
    api("POST", DEPLOYMENTS, deployment)
    command = ["kubectl", "get", "deployments", "-w", "--no-headers"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split()[:2] == ["d", "0/2"]
        api.merge(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 5}})
        assert process.stdout.readline().split()[:2] == ["d", "0/5"]
        process.terminate()


def test_describe_shows_an_object_with_its_events(api: Api, kubectl: Kubectl, pod: Callable[..., Json]) -> None:
    created = api("POST", PODS, pod("a", nodeName="n1")).json
    about = {"kind": "Pod", "name": "a", "namespace": "default", "uid": created["metadata"]["uid"]}
    event = {
        "metadata": {"name": "a.1"},
        "involvedObject": about,
        "reason": "Pulled",
        "message": "pulled it",
        "type": "Normal",
        "count": 1,
        "source": {"component": "kubelet"},
        "firstTimestamp": "2020-01-01T00:00:00Z",
        "lastTimestamp": "2020-01-01T00:00:00Z",
    }
    assert api("POST", "/api/v1/namespaces/default/events", event).status == 201
    text = kubectl("describe", "pod", "a")
    assert "Image:        busybox:1" in text
    assert "pulled it" in text
    assert "pod/a" in kubectl("get", "events")


def test_apply_creates_leaves_alone_and_configures(kubectl: Kubectl, deployment: Json) -> None:
    assert kubectl("apply", "-f", "-", stdin=deployment) == "deployment.apps/d created\n"
    assert kubectl("apply", "-f", "-", stdin=deployment) == "deployment.apps/d unchanged\n"
    containers = deployment["spec"]["template"]["spec"]["containers"]
    containers.insert(0, {"name": "side", "image": "side:1"})
    assert kubectl("apply", "-f", "-", stdin=deployment) == "deployment.apps/d configured\n"
    del containers[1]
    assert "configured" in kubectl("apply", "-f", "-", stdin=deployment)
    found = json.loads(kubectl("get", "deployment", "d", "-o", "json"))
    assert [each["name"] for each in found["spec"]["template"]["spec"]["containers"]] == ["side"]
    assert kubectl("diff", "-f", "-", stdin=deployment) == ""
    assert "use a real API server" in kubectl("apply", "--server-side", "-f", "-", stdin=deployment, fails=True)


def test_edit_writes_what_the_editor_left(kubectl: Kubectl, tmp_path: Path, api: Api, deployment: Json) -> None:
    api("POST", DEPLOYMENTS, deployment)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/replicas: 2/replicas: 7/" "$1"\n')
    editor.chmod(0o755)
    assert kubectl("edit", "deployment", "d", EDITOR=str(editor)) == "deployment.apps/d edited\n"
    assert api.get(f"{DEPLOYMENTS}/d").json["spec"]["replicas"] == 7


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("strategic", '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"new"}]}}}}'),
        ("merge", '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"new"}]}}}}'),
        ("json", '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"new"}]'),
    ],
)
def test_patch(api: Api, kubectl: Kubectl, deployment: Json, kind: str, patch: str) -> None:
    api("POST", DEPLOYMENTS, deployment)
    assert kubectl("patch", "deployment", "d", "--type", kind, "-p", patch) == "deployment.apps/d patched\n"
    assert api.get(f"{DEPLOYMENTS}/d").json["spec"]["template"]["spec"]["containers"][0]["image"] == "new"


def test_label_annotate_set_image_and_scale(api: Api, kubectl: Kubectl, deployment: Json) -> None:
    api("POST", DEPLOYMENTS, deployment)
    kubectl("label", "deployment", "d", "a=b")
    kubectl("annotate", "deployment", "d", "c=d")
    kubectl("set", "image", "deployment/d", "main=other:1")
    assert kubectl("scale", "deployment", "d", "--replicas=5") == "deployment.apps/d scaled\n"
    assert kubectl("scale", "deployment", "d", "--replicas=6", "--current-replicas=5") == "deployment.apps/d scaled\n"
    found = api.get(f"{DEPLOYMENTS}/d").json
    assert (found["metadata"]["labels"], found["metadata"]["annotations"]) == ({"a": "b"}, {"c": "d"})
    assert found["spec"]["replicas"] == 6


def test_delete_waits_for_the_end(api: Api, kubectl: Kubectl, pod: Callable[..., Json]) -> None:
    for name in "abc":
        api("POST", PODS, pod(name))
    assert kubectl("delete", "pod", "a").startswith('pod "a" deleted')  # newer ones add the namespace
    api.merge(f"{PODS}/b", {"metadata": {"finalizers": ["x.io/hold"]}})
    kubectl("delete", "pod", "b", "--wait=false")
    assert "Terminating" in kubectl("get", "pod", "b")
    api.merge(f"{PODS}/b", {"metadata": {"finalizers": None}})
    kubectl("delete", "pods", "--all")
    assert api.get(PODS).names == []


def test_wait_for_deletion_conditions_and_values(
    api: Api, kubectl: Kubectl, environment: dict[str, str], pod: Callable[..., Json]
) -> None:
    api("POST", PODS, pod("a"))
    waits = [["--for=condition=Ready"], ["--for=jsonpath={.status.phase}=Running"], ["--for=delete"]]
    running = [
        subprocess.Popen(["kubectl", "wait", "pod/a", "--timeout=30s", *args], env=environment, stdout=subprocess.PIPE)
        for args in waits
    ]
    condition = {"type": "Ready", "status": "True"}
    api.merge(f"{PODS}/a/status", {"status": {"phase": "Running", "conditions": [condition]}})
    for process in running[:2]:
        assert b"condition met" in process.communicate(timeout=30)[0]
    api("DELETE", f"{PODS}/a")
    running[2].communicate(timeout=30)
    assert [process.returncode for process in running] == [0, 0, 0]
    assert "timed out" in kubectl("wait", "ns/default", "--for=condition=Nothing", "--timeout=1s", fails=True)


def test_definitions_and_their_objects(kubectl: Kubectl, widgets: Json, widget: Callable[..., Json]) -> None:
    kubectl("create", "-f", "-", stdin=widgets)
    kubectl("wait", "crd/widgets.ex.io", "--for=condition=Established", "--timeout=10s")
    assert kubectl("apply", "-f", "-", stdin=widget("w", size=3)) == "widget.ex.io/w created\n"
    assert kubectl("get", "wd", "--no-headers").split()[:2] == ["w", "3"]
    assert kubectl("apply", "-f", "-", stdin=widget("w", size=4)) == "widget.ex.io/w configured\n"
    assert "Size:  4" in kubectl("describe", "widget", "w")
    refused = kubectl("apply", "-f", "-", stdin=widget("w", size=40), fails=True)
    assert "spec.size: Invalid value: 40: spec.size in body should be less than or equal to 10" in refused
    assert 'unknown field "spec.typo"' in kubectl("apply", "-f", "-", stdin=widget("w", typo=1), fails=True)
    kubectl("scale", "widget", "w", "--replicas=5")
    assert "widgets" in kubectl("api-resources", "--api-group=ex.io")
    kubectl("delete", "crd", "widgets.ex.io")
    kubectl("get", "widgets", fails=True)


def test_an_unknown_kind_is_named(kubectl: Kubectl) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    assert 'no matches for kind "Job" in version "batch/v1"' in kubectl("apply", "-f", "-", stdin=job, fails=True)


def test_what_is_not_done_is_refused_with_a_hint(api: Api, kubectl: Kubectl, pod: Callable[..., Json]) -> None:
    api("POST", PODS, pod("a"))
    assert "use a real API server" in kubectl("logs", "a", fails=True)
    assert "use a real API server" in kubectl("exec", "a", "--", "ls", fails=True)
    assert "dry-run=client" in kubectl("create", "configmap", "c", "--from-literal=a=b", fails=True)
