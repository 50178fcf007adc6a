"""Answers that no good server gives: members of any name, nesting without end, texts that never stop being new."""

from __future__ import annotations

import json

import pytest

from informers import MalformedObjectError, Object, field_index
from informers.decoder import ObjectDecoder
from informers.nesting import members
from informers.shared_text import SharedText

ODD_NAMES = ['a "quote"', "back\\slash", "new\nline", "\x00", "", "é", "\U0001f600", "member0"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_member_of_any_name_costs_neither_its_object_nor_those_beside_it(name):
    odd = {"metadata": {"name": "odd", "managedFields": []}, "spec": {}, name: {"a": 1}}
    even = {"metadata": {"name": "even"}, "spec": {}}
    decoder = ObjectDecoder("v1", "Pod")
    without = {**odd, "metadata": {"name": "odd"}}
    for _ in range(2):  # the second time it is known
        page = decoder.page(json.dumps({"metadata": {}, "items": [odd, even]}).encode())
        assert [json.loads(obj.raw) for obj in page.items] == [without, even]
        event = decoder.event(json.dumps({"type": "ADDED", "object": odd}).encode())
        assert json.loads(event.object.raw) == without


@pytest.mark.parametrize(
    "nested", ['{"a":' * 100_000 + "1" + "}" * 100_000, "[" * 100_000 + "]" * 100_000], ids=["objects", "arrays"]
)
def test_bytes_nested_too_deeply_are_refused_as_malformed(nested):
    for text in (nested, '{"metadata":{"name":"a"},"spec":' + nested + "}"):
        with pytest.raises(MalformedObjectError):
            Object.from_bytes(text.encode())


def test_what_does_not_fit_a_type_without_a_name_is_malformed():
    with pytest.raises(MalformedObjectError, match="as list"):
        Object.from_dict({"metadata": {"name": "a"}}).decode(list[int])
    with pytest.raises(MalformedObjectError, match=r"as int \| None"):
        Object.from_dict({"metadata": {"name": "a"}}).decode(int | None)


def test_a_string_without_an_end_in_the_depths_is_found_broken_in_one_pass():
    with pytest.raises(ValueError, match="brackets"):
        members(b'{"a":[],"b":"' + rb"\"" * 1_000_000)  # a look from each quote to the end would take hours


def test_equal_namespaces_and_equal_values_of_a_field_are_one_string():
    line = '{"type":"ADDED","object":{"metadata":{"name":"%s","namespace":"of all"},"spec":{"nodeName":"node"}}}'
    decoder, node = ObjectDecoder("v1", "Pod"), field_index("spec.nodeName")
    one, other = (decoder.event((line % name).encode()).object for name in "ab")
    assert one.namespace is other.namespace
    assert node(one)[0] is node(other)[0]


def test_texts_of_which_each_is_new_are_not_kept_for_ever():
    shared = SharedText()
    for number in range(25_000):
        text = f"pod-{number}"
        assert shared[text] is text
        assert shared[f"pod-{number}"] is text
        assert len(shared) <= 10_000
