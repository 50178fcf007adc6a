"""Which changes reach the queue."""

from __future__ import annotations

from typing import Any

import pytest

from pysedna.controller import (
    Predicate,
    all_of,
    annotation_changed,
    any_of,
    generation_changed,
    label_changed,
    label_selector,
    negate,
    resource_version_changed,
)

CHANGES = [generation_changed, label_changed, annotation_changed, resource_version_changed]


@pytest.mark.parametrize("predicate", CHANGES, ids=lambda p: p.__name__)
def test_additions_and_deletions_pass(predicate: Predicate, make_object: Any, make_event: Any) -> None:
    assert predicate(make_event(None, make_object()))
    assert predicate(make_event(make_object(), None))


@pytest.mark.parametrize("predicate", CHANGES, ids=lambda p: p.__name__)
def test_an_update_that_changes_nothing_is_held_back(predicate: Predicate, make_object: Any, make_event: Any) -> None:
    assert not predicate(make_event(make_object(), make_object()))


@pytest.mark.parametrize(
    ("predicate", "before", "after", "passes"),
    [
        (resource_version_changed, {"resourceVersion": "1"}, {"resourceVersion": "2"}, True),
        (generation_changed, {"generation": 1}, {"generation": 2}, True),
        (generation_changed, {"generation": 1}, {"generation": 1, "labels": {"a": "b"}}, False),
        (label_changed, {"labels": {"a": "b"}}, {"labels": {"a": "c"}}, True),
        (label_changed, {}, {"labels": {"a": "b"}}, True),
        (label_changed, {"labels": {"a": "b"}}, {}, True),
        (label_changed, {"labels": {"a": "b"}}, {"labels": {"a": "b"}, "annotations": {"x": "y"}}, False),
        (annotation_changed, {}, {"annotations": {"a": "b"}}, True),
        (annotation_changed, {"annotations": {"a": "b"}}, {"annotations": {"a": "b"}, "labels": {"x": "y"}}, False),
    ],
)
def test_an_update_passes_when_that_part_changed(
    predicate: Predicate, before: dict, after: dict, passes: bool, make_object: Any, make_event: Any
) -> None:
    assert predicate(make_event(make_object(metadata=before), make_object(metadata=after))) is passes


@pytest.mark.parametrize("selector", ["app in (a,b)", {"matchLabels": {"app": "a"}}])
def test_a_label_selector_looks_at_the_object_as_it_is(selector: Any, make_object: Any, make_event: Any) -> None:
    predicate = label_selector(selector)
    inside, outside = make_object(metadata={"labels": {"app": "a"}}), make_object(metadata={"labels": {"app": "z"}})
    assert predicate(make_event(None, inside))
    assert predicate(make_event(outside, inside))
    assert not predicate(make_event(inside, outside))
    assert predicate(make_event(inside, None))


def test_a_selector_that_cannot_be_read_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="app"):
        label_selector("app in (a")


def test_predicates_combine(make_object: Any, make_event: Any) -> None:
    event = make_event(None, make_object())
    yes: Predicate = lambda event: True  # noqa: E731
    no = negate(yes)
    assert [p(event) for p in (any_of(no, yes), any_of(no, no), any_of())] == [True, False, False]
    assert [p(event) for p in (all_of(yes, yes), all_of(yes, no), all_of())] == [True, False, True]
    assert not no(event)
