"""From events to keys in the queue."""

from __future__ import annotations

from typing import Any

from informers import ObjectKey, Reason
from pysedna.controller import LOW_PRIORITY, Watch, generation_changed
from pysedna.controller.sources import own_key, priority, requests

KIND = ("v1", "ConfigMap")


def by_label(obj: Any) -> list[ObjectKey]:
    return [ObjectKey(obj.namespace, name) for name in obj.labels.get("for", "").split(".") if name]


def test_an_object_asks_for_itself(make_object: Any, make_event: Any) -> None:
    watch = Watch(KIND, own_key)
    assert requests(watch, make_event(None, make_object("a"))) == [ObjectKey("ns", "a")]
    assert requests(watch, make_event(make_object("a"), None)) == [ObjectKey("ns", "a")]


def test_an_update_asks_for_what_the_old_and_the_new_state_point_to_each_once(
    make_object: Any, make_event: Any
) -> None:
    old = make_object(metadata={"labels": {"for": "a.b"}})
    new = make_object(metadata={"labels": {"for": "b.c"}})
    assert [key.name for key in requests(Watch(KIND, by_label), make_event(old, new))] == ["a", "b", "c"]


def test_what_a_predicate_holds_back_asks_for_nothing(make_object: Any, make_event: Any) -> None:
    watch = Watch(KIND, own_key, [generation_changed])
    assert requests(watch, make_event(make_object(rv="1"), make_object(rv="2"))) == []


def test_first_events_come_at_low_priority(make_object: Any, make_event: Any) -> None:
    assert priority(make_event(None, make_object(), Reason.INITIAL)) == LOW_PRIORITY == -100
    assert priority(make_event(None, make_object())) == 0


def test_updates_that_change_nothing_come_at_low_priority(make_object: Any, make_event: Any) -> None:
    same = make_object(rv="5")
    assert priority(make_event(same, same, Reason.RESYNC)) == LOW_PRIORITY
    assert priority(make_event(make_object(rv="5"), make_object(rv="6"), Reason.RELIST)) == 0


def test_deletions_come_at_normal_priority(make_object: Any, make_event: Any) -> None:
    assert priority(make_event(make_object(), None)) == 0
