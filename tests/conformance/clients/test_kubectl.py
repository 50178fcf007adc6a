"""kubectl, command by command."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pysedna.testing import Cluster

    Json = dict[str, Any]
    Kubectl = Callable[..., str]

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH"),
]


@pytest.fixture
def create(cluster: Cluster, namespace: str) -> Callable[[Json], Any]:
    """create(object): without kubectl."""

    def make(obj: Json) -> Any:
        resource = cluster.client.resource(obj["apiVersion"], obj["kind"])
        return resource.create({**obj, "metadata": {**obj["metadata"], "namespace": namespace}})

    return make


def test_get_shows_tables_objects_and_names(
    create: Callable[[Json], Any], kubectl: Kubectl, pod: Callable[..., Json]
) -> None:
    create(pod("a", nodeName="n1"))
    create(pod("b"))
    lines = kubectl("get", "pods", "-o", "wide").splitlines()
    assert lines[0].split()[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert [line.split()[:4] for line in lines[1:]] == [["a", "0/1", "Pending", "0"], ["b", "0/1", "Pending", "0"]]
    assert kubectl("get", "po", "-o", "name", "--field-selector", "spec.nodeName=n1") == "pod/a\n"
    assert json.loads(kubectl("get", "pod", "b", "-o", "json"))["spec"]["containers"][0]["image"] == "busybox:1"
    assert "pod/a" in kubectl("get", "all")
    assert '"nope" not found' in kubectl("get", "pod", "nope", fails=True)
    assert """doesn't have a resource type "nopes\"""" in kubectl("get", "nopes", fails=True)


def test_get_pages_through_many(create: Callable[[Json], Any], kubectl: Kubectl) -> None:
    for number in range(25):
        create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number:02}"}})
    names = kubectl("get", "cm", "--chunk-size=10", "-o", "name", "--field-selector=metadata.name!=kube-root-ca.crt")
    assert names.split() == [f"configmap/c{number:02}" for number in range(25)]


def test_get_follows_changes(
    create: Callable[[Json], Any], kubectl: Kubectl, environment: dict[str, str], namespace: str, deployment: Json
) -> None:
    create(deployment)
    command = ["kubectl", "-n", namespace, "get", "deployments", "-w", "--no-headers"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split()[:2] == ["d", "0/2"]
        kubectl("scale", "deployment", "d", "--replicas=5")
        shown = (line.split()[:2] for line in process.stdout)
        assert next(cells for cells in shown if cells != ["d", "0/2"]) == ["d", "0/5"]
        process.terminate()


def test_describe_shows_an_object_with_its_events(
    create: Callable[[Json], Any], kubectl: Kubectl, pod: Callable[..., Json], namespace: str
) -> None:
    created = create(pod("a", nodeName="n1"))
    create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "a.1"},
            "involvedObject": {"kind": "Pod", "name": "a", "namespace": namespace, "uid": created.uid},
            "reason": "Pulled",
            "message": "pulled it",
            "type": "Normal",
            "count": 1,
            "source": {"component": "kubelet"},
            "firstTimestamp": "2020-01-01T00:00:00Z",
            "lastTimestamp": "2020-01-01T00:00:00Z",
        }
    )
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
    containers[0]["image"] = "side:2"
    assert "+      - image: side:2" in kubectl("diff", "-f", "-", stdin=deployment, fails=True)


def test_edit_writes_what_the_editor_left(
    create: Callable[[Json], Any], kubectl: Kubectl, tmp_path: Path, deployment: Json
) -> None:
    create(deployment)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/replicas: 2/replicas: 7/" "$1"\n')
    editor.chmod(0o755)
    assert kubectl("edit", "deployment", "d", EDITOR=str(editor)) == "deployment.apps/d edited\n"
    assert kubectl("get", "deployment", "d", "-o", "jsonpath={.spec.replicas}") == "7"


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("strategic", '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"new"}]}}}}'),
        ("merge", '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"new"}]}}}}'),
        ("json", '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"new"}]'),
    ],
)
def test_patch(create: Callable[[Json], Any], kubectl: Kubectl, deployment: Json, kind: str, patch: str) -> None:
    create(deployment)
    assert kubectl("patch", "deployment", "d", "--type", kind, "-p", patch) == "deployment.apps/d patched\n"
    path = "jsonpath={.spec.template.spec.containers[*].image}"
    assert kubectl("get", "deployment", "d", "-o", path) == "new"


def test_label_annotate_set_image_and_scale(create: Callable[[Json], Any], kubectl: Kubectl, deployment: Json) -> None:
    create(deployment)
    kubectl("label", "deployment", "d", "a=b")
    kubectl("annotate", "deployment", "d", "c=d")
    kubectl("set", "image", "deployment/d", "main=other:1")
    assert kubectl("scale", "deployment", "d", "--replicas=5") == "deployment.apps/d scaled\n"
    assert kubectl("scale", "deployment", "d", "--replicas=6", "--current-replicas=5") == "deployment.apps/d scaled\n"
    assert "Expected replicas to be 5" in kubectl(
        "scale", "deployment", "d", "--replicas=7", "--current-replicas=5", fails=True
    )
    found = json.loads(kubectl("get", "deployment", "d", "-o", "json"))
    assert (found["metadata"]["labels"], found["metadata"]["annotations"]["c"]) == ({"a": "b"}, "d")
    assert found["spec"]["replicas"] == 6


def test_delete_waits_for_the_end(create: Callable[[Json], Any], kubectl: Kubectl, pod: Callable[..., Json]) -> None:
    for name in "abc":
        create(pod(name))
    assert kubectl("delete", "pod", "a").startswith('pod "a" deleted')  # newer ones add the namespace
    kubectl("patch", "pod", "b", "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    kubectl("delete", "pod", "b", "--wait=false")
    assert "Terminating" in kubectl("get", "pod", "b")
    kubectl("patch", "pod", "b", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("delete", "pods", "--all")
    assert kubectl("get", "pods", "-o", "name") == ""


def test_wait_for_conditions_values_and_the_end(
    create: Callable[[Json], Any],
    kubectl: Kubectl,
    environment: dict[str, str],
    namespace: str,
    pod: Callable[..., Json],
) -> None:
    create(pod("a"))
    waits = [["--for=condition=Ready"], ["--for=jsonpath={.status.phase}=Running"], ["--for=delete"]]
    command = ["kubectl", "-n", namespace, "wait", "pod/a", "--timeout=30s"]
    running = [subprocess.Popen([*command, *each], env=environment, stdout=subprocess.PIPE) for each in waits]
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    kubectl("patch", "pod", "a", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    for process in running[:2]:
        assert b"condition met" in process.communicate(timeout=60)[0]
    kubectl("delete", "pod", "a")
    running[2].communicate(timeout=60)
    assert [process.returncode for process in running] == [0, 0, 0]
    assert "timed out" in kubectl("wait", "ns/default", "--for=condition=Nothing", "--timeout=1s", fails=True)


def test_rollout_is_followed_and_undone(create: Callable[[Json], Any], kubectl: Kubectl, deployment: Json) -> None:
    create({**deployment, "spec": {**deployment["spec"], "replicas": 0}})
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/d", "--timeout=30s")
    kubectl("set", "image", "deployment/d", "main=other:1")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/d", "--timeout=30s")
    assert [line.split()[0] for line in kubectl("rollout", "history", "deployment/d").splitlines()[2:4]] == ["1", "2"]
    kubectl("rollout", "undo", "deployment/d")
    path = "jsonpath={.spec.template.spec.containers[*].image}"
    assert kubectl("get", "deployment", "d", "-o", path) == "busybox"


def test_definitions_and_their_objects(
    kubectl: Kubectl, group: str, definition: Json, widget: Callable[..., Json]
) -> None:
    kubectl("create", "-f", "-", stdin=definition)
    kubectl("wait", f"crd/widgets.{group}", "--for=condition=Established", "--timeout=10s")
    assert kubectl("apply", "-f", "-", stdin=widget("w", size=3)) == f"widget.{group}/w created\n"
    assert kubectl("get", f"widgets.{group}", "--no-headers").split() == ["w", "3"]
    assert kubectl("get", definition["spec"]["names"]["shortNames"][0], "-o", "name") == f"widget.{group}/w\n"
    assert kubectl("apply", "-f", "-", stdin=widget("w", size=4)) == f"widget.{group}/w configured\n"
    assert "Size:  4" in kubectl("describe", f"widgets.{group}", "w")
    refused = kubectl("apply", "-f", "-", stdin=widget("w", size=40), fails=True)
    assert "spec.size: Invalid value: 40: spec.size in body should be less than or equal to 10" in refused
    assert 'unknown field "spec.typo"' in kubectl("apply", "-f", "-", stdin=widget("w", typo=1), fails=True)
    kubectl("scale", f"widgets.{group}", "w", "--replicas=5")
    assert "widgets" in kubectl("api-resources", f"--api-group={group}")
    kubectl("delete", "crd", f"widgets.{group}")
    kubectl("get", f"widgets.{group}", fails=True)


def test_an_unknown_kind_is_named(kubectl: Kubectl) -> None:
    thing = {"apiVersion": "absent.example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    refused = kubectl("apply", "-f", "-", stdin=thing, fails=True)
    assert 'no matches for kind "Thing" in version "absent.example.com/v1"' in refused
