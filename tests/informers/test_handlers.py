"""One handler by itself: what its filter makes of events, and what is called."""

from __future__ import annotations

import pytest

from informers import Event, EventType, Reason
from informers.handlers import EventHandler

ADD, UPDATE, DELETE = EventType.ADD, EventType.UPDATE, EventType.DELETE


def accepts(obj) -> bool:
    return obj.labels.get("app") == "x"


def fail(event: Event, error: BaseException) -> None:
    raise error


def show(event: Event | None) -> str:
    if event is None:
        return "nothing"
    versions = [obj.resource_version for obj in (event.old, event.new) if obj is not None]
    return " ".join([event.type.value, *versions, event.reason.value, *(["unknown"] * event.final_state_unknown)])


# Objects are version and whether they pass: "1+" does, "2-" does not.
FILTERED = {
    "an add that passes": (ADD, None, "1+", None, "add 1 watch"),
    "an add that does not": (ADD, None, "1-", None, "nothing"),
    "a change within": (UPDATE, "1+", "2+", None, "update 1 2 watch"),
    "a change outside": (UPDATE, "1-", "2-", None, "nothing"),
    "entering is an add": (UPDATE, "1-", "2+", None, "add 2 watch"),
    "leaving is a delete with the old object": (UPDATE, "1+", "2-", None, "delete 1 watch"),
    "a delete that passes": (DELETE, "2+", None, "1+", "delete 2 watch"),
    "a delete of what was never shown": (DELETE, "2+", None, "1-", "nothing"),
    "a delete whose final state would not pass is told, since the object was shown": (
        DELETE, "2-", None, "1+", "delete 2 watch"),
}  # fmt: skip


@pytest.mark.parametrize(("type_", "old", "new", "held", "expected"), FILTERED.values(), ids=FILTERED)
def test_the_filter_follows_what_the_handler_was_shown(pod, type_, old, new, held, expected):
    def parse(text):
        return None if text is None else pod("a", text[0], "u", app="x" if text[1] == "+" else "y")

    handler = EventHandler(on_event=print, filter=accepts)
    event = Event(type_, parse(old), parse(new), Reason.WATCH, False, parse(held))
    assert show(handler.filtered(event)) == expected


def test_each_event_calls_its_function_and_on_event(pod):
    calls: list[tuple] = []
    handler = EventHandler(
        on_add=lambda obj, is_initial: calls.append(("add", obj.resource_version, is_initial)),
        on_update=lambda old, new: calls.append(("update", old.resource_version, new.resource_version)),
        on_delete=lambda obj, unknown: calls.append(("delete", obj.resource_version, unknown)),
        on_event=lambda event: calls.append(("event", event.type)),
    )
    first, second = pod("a", 1), pod("a", 2)
    for event in (
        Event(ADD, None, first, Reason.INITIAL),
        Event(ADD, None, first, Reason.RELIST),
        Event(UPDATE, first, second, Reason.WATCH),
        Event(DELETE, second, None, Reason.RELIST, True, second),
    ):
        handler.deliver(event, fail)
    assert calls == [
        ("add", "1", True), ("event", ADD), ("add", "1", False), ("event", ADD),
        ("update", "1", "2"), ("event", UPDATE), ("delete", "2", True), ("event", DELETE),
    ]  # fmt: skip


def test_functions_that_are_not_given_are_skipped(pod):
    handler = EventHandler(on_add=lambda obj, is_initial: None)
    handler.deliver(Event(DELETE, pod("a"), None, Reason.WATCH), fail)


def test_a_handler_is_named_after_its_functions():
    class Queue:
        def __call__(self, event):
            pass

    def on_add(obj, is_initial):
        pass

    assert EventHandler(on_event=Queue(), on_add=on_add).name == (
        "test_a_handler_is_named_after_its_functions.Queue,test_a_handler_is_named_after_its_functions.on_add"
    )
    assert EventHandler().name == ""
