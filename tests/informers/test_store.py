"""The versioned store, rule by rule."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from informers.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    InvalidError,
    NotFoundError,
    ServerTimeoutError,
)
from informers.key import ObjectKey
from informers.store import DeleteOptions, Hooks, Json, ResourceType, Store, invalid
from informers.store.failures import FieldProblem

NOW = 1_000_000_000.0
CONFIG_MAPS = ResourceType("", "v1", "ConfigMap", "configmaps")
NODES = ResourceType("", "v1", "Node", "nodes", namespaced=False)
PODS = ResourceType(
    "",
    "v1",
    "Pod",
    "pods",
    subresources=frozenset({"status"}),
    generation=True,
    graceful=True,
    fields=("spec.nodeName",),
)
WIDGETS = ResourceType(
    "ex.io", "v1", "Widget", "widgets", subresources=frozenset({"status"}), generation=True, unconditional_update=False
)
KEY = ObjectKey("ns", "a")


def new_store(**options: Any) -> Store:
    uids, suffixes = itertools.count(1), itertools.count(1)
    store = Store(
        now=lambda: NOW,
        new_uid=lambda: f"uid-{next(uids)}",
        new_suffix=lambda: f"x{next(suffixes)}",
        **options,
    )
    for resource in (CONFIG_MAPS, NODES, PODS, WIDGETS):
        store.register(resource)
    return store


@pytest.fixture
def store() -> Store:
    return new_store()


def add(store: Store, name: str, resource: ResourceType = CONFIG_MAPS, namespace: str = "ns", **members: Any) -> Json:
    metadata = {"name": name, **members.pop("metadata", {})}
    return store.create(resource, {"metadata": metadata, **members}, namespace=namespace).object


def change(obj: Json, **members: Any) -> Json:
    metadata = {**obj["metadata"], **members.pop("metadata", {})}
    return {**obj, **members, "metadata": metadata}


def names(items: list[Any]) -> list[str]:
    return [stored.key.name for stored in items]


def seen(watch: Any) -> list[tuple[str, str]]:
    return [(item.type, item.stored.key.name) for item in watch.poll()]


# Creation


def test_create_sets_identity_time_version_and_kind(store: Store) -> None:
    created = store.create(PODS, {"metadata": {"name": "a"}, "spec": {}}, namespace="ns")
    assert created.object == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a",
            "namespace": "ns",
            "uid": "uid-1",
            "generation": 1,
            "creationTimestamp": "2001-09-09T01:46:40Z",
            "resourceVersion": "2",
        },
        "spec": {},
    }
    assert created.version == store.version == 2


def test_create_ignores_what_only_the_server_sets(store: Store) -> None:
    metadata = {"uid": "mine", "generation": 7, "deletionTimestamp": "x", "managedFields": [], "selfLink": "/x"}
    created = add(store, "a", metadata=metadata)
    assert created["metadata"].keys() == {"name", "namespace", "uid", "creationTimestamp", "resourceVersion"}
    assert created["metadata"]["uid"] == "uid-1"


def test_generate_name_avoids_names_that_are_taken() -> None:
    suffixes = iter(["aaa", "aaa", "bbb"])
    store = Store(now=lambda: NOW, new_uid=lambda: "u", new_suffix=lambda: next(suffixes))
    store.register(CONFIG_MAPS)
    made = [store.create(CONFIG_MAPS, {"metadata": {"generateName": "p-"}}, namespace="ns") for _ in range(2)]
    assert names(made) == ["p-aaa", "p-bbb"]


def test_a_long_generated_name_keeps_its_suffix(store: Store) -> None:
    created = store.create(CONFIG_MAPS, {"metadata": {"generateName": "p" * 80}}, namespace="ns")
    assert created.key.name == "p" * 58 + "x1"


def test_creating_twice_is_already_exists(store: Store) -> None:
    add(store, "a", WIDGETS)
    with pytest.raises(AlreadyExistsError) as failure:
        add(store, "a", WIDGETS)
    assert failure.value.message == 'widgets.ex.io "a" already exists'
    assert failure.value.details == {"name": "a", "group": "ex.io", "kind": "widgets"}


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        ({}, InvalidError, 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'),
        ({"name": "a", "namespace": "other"}, BadRequestError, "the namespace of the provided object does not match"),
        ({"name": "a", "resourceVersion": "5"}, ApiError, "resourceVersion should not be set on objects to be created"),
    ],
)
def test_create_refuses(store: Store, metadata: Json, error: type[ApiError], message: str) -> None:
    with pytest.raises(error) as failure:
        store.create(CONFIG_MAPS, {"metadata": metadata}, namespace="ns")
    assert failure.value.message.startswith(message)
    assert store.version == 1


def test_hooks_default_and_refuse_before_anything_is_stored(store: Store) -> None:
    def prepare(obj: Json, old: Json | None, subresource: str | None) -> Json:
        if obj.get("bad"):
            raise invalid("", "ConfigMap", obj["metadata"]["name"], [FieldProblem.required("data.x")])
        return {**obj, "data": obj.get("data", {"default": "yes"})}

    store.register(CONFIG_MAPS, Hooks(prepare))
    assert add(store, "a")["data"] == {"default": "yes"}
    with pytest.raises(InvalidError) as failure:
        add(store, "b", bad=True)
    assert failure.value.causes == [{"reason": "FieldValueRequired", "message": "Required value", "field": "data.x"}]
    assert store.version == 2


def test_dry_run_shows_the_outcome_and_keeps_nothing(store: Store) -> None:
    shown = store.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace="ns", dry_run=True)
    assert shown.object["metadata"]["uid"] == "uid-1"
    assert "resourceVersion" not in shown.object["metadata"]
    assert store.version == 1
    stored = add(store, "a")
    store.update(CONFIG_MAPS, KEY, change(stored, data={"x": "y"}), dry_run=True)
    store.delete(CONFIG_MAPS, KEY, dry_run=True)
    assert store.get(CONFIG_MAPS, KEY).object == stored


# Updates


def test_an_update_of_an_old_version_is_a_conflict(store: Store) -> None:
    first = add(store, "a")
    store.update(CONFIG_MAPS, KEY, change(first, data={"x": "1"}))
    with pytest.raises(ConflictError) as failure:
        store.update(CONFIG_MAPS, KEY, change(first, data={"x": "2"}))
    assert failure.value.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to '
        "the latest version and try again"
    )


def test_an_update_without_a_version_overwrites_unless_the_type_forbids(store: Store) -> None:
    add(store, "a")
    add(store, "a", WIDGETS)
    updated = store.update(CONFIG_MAPS, KEY, {"metadata": {"name": "a"}, "data": {"x": "1"}})
    assert updated.object["data"] == {"x": "1"}
    with pytest.raises(InvalidError, match=r"metadata.resourceVersion: Invalid value: 0: must be specified"):
        store.update(WIDGETS, KEY, {"metadata": {"name": "a"}})


def test_an_update_of_another_incarnation_is_a_conflict(store: Store) -> None:
    add(store, "a")
    with pytest.raises(ConflictError, match="UID in precondition: other, UID in object meta: uid-1"):
        store.update(CONFIG_MAPS, KEY, {"metadata": {"name": "a", "uid": "other"}})


def test_what_only_the_server_sets_is_kept(store: Store) -> None:
    old = add(store, "a", PODS, spec={})
    changed = {"generation": 9, "creationTimestamp": None, "deletionTimestamp": None, "labels": {"a": "b"}}
    new = store.update(PODS, KEY, change(old, metadata=changed)).object
    assert new["metadata"] == {**old["metadata"], "labels": {"a": "b"}, "resourceVersion": "3"}
    with pytest.raises(InvalidError, match=r"metadata\.deletionTimestamp: Invalid value: field is immutable"):
        store.update(PODS, KEY, change(new, metadata={"deletionTimestamp": "x"}))


def test_a_write_that_changes_nothing_makes_no_version(store: Store) -> None:
    old = add(store, "a", data={"x": 1})
    assert store.update(CONFIG_MAPS, KEY, old).version == 2
    assert store.version == 2
    # 1 and true are equal in Python, not in JSON.
    assert store.update(CONFIG_MAPS, KEY, change(old, data={"x": True})).version == 3


def test_names_and_namespaces_must_be_those_of_the_url(store: Store) -> None:
    add(store, "a")
    with pytest.raises(BadRequestError, match=r"the name of the object \(b\) does not match the name on the URL \(a\)"):
        store.update(CONFIG_MAPS, KEY, {"metadata": {"name": "b"}})
    with pytest.raises(BadRequestError, match="the namespace of the provided object does not match"):
        store.update(CONFIG_MAPS, KEY, {"metadata": {"name": "a", "namespace": "other"}})


def test_status_and_the_rest_are_written_through_their_own_endpoints(store: Store) -> None:
    old = add(store, "a", PODS, spec={"x": 1})
    both = change(old, spec={"x": 2}, status={"phase": "Running"}, metadata={"labels": {"a": "b"}})
    by_main = store.update(PODS, KEY, both).object
    assert (by_main["spec"], by_main.get("status")) == ({"x": 2}, None)
    both = change(by_main, spec={"x": 3}, status={"phase": "Running"}, metadata={"labels": {"c": "d"}})
    by_status = store.update(PODS, KEY, both, subresource="status").object
    assert (by_status["spec"], by_status["status"]) == ({"x": 2}, {"phase": "Running"})
    assert by_status["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("members", "moved"),
    [
        ({"spec": {"x": 2}}, True),
        ({"other": 1}, True),
        ({"metadata": {"labels": {"a": "b"}}}, False),
        ({"metadata": {"annotations": {"a": "b"}}}, False),
        ({"status": {"a": "b"}}, False),
    ],
)
def test_the_generation_moves_with_the_spec_only(store: Store, members: Json, moved: bool) -> None:
    old = add(store, "a", WIDGETS, spec={"x": 1})
    subresource = "status" if "status" in members else None
    new = store.update(WIDGETS, KEY, change(old, **members), subresource=subresource).object
    assert new["metadata"]["generation"] == (2 if moved else 1)


def test_annotations_move_the_generation_where_the_type_says_so() -> None:
    store = new_store()
    deployments = ResourceType("apps", "v1", "Deployment", "deployments", generation=True, annotations_generation=True)
    store.register(deployments)
    old = add(store, "a", deployments)
    new = store.update(deployments, KEY, change(old, metadata={"annotations": {"a": "b"}})).object
    assert new["metadata"]["generation"] == 2


# Deletion


def test_a_delete_removes_and_its_event_has_the_last_state_and_a_new_version(store: Store) -> None:
    add(store, "a", data={"x": "y"})
    watch = store.watch(CONFIG_MAPS, resource_version="2")
    deletion = store.delete(CONFIG_MAPS, KEY)
    assert deletion.gone
    [item] = watch.poll()
    assert item.type == "DELETED"
    assert item.stored.object["data"] == {"x": "y"}
    assert item.stored.object["metadata"]["resourceVersion"] == "3"
    with pytest.raises(NotFoundError, match='configmaps "a" not found'):
        store.get(CONFIG_MAPS, KEY)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (DeleteOptions(uid="other"), "the UID in the precondition (other) does not match the UID in record (uid-1)"),
        (DeleteOptions(resource_version="1"), "the ResourceVersion in the precondition (1) does not match"),
    ],
)
def test_delete_preconditions_are_conflicts(store: Store, options: DeleteOptions, text: str) -> None:
    add(store, "a")
    with pytest.raises(ConflictError) as failure:
        store.delete(CONFIG_MAPS, KEY, options)
    assert text in failure.value.message


def test_finalizers_hold_a_deleted_object_until_the_last_is_removed(store: Store) -> None:
    add(store, "a", WIDGETS, metadata={"finalizers": ["x.io/a", "x.io/b"]})
    deletion = store.delete(WIDGETS, KEY)
    assert not deletion.gone
    metadata = deletion.stored.object["metadata"]
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == ("2001-09-09T01:46:40Z", 0)
    assert metadata["generation"] == 2
    assert store.delete(WIDGETS, KEY).stored.version == deletion.stored.version
    one = store.update(WIDGETS, KEY, change(deletion.stored.object, metadata={"finalizers": ["x.io/b"]}))
    with pytest.raises(InvalidError, match="no new finalizers can be added if the object is being deleted"):
        store.update(WIDGETS, KEY, change(one.object, metadata={"finalizers": ["x.io/b", "x.io/c"]}))
    store.update(WIDGETS, KEY, change(one.object, metadata={"finalizers": None}))
    assert store.find(WIDGETS, KEY) is None


@pytest.mark.parametrize(
    ("before", "propagation", "after"),
    [
        ([], "Foreground", ["foregroundDeletion"]),
        ([], "Orphan", ["orphan"]),
        (["orphan"], None, ["orphan"]),
        (["orphan", "x.io/a"], "Background", ["x.io/a"]),
        (["orphan"], "Foreground", ["foregroundDeletion"]),
        (["x.io/a"], "Orphan", ["x.io/a", "orphan"]),
    ],
)
def test_the_propagation_policy_becomes_a_finalizer(
    store: Store, before: list[str], propagation: str | None, after: list[str]
) -> None:
    add(store, "a", metadata={"finalizers": before})
    deletion = store.delete(CONFIG_MAPS, KEY, DeleteOptions(propagation=propagation))
    assert deletion.stored.object["metadata"]["finalizers"] == after


def test_background_deletion_forgets_the_orphan_finalizer_and_removes_at_once(store: Store) -> None:
    add(store, "a", metadata={"finalizers": ["orphan"]})
    assert store.delete(CONFIG_MAPS, KEY, DeleteOptions(propagation="Background")).gone


def test_an_unknown_propagation_policy_is_invalid(store: Store) -> None:
    add(store, "a")
    with pytest.raises(InvalidError, match='propagationPolicy: Unsupported value: "Foo"'):
        store.delete(CONFIG_MAPS, KEY, DeleteOptions(propagation="Foo"))


@pytest.mark.parametrize(
    ("spec", "phase", "grace", "expected"),
    [
        ({}, "Pending", None, 0),
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 5}, "Running", None, 5),
        ({"nodeName": "n"}, "Running", 7, 7),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", -4, 1),
        ({"nodeName": "n"}, "Succeeded", None, 0),
    ],
)
def test_a_pod_on_a_node_gets_its_grace_period(
    store: Store, spec: Json, phase: str, grace: int | None, expected: int
) -> None:
    pod = add(store, "a", PODS, spec=spec)
    store.update(PODS, KEY, change(pod, status={"phase": phase}), subresource="status")
    watch = store.watch(PODS, resource_version=str(store.version))
    deletion = store.delete(PODS, KEY, DeleteOptions(grace_period=grace))
    assert deletion.gone is (expected == 0)
    assert deletion.stored.object["metadata"]["deletionGracePeriodSeconds"] == expected
    assert [item.type for item in watch.poll()] == ["MODIFIED", "DELETED"][: 2 if deletion.gone else 1]


def test_a_second_delete_may_only_shorten_the_grace_period(store: Store) -> None:
    add(store, "a", PODS, spec={"nodeName": "n"})
    store.delete(PODS, KEY)
    assert (
        store.delete(PODS, KEY, DeleteOptions(grace_period=60)).stored.object["metadata"]["deletionGracePeriodSeconds"]
        == 30
    )
    shorter = store.delete(PODS, KEY, DeleteOptions(grace_period=10)).stored.object["metadata"]
    assert (shorter["deletionGracePeriodSeconds"], shorter["deletionTimestamp"]) == (10, "2001-09-09T01:46:50Z")
    assert store.delete(PODS, KEY, DeleteOptions(grace_period=0)).gone


def test_a_collection_is_deleted_by_selector_with_a_version_each(store: Store) -> None:
    for name in "abc":
        add(store, name, metadata={"labels": {"keep": str(name == "b").lower()}})
    deleted = store.delete_collection(CONFIG_MAPS, namespace="ns", label_selector="keep=false")
    assert names(deleted.items) == ["a", "c"]
    assert names(store.list(CONFIG_MAPS).items) == ["b"]
    assert store.version == 6


# Lists


def test_lists_are_in_path_order_and_by_namespace(store: Store) -> None:
    for namespace, name in [("b", "x"), ("a", "z"), ("a-b", "m"), ("a", "y")]:
        add(store, name, namespace=namespace)
    assert [str(each.key) for each in store.list(CONFIG_MAPS).items] == ["a-b/m", "a/y", "a/z", "b/x"]
    assert names(store.list(CONFIG_MAPS, namespace="a").items) == ["y", "z"]


def test_pages_show_one_version_while_writes_go_on(store: Store) -> None:
    for name in "abcde":
        add(store, name)
    page = store.list(CONFIG_MAPS, limit=2)
    assert (names(page.items), page.remaining) == (["a", "b"], 3)
    store.delete(CONFIG_MAPS, ObjectKey("ns", "c"))
    add(store, "bb")
    found = list(page.items)
    while page.continue_:
        page = store.list(CONFIG_MAPS, limit=2, continue_=page.continue_)
        assert page.version == 6
        found += page.items
    assert names(found) == ["a", "b", "c", "d", "e"]


def test_remaining_items_are_unknown_with_a_selector(store: Store) -> None:
    for name in "abc":
        add(store, name, metadata={"labels": {"x": "y"}})
    page = store.list(CONFIG_MAPS, limit=1, label_selector="x=y")
    assert (page.remaining, bool(page.continue_)) == (None, True)


def test_an_expired_continue_token_comes_with_one_for_the_inconsistent_rest(store: Store) -> None:
    for name in "abc":
        add(store, name)
    page = store.list(CONFIG_MAPS, limit=1)
    add(store, "aa")
    store.compact()
    with pytest.raises(ExpiredError) as failure:
        store.list(CONFIG_MAPS, limit=1, continue_=page.continue_)
    assert failure.value.to_status()["metadata"]["continue"]
    rest = store.list(CONFIG_MAPS, limit=9, continue_=failure.value.continue_token)
    assert names(rest.items) == ["aa", "b", "c"]
    assert rest.version == store.version


def test_exact_lists_show_the_past_until_it_is_compacted(store: Store) -> None:
    old = add(store, "a", data={"x": "1"})
    store.update(CONFIG_MAPS, KEY, change(old, data={"x": "2"}))
    add(store, "b")
    past = store.list(CONFIG_MAPS, resource_version="2", resource_version_match="Exact")
    assert [each.object["data"] for each in past.items] == [{"x": "1"}]
    assert past.version == 2
    assert len(store.list(CONFIG_MAPS, resource_version="2", resource_version_match="NotOlderThan").items) == 2
    assert len(store.list(CONFIG_MAPS, resource_version="2", limit=5).items) == 1
    store.compact()
    with pytest.raises(ExpiredError):
        store.list(CONFIG_MAPS, resource_version="2", resource_version_match="Exact")


@pytest.mark.parametrize("read", ["get", "list", "watch list"])
def test_a_version_from_the_future_is_a_timeout_with_its_cause(store: Store, read: str) -> None:
    add(store, "a")
    reads: dict[str, Callable[[], object]] = {
        "get": lambda: store.get(CONFIG_MAPS, KEY, resource_version="99"),
        "list": lambda: store.list(CONFIG_MAPS, resource_version="99"),
        "watch list": lambda: store.watch(
            CONFIG_MAPS, resource_version="99", resource_version_match="NotOlderThan", send_initial_events=True
        ),
    }
    with pytest.raises(ServerTimeoutError) as failure:
        reads[read]()
    assert failure.value.status == 504
    assert failure.value.has_cause("ResourceVersionTooLarge")
    assert failure.value.retry_after == 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"resource_version": "abc"}, BadRequestError, "invalid resource version"),
        ({"continue_": "%%%"}, BadRequestError, "invalid continue token"),
        ({"label_selector": "a==="}, BadRequestError, "unable to parse requirement"),
        ({"field_selector": "spec.foo=1"}, BadRequestError, "field label not supported: spec.foo"),
        ({"resource_version_match": "Exact"}, InvalidError, 'ListOptions.meta.k8s.io "" is invalid'),
        ({"resource_version_match": "Exact", "resource_version": "0"}, InvalidError, "ListOptions.meta.k8s.io"),
        ({"resource_version_match": "Foo", "resource_version": "1"}, InvalidError, "ListOptions.meta.k8s.io"),
    ],
)
def test_lists_refuse(store: Store, options: dict[str, Any], error: type[ApiError], message: str) -> None:
    with pytest.raises(error) as failure:
        store.list(CONFIG_MAPS, **options)
    assert failure.value.message.startswith(message)


def test_field_selectors_choose_by_name_namespace_and_the_types_fields(store: Store) -> None:
    add(store, "a", PODS, spec={"nodeName": "n1"})
    add(store, "b", PODS, spec={})
    for selector, expected in [
        ("spec.nodeName=n1", ["a"]),
        ("spec.nodeName=", ["b"]),
        ("spec.nodeName!=n1,metadata.name=b", ["b"]),
        ("metadata.namespace=other", []),
    ]:
        assert names(store.list(PODS, field_selector=selector).items) == expected


# The shell's side


def test_bytes_are_made_once(store: Store) -> None:
    add(store, "a")
    stored = store.get(CONFIG_MAPS, KEY)
    assert stored.raw is stored.raw is store.list(CONFIG_MAPS).items[0].raw


def test_an_unregistered_resource_is_not_found(store: Store) -> None:
    store.unregister(WIDGETS)
    with pytest.raises(NotFoundError, match="the server could not find the requested resource"):
        store.list(WIDGETS)
