"""Objects that no good server gives: members of any name, nesting without end."""

from __future__ import annotations

import json

import pytest

from informers import MalformedObjectError, Object
from informers.decoder import ObjectDecoder

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


@pytest.mark.parametrize("nested", ['{"a":' * 5000 + "1" + "}" * 5000, "[" * 5000 + "]" * 5000])
def test_bytes_nested_too_deeply_are_refused_as_malformed(nested):
    for text in (nested, '{"metadata":{"name":"a"},"spec":' + nested + "}"):
        with pytest.raises(MalformedObjectError):
            Object.from_bytes(text.encode())
