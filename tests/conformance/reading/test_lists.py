"""Lists and gets: pages, versions, selectors, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pysedna.testing import Cluster

    Json = dict[str, Any]
    Api = Any

MATCH_FORBIDDEN = ("FieldValueForbidden", "resourceVersionMatch")


def fill(api: Api, path: str, *names: str, **labels: str) -> None:
    for name in names:
        assert api.post(path, {"metadata": {"name": name, "labels": labels}}).status == 201


# Pages


def test_pages_go_to_the_end_of_one_version_while_writes_go_on(api: Api, maps: str) -> None:
    fill(api, maps, *"abcde")
    page = api.get(maps, limit=2)
    version, found = page.version, page.names
    while token := page.metadata.get("continue"):
        fill(api, maps, f"{found[-1]}-later")
        api.delete(f"{maps}/e")
        page = api.get(maps, limit=2, **{"continue": token})
        assert page.version == version
        found += page.names
    assert found == [*"abcde"]


def test_what_remains_is_counted_unless_a_selector_makes_it_unknown(api: Api, maps: str) -> None:
    fill(api, maps, *"abcde", on="yes")
    page = api.get(maps, limit=2)
    assert (page.names, page.metadata["remainingItemCount"]) == (["a", "b"], 3)
    page = api.get(maps, limit=2, **{"continue": page.metadata["continue"]})
    assert (page.names, page.metadata["remainingItemCount"]) == (["c", "d"], 1)
    assert set(api.get(maps, limit=9).metadata) == {"resourceVersion"}
    assert set(api.get(maps, limit=5).metadata) == {"resourceVersion"}
    assert set(api.get(maps, limit=2, labelSelector="on=yes").metadata) == {"resourceVersion", "continue"}
    assert set(api.get(maps, limit=2, fieldSelector="metadata.name!=e").metadata) == {"resourceVersion", "continue"}


def test_pages_of_all_namespaces_are_in_the_order_of_paths(api: Api, maps: str, namespace: str) -> None:
    other = f"{namespace}-b"
    assert api.post("/api/v1/namespaces", {"metadata": {"name": other}}).status == 201
    for path in (maps, f"/api/v1/namespaces/{other}/configmaps"):
        fill(api, path, "b", "a", on=namespace)
    found, token = [], ""
    while True:
        query = {"continue": token} if token else {}
        page = api.get("/api/v1/configmaps", limit=3, labelSelector=f"on={namespace}", **query)
        found += [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in page.json["items"]]
        if not (token := page.metadata.get("continue", "")):
            break
    api.delete(f"/api/v1/namespaces/{other}")
    assert found == [(other, "a"), (other, "b"), (namespace, "a"), (namespace, "b")]  # "-" comes before "/"


def test_an_expired_continue_token_is_410_with_a_fresh_one_for_the_rest(api: Api, cluster: Cluster, maps: str) -> None:
    fill(api, maps, *"abc")
    token = api.get(maps, limit=1).metadata["continue"]
    fill(api, maps, "d")
    cluster.compact()
    answer = api.get(maps, limit=1, **{"continue": token})
    status = answer.refused(410, "Expired")
    assert status["message"].startswith("The provided continue parameter is too old to display a consistent list")
    rest = api.get(maps, limit=9, **{"continue": status["metadata"]["continue"]})
    assert rest.names == ["b", "c", "d"]


def test_limits_and_timeouts_are_numbers_and_no_limit_is_0(api: Api, maps: str) -> None:
    fill(api, maps, *"ab")
    assert api.get(maps, limit=0).names == ["a", "b"]
    for option in ("limit", "timeoutSeconds"):
        message = api.get(maps, **{option: "x"}).refused(400, "BadRequest")["message"]
        assert message == 'strconv.ParseInt: parsing "x": invalid syntax'


def test_a_broken_continue_token_is_400(api: Api, maps: str) -> None:
    for token in ("nonsense", "e30"):
        message = api.get(maps, limit=1, **{"continue": token}).refused(400, "BadRequest")["message"]
        assert message.startswith(("continue key is not valid", "invalid continue token"))


# Versions


def test_a_list_shows_the_newest_whether_or_not_it_names_a_version(api: Api, maps: str) -> None:
    old = api.get(maps).version
    fill(api, maps, "a")
    newest = api.get(f"{maps}/a").version
    for query in (
        {},
        {"resourceVersion": ""},
        {"resourceVersion": newest},
        {"resourceVersion": newest, "resourceVersionMatch": "NotOlderThan"},
        {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan", "limit": 5},
    ):
        listing = api.get(maps, **query)
        assert int(listing.version) >= int(newest) or "0" in query.values()
        assert listing.names == ["a"] or "0" in query.values()
    assert int(api.get(maps, resourceVersion=old).version) >= int(old)


def test_any_version_is_enough_for_0(api: Api, maps: str, eventually: Callable[[Callable[[], bool]], None]) -> None:
    fill(api, maps, "a")
    eventually(lambda: api.get(maps, resourceVersion="0").names == ["a"])
    assert api.get(f"{maps}/a", resourceVersion="0").metadata["name"] == "a"


def test_an_exact_version_shows_the_past(api: Api, maps: str) -> None:
    fill(api, maps, *"ab")
    version = api.get(maps).version
    api.patch(f"{maps}/a", {"data": {"x": "y"}})
    api.delete(f"{maps}/b")
    fill(api, maps, "c")
    past = api.get(maps, resourceVersion=version, resourceVersionMatch="Exact")
    assert (past.names, past.version) == (["a", "b"], version)
    assert "data" not in past.json["items"][0]
    page = api.get(maps, resourceVersion=version, resourceVersionMatch="Exact", limit=1)
    assert (page.names, page.version, page.metadata["remainingItemCount"]) == (["a"], version, 1)
    assert api.get(maps, limit=1, **{"continue": page.metadata["continue"]}).names == ["b"]
    assert api.get(maps).names == ["a", "c"]


def test_a_limit_with_a_version_and_no_match_shows_that_version(api: Api, maps: str) -> None:
    fill(api, maps, *"ab")
    version = api.get(maps).version
    fill(api, maps, "c")
    page = api.get(maps, resourceVersion=version, limit=9)
    assert (page.names, page.version) == (["a", "b"], version)


def test_a_compacted_exact_version_is_410(api: Api, cluster: Cluster, maps: str) -> None:
    fill(api, maps, "a")
    version = api.get(maps).version
    fill(api, maps, "b")
    cluster.compact()
    answer = api.get(maps, resourceVersion=version, resourceVersionMatch="Exact")
    assert answer.refused(410, "Expired")["message"] == "The resourceVersion for the provided list is too old."
    assert api.get(maps, resourceVersion=version).names == ["a", "b"]


@pytest.mark.parametrize("path", ["", "/a"])
def test_a_version_from_the_future_is_504_with_its_cause_and_a_retry(api: Api, maps: str, path: str) -> None:
    fill(api, maps, "a")
    future = int(api.get(maps).version) + 1_000_000
    answer = api.get(maps + path, resourceVersion=future)
    status = answer.refused(504, "Timeout")
    assert status["message"].startswith(f"Timeout: Too large resource version: {future}, current: ")
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    assert status["details"] == {"causes": [cause], "retryAfterSeconds": 1}
    assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ({"resourceVersionMatch": "Exact"}, MATCH_FORBIDDEN),
        ({"resourceVersionMatch": "Some", "resourceVersion": "1"}, ("FieldValueNotSupported", "resourceVersionMatch")),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, MATCH_FORBIDDEN),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "5", "continue": "x"}, MATCH_FORBIDDEN),
        ({"sendInitialEvents": "true"}, ("FieldValueForbidden", "sendInitialEvents")),
    ],
)
def test_options_that_contradict_each_other_are_422(api: Api, maps: str, query: Json, cause: tuple[str, str]) -> None:
    answer = api.get(maps, **query)
    assert answer.refused(422, "Invalid")["details"]["kind"] == "ListOptions"
    assert answer.causes == [cause]


def test_a_version_is_a_number(api: Api, maps: str) -> None:
    for text in ("abc", "-1"):
        message = api.get(maps, resourceVersion=text).refused(400, "BadRequest")["message"]
        assert message.startswith(f'invalid resource version: resourceVersion: Invalid value: "{text}": ')


def test_a_version_beside_a_continue_token_is_refused(api: Api, maps: str) -> None:
    fill(api, maps, *"ab")
    page = api.get(maps, limit=1)
    query = {"continue": page.metadata["continue"], "resourceVersion": page.version}
    message = api.get(maps, limit=1, **query).refused(400, "BadRequest")["message"]
    assert message == "specifying resource version is not allowed when using continue"


# Selectors


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=x", ["a"]),
        ("app==x", ["a"]),
        ("app!=x", ["b", "c"]),
        ("app", ["a", "b"]),
        ("!app", ["c"]),
        ("app in (x,y)", ["a", "b"]),
        ("app notin (x)", ["b", "c"]),
        ("tier=1,app in (x, y)", ["b"]),
        ("size>4", ["b"]),
        ("size<5", ["a"]),
        ("", ["a", "b", "c"]),
    ],
)
def test_label_selectors(api: Api, maps: str, selector: str, expected: list[str]) -> None:
    fill(api, maps, "a", app="x", size="3")
    fill(api, maps, "b", app="y", tier="1", size="7")
    fill(api, maps, "c")
    assert api.get(maps, labelSelector=selector).names == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=n1", ["b"]),
        ("spec.nodeName=", ["a"]),
        ("spec.nodeName!=n1", ["a"]),
        ("status.phase!=Pending", []),
        ("metadata.name=a", ["a"]),
        ("metadata.name=a,spec.nodeName=n1", []),
        ("spec.restartPolicy=Always", ["a", "b"]),
        ("spec.schedulerName=nobody", ["a", "b"]),
        ("status.podIP=", ["a", "b"]),
        ("status.nominatedNodeName=", ["a", "b"]),
        ("spec.serviceAccountName=", ["a", "b"]),
    ],
)
def test_field_selectors_of_pods(
    api: Api, pods: str, pod: Callable[..., Json], selector: str, expected: list[str]
) -> None:
    assert api.post(pods, pod("a")).status == 201
    assert api.post(pods, pod("b", nodeName="n1")).status == 201
    assert api.get(pods, fieldSelector=selector).names == expected


@pytest.mark.parametrize(
    ("resource", "selector"),
    [
        ("events", "involvedObject.kind=Pod,involvedObject.name=a,involvedObject.uid=1,involvedObject.namespace=b"),
        ("events", "reason=a,type=Normal,reportingComponent=x"),
        ("secrets", "type=Opaque"),
        ("services", "spec.clusterIP=None,spec.type=ClusterIP"),
        ("configmaps", "metadata.namespace=x"),
    ],
)
def test_field_selectors_of_other_kinds(api: Api, namespace: str, resource: str, selector: str) -> None:
    assert api.get(f"/api/v1/namespaces/{namespace}/{resource}", fieldSelector=selector).names == []


def test_a_selectable_field_of_a_custom_resource_selects(api: Api, widgets: str, widget: Callable[..., Json]) -> None:
    assert api.post(widgets, widget("a")).status == 201
    assert api.post(widgets, widget("b", mode="b")).status == 201
    assert api.get(widgets, fieldSelector="spec.mode=a").names == ["a"]
    assert api.get(widgets, fieldSelector="spec.mode!=a").names == ["b"]
    message = api.get(widgets, fieldSelector="spec.size=1").refused(400, "BadRequest")["message"]
    assert message == "field label not supported: spec.size"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"fieldSelector": "spec.foo=x"}, "field label not supported: spec.foo"),
        ({"fieldSelector": "spec.foo"}, "invalid selector: "),
        ({"labelSelector": "a==="}, "unable to parse requirement: "),
        ({"labelSelector": "a in"}, "unable to parse requirement: "),
        ({"labelSelector": "-a=b"}, "unable to parse requirement: "),
    ],
)
def test_a_bad_selector_is_400(api: Api, pods: str, query: Json, message: str) -> None:
    for more in ({}, {"watch": "true"}):
        found = api.get(pods, **query, **more).refused(400, "BadRequest")["message"]
        assert found.startswith(message)


# Names


@pytest.mark.parametrize(
    ("path", "message", "details"),
    [
        ("/pods/absent", 'pods "absent" not found', {"name": "absent", "kind": "pods"}),
        ("/foos", "the server could not find the requested resource", {}),
        ("/nodes", "the server could not find the requested resource", {}),
        ("/configmaps/x/status", "the server could not find the requested resource", {}),
        ("/pods/absent/status", 'pods "absent" not found', {"name": "absent", "kind": "pods"}),
    ],
)
def test_what_is_not_there_is_404(api: Api, namespace: str, path: str, message: str, details: Json) -> None:
    status = api.get(f"/api/v1/namespaces/{namespace}{path}").refused(404, "NotFound")
    assert (status["message"], status.get("details", {})) == (message, details)


def test_a_name_that_is_not_there_is_404_in_its_group(api: Api, namespace: str, group: str) -> None:
    for path, kind, of in [
        (f"/apis/apps/v1/namespaces/{namespace}/deployments/d", "deployments", "apps"),
        (f"/apis/{group}/v1/namespaces/{namespace}/widgets/d", "widgets", group),
    ]:
        status = api.get(path).refused(404, "NotFound")
        assert (status["message"], status["details"]) == (
            f'{kind}.{of} "d" not found',
            {"name": "d", "group": of, "kind": kind},
        )


def test_a_version_that_is_not_served_is_404(api: Api) -> None:
    for path in ("/apis/apps/v9/deployments", "/apis/apps/v9", "/api/v9/pods", "/api/v1/pods/x"):
        assert api.get(path).refused(404, "NotFound")["message"] == "the server could not find the requested resource"


def test_a_group_that_is_not_served_is_404_in_plain_text(api: Api) -> None:
    for path in ("/apis/absent.example.com/v1/things", "/apis/absent.example.com", "/nowhere"):
        answer = api.get(path)
        assert (answer.status, answer.text) == (404, "404 page not found\n")


def test_a_list_in_a_namespace_that_is_not_there_is_empty(api: Api) -> None:
    assert api.get("/api/v1/namespaces/absent/pods").names == []


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", ""), ("PATCH", ""), ("POST", "/x"), ("POST", "/x/status"), ("DELETE", "/x/status"), ("PUT", "/x/binding")],
)
def test_a_verb_that_a_path_has_not_is_405(api: Api, pods: str, method: str, path: str) -> None:
    answer = api(method, pods + path, {"metadata": {"name": "x"}})
    message = answer.refused(405, "MethodNotAllowed")["message"]
    assert message == "the server does not allow this method on the requested resource"
