"""The indexer: a store by key, exact indices, and nothing half done."""

from __future__ import annotations

import random

import pytest

from informers import NAMESPACE_INDEX, Indexer, InformersError, Object, ObjectKey, UnknownIndex
from informers.indexer import namespace_index


def by_users(obj: Object) -> list[str]:
    return [user for user in obj.labels.get("users", "").split(".") if user]


def broken(obj: Object) -> list[str]:
    if "broken" in obj.labels:
        raise ValueError("broken label")
    return ["fine"]


@pytest.fixture
def store() -> Indexer:
    return Indexer({"users": by_users, NAMESPACE_INDEX: namespace_index})


def keys(objs: list[Object]) -> list[str]:
    return sorted(obj.name for obj in objs)


def test_add_get_update_delete(store, pod):
    assert store.get("ns/a") is None
    store.add(pod("a", 1))
    assert store.get("ns/a") == store.get(ObjectKey("ns", "a"))
    store.update(pod("a", 2))
    assert store.get("ns/a").resource_version == "2"
    store.delete(pod("a", 3))
    assert store.get("ns/a") is None
    store.delete(pod("a", 3))
    assert store.list() == store.keys() == []


def test_add_and_update_are_both_upserts(store, pod):
    store.update(pod("a", 1))
    store.add(pod("a", 2))
    assert [obj.resource_version for obj in store.list()] == ["2"]


def test_replace_swaps_the_whole_content(store, pod):
    store.add(pod("a"))
    store.add(pod("b", users="x"))
    store.replace([pod("b", 2), pod("c", users="x")], "7")
    assert keys(store.list()) == ["b", "c"]
    assert keys(store.by_index("users", "x")) == ["c"]
    assert store.resource_version == "7"


def test_a_key_listed_twice_holds_the_last(store, pod):
    store.replace([pod("a", 1), pod("b", 1), pod("a", 2)])
    assert len(store) == 2
    assert store.get("ns/a").resource_version == "2"


def test_replace_keeps_the_named_keys(store, pod):
    store.add(pod("a", 1, users="x"))
    store.replace([pod("b")], keep=[ObjectKey("ns", "a"), ObjectKey("ns", "unknown")])
    assert keys(store.list()) == ["a", "b"]
    assert keys(store.by_index("users", "x")) == ["a"]


def test_an_object_moves_between_index_values(store, pod):
    store.add(pod("a", users="foo.bar"))
    store.add(pod("b", users="bar"))
    assert keys(store.by_index("users", "bar")) == ["a", "b"]
    store.update(pod("a", users="foo.baz"))
    assert keys(store.by_index("users", "bar")) == ["b"]
    assert keys(store.by_index("users", "baz")) == ["a"]
    assert sorted(store.index_values("users")) == ["bar", "baz", "foo"]
    store.delete(pod("a"))
    assert store.by_index("users", "foo") == []


def test_the_last_key_of_a_value_takes_the_value_with_it(store, pod):
    store.add(pod("a", users="x"))
    store.add(pod("b", users="x"))
    store.delete(pod("a"))
    assert store.index_values("users") == ["x"]
    store.delete(pod("b"))
    assert store.index_values("users") == []


def test_index_keys_are_sorted_and_values_listed_twice_count_once(store, pod):
    for name in "cab":
        store.add(pod(name, users="x.x"))
    assert [str(key) for key in store.index_keys("users", "x")] == ["ns/a", "ns/b", "ns/c"]
    assert store.index_keys("users", "nobody") == []


def test_the_namespace_index_has_cluster_scoped_objects_under_nothing(store, pod):
    store.add(pod("a", namespace="ns1"))
    store.add(pod("b", namespace=""))
    assert keys(store.by_index(NAMESPACE_INDEX, "ns1")) == ["a"]
    assert keys(store.by_index(NAMESPACE_INDEX, "")) == ["b"]


@pytest.mark.parametrize("read", ["by_index", "index_keys", "index_values"])
def test_an_unknown_index_is_an_error_that_names_what_there_is(store, read):
    args = ("nope",) if read == "index_values" else ("nope", "x")
    with pytest.raises(UnknownIndex, match="'nope'; there is: namespace, users") as caught:
        getattr(store, read)(*args)
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, InformersError)


def test_an_index_added_later_covers_what_is_there(store, pod):
    store.add(pod("a", team="red"))
    store.add_index("team", lambda obj: [obj.labels.get("team", "")])
    assert keys(store.by_index("team", "red")) == ["a"]
    with pytest.raises(ValueError, match="'team' exists"):
        store.add_index("team", by_users)


def test_a_failing_index_function_leaves_everything_as_it_was(store, pod):
    store.add_index("broken", broken)
    store.add(pod("a", 1, users="x"))
    bad = pod("a", 2, users="y", broken="yes")
    for write in (store.add, store.update, lambda obj: store.replace([pod("b"), obj])):
        with pytest.raises(ValueError, match="broken label"):
            write(bad)
    with pytest.raises(ValueError, match="broken label"):
        store.apply([(ObjectKey("ns", "c"), pod("c")), (bad.key, bad)])
    assert [obj.resource_version for obj in store.list()] == ["1"]
    assert keys(store.by_index("users", "x")) == ["a"]
    assert store.by_index("users", "y") == []
    with pytest.raises(ValueError, match="broken label"):
        store.add_index("another", lambda obj: broken(bad))
    assert "another" not in store.index_names()


@pytest.mark.parametrize("values", ["text", [1], None, [None]])
def test_index_functions_must_give_strings(pod, values):
    store = Indexer({"odd": lambda obj: values})
    with pytest.raises(TypeError):
        store.add(pod("a"))
    assert store.list() == []


def test_with_a_hook_the_object_is_stored_and_absent_from_that_index(pod):
    errors: list[tuple[str, ObjectKey, Exception]] = []
    store = Indexer({"broken": broken, "users": by_users}, on_index_error=lambda *args: errors.append(args))
    store.add(pod("a", users="x"))
    store.update(pod("a", users="x", broken="yes"))
    assert [(name, str(key)) for name, key, _ in errors] == [("broken", "ns/a")]
    assert store.by_index("broken", "fine") == []
    assert keys(store.by_index("users", "x")) == ["a"]


@pytest.mark.parametrize("value", [{"metadata": {"name": "a"}}, None, "ns/a"])
def test_what_is_no_object_is_refused(store, value):
    for write in (store.add, store.update, lambda obj: store.replace([obj])):
        with pytest.raises(TypeError, match=r"informers\.Object"):
            write(value)


def test_the_version_is_that_of_the_last_change(store, pod):
    assert store.resource_version == ""
    for write, version in ((store.add, 10), (store.update, 20), (store.delete, 30)):
        write(pod("a", version))
        assert store.resource_version == str(version)
    store.replace([], "50")
    assert store.resource_version == "50"


def test_indices_agree_with_a_scan_after_any_changes(pod):
    rng = random.Random(1)
    store = Indexer({"users": by_users})
    model: dict[str, Object] = {}
    for version in range(400):
        name = rng.choice("abcdef")
        if rng.random() < 0.3:
            store.delete(pod(name))
            model.pop(name, None)
        elif rng.random() < 0.05:
            model = {each: pod(each, version, users="x") for each in rng.sample("abcdef", 3)}
            store.replace(model.values())
        else:
            model[name] = pod(name, version, users=".".join(rng.sample("xyz", rng.randrange(4))))
            store.add(model[name])
        for value in "xyz":
            expected = sorted(each for each, obj in model.items() if value in by_users(obj))
            assert keys(store.by_index("users", value)) == expected
    assert sorted(store.index_values("users")) == sorted({user for obj in model.values() for user in by_users(obj)})
