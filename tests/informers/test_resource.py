"""The verbs of a resource: arguments are checked before anything is sent, answers are objects, waits do not poll."""

import inspect
import threading

import pytest

from informers import (
    AlreadyExistsError,
    ClientClosed,
    ConflictError,
    ConnectionRefused,
    ExpiredError,
    FieldSelector,
    ForbiddenError,
    KindNotFoundError,
    LabelSelector,
    NotFoundError,
    Object,
    ObjectKey,
    Resource,
    Timeout,
    retry_on_conflict,
)
from informers.errors import ConnectionReset, ScopeError
from informers.testing import FakeClient


def config_map(name="a", namespace="ns", **data):
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


@pytest.fixture
def client():
    with FakeClient() as client:
        yield client


@pytest.fixture
def maps(client):
    return client.resource("v1", "ConfigMap")


def test_what_is_created_is_read_back(maps):
    created = maps.create(config_map(x="1"))
    assert (created.key, created.kind, created.api_version) == (ObjectKey("ns", "a"), "ConfigMap", "v1")
    assert maps.get("ns/a") == created
    assert maps.get(ObjectKey("ns", "a"))["data"] == {"x": "1"}
    with pytest.raises(AlreadyExistsError) as caught:
        maps.create(config_map())
    assert (caught.value.verb, caught.value.resource, caught.value.key) == ("create", "configmaps", ("ns", "a"))


def test_objects_and_parts_of_them_may_be_written_back(maps):
    created = maps.create(config_map(x="1"))
    replaced = maps.replace({**created, "data": {**created["data"], "y": "2"}})
    assert replaced["data"] == {"x": "1", "y": "2"}
    assert maps.create(Object.from_dict(config_map("b"))).name == "b"
    assert maps.replace(maps.get("ns/b")).name == "b"


def test_a_replacement_of_an_old_version_is_a_conflict(maps):
    old = maps.create(config_map())
    maps.patch("ns/a", {"data": {"x": "1"}})
    with pytest.raises(ConflictError):
        maps.replace(old)
    assert maps.replace(old, unconditional=True).get("data", {}) == {}


def test_a_replacement_needs_a_version_or_consent(maps):
    maps.create(config_map())
    with pytest.raises(ValueError, match="resourceVersion"):
        maps.replace(config_map(x="1"))
    assert maps.replace(config_map(x="1"), unconditional=True)["data"] == {"x": "1"}


def test_dry_runs_change_nothing(maps):
    maps.create(config_map("a", x="1"))
    maps.create(config_map("b"), dry_run=True)
    maps.patch("ns/a", {"data": {"x": "2"}}, dry_run=True)
    maps.delete("ns/a", dry_run=True)
    maps.delete_collection(namespace="ns", dry_run=True)
    assert [dict(obj["data"]) for obj in maps.list()] == [{"x": "1"}]


def test_options_of_writes_are_sent(client, maps):
    maps.create(config_map(), field_manager="me", field_validation="Strict")
    assert client.actions[-1].query == {"fieldManager": "me", "fieldValidation": "Strict"}
    maps.delete("ns/a", propagation="Foreground", grace_period=5, uid=maps.get("ns/a").uid)
    assert client.actions[-1].body == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 5,
        "preconditions": {"uid": maps.get("ns/a").uid},
    }


@pytest.mark.parametrize(
    "call",
    [
        lambda maps: maps.get("a"),
        lambda maps: maps.get("a/b/c"),
        lambda maps: maps.create({"data": {}}),
        lambda maps: maps.create({"metadata": {"name": "a"}}),
        lambda maps: maps.create({**config_map(), "kind": "Secret"}),
        lambda maps: maps.create({**config_map(), "apiVersion": "v2"}),
        lambda maps: maps.create(config_map(), field_validation="Maybe"),
        lambda maps: maps.replace({"metadata": {"namespace": "ns", "resourceVersion": "1"}}),
        lambda maps: maps.patch("ns/a", {}, type="guess"),
        lambda maps: maps.patch("ns/a", {}, type="json"),
        lambda maps: maps.patch("ns/a", [], type="merge"),
        lambda maps: maps.apply(config_map(), field_manager=""),
        lambda maps: maps.delete("ns/a", propagation="Sideways"),
        lambda maps: maps.delete("ns/a", grace_period=-1),
        lambda maps: maps.delete_collection(),
        lambda maps: maps.list(label_selector=LabelSelector.nothing()),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(client, maps, call):
    with pytest.raises(ValueError):
        call(maps)
    assert not client.actions


def test_cluster_scoped_kinds_take_no_namespace(client):
    nodes = client.resource("v1", "Node")
    nodes.create({"metadata": {"name": "n"}})
    assert nodes.get("n").key == ObjectKey("", "n")
    for call in (lambda: nodes.get("ns/n"), lambda: nodes.list(namespace="ns"), lambda: nodes.watch(namespace="ns")):
        with pytest.raises(ValueError, match="cluster scoped"):
            call()
    with pytest.raises(ScopeError, match="ask with namespace=None"):
        nodes.list(namespace="ns")


def test_lists_select_and_come_in_pages(maps):
    for number in range(7):
        maps.create({"metadata": {"name": f"m{number}", "namespace": f"ns{number % 2}", "labels": {"n": str(number)}}})
    assert [obj.name for obj in maps.list(namespace="ns1")] == ["m1", "m3", "m5"]
    assert [obj.name for obj in maps.list(label_selector="n in (0,6)")] == ["m0", "m6"]
    assert [obj.name for obj in maps.list(label_selector=LabelSelector.parse("n=3"))] == ["m3"]
    assert [obj.name for obj in maps.list(field_selector=FieldSelector.parse("metadata.name=m2"))] == ["m2"]
    page = maps.list(limit=3)
    assert (len(page), page.remaining) == (3, 4)
    assert len(maps.list(limit=10, continue_=page.continue_)) == 4
    assert len({obj.key for obj in maps.iterate(page_size=2)}) == 7


def test_metadata_only_gives_no_more_and_keeps_the_kind(maps):
    maps.create(config_map(x="1"))
    (obj,) = maps.list(metadata_only=True)
    assert (list(obj), obj.kind) == (["apiVersion", "kind", "metadata"], "ConfigMap")
    (event,) = list_events(maps, 1, metadata_only=True)
    assert (list(event.object), event.object.kind) == (["apiVersion", "kind", "metadata"], "ConfigMap")


def list_events(resource, count, **options):
    with resource.watch(**options) as stream:
        return [next(stream) for _ in range(count)]


def test_a_watch_shows_what_comes_after_a_version(maps):
    first = maps.create(config_map("a"))
    maps.create(config_map("b"))
    maps.delete("ns/a")
    events = list_events(maps, 2, resource_version=first.resource_version)
    assert [(event.type, event.object.name) for event in events] == [("ADDED", "b"), ("DELETED", "a")]


def test_initial_events_end_with_a_bookmark(maps):
    maps.create(config_map())
    events = list_events(maps, 2, send_initial_events=True)
    assert [event.type for event in events] == ["ADDED", "BOOKMARK"]
    assert events[1].object.annotations == {"k8s.io/initial-events-end": "true"}


def test_a_delete_tells_whether_the_object_is_only_marked(maps):
    maps.create({"metadata": {"name": "a", "namespace": "ns", "finalizers": ["x/y"]}})
    marked = maps.delete("ns/a")
    assert marked is not None
    assert marked.deletion_timestamp
    maps.patch("ns/a", {"metadata": {"finalizers": None}})
    maps.create(config_map("b"))
    assert maps.delete("ns/b") is None
    with pytest.raises(NotFoundError):
        maps.delete("ns/b")


def test_preconditions_of_a_delete(maps):
    created = maps.create(config_map())
    with pytest.raises(ConflictError):
        maps.delete("ns/a", uid="other")
    with pytest.raises(ConflictError):
        maps.delete("ns/a", resource_version="1")
    assert maps.delete("ns/a", uid=created.uid, resource_version=created.resource_version) is None


def test_resources_are_found_by_plural_too(client):
    client.resource("v1", "ConfigMap").create(config_map())
    maps = client.resource_by_plural("v1", "configmaps")
    assert maps.info().kind == "ConfigMap"
    assert [obj.kind for obj in maps.list()] == ["ConfigMap"]
    with pytest.raises(KindNotFoundError):
        client.resource_by_plural("v1", "unknowns").list()


def test_what_a_resource_is_called_in_messages(maps):
    assert maps.description == "v1 ConfigMap at fake://store"
    source = maps.list_watch(namespace="ns", label_selector="a=b")
    assert source.description == "v1 ConfigMap in namespace ns (labels a=b) at fake://store"


def test_a_list_watch_is_the_resource_in_one_scope(maps):
    maps.create(config_map("a", "ns"))
    maps.create(config_map("a", "other"))
    source = maps.list_watch(namespace="ns")
    listed = source.list()
    assert [obj.key for obj in listed] == [("ns", "a")]
    with source.watch(resource_version=listed.resource_version) as stream:
        maps.create(config_map("b", "other"))
        maps.create(config_map("b", "ns"))
        assert next(stream).object.key == ("ns", "b")


# --- waiting


def after(action):
    thread = threading.Timer(0.05, action)
    thread.start()
    return thread


def test_wait_until_gives_the_state_that_is_already_there(client, maps):
    maps.create(config_map(x="1"))
    found = maps.wait_until("ns/a", lambda obj: obj is not None, 5)
    assert found["data"] == {"x": "1"}
    assert [action.verb for action in client.actions] == ["create", "list"]
    assert maps.wait_until("ns/none", lambda obj: obj is None, 5) is None


def test_wait_until_sees_what_happens_without_polling(client, maps):
    maps.create(config_map())
    thread = after(lambda: (maps.patch("ns/a", {"data": {"x": "1"}}), maps.patch("ns/a", {"data": {"x": "2"}})))
    found = maps.wait_until("ns/a", lambda obj: obj is not None and obj.get("data", {}).get("x") == "2", 10)
    thread.join()
    assert found["data"]["x"] == "2"
    assert [action.verb for action in client.actions if not action.is_write] == ["list", "watch"]


def test_wait_until_can_wait_for_the_end_of_an_object(maps):
    maps.create(config_map())
    maps.create(config_map("b"))
    thread = after(lambda: (maps.delete("ns/b"), maps.delete("ns/a")))
    assert maps.wait_until("ns/a", lambda obj: obj is None, 10) is None
    thread.join()


def test_wait_until_says_what_the_state_was_when_the_time_is_up(maps):
    created = maps.create(config_map())
    with pytest.raises(Timeout, match=rf"within 0\.1 s; it is at version {created.resource_version}"):
        maps.wait_until("ns/a", lambda obj: obj is None, 0.1)
    with pytest.raises(TimeoutError, match="it does not exist"):
        maps.wait_until("ns/b", lambda obj: obj is not None, 0)


def test_wait_until_waits_out_what_may_pass(client, maps):
    maps.create(config_map())
    client.fail_next("list", "ConfigMap", ConnectionRefused("down"))
    client.fail_next("watch", "ConfigMap", ConnectionReset("cut"))
    client.fail_next("watch", "ConfigMap", ExpiredError("too old"))
    thread = threading.Timer(0.4, lambda: maps.delete("ns/a"))
    thread.start()
    assert maps.wait_until("ns/a", lambda obj: obj is None, 10) is None
    thread.join()


def test_wait_until_names_the_last_failure_when_the_time_is_up(client, maps):
    client.fail_next("list", "*", ConnectionRefused("nobody home"), times=100)
    with pytest.raises(Timeout, match="nobody home"):
        maps.wait_until("ns/a", lambda obj: True, 0.3)


@pytest.mark.parametrize("error", [ForbiddenError("no"), ClientClosed("closed")])
def test_wait_until_raises_what_does_not_pass(client, maps, error):
    client.fail_next("list", "*", error)
    with pytest.raises(type(error)):
        maps.wait_until("ns/a", lambda obj: True, 10)


def test_wait_until_survives_a_dropped_watch_and_a_compaction(client, maps):
    maps.create(config_map())

    def disturb():
        client.drop_watches()
        client.drop_watches(ConnectionReset("cut"))
        client.compact()
        maps.delete("ns/a")

    thread = after(disturb)
    assert maps.wait_until("ns/a", lambda obj: obj is None, 10) is None
    thread.join()


# --- retry on conflict


def test_conflicts_are_retried_with_a_fresh_read(client, maps):
    maps.create(config_map(n="0"))
    client.fail_next("update", "ConfigMap", ConflictError("raced"), times=2)

    def increment():
        current = maps.get("ns/a")
        return maps.replace({**current, "data": {"n": str(int(current["data"]["n"]) + 1)}})

    assert retry_on_conflict(increment)["data"] == {"n": "1"}
    assert [action.verb for action in client.actions[1:]] == ["get", "update"] * 3


def test_after_the_last_attempt_the_conflict_is_raised():
    calls = []

    def fail():
        calls.append(1)
        raise ConflictError("again")

    with pytest.raises(ConflictError):
        retry_on_conflict(fail, attempts=3)
    assert len(calls) == 3
    with pytest.raises(ValueError, match="attempt"):
        retry_on_conflict(fail, attempts=0)


def test_other_errors_are_not_retried():
    def fail():
        raise AlreadyExistsError("no")

    with pytest.raises(AlreadyExistsError):
        retry_on_conflict(fail)


def test_all_writes_take_the_same_options():
    for verb in (Resource.create, Resource.replace, Resource.patch, Resource.apply):
        assert {"dry_run", "field_manager", "field_validation", "timeout"} <= set(inspect.signature(verb).parameters)
    for verb in (Resource.get, Resource.list, Resource.iterate, Resource.watch, Resource.delete, Resource.wait_until):
        assert "timeout" in inspect.signature(verb).parameters
