"""The forms of an answer: whole objects, metadata alone, tables; and what discovery tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    Json = dict[str, Any]
    Api = Any

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def columns(table: Json, *, wide: bool = False) -> list[str]:
    return [each["name"] for each in table["columnDefinitions"] if wide or not each["priority"]]


def cells(table: Json) -> list[list[Any]]:
    return [row["cells"] for row in table["rows"]]


def test_items_of_built_in_lists_leave_out_what_the_list_says(
    api: Api, namespace: str, maps: str, pods: str, pod: Callable[..., Json]
) -> None:
    api.post(maps, {"metadata": {"name": "a"}})
    api.post(pods, pod("a"))
    for path, kind in [(maps, "ConfigMapList"), (pods, "PodList"), ("/api/v1/namespaces", "NamespaceList")]:
        listing = api.get(path).json
        assert (listing["kind"], listing["apiVersion"]) == (kind, "v1")
        assert listing["items"]
        assert not {"kind", "apiVersion"} & listing["items"][0].keys()


def test_items_of_custom_lists_name_their_kind(api: Api, group: str, widgets: str, widget: Callable[..., Json]) -> None:
    api.post(widgets, widget("a"))
    listing = api.get(widgets).json
    assert (listing["kind"], listing["apiVersion"]) == ("WidgetList", f"{group}/v1")
    assert [(item["kind"], item["apiVersion"]) for item in listing["items"]] == [("Widget", f"{group}/v1")]


def test_metadata_alone(api: Api, maps: str) -> None:
    api.post(maps, {"metadata": {"name": "a", "labels": {"app": "x"}}, "data": {"x": "y"}})
    whole = api.get(f"{maps}/a").json
    one = api.get(f"{maps}/a", accept=METADATA).json
    assert one == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": whole["metadata"]}
    many = api.get(maps, accept=f"{METADATA_LIST},application/json", limit=1).json
    assert (many["kind"], many["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert [item["metadata"] for item in many["items"]] == [whole["metadata"]]
    event = api.watch(maps, accept=METADATA).next()
    assert (event["type"], event["object"]) == ("ADDED", one)


def test_a_table_has_the_columns_that_kubectl_shows(
    api: Api, namespace: str, pods: str, pod: Callable[..., Json]
) -> None:
    api.post(pods, pod("a", nodeName="n1"))
    waiting = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    container = {"name": "main", "ready": False, "restartCount": 3, "image": "busybox:1", "imageID": "", **waiting}
    status = {"phase": "Running", "containerStatuses": [container], "podIP": "10.0.0.1"}
    assert api.patch(f"{pods}/a/status", {"status": status}).status == 200
    table = api.get(pods, accept=f"{TABLE},application/json").json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert columns(table) == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert columns(table, wide=True)[5:] == ["IP", "Node", "Nominated Node", "Readiness Gates"]
    [row] = table["rows"]
    assert row["cells"][:4] == ["a", "0/1", "CrashLoopBackOff", "3"]
    assert row["cells"][5:] == ["10.0.0.1", "n1", "<none>", "<none>"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    api.delete(f"{pods}/a", gracePeriodSeconds="30")
    table = api.get(f"{pods}/a", accept=TABLE, includeObject="Object").json
    assert (table["rows"][0]["cells"][2], table["rows"][0]["object"]["kind"]) == ("Terminating", "Pod")
    table = api.get(f"{pods}/a", accept=TABLE, includeObject="None").json
    assert not table["rows"][0].get("object")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/configmaps", "Name, Data, Age"),
        (
            "/api/v1/events",
            "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name*",
        ),
        ("/api/v1/namespaces", "Name, Status, Age"),
        (
            "/api/v1/nodes",
            "Name, Status, Roles, Age, Version, "
            "Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, Container-Runtime*",
        ),
        ("/api/v1/secrets", "Name, Type, Data, Age"),
        ("/api/v1/services", "Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*"),
        ("/api/v1/serviceaccounts", "Name, Age"),
        ("/apis/apps/v1/deployments", "Name, Ready, Up-to-date, Available, Age, Containers*, Images*, Selector*"),
        ("/apis/apps/v1/replicasets", "Name, Desired, Current, Ready, Age, Containers*, Images*, Selector*"),
        ("/apis/coordination.k8s.io/v1/leases", "Name, Holder, Age"),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "Name, Scope, Versions, Created At, Group*, Kind*, ShortNames*, Established*",
        ),
    ],
)
def test_the_columns_of_a_kind(api: Api, path: str, expected: str) -> None:
    table = api.get(path, accept=TABLE).json
    found = [each["name"] + "*" * bool(each["priority"]) for each in table["columnDefinitions"]]
    assert found == expected.split(", ")


def test_the_columns_of_a_definition(api: Api, widgets: str, widget: Callable[..., Json]) -> None:
    api.post(widgets, widget("a", size=3))
    table = api.get(widgets, accept=TABLE).json
    assert (columns(table), columns(table, wide=True)) == (["Name", "Size"], ["Name", "Size", "Mode"])
    assert cells(table) == [["a", 3, "a"]]


def test_tables_are_paged_and_watched(api: Api, maps: str) -> None:
    for name in "abc":
        api.post(maps, {"metadata": {"name": name}})
    table = api.get(maps, accept=TABLE, limit=2).json
    assert ([row[0] for row in cells(table)], table["metadata"]["remainingItemCount"]) == (["a", "b"], 1)
    rest = api.get(maps, accept=TABLE, **{"continue": table["metadata"]["continue"]}).json
    assert [row[0] for row in cells(rest)] == ["c"]
    stream = api.watch(maps, accept=TABLE, resourceVersion=rest["metadata"]["resourceVersion"])
    api.delete(f"{maps}/a")
    api.delete(f"{maps}/b")
    first, second = stream.next(), stream.next()
    assert (first["type"], cells(first["object"])[0][0]) == ("DELETED", "a")
    assert columns(first["object"]) == ["Name", "Data", "Age"]
    assert not second["object"]["columnDefinitions"], "they are told once"


def test_a_form_that_is_not_served_is_406(api: Api, maps: str) -> None:
    for accept in ("text/html", "application/json;as=Foo;v=v1;g=meta.k8s.io"):
        assert api.get(maps, accept=accept).refused(406, "NotAcceptable")
    assert api.get(maps, accept="text/html,application/json").json["kind"] == "ConfigMapList"
    message = api.get(maps, accept=TABLE, includeObject="Some").refused(400, "BadRequest")["message"]
    assert "includeObject" in message


# Discovery


def resources(api: Api, path: str) -> dict[str, Json]:
    found = api.get(path).json
    assert found["kind"] == "APIResourceList"
    return {each["name"]: each for each in found["resources"]}


def test_discovery_tells_groups_and_their_preferred_versions(api: Api, group: str) -> None:
    assert api.get("/api").json["versions"] == ["v1"]
    groups = {each["name"]: each for each in api.get("/apis").json["groups"]}
    for name in ("apps", "coordination.k8s.io", "apiextensions.k8s.io", group):
        assert groups[name]["preferredVersion"] == {"groupVersion": f"{name}/v1", "version": "v1"}
    found = api.get("/apis/apps").json
    assert (found["kind"], found["name"]) == ("APIGroup", "apps")


@pytest.mark.parametrize(
    ("path", "name", "kind", "short", "namespaced"),
    [
        ("/api/v1", "configmaps", "ConfigMap", ["cm"], True),
        ("/api/v1", "events", "Event", ["ev"], True),
        ("/api/v1", "namespaces", "Namespace", ["ns"], False),
        ("/api/v1", "nodes", "Node", ["no"], False),
        ("/api/v1", "pods", "Pod", ["po"], True),
        ("/api/v1", "secrets", "Secret", [], True),
        ("/api/v1", "services", "Service", ["svc"], True),
        ("/api/v1", "serviceaccounts", "ServiceAccount", ["sa"], True),
        ("/apis/apps/v1", "deployments", "Deployment", ["deploy"], True),
        ("/apis/apps/v1", "replicasets", "ReplicaSet", ["rs"], True),
        ("/apis/coordination.k8s.io/v1", "leases", "Lease", [], True),
        (
            "/apis/apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            ["crd", "crds"],
            False,
        ),
    ],
)
def test_discovery_tells_what_a_kind_is_called_and_what_it_can(
    api: Api, path: str, name: str, kind: str, short: list[str], namespaced: bool
) -> None:
    found = resources(api, path)[name]
    assert (found["kind"], found["singularName"], found["namespaced"]) == (kind, kind.lower(), namespaced)
    assert found.get("shortNames", []) == short
    verbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    assert set(found["verbs"]) == verbs - ({"deletecollection"} if kind == "Namespace" else set())


def test_discovery_tells_of_subresources(api: Api, group: str) -> None:
    core, apps, own = resources(api, "/api/v1"), resources(api, "/apis/apps/v1"), resources(api, f"/apis/{group}/v1")
    assert set(core["pods/status"]["verbs"]) == {"get", "patch", "update"}
    assert (core["pods/binding"]["kind"], core["pods/binding"]["verbs"]) == ("Binding", ["create"])
    assert core["namespaces/finalize"]["verbs"] == ["update"]
    for scale in (apps["deployments/scale"], own["widgets/scale"]):
        assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
        assert set(scale["verbs"]) == {"get", "patch", "update"}
    assert set(own) == {"widgets", "widgets/status", "widgets/scale"}


def test_version_health_and_openapi(api: Api, group: str) -> None:
    assert api.get("/version").json["major"] == "1"
    for path in ("/healthz", "/livez", "/readyz"):
        assert (api.get(path, accept="*/*").status, api.get(path, accept="*/*").text) == (200, "ok")
    paths = api.get("/openapi/v3").json["paths"]
    document = api.get(paths["apis/apps/v1"]["serverRelativeURL"]).json
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in [each["name"] for each in patch["parameters"]]
