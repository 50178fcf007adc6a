"""Which changes reach the queue: small pure functions over an informer's event.

A predicate takes the `informers.Event` and says whether to let it pass. The `*_changed` ones look at updates only
and let additions and deletions through; an update that lacks one of its two objects is held back. They combine
with `any_of`, `all_of` and `negate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from informers import Event, LabelSelector, Object

Predicate = Callable[[Event], bool]


def _changed(event: Event, read: Callable[[Object], Any]) -> bool:
    if event.old is None or event.new is None:
        return True
    return bool(read(event.old) != read(event.new))


def resource_version_changed(event: Event) -> bool:
    """Hold back updates that change nothing (a resync, a list asked again)."""
    return _changed(event, lambda obj: (obj.uid, obj.resource_version))


def generation_changed(event: Event) -> bool:
    """Hold back updates that leave the spec alone: status, labels, annotations, finalizers and owners.

    A deletion that waits for finalizers raises the generation, so it passes.
    """
    return _changed(event, lambda obj: (obj.uid, obj.generation))


def label_changed(event: Event) -> bool:
    """Hold back updates that leave the labels as they were."""
    return _changed(event, lambda obj: (obj.uid, obj.labels))


def annotation_changed(event: Event) -> bool:
    """Hold back updates that leave the annotations as they were."""
    return _changed(event, lambda obj: (obj.uid, obj.annotations))


def label_selector(selector: str | Mapping[str, Any] | LabelSelector) -> Predicate:
    """Pass events of objects that the selector matches (an update: as it is now).

    `selector` is text (`app in (a,b),!x`), a mapping with matchLabels and matchExpressions, or a `LabelSelector`.
    Raises ValueError here, not at the first event, when it cannot be read.
    """
    parsed = _parse(selector)

    def matches(event: Event) -> bool:
        obj = event.new if event.new is not None else event.old
        return obj is not None and parsed.matches(obj.labels)

    return matches


def _parse(selector: str | Mapping[str, Any] | LabelSelector) -> LabelSelector:
    if isinstance(selector, str):
        return LabelSelector.parse(selector)
    if isinstance(selector, LabelSelector):
        return selector
    return LabelSelector.from_dict(selector)


def any_of(*predicates: Predicate) -> Predicate:
    """Pass what at least one predicate passes (nothing, when there are none)."""
    return lambda event: any(predicate(event) for predicate in predicates)


def all_of(*predicates: Predicate) -> Predicate:
    """Pass what every predicate passes (everything, when there are none)."""
    return lambda event: all(predicate(event) for predicate in predicates)


def negate(predicate: Predicate) -> Predicate:
    """Pass what the predicate holds back."""
    return lambda event: not predicate(event)
