"""Between reflector and queue: runs of changes go over together, and an error is that of one object only."""

from __future__ import annotations

import pytest

from informers import Delta, DeltaFIFO, DeltaType, ProtocolConfig, Reflector, WatchEvent
from informers.sink import QueueSink, runs
from informers.source import ObjectList

ADDED, UPDATED, DELETED = DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED


def events(pod, text: str) -> list[WatchEvent]:
    """ "A1 M2 B3 D4": ADDED, MODIFIED, BOOKMARK, DELETED at these versions."""
    types = {"A": "ADDED", "M": "MODIFIED", "B": "BOOKMARK", "D": "DELETED", "?": "NEW"}
    return [WatchEvent(types[word[0]], pod("a", word[1:], "u")) for word in text.split()]


def show(parts) -> list[str]:
    return [
        part.type if isinstance(part, WatchEvent) else "+".join(delta.object.resource_version for delta in part)
        for part in parts
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("A1 M2 D3", ["1+2+3"]),
        ("A1 B2 M3 M4", ["1", "BOOKMARK", "3+4"]),
        ("B1 ?2 M3", ["BOOKMARK", "NEW", "3"]),
    ],
)
def test_changes_in_a_row_are_one_run(pod, text, expected):
    assert show(runs(events(pod, text), lambda: True)) == expected


def test_until_changes_are_plain_each_is_by_itself(pod):
    answers = iter([False, False, True])
    assert show(runs(events(pod, "A1 A2 M3 M4"), lambda: next(answers))) == ["ADDED", "ADDED", "3+4"]


def test_a_run_for_another_namespace_is_refused_as_a_whole(pod):
    fifo = DeltaFIFO(namespaces=["one", "two"])
    sink = QueueSink(fifo, "one")
    good, bad = pod("a", 1, namespace="one"), pod("b", 2, namespace="two")
    with pytest.raises(ValueError, match="came from the source of namespace one"):
        sink.extend([Delta(ADDED, good), Delta(ADDED, bad)])
    assert len(fifo) == 0
    sink.extend([Delta(ADDED, good)])
    assert (len(fifo), sink.version) == (1, "1")


class Stream:
    def __init__(self, batch: list[WatchEvent]) -> None:
        self._batches = [batch, []]

    def read_batch(self) -> list[WatchEvent]:
        return self._batches.pop(0)

    def __iter__(self):
        return iter(self._batches.pop(0))

    def close(self) -> None:
        pass


class Source:
    """A source with an empty list and one batch of events."""

    def __init__(self, batch: list[WatchEvent]) -> None:
        self._batches = [batch]

    def list(self, **options: object) -> ObjectList:
        return ObjectList([], "1")

    def watch(self, **options: object) -> Stream:
        return Stream(self._batches.pop() if self._batches else [])


class Sink:
    def __init__(self) -> None:
        self.told: list[str] = []

    def replace(self, objs, resource_version="", *, keep=()):
        self.told.append("replace")

    def add(self, obj):
        self.told.append(f"add {obj.resource_version}")

    def update(self, obj):
        if obj.resource_version == "3":
            raise RuntimeError("not this one")
        self.told.append(f"update {obj.resource_version}")

    def delete(self, obj):
        self.told.append(f"delete {obj.resource_version}")


class BatchSink(Sink):
    def extend(self, changes):
        if any(change.object.resource_version == "3" for change in changes):
            raise RuntimeError("not with this one")
        self.told.append("extend " + "+".join(change.object.resource_version for change in changes))


@pytest.mark.parametrize(
    ("sink", "text", "told", "refused"),
    [
        (BatchSink(), "A2 M4 D5", ["replace", "extend 2+4+5"], 0),
        (BatchSink(), "A2 M3 D5", ["replace", "add 2", "delete 5"], 1),
        (Sink(), "A2 M3 D5", ["replace", "add 2", "delete 5"], 1),
    ],
    ids=["together", "one refused", "a sink of single changes"],
)
def test_a_reflector_hands_a_batch_over_and_an_error_costs_one_object(pod, sink, text, told, refused):
    config = ProtocolConfig(watch_list=False)
    reflector = Reflector(Source(events(pod, text)), sink, protocol=config)
    for _ in range(2):  # one list, one watch; the shell's thread would do no more
        reflector._step()
    status = reflector.status()
    assert sink.told == told
    assert (status.events, status.sink_errors, status.resource_version) == (3, refused, "5")
