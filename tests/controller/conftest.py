"""Objects and events for tests of controllers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from informers import Event, EventType, Object, Reason

MakeObject = Callable[..., Object]
MakeEvent = Callable[..., Event]


@pytest.fixture
def make_object() -> MakeObject:
    def make(name: str = "one", *, namespace: str = "ns", rv: str = "1", uid: str = "", **fields: Any) -> Object:
        metadata = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": rv, **fields.pop("metadata", {})}
        if namespace:
            metadata["namespace"] = namespace
        return Object.from_dict({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields})

    return make


@pytest.fixture
def make_event() -> MakeEvent:
    def make(old: Object | None, new: Object | None, reason: Reason = Reason.WATCH) -> Event:
        kind = EventType.ADD if old is None else EventType.DELETE if new is None else EventType.UPDATE
        return Event(kind, old, new, reason)

    return make
