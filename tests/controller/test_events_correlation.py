"""Which events are written, and how."""

from __future__ import annotations

import pytest

from pysedna.controller.events import COMBINED, Correlator, Occurrence, Write, event_name, involved_object

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "namespace": "shop", "uid": "u1"}}


def occurrence(
    message: str = "started", *, obj: dict = POD, component: str = "kubelet", reason: str = "Started"
) -> Occurrence:
    return Occurrence(component, involved_object(obj), "Normal", reason, message)


class Recorded:
    def __init__(self, **options: int) -> None:
        self.correlator = Correlator(**options)
        self.number = 0

    def __call__(self, what: Occurrence, now: float = 0.0) -> Write | None:
        self.number += 1
        return self.correlator.correlate(what, now=now, stamp=f"t{now:g}", suffix=f"{self.number:x}")


def test_a_new_event_names_its_object_and_counts_one() -> None:
    write = Recorded()(occurrence())
    assert write is not None
    assert write.patch is None
    assert write.name == "web-0.1"
    assert write.namespace == "shop"
    assert write.body["involvedObject"] == {
        "apiVersion": "v1", "kind": "Pod", "name": "web-0", "namespace": "shop", "uid": "u1",
    }  # fmt: skip
    assert (write.body["count"], write.body["firstTimestamp"], write.body["lastTimestamp"]) == (1, "t0", "t0")
    assert write.body["source"] == {"component": "kubelet"}


def test_the_same_event_raises_the_count_of_the_one_written() -> None:
    record = Recorded()
    first = record(occurrence())
    second = record(occurrence(), now=7)
    assert first is not None
    assert second is not None
    assert second.name == first.name
    assert second.patch == {"count": 2, "lastTimestamp": "t7", "message": "started"}
    assert second.body["firstTimestamp"] == "t0"


@pytest.mark.parametrize(
    "other",
    [
        occurrence("stopped"),
        occurrence(reason="Pulled"),
        occurrence(component="scheduler"),
        occurrence(obj={**POD, "metadata": {**POD["metadata"], "uid": "u2"}}),
    ],
    ids=["message", "reason", "component", "object"],
)
def test_what_differs_is_an_event_of_its_own(other: Occurrence) -> None:
    record = Recorded()
    record(occurrence())
    write = record(other)
    assert write is not None
    assert write.patch is None


def test_a_version_of_the_object_makes_no_new_event() -> None:
    record = Recorded()
    record(occurrence(obj={**POD, "metadata": {**POD["metadata"], "resourceVersion": "1"}}))
    write = record(occurrence(obj={**POD, "metadata": {**POD["metadata"], "resourceVersion": "2"}}))
    assert write is not None
    assert write.patch is not None


def test_ten_different_messages_are_combined_into_one() -> None:
    record = Recorded()
    writes = [record(occurrence(f"try {n}")) for n in range(12)]
    assert all(write is not None and write.patch is None for write in writes[:10])
    tenth, later = writes[9], writes[11]
    assert tenth is not None
    assert later is not None
    assert tenth.body["message"] == COMBINED + "try 9"
    assert later.name == tenth.name
    assert later.patch == {"count": 3, "lastTimestamp": "t0", "message": COMBINED + "try 11"}


def test_a_message_repeated_is_not_a_different_one() -> None:
    record = Recorded()
    for n in range(20):
        write = record(occurrence(f"try {n % 9}"))
        assert write is not None
        assert not write.body["message"].startswith(COMBINED)


def test_after_ten_quiet_minutes_messages_are_told_apart_again() -> None:
    record = Recorded()
    for n in range(10):
        record(occurrence(f"try {n}"))
    still = record(occurrence("again"), now=600)
    apart = record(occurrence("again"), now=1201)
    assert still is not None
    assert still.body["message"] == COMBINED + "again"
    assert apart is not None
    assert apart.body["message"] == "again"


def test_a_source_may_say_25_things_at_once_about_an_object_then_one_each_five_minutes() -> None:
    record = Recorded()
    assert all(record(occurrence()) is not None for _ in range(25))
    assert record(occurrence()) is None
    assert record(occurrence(), now=299) is None
    assert record(occurrence(), now=301) is not None
    assert record(occurrence(), now=302) is None


def test_another_source_or_object_is_not_held_back() -> None:
    record = Recorded()
    for _ in range(30):
        record(occurrence())
    assert record(occurrence(component="scheduler")) is not None
    assert record(occurrence(obj={**POD, "metadata": {**POD["metadata"], "name": "web-1", "uid": "u9"}})) is not None


def test_what_is_remembered_is_bounded() -> None:
    record = Recorded(memory=2)
    for uid in ("a", "b", "c", "a"):
        write = record(occurrence(obj={**POD, "metadata": {**POD["metadata"], "uid": uid}}))
        assert write is not None
        assert write.patch is None


def test_an_event_about_a_cluster_scoped_object_lives_in_default() -> None:
    write = Recorded()(occurrence(obj={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}))
    assert write is not None
    assert write.namespace == write.body["metadata"]["namespace"] == "default"


@pytest.mark.parametrize(
    ("name", "stem"),
    [("web-0", "web-0"), ("a" * 253, "a" * 250), ("system:node", None), ("a" * 249 + "-b", "a" * 249)],
)
def test_the_name_of_an_event_is_one_that_an_event_may_have(name: str, stem: str | None) -> None:
    full = event_name(name, "1f")
    assert len(full) <= 253
    assert full.endswith(".1f")
    assert ":" not in full
    assert stem is None or full == f"{stem}.1f"


def test_a_long_message_is_cut_to_what_the_server_takes() -> None:
    write = Recorded()(occurrence("x" * 5000))
    assert write is not None
    assert len(write.body["message"]) == 1024


@pytest.mark.parametrize("obj", [{"kind": "Pod", "metadata": {}}, {"metadata": {"name": "x"}}])
def test_an_object_that_cannot_be_named_is_refused(obj: dict) -> None:
    with pytest.raises(ValueError, match="kind and a name"):
        involved_object(obj)
