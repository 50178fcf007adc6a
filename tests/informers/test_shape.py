"""Objects taken apart by shape are those that the long way gives, and what a shape does not fit teaches it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from informers.decoder import ObjectDecoder
from informers.object import Object, ObjectSource, build
from informers.shape import COMMON, Shape

split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
known_metadata = st.fixed_dictionaries(
    {"name": st.text(min_size=1, max_size=8)},
    optional={
        "namespace": st.none() | st.text(max_size=5), "uid": st.none() | st.text(max_size=5),
        "resourceVersion": st.none() | st.text(max_size=5), "labels": json_values, "annotations": json_values,
        "managedFields": json_values, "creationTimestamp": json_values, "generation": json_values,
    },
)  # fmt: skip
metadata = st.builds(
    lambda known, more: more | known, known_metadata, st.dictionaries(st.text(max_size=6), json_values)
)
objects = st.builds(
    lambda members, meta: members | {"metadata": meta},
    st.dictionaries(st.sampled_from(["spec", "status", "kind", "apiVersion", "data", "a b", "Metadata"]), json_values),
    metadata | known_metadata,
)


def long_way(obj: dict, **options: bool) -> Object:
    return build(split(json.dumps(obj)), ObjectSource("v1", "Pod"), **options)


def check(found: Sequence[Object], expected: Sequence[Object]) -> None:
    def parts(obj: Object) -> tuple[object, ...]:
        return (obj.key, obj.uid, obj.resource_version, json.loads(obj.raw))

    assert [parts(obj) for obj in found] == [parts(obj) for obj in expected]


@given(st.lists(objects, max_size=4), st.booleans(), st.booleans(), st.sampled_from([None, 1]))
def test_pages_and_events_give_what_the_long_way_gives(objs, managed_fields, partial, indent):
    decoder = ObjectDecoder("v1", "Pod", managed_fields=managed_fields, partial=partial)
    expected = [long_way(obj, managed_fields=managed_fields, drop_kind=partial) for obj in objs]
    body = json.dumps({"metadata": {}, "items": objs}, indent=indent).encode()
    lines = [json.dumps({"type": "ADDED", "object": obj}).encode() for obj in objs]
    for _ in range(2):  # the second time the shape has been taught
        check(decoder.page(body).items, expected)
        check([decoder.event(line).object for line in lines], expected)
        many = decoder.events(lines)
        if many is not None:
            check([event.object for event in many], expected)


def page(*items: dict) -> bytes:
    return json.dumps({"items": items}).encode()


def named(name: str, **members: object) -> dict:
    return {"metadata": {"name": name}, **members}


def test_managed_fields_are_cut_where_metadata_has_them_and_nowhere_else():
    inner = {"metadata": {"managedFields": [{"manager": "m"}], "text": '"managedFields":[{"manager": "m"}]'}}
    obj = named("a", spec={"template": inner})
    obj["metadata"] |= {"managedFields": [{"manager": "m"}], "annotations": {"x": '"managedFields":[{"manager":"m"}]'}}
    (found,) = ObjectDecoder().page(page(obj)).items
    del obj["metadata"]["managedFields"]
    assert found.to_dict() == obj


def test_a_member_that_was_seen_once_is_known_from_then_on():
    shape = COMMON.with_members(["data"])
    assert shape.members == {"apiVersion", "kind", "metadata", "spec", "status", "data"}
    assert [*shape.page(page(named("a", data=1))).items]
    with pytest.raises(msgspec.ValidationError):
        shape.page(page(named("a", other=1)))
    assert shape.with_members(["data"]) is shape


def test_members_without_end_teach_nothing():
    shape = Shape(f"member{number}" for number in range(29))
    assert shape.with_members(["one more", "and another"]) is shape
    decoder = ObjectDecoder()
    for number in range(100):
        (found,) = decoder.page(page(named("a", **{f"m{number}": number}))).items
        assert found[f"m{number}"] == number


def test_a_broken_item_teaches_nothing_and_the_others_arrive():
    found = ObjectDecoder().page(page(named("a", data=1), {"metadata": {"name": 5}, "other": 2}, named("b")))
    assert [obj.name for obj in found] == ["a", "b"]
    assert len(found.unreadable) == 1


def test_many_lines_are_decoded_together_unless_one_needs_a_closer_look():
    decoder = ObjectDecoder("v1", "Pod")
    plain = json.dumps({"type": "MODIFIED", "object": named("a")}).encode()
    bookmark = json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}).encode()
    assert [event.object.name for event in decoder.events([plain, plain])] == ["a", "a"]
    for other in (bookmark, b"no json", b'{"type":"ADDED","object":{"metadata":{}}}', b'{"type":"ERROR","object":{}}'):
        assert decoder.events([plain, other]) is None
