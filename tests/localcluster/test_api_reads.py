"""Lists, gets, forms of answers, discovery, and what the server refuses to talk to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def fill(api: Api, *names: str, **labels: str) -> None:
    for name in names:
        assert api("POST", MAPS, {"metadata": {"name": name, "labels": labels}}).status == 201


def test_pages_go_to_the_end_of_one_version(api: Api) -> None:
    fill(api, *"abcde")
    page = api.get(f"{MAPS}?limit=2")
    assert (page.names, page.metadata["remainingItemCount"]) == (["a", "b"], 3)
    fill(api, "bb")
    found = page.names
    while token := page.metadata.get("continue"):
        page = api.get(f"{MAPS}?limit=2&continue={token}")
        found += page.names
    assert found == [*"abcde"]


def test_items_of_built_in_lists_leave_out_their_kind(api: Api) -> None:
    fill(api, "a")
    listing = api.get(MAPS).json
    assert (listing["kind"], list(listing["items"][0])) == ("ConfigMapList", ["metadata"])
    for resource in ("secrets", "nodes", "services"):
        scope = "" if resource == "nodes" else "namespaces/default/"
        spec = {"spec": {"ports": [{"port": 80}]}} if resource == "services" else {}
        assert api("POST", f"/api/v1/{scope}{resource}", {"metadata": {"name": "a"}, **spec}).status == 201
        assert not {"kind", "apiVersion"} & api.get(f"/api/v1/{resource}").json["items"][0].keys()


def test_an_expired_token_is_410_with_a_fresh_one(api: Api) -> None:
    fill(api, *"abc")
    token = api.get(f"{MAPS}?limit=1").metadata["continue"]
    fill(api, "d")
    api.server.call(api.server.backend.store.compact)
    answer = api.get(f"{MAPS}?limit=1&continue={token}")
    assert (answer.status, answer.json["reason"]) == (410, "Expired")
    assert api.get(f"{MAPS}?limit=9&continue={answer.metadata['continue']}").names == ["b", "c", "d"]


def test_a_version_from_the_future_is_504_with_its_cause(api: Api) -> None:
    answer = api.get(f"{MAPS}?resourceVersion=99999")
    assert (answer.status, answer.headers["Retry-After"]) == (504, "1")
    assert answer.json["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("labelSelector=app%3Dx", ["a"]),
        ("labelSelector=app+in+(x,y)", ["a", "b"]),
        ("fieldSelector=spec.nodeName%3Dn1", ["b"]),
        ("fieldSelector=status.phase%21%3DPending", []),
        ("fieldSelector=metadata.name%3Da", ["a"]),
    ],
)
def test_selectors(api: Api, pod: Callable[..., Json], query: str, expected: list[str]) -> None:
    for name, app, node in [("a", "x", ""), ("b", "y", "n1")]:
        body = pod(name, **({"nodeName": node} if node else {}))
        body["metadata"]["labels"] = {"app": app}
        api("POST", PODS, body)
    assert api.get(f"{PODS}?{query}").names == expected


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (f"{PODS}?fieldSelector=spec.foo%3Dx", 400, "field label not supported: spec.foo"),
        (f"{PODS}?labelSelector=a%3D%3D%3D", 400, "unable to parse requirement"),
        (f"{PODS}?limit=abc", 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
        (f"{PODS}?resourceVersion=abc", 400, "invalid resource version"),
        (f"{PODS}?includeObject=Some", 400, "Unable to convert to Table as requested: includeObject"),
        (f"{PODS}/absent", 404, 'pods "absent" not found'),
        (f"{PODS}/absent/scale", 404, "the server could not find the requested resource"),
        ("/api/v1/pods/x", 404, "the server could not find the requested resource"),
        ("/api/v1/foos", 404, "the server could not find the requested resource"),
        ("/apis/apps/v2/deployments", 404, "the server could not find the requested resource"),
        ("/api/v1/namespaces/default/nodes", 404, "the server could not find the requested resource"),
        (f"{PODS}/x/log", 501, "pods/log: the embedded cluster does not do this, use a real API server"),
    ],
)
def test_a_read_is_refused(api: Api, path: str, status: int, message: str) -> None:
    answer = api.get(path)
    assert (answer.status, answer.json["kind"], answer.json["code"]) == (status, "Status", status)
    assert answer.json["message"].startswith(message)


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", PODS), ("POST", f"{PODS}/x"), ("PATCH", PODS), ("POST", "/api/v1/pods")]
)
def test_a_verb_that_a_path_has_not_is_405(api: Api, method: str, path: str) -> None:
    assert api(method, path, {"metadata": {"name": "x"}}).json["reason"] == "MethodNotAllowed"


def test_other_media_types_are_refused(api: Api) -> None:
    assert api.get(PODS, Accept="application/vnd.kubernetes.protobuf").status == 406
    assert api.get(PODS, Accept="application/vnd.kubernetes.protobuf,application/json").status == 200
    answer = api("POST", PODS, b"k8s", content="application/vnd.kubernetes.protobuf")
    assert (answer.status, answer.json["reason"]) == (415, "UnsupportedMediaType")


# Forms


def test_metadata_alone(api: Api) -> None:
    fill(api, "a", app="x")
    one = api.get(f"{MAPS}/a", Accept=METADATA).json
    assert (one["kind"], one["apiVersion"], one["metadata"]["labels"]) == (
        "PartialObjectMetadata",
        "meta.k8s.io/v1",
        {"app": "x"},
    )
    many = api.get(f"{MAPS}?limit=1", Accept=METADATA_LIST + ",application/json").json
    assert (many["kind"], many["items"]) == ("PartialObjectMetadataList", [one])


def test_a_table_of_pods(api: Api, pod: Callable[..., Json]) -> None:
    api("POST", PODS, pod("a", nodeName="n1"))
    terminated = {"lastState": {"terminated": {"finishedAt": "2020-01-01T00:00:00Z"}}}
    waiting = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    statuses = [{"name": "main", "ready": False, "restartCount": 3, **waiting, **terminated}]
    api.merge(f"{PODS}/a/status", {"status": {"phase": "Running", "containerStatuses": statuses, "podIP": "10.0.0.1"}})
    table = api.get(PODS, Accept=TABLE).json
    assert [each["name"] for each in table["columnDefinitions"] if not each["priority"]] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    [row] = table["rows"]
    assert row["cells"][:3] == ["a", "0/1", "CrashLoopBackOff"]
    assert row["cells"][3].startswith("3 (")
    assert row["cells"][5:] == ["10.0.0.1", "n1", "<none>", "<none>"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    api("DELETE", f"{PODS}/a")
    table = api.get(f"{PODS}/a?includeObject=Object", Accept=TABLE).json
    assert (table["rows"][0]["cells"][2], table["rows"][0]["object"]["kind"]) == ("Terminating", "Pod")


# Discovery


def test_discovery_lists_what_is_served(api: Api) -> None:
    assert api.get("/api").json["versions"] == ["v1"]
    groups = [group["name"] for group in api.get("/apis").json["groups"]]
    assert groups == ["apps", "coordination.k8s.io", "apiextensions.k8s.io"]
    core = {each["name"]: each for each in api.get("/api/v1").json["resources"]}
    assert core["pods"]["shortNames"] == ["po"]
    assert core["pods/status"]["verbs"] == ["get", "patch", "update"]
    assert core["pods/binding"] == {
        "name": "pods/binding",
        "singularName": "",
        "namespaced": True,
        "kind": "Binding",
        "verbs": ["create"],
    }
    assert "deletecollection" not in core["namespaces"]["verbs"]
    apps = {each["name"]: each for each in api.get("/apis/apps/v1").json["resources"]}
    assert (apps["deployments/scale"]["group"], apps["deployments/scale"]["kind"]) == ("autoscaling", "Scale")
    assert api.get("/apis/apps").json["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}


def test_version_health_and_openapi(api: Api) -> None:
    assert api.get("/version").json["major"] == "1"
    assert [api.get(path).text for path in ("/healthz", "/livez", "/readyz")] == ["ok"] * 3
    paths = api.get("/openapi/v3").json["paths"]
    document = api.get(paths["apis/apps/v1"]["serverRelativeURL"]).json
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in [each["name"] for each in patch["parameters"]]
    assert api.get("/nowhere").status == 404


# Who may talk to it


def test_browsers_and_foreign_host_names_are_refused(api: Api) -> None:
    assert api.get("/version", Origin="http://evil.example").status == 403
    assert api.get("/version", Host="evil.example").status == 403
    assert api.get("/version", Host="localhost:1234").status == 200


def test_large_bodies_are_refused(api: Api) -> None:
    body = {"metadata": {"name": "big"}, "data": {"x": "y" * (3 << 20)}}
    answer = api("POST", MAPS, body)
    assert (answer.status, answer.json["reason"]) == (413, "RequestEntityTooLarge")
