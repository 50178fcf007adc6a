"""Creating, changing and deleting built-in objects over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def test_a_created_pod_has_its_defaults(api: Api, pod: Callable[..., Json]) -> None:
    answer = api("POST", PODS, pod(env=[{"a": 1}]) | {"status": {"phase": "Running"}})
    assert answer.status == 201
    created = answer.json
    assert created["spec"]["containers"][0] == {
        "name": "main",
        "image": "busybox:1",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    assert created["spec"]["restartPolicy"] == "Always"
    assert created["status"] == {"phase": "Pending"}
    assert created["metadata"]["generation"] == 1


def test_generated_names_have_five_characters(api: Api, pod: Callable[..., Json]) -> None:
    body = pod()
    body["metadata"] = {"generateName": "p-"}
    name = api("POST", PODS, body).metadata["name"]
    assert name.startswith("p-")
    assert len(name) == 7


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/api/v1/namespaces/nope/pods", {"metadata": {"name": "x"}}, 404, 'namespaces "nope" not found'),
        (PODS, {"kind": "Service", "apiVersion": "v1"}, 400, 'Service in version "v1" cannot be handled as a Pod'),
        (PODS, b"{bad", 400, "the object provided is unrecognized (must be of type Pod)"),
        (PODS, b"[]", 400, "the object provided is unrecognized (must be of type Pod)"),
        (PODS, {"metadata": []}, 400, 'Pod in version "v1" cannot be handled as a Pod'),
        (PODS, {"metadata": {"name": "x", "labels": {"a": 5}}}, 400, 'Pod in version "v1" cannot be handled as a Pod'),
        (PODS, {"metadata": {"name": "x"}, "spec": 5}, 400, 'Pod in version "v1" cannot be handled as a Pod'),
        (DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": {"replicas": "two"}}, 400, "Deployment in version"),
        ("/api/v1/namespaces", {"metadata": {"name": "a.b"}}, 422, 'Namespace "a.b" is invalid: metadata.name'),
        (PODS + "?dryRun=Some", {"metadata": {"name": "x"}}, 422, 'CreateOptions.meta.k8s.io "" is invalid: dryRun'),
        (PODS + "?fieldValidation=Some", {"metadata": {"name": "x"}}, 422, "CreateOptions.meta.k8s.io"),
    ],
)
def test_a_create_is_refused(api: Api, path: str, body: object, status: int, message: str) -> None:
    answer = api("POST", path, body)
    assert (answer.status, answer.json["code"]) == (status, status)
    assert answer.json["message"].startswith(message)


def test_every_fault_is_named_with_its_field(api: Api) -> None:
    containers = [{"name": "a_"}, {"name": "b", "image": "x", "ports": [{}]}, {"name": "b"}]
    metadata = {"name": "x", "labels": {"a b": "c d"}, "ownerReferences": [{"kind": "x"}], "finalizers": ["f"]}
    answer = api("POST", PODS, {"metadata": metadata, "spec": {"containers": containers, "restartPolicy": "foo"}})
    assert answer.status == 422
    assert [(cause["reason"], cause["field"]) for cause in answer.json["details"]["causes"]] == [
        ("FieldValueInvalid", "metadata.labels"),
        ("FieldValueInvalid", "metadata.labels"),
        ("FieldValueRequired", "metadata.ownerReferences[0].apiVersion"),
        ("FieldValueRequired", "metadata.ownerReferences[0].name"),
        ("FieldValueRequired", "metadata.ownerReferences[0].uid"),
        ("FieldValueInvalid", "metadata.finalizers[0]"),
        ("FieldValueInvalid", "spec.containers[0].name"),
        ("FieldValueRequired", "spec.containers[0].image"),
        ("FieldValueRequired", "spec.containers[1].ports[0].containerPort"),
        ("FieldValueDuplicate", "spec.containers[2].name"),
        ("FieldValueRequired", "spec.containers[2].image"),
        ("FieldValueNotSupported", "spec.restartPolicy"),
    ]


def test_a_deployment_needs_a_selector_that_matches_and_never_changes(api: Api, deployment: Json) -> None:
    wrong = {**deployment, "spec": {**deployment["spec"], "selector": {"matchLabels": {"a": "b"}}, "replicas": -1}}
    answer = api("POST", DEPLOYMENTS, wrong)
    assert answer.json["message"] == (
        'Deployment.apps "d" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal to 0, '
        'spec.template.metadata.labels: Invalid value: {"app":"d"}: `selector` does not match template `labels`]'
    )
    assert api("POST", DEPLOYMENTS, deployment).status == 201
    labels = {"app": "d", "x": "y"}
    template = {"metadata": {"labels": labels}}
    answer = api.merge(f"{DEPLOYMENTS}/d", {"spec": {"selector": {"matchLabels": labels}, "template": template}})
    assert answer.json["details"]["causes"][0]["field"] == "spec.selector"


def test_a_pods_spec_is_fixed_but_for_images_and_tolerations(api: Api, pod: Callable[..., Json]) -> None:
    api("POST", PODS, pod())
    for patch, status in [
        ({"restartPolicy": "Never"}, 422),
        ({"nodeName": "n"}, 422),
        ({"tolerations": [{"key": "a", "operator": "Exists"}]}, 200),
        ({"tolerations": [{"key": "b", "operator": "Exists"}]}, 422),
        ({"containers": [{"name": "main", "image": "other"}]}, 200),
    ]:
        content = "application/strategic-merge-patch+json"
        answer = api("PATCH", f"{PODS}/p", {"spec": patch}, content=content)
        assert answer.status == status
    assert api.get(f"{PODS}/p").metadata["generation"] == 3


def test_services_get_addresses_of_their_own_and_keep_them(api: Api) -> None:
    services = "/api/v1/namespaces/default/services"
    addresses = set()
    for name in "ab":
        service = api("POST", services, {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}).json
        assert service["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
        addresses.add(service["spec"]["clusterIP"])
    assert len(addresses) == 2
    replaced = api("PUT", f"{services}/a", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 81}]}}).json
    assert replaced["spec"]["clusterIP"] in addresses
    assert api.merge(f"{services}/a", {"spec": {"clusterIP": "10.96.9.9"}}).status == 422
    assert api("POST", services, {"metadata": {"name": "h"}, "spec": {"clusterIP": "None"}}).status == 201


def test_secrets_take_plain_data_and_keep_their_type(api: Api) -> None:
    secrets = "/api/v1/namespaces/default/secrets"
    secret = api("POST", secrets, {"metadata": {"name": "s"}, "stringData": {"a": "x"}}).json
    assert (secret["data"], secret["type"], "stringData" in secret) == ({"a": "eA=="}, "Opaque", False)
    answer = api("PUT", f"{secrets}/s", {"metadata": {"name": "s"}, "type": "other"})
    assert answer.json["message"] == 'Secret "s" is invalid: type: Invalid value: "other": field is immutable'


def test_an_events_namespace_is_that_of_its_object(api: Api) -> None:
    body = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "other"}}
    answer = api("POST", "/api/v1/namespaces/default/events", body)
    assert answer.json["details"]["causes"][0]["field"] == "involvedObject.namespace"


# Replace and patch


def test_replacing_an_old_version_is_a_conflict(api: Api) -> None:
    first = api("POST", MAPS, {"metadata": {"name": "c"}}).json
    assert api("PUT", f"{MAPS}/c", {**first, "data": {"a": "1"}}).status == 200
    answer = api("PUT", f"{MAPS}/c", {**first, "data": {"a": "2"}})
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    assert answer.json["details"] == {"name": "c", "kind": "configmaps"}


def test_replacing_what_is_not_there_is_not_found(api: Api) -> None:
    answer = api("PUT", f"{MAPS}/c", {"metadata": {"name": "c"}})
    assert (answer.status, answer.json["details"]) == (404, {"name": "c", "kind": "configmaps"})


def test_three_kinds_of_patches(api: Api, deployment: Json) -> None:
    api("POST", DEPLOYMENTS, deployment)
    path = f"{DEPLOYMENTS}/d"
    operations = [{"op": "test", "path": "/spec/replicas", "value": 2}, {"op": "remove", "path": "/spec/replicas"}]
    patched = api("PATCH", path, operations, content="application/json-patch+json").json
    assert patched["spec"]["replicas"] == 1  # the default
    patched = api.merge(path, {"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 3}}).json
    assert (patched["metadata"]["labels"], patched["spec"]["replicas"]) == ({"a": "b"}, 3)
    containers = [{"name": "side", "image": "s"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    patched = api("PATCH", path, patch, content="application/strategic-merge-patch+json").json
    assert [each["name"] for each in patched["spec"]["template"]["spec"]["containers"]] == ["side", "main"]


@pytest.mark.parametrize(
    ("content", "patch", "status", "reason"),
    [
        ("application/json-patch+json", [{"op": "test", "path": "/metadata/name", "value": "z"}], 422, "Invalid"),
        ("application/json-patch+json", [{"op": "replace", "path": "/a/b", "value": 1}], 422, "Invalid"),
        ("application/json-patch+json", [{"op": "jump", "path": "/a"}], 422, "Invalid"),
        ("application/json-patch+json", {"a": 1}, 400, "BadRequest"),
        ("application/merge-patch+json", [], 400, "BadRequest"),
        ("application/merge-patch+json", b"{", 400, "BadRequest"),
        ("application/merge-patch+json", {"metadata": {"name": "other"}}, 400, "BadRequest"),
        ("application/merge-patch+json", {"metadata": {"resourceVersion": "1"}}, 409, "Conflict"),
        ("application/merge-patch+json", {"metadata": {"uid": "1"}}, 422, "Invalid"),
        ("text/plain", {}, 415, "UnsupportedMediaType"),
        ("application/apply-patch+yaml", {}, 415, "UnsupportedMediaType"),
    ],
)
def test_a_patch_is_refused(api: Api, content: str, patch: object, status: int, reason: str) -> None:
    api("POST", MAPS, {"metadata": {"name": "c"}})
    answer = api("PATCH", f"{MAPS}/c", patch, content=content)
    assert (answer.status, answer.json["reason"]) == (status, reason)


def test_server_side_apply_says_where_it_is_done(api: Api) -> None:
    answer = api("PATCH", f"{MAPS}/absent?fieldManager=x", {}, content="application/apply-patch+yaml")
    assert "use a real API server" in answer.json["message"]


def test_dry_run_changes_nothing(api: Api) -> None:
    assert api("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "c"}}).status == 201
    assert api.get(f"{MAPS}/c").status == 404
    api("POST", MAPS, {"metadata": {"name": "c"}})
    assert api("DELETE", f"{MAPS}/c?dryRun=All").status == 200
    assert api("DELETE", f"{MAPS}/c", {"dryRun": ["All"]}).status == 200
    assert api.get(f"{MAPS}/c").status == 200


# Subresources


def test_binding_gives_a_pod_its_node_once(api: Api, pod: Callable[..., Json]) -> None:
    api("POST", PODS, pod())
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n1"}}
    answer = api("POST", f"{PODS}/p/binding", binding)
    assert (answer.status, answer.json["status"]) == (201, "Success")
    bound = api.get(f"{PODS}/p").json
    assert (bound["spec"]["nodeName"], bound["metadata"]["generation"]) == ("n1", 1)
    assert [each["type"] for each in bound["status"]["conditions"]] == ["PodScheduled"]
    answer = api("POST", f"{PODS}/p/binding", binding)
    assert answer.json["message"] == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"'
    )


def test_a_status_is_written_through_its_subresource(api: Api, pod: Callable[..., Json]) -> None:
    api("POST", PODS, pod())
    api.merge(f"{PODS}/p", {"status": {"phase": "Failed"}})
    assert api.get(f"{PODS}/p").json["status"]["phase"] == "Pending"
    content = "application/strategic-merge-patch+json"
    for condition in ("A", "B"):
        patch = {"status": {"phase": "Running", "conditions": [{"type": condition, "status": "True"}]}}
        assert api("PATCH", f"{PODS}/p/status", patch, content=content).status == 200
    status = api.get(f"{PODS}/p/status").json["status"]
    assert (status["phase"], [each["type"] for each in status["conditions"]]) == ("Running", ["B", "A"])


def test_scale_shows_and_sets_the_replicas(api: Api, deployment: Json) -> None:
    api("POST", DEPLOYMENTS, deployment)
    scale = api.get(f"{DEPLOYMENTS}/d/scale").json
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 2},
        {"replicas": 0, "selector": "app=d"},
    )
    assert api("PUT", f"{DEPLOYMENTS}/d/scale", {**scale, "spec": {"replicas": 5}}).json["spec"] == {"replicas": 5}
    assert api("PUT", f"{DEPLOYMENTS}/d/scale", {**scale, "spec": {"replicas": 6}}).status == 409
    assert api.merge(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}}).status == 422
    assert api.get(f"{DEPLOYMENTS}/d").json["spec"]["replicas"] == 5


# Deletion


def test_deletes_answer_with_a_status_or_with_the_object(api: Api, pod: Callable[..., Json]) -> None:
    uid = api("POST", MAPS, {"metadata": {"name": "c"}}).metadata["uid"]
    answer = api("DELETE", f"{MAPS}/c").json
    assert (answer["status"], answer["details"]) == ("Success", {"name": "c", "kind": "configmaps", "uid": uid})
    api("POST", PODS, pod())
    assert api("DELETE", f"{PODS}/p").json["kind"] == "Pod"
    api("POST", MAPS, {"metadata": {"name": "c", "finalizers": ["x.io/a"]}})
    assert api("DELETE", f"{MAPS}/c?propagationPolicy=Foreground").metadata["finalizers"] == [
        "x.io/a",
        "foregroundDeletion",
    ]


def test_delete_preconditions(api: Api) -> None:
    api("POST", MAPS, {"metadata": {"name": "c"}})
    answer = api("DELETE", f"{MAPS}/c", {"preconditions": {"uid": "x"}})
    assert answer.status == 409
    assert answer.json["message"].startswith(
        'Operation cannot be fulfilled on ConfigMap "c": the UID in the precondition'
    )


def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    for name, app in [("a", "x"), ("b", "y"), ("c", "x")]:
        api("POST", MAPS, {"metadata": {"name": name, "labels": {"app": app}}})
    assert api("DELETE", f"{MAPS}?labelSelector=app%3Dx").names == ["a", "c"]
    assert api.get(MAPS).names == ["b"]


def test_a_namespace_is_terminating_until_it_is_finalized(api: Api) -> None:
    api("POST", "/api/v1/namespaces", {"metadata": {"name": "tmp"}})
    marked = api("DELETE", "/api/v1/namespaces/tmp").json
    assert (marked["status"]["phase"], marked["spec"]["finalizers"]) == ("Terminating", ["kubernetes"])
    refused = api("POST", "/api/v1/namespaces/tmp/configmaps", {"metadata": {"name": "c"}})
    assert (refused.status, refused.json["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    assert api("PUT", "/api/v1/namespaces/tmp", {**marked, "spec": {}}).json["spec"] == {"finalizers": ["kubernetes"]}
    current = api.get("/api/v1/namespaces/tmp").json
    assert api("PUT", "/api/v1/namespaces/tmp/finalize", {**current, "spec": {"finalizers": []}}).status == 200
    assert api.get("/api/v1/namespaces/tmp").status == 404


def test_the_default_namespace_stays(api: Api) -> None:
    answer = api("DELETE", "/api/v1/namespaces/default")
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
