"""What deltas mean to a cache, as a table: the cached version, the deltas, the events, what is cached then."""

from __future__ import annotations

import pytest

from informers import Delta, DeltaType, Tombstone
from informers.event import apply_deltas

# Objects are written uid/version; "-" is nothing.
TABLE = {
    # rule: (cached, deltas, events, cached after, dropped)
    "an unknown object is added": ("-", ["Added u/1"], ["add u/1 watch"], "u/1", 0),
    "an update of an unknown object is an add": ("-", ["Updated u/1"], ["add u/1 watch"], "u/1", 0),
    "a known one is updated, whatever the event is called": (
        "u/1", ["Added u/2", "Updated u/3"], ["update u/1 u/2 watch", "update u/2 u/3 watch"], "u/3", 0),
    "a delete gives the final state": ("u/1", ["Deleted u/2"], ["delete u/2 watch"], "-", 0),
    "a delete of the same version deletes": ("u/2", ["Deleted u/2"], ["delete u/2 watch"], "-", 0),
    "a delete of an unknown object is nothing": ("-", ["Deleted u/2"], [], "-", 0),
    "a tombstone gives the last known state": ("u/1", ["Deleted tomb"], ["delete u/1 relist unknown"], "-", 0),
    "time travel: an older event is dropped": ("u/5", ["Updated u/4"], [], "u/5", 1),
    "time travel: the same event is dropped": ("u/5", ["Added u/5"], [], "u/5", 1),
    "time travel: an older delete is dropped": ("u/5", ["Deleted u/4"], [], "u/5", 1),
    "time travel: the delete of an earlier object of that name is dropped": ("v/9", ["Deleted u/8"], [], "v/9", 1),
    "time travel: an earlier object of that name is dropped": ("v/9", ["Updated u/8"], [], "v/9", 1),
    "versions compare as numbers": ("u/9", ["Updated u/10"], ["update u/9 u/10 watch"], "u/10", 0),
    "versions that are no numbers only compare for equality": (
        "u/b", ["Updated u/a", "Updated u/a"], ["update u/b u/a watch"], "u/a", 1),
    "deleted and re-created unseen on the watch": (
        "u/1", ["Added v/5"], ["delete u/1 watch unknown", "add v/5 watch"], "v/5", 0),
    "deleted and re-created unseen before a list": (
        "u/1", ["Replaced v/5"], ["delete u/1 relist unknown", "add v/5 relist"], "v/5", 0),
    "the delete of a later object of that name deletes": ("u/1", ["Deleted v/5"], ["delete u/1 watch unknown"], "-", 0),
    "a list with an unchanged item is silent": ("u/5", ["Replaced u/5"], [], "u/5", 0),
    "a list with a changed item updates": ("u/5", ["Replaced u/6"], ["update u/5 u/6 relist"], "u/6", 0),
    "a list may go back": ("u/5", ["Replaced u/3"], ["update u/5 u/3 relist"], "u/3", 0),
    "a list with a new item adds": ("-", ["Replaced u/3"], ["add u/3 relist"], "u/3", 0),
    "a delete and a new list both count": (
        "u/5", ["Deleted u/6", "Replaced v/7"], ["delete u/6 watch", "add v/7 relist"], "v/7", 0),
    "a sync shows the cached object again": ("u/5", ["Sync u/4"], ["update u/5 u/5 resync"], "u/5", 0),
    "a sync of what is gone is nothing": ("-", ["Sync u/4"], [], "-", 0),
    "objects without uid and version are always news": (
        "/", ["Updated /", "Replaced /"], ["update / / watch", "update / / relist"], "/", 0),
    "add and delete in one go": ("-", ["Added u/1", "Deleted u/2"], ["add u/1 watch", "delete u/2 watch"], "-", 0),
}  # fmt: skip


@pytest.mark.parametrize(("before", "deltas", "expected", "after", "dropped"), TABLE.values(), ids=TABLE)
def test_rule(pod, before, deltas, expected, after, dropped):
    def parse(text):
        if text == "-":
            return None
        uid, version = text.split("/")
        return pod("a", version, uid)

    def delta(text):
        kind, what = text.split()
        return Delta(DeltaType(kind), Tombstone(pod("a").key, None) if what == "tomb" else parse(what))

    def show(obj):
        return "-" if obj is None else f"{obj.uid}/{obj.resource_version}"

    events = []
    held, count = apply_deltas(map(delta, deltas), parse(before), is_initial=False, events=events)
    shown = [
        " ".join(
            [event.type.value]
            + [show(obj) for obj in (event.old, event.new) if obj is not None]
            + [event.reason.value]
            + ["unknown"] * event.final_state_unknown
        )
        for event in events
    ]
    assert shown == expected
    assert show(held) == after
    assert count == dropped


def test_the_first_list_adds_with_the_reason_initial(pod):
    events = []
    apply_deltas([Delta(DeltaType.REPLACED, pod("a", 1, "u"))], None, is_initial=True, events=events)
    assert [event.reason.value for event in events] == ["initial"]


@pytest.mark.parametrize("again", [DeltaType.ADDED, DeltaType.REPLACED])
def test_what_came_after_the_first_list_is_no_part_of_it(pod, again):
    events = []
    deltas = [Delta(DeltaType.REPLACED, pod("a", 1, "u")), Delta(DeltaType.DELETED, pod("a", 2, "u"))]
    apply_deltas([*deltas, Delta(again, pod("a", 3, "v"))], None, is_initial=True, events=events)
    apply_deltas([Delta(DeltaType.ADDED, pod("b", 4, "w"))], None, is_initial=True, events=events)
    assert [event.reason.value for event in events] == [
        "initial", "watch", "relist" if again is DeltaType.REPLACED else "watch", "watch",
    ]  # fmt: skip


def test_a_delete_remembers_what_the_cache_held(pod):
    events = []
    cached, final = pod("a", 1, "u", app="x"), pod("a", 2, "u", app="y")
    apply_deltas([Delta(DeltaType.DELETED, final)], cached, is_initial=False, events=events)
    assert (events[0].old, events[0].held) == (final, cached)
