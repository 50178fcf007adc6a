"""The versioned store's history: watches, their selectors, the journal, what is restored, when the past is gone."""

import itertools
from typing import Any

import pytest

from informers.errors import ExpiredError, InvalidError
from informers.key import ObjectKey
from informers.store import Event, Json, ResourceType, Store

CONFIG_MAPS = ResourceType("", "v1", "ConfigMap", "configmaps")
NODES = ResourceType("", "v1", "Node", "nodes", namespaced=False)
KEY = ObjectKey("ns", "a")


def new_store(**options: Any) -> Store:
    uids = itertools.count(1)
    store = Store(now=lambda: 1e9, new_uid=lambda: f"uid-{next(uids)}", new_suffix=lambda: "x", **options)
    for resource in (CONFIG_MAPS, NODES):
        store.register(resource)
    return store


@pytest.fixture
def store() -> Store:
    return new_store()


def add(store: Store, name: str, resource: ResourceType = CONFIG_MAPS, **members: Any) -> Json:
    metadata = {"name": name, **members.pop("metadata", {})}
    return store.create(resource, {"metadata": metadata, **members}, namespace="ns").object


def change(obj: Json, **members: Any) -> Json:
    metadata = {**obj["metadata"], **members.pop("metadata", {})}
    return {**obj, **members, "metadata": metadata}


def seen(watch: Any) -> list[tuple[str, str]]:
    return [(item.type, item.stored.key.name) for item in watch.poll()]


def test_a_watch_resumes_from_every_version(store: Store) -> None:
    old = add(store, "a")
    store.update(CONFIG_MAPS, KEY, change(old, data={"x": "1"}))
    add(store, "n", NODES)
    store.delete(CONFIG_MAPS, KEY)
    events = [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    for version, expected in [("1", events), ("2", events[1:]), ("3", events[2:]), ("4", events[2:]), ("5", [])]:
        assert seen(store.watch(CONFIG_MAPS, resource_version=version)) == expected


@pytest.mark.parametrize("version", [None, "", "0"])
def test_a_watch_without_a_version_begins_with_what_is_there(store: Store, version: str | None) -> None:
    add(store, "a")
    watch = store.watch(CONFIG_MAPS, resource_version=version)
    assert seen(watch) == [("ADDED", "a")]
    add(store, "b")
    assert seen(watch) == [("ADDED", "b")]
    assert seen(watch) == []


def test_initial_events_end_with_an_annotated_bookmark(store: Store) -> None:
    for name in "abc":
        add(store, name)
    watch = store.watch(
        CONFIG_MAPS, send_initial_events=True, resource_version_match="NotOlderThan", allow_bookmarks=True
    )
    add(store, "d")
    items = watch.poll(2) + watch.poll(2)
    assert [item.type for item in items] == ["ADDED", "ADDED", "ADDED", "BOOKMARK"]
    assert items[3].stored.object == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "4", "annotations": {"k8s.io/initial-events-end": "true"}},
    }
    assert seen(watch) == [("ADDED", "d")]


def test_initial_events_need_a_match_and_the_match_needs_them(store: Store) -> None:
    with pytest.raises(InvalidError, match="sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"):
        store.watch(CONFIG_MAPS, send_initial_events=True)
    with pytest.raises(InvalidError, match="resourceVersionMatch is forbidden for watch unless sendInitialEvents"):
        store.watch(CONFIG_MAPS, resource_version_match="NotOlderThan")


def test_entering_a_selector_is_added_and_leaving_it_is_deleted_with_the_last_matching_state(store: Store) -> None:
    watch = store.watch(CONFIG_MAPS, resource_version="1", label_selector="on=yes")
    obj = add(store, "a", metadata={"labels": {"on": "no"}}, data={"n": "0"})
    for labels, number in [("yes", "1"), ("yes", "2"), ("no", "3"), ("no", "4")]:
        changed = change(obj, metadata={"labels": {"on": labels}}, data={"n": number})
        obj = store.update(CONFIG_MAPS, KEY, changed).object
    store.delete(CONFIG_MAPS, KEY)
    items = watch.poll()
    assert [(item.type, item.stored.object["data"]["n"]) for item in items] == [
        ("ADDED", "1"),
        ("MODIFIED", "2"),
        ("DELETED", "2"),
    ]
    assert items[2].stored.object["metadata"]["resourceVersion"] == "5"


def test_a_bookmark_says_how_far_the_watch_has_come(store: Store) -> None:
    watch = store.watch(CONFIG_MAPS, resource_version="1")
    add(store, "n", NODES)
    assert seen(watch) == []
    assert watch.bookmark().stored.object["metadata"] == {"resourceVersion": "2"}


def test_a_compacted_version_expires_and_a_reader_that_kept_up_does_not_notice(store: Store) -> None:
    add(store, "a")
    slow, quick = (store.watch(CONFIG_MAPS, resource_version="1") for _ in range(2))
    assert seen(quick) == [("ADDED", "a")]
    store.compact()
    with pytest.raises(ExpiredError) as failure:
        slow.poll()
    assert failure.value.message == "too old resource version: 1 (2)"
    assert seen(quick) == []


def test_a_watch_of_a_quiet_resource_outlives_the_compaction_of_the_others(store: Store) -> None:
    watch = store.watch(NODES, resource_version="1")
    assert seen(watch) == []
    add(store, "a")
    store.compact()
    add(store, "n", NODES)
    assert seen(watch) == [("ADDED", "n")]


def test_the_history_is_bounded_and_drops_its_oldest_quarter() -> None:
    store = new_store(history_limit=8)
    for number in range(9):
        add(store, f"a{number}")
    assert (store.version, store.compacted) == (10, 4)
    with pytest.raises(ExpiredError):
        store.watch(CONFIG_MAPS, resource_version="3").poll()
    assert len(seen(store.watch(CONFIG_MAPS, resource_version="4"))) == 6


def test_the_journal_comes_before_the_effect_and_can_refuse_it() -> None:
    events: list[Event] = []

    def journal(event: Event) -> None:
        assert event.version == store.version + 1
        if len(events) == 1:
            raise OSError("disk full")
        events.append(event)

    store = new_store(journal=journal)
    add(store, "a")
    with pytest.raises(OSError, match="disk full"):
        add(store, "b")
    assert (store.version, [stored.key.name for stored in store.list(CONFIG_MAPS).items]) == (2, ["a"])


def test_restored_objects_are_as_they_were_and_the_past_is_expired() -> None:
    first = new_store()
    obj = add(first, "a")
    second = new_store(version=first.version)
    second.restore(CONFIG_MAPS, [obj])
    assert second.get(CONFIG_MAPS, KEY).object == obj
    assert second.version == 2
    with pytest.raises(ExpiredError):
        second.watch(CONFIG_MAPS, resource_version="1").poll()
    assert seen(second.watch(CONFIG_MAPS, resource_version="2")) == []
