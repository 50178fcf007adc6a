"""A handler's waiting events: nothing merged below the bound, legal histories above it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from informers import Event, EventType, Object, Reason
from informers.pending import Batch, Pending, merge

ADD, UPDATE, DELETE = EventType.ADD, EventType.UPDATE, EventType.DELETE


def obj(version: int, uid: str = "u", name: str = "a") -> Object:
    return Object.from_dict({"metadata": {"name": name, "uid": uid, "resourceVersion": str(version)}})


def event(text: str, uid: str = "u", reason: Reason = Reason.WATCH) -> Event:
    """ "add 1", "update 1 2", "delete 2"."""
    kind, *versions = text.split()
    objs = [obj(int(version), uid) for version in versions]
    if kind == "add":
        return Event(ADD, None, objs[0], reason)
    if kind == "update":
        return Event(UPDATE, objs[0], objs[1], reason)
    return Event(DELETE, objs[0], None, reason, False, objs[0])


def show(given: object) -> str:
    if not isinstance(given, Event):
        return "synced"
    objs = [each.resource_version for each in (given.old, given.new) if each is not None]
    return " ".join([given.type.value, *objs])


MERGES = {
    "add+update = add": ("add 1", "update 1 2", "add 2"),
    "update+update = first old, last new": ("update 1 2", "update 2 3", "update 1 3"),
    "add+delete vanish": ("add 1", "delete 2", None),
    "update+delete = delete": ("update 1 2", "delete 3", "delete 3"),
    "a delete of what came back unchanged vanishes": ("delete 2", "add 2", None),
    "delete+add of one uid (a filter's doing) = update": ("delete 2", "add 4", "update 2 4"),
}


@pytest.mark.parametrize(("first", "then", "expected"), MERGES.values(), ids=MERGES)
def test_merge(first, then, expected):
    merged = merge(event(first), event(then))
    assert (None if merged is None else show(merged)) == expected


def test_a_merged_delete_remembers_what_the_handler_was_shown():
    merged = merge(event("update 1 2"), event("delete 3"))
    assert merged.held.resource_version == "1"


def test_a_merged_add_keeps_its_reason_and_a_resync_never_hides_a_change():
    assert merge(event("add 1", reason=Reason.INITIAL), event("update 1 2")).reason is Reason.INITIAL
    assert merge(event("update 1 2"), event("update 2 2", reason=Reason.RESYNC)).reason is Reason.WATCH
    assert merge(event("update 1 1", reason=Reason.RESYNC), event("update 1 2")).reason is Reason.WATCH


def test_up_to_the_bound_every_event_is_kept():
    row = Pending(3)
    row.extend(Batch([event("add 1"), event("update 1 2"), event("update 2 3")]))
    assert [show(each) for each in row.take(10)] == ["add 1", "update 1 2", "update 2 3"]
    assert row.coalesced == 0


def test_past_the_bound_events_of_one_object_merge_in_the_place_of_the_first():
    row = Pending(2)
    row.extend(Batch([event("update 1 2"), event("add 5", "v")]))
    row.extend(Batch([event("update 2 3"), event("update 5 6", "v")]))
    assert [show(each) for each in row.take(10)] == ["update 1 3", "add 6"]
    assert row.coalesced == 2


def test_what_vanished_leaves_no_trace():
    row = Pending(1)
    row.extend(Batch([event("add 1"), event("add 5", "v"), event("delete 2")]))
    assert [show(each) for each in row.take(10)] == ["add 5"]


def test_having_caught_up_events_are_kept_one_by_one_again():
    row = Pending(1)
    row.extend(Batch([event("update 1 2"), event("update 2 3")]))
    row.take(1)
    row.extend(Batch([event("update 3 4")]))
    assert [show(each) for each in row.take(1)] == ["update 3 4"]


def test_without_a_bound_nothing_is_merged():
    row = Pending(None)
    row.extend(Batch([event(f"update {version} {version + 1}") for version in range(5000)]))
    assert len(row) == 5000


def test_a_recreated_object_is_another_one():
    row = Pending(1)
    row.extend(Batch([event("update 1 2"), event("delete 3"), event("add 4", "v"), event("update 4 5", "v")]))
    assert [show(each) for each in row.take(10)] == ["delete 3", "add 5"]


def test_the_end_of_the_first_events_keeps_its_place():
    row = Pending(1)
    row.extend(Batch([event("add 1"), event("add 1", "v")]))
    row.mark()
    row.extend(Batch([event("add 1", "w"), event("update 1 2", "v")]))
    assert [show(each) for each in row.take(10)] == ["add 1", "add 2", "synced", "add 1"]


def test_one_batch_serves_rows_that_merge_and_rows_that_do_not():
    batch = Batch([event("update 2 3"), event("add 5", "v")])
    merging, plain = Pending(1), Pending(None)
    for row in (merging, plain):
        row.extend(Batch([event("update 1 2")]))
        row.extend(batch)
        row.extend(Batch([event("add 9", "w")]))
    assert [show(each) for each in merging.take(10)] == ["update 1 3", "add 5", "add 9"]
    assert [show(each) for each in plain.take(10)] == ["update 1 2", "update 2 3", "add 5", "add 9"]


def test_a_first_list_is_one_event_an_object_and_what_comes_then_is_merged_into_it():
    row = Pending(2)
    first = [event("add 1", uid, Reason.INITIAL) for uid in "abcd"]
    row.extend(Batch(first[:3]))
    row.extend(Batch(first[3:]))
    row.mark()
    assert len(row) == 5
    row.extend(Batch([event("update 1 2", "b"), event("delete 1", "c"), event("add 3", "e")]))
    assert [show(each) for each in row.take(10)] == ["add 1", "add 2", "add 1", "synced", "add 3"]
    assert row.coalesced == 3


def test_events_of_one_object_within_a_batch_merge_too():
    row = Pending(1)
    row.extend(Batch([event("add 1"), event("add 5", "v")]))
    row.extend(Batch([event("add 7", "w"), event("update 7 8", "w")]))
    assert [show(each) for each in row.take(10)] == ["add 1", "add 5", "add 8"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("cudt")), max_size=60), st.integers(1, 8))
def test_whatever_is_merged_the_handler_sees_a_legal_history_with_the_same_end(steps, limit):
    row = Pending(limit)
    source: dict[str, Object] = {}
    shown: dict[str, str] = {}

    def deliver(count: int) -> None:
        for given_event in row.take(count):
            assert isinstance(given_event, Event)
            uid, version = given_event.object.uid, given_event.object.resource_version
            if given_event.type is ADD:
                assert uid not in shown
                shown[uid] = version
            elif given_event.type is UPDATE:
                assert given_event.old is not None
                assert shown[uid] == given_event.old.resource_version
                shown[uid] = version
            else:
                del shown[uid]

    for version, (uid, step) in enumerate(steps, start=1):
        new = obj(version, uid, uid)
        if step == "t":
            deliver(2)
        elif step == "d" and uid in source:
            row.extend(Batch([Event(DELETE, new, None, Reason.WATCH, False, source.pop(uid))]))
        elif step in "cu":
            old = source.get(uid)
            row.extend(Batch([Event(UPDATE if old is not None else ADD, old, new, Reason.WATCH)]))
            source[uid] = new
        assert len(row) <= max(limit, 3)
    deliver(1000)
    assert shown == {uid: each.resource_version for uid, each in source.items()}
