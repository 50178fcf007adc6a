"""What is nested too deeply to be decoded is found, named and left out; everything around it is read."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from informers import MalformedResponseError, ObjectKey
from informers.decoder import Malformed, ObjectDecoder
from informers.nesting import elements, members

ABYSS = b"[" * 100_000 + b"]" * 100_000
META = b'{"namespace":"ns","name":"deep","uid":"u","resourceVersion":"7"}'
DEEP = b'{"metadata":' + META + b',"spec":' + ABYSS + b"}"

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=50)
@given(st.lists(values, max_size=5), st.sampled_from([None, 1]))
def test_elements_are_what_a_parser_finds(array, indent):
    assert [json.loads(piece) for piece in elements(json.dumps(array, indent=indent).encode())] == array


@settings(max_examples=50)
@given(st.dictionaries(st.text(), values, max_size=5), st.booleans(), st.sampled_from([None, 1]))
def test_members_are_what_a_parser_finds(mapping, ascii_only, indent):
    text = json.dumps(mapping, ensure_ascii=ascii_only, indent=indent).encode()
    assert {name: json.loads(piece) for name, piece in members(text).items()} == mapping


@pytest.mark.parametrize("broken", [b"", b"5", b'"[1]"', b"[", b'{"a":1', b"[[1]"])
def test_brackets_that_do_not_match_are_refused(broken):
    with pytest.raises(ValueError, match="brackets"):
        elements(broken)


@pytest.mark.parametrize("broken", [b"{5}", b'{"a"}', b'{"\\x":1}', b"{:1}"])
def test_a_member_without_a_name_is_refused(broken):
    with pytest.raises(ValueError, match=r"."):
        members(broken)


def test_one_item_that_is_nested_too_deeply_is_named_and_the_others_are_read():
    ok = b'{"metadata":{"namespace":"ns","name":"%s"}}'
    body = b'{"metadata":{"resourceVersion":"9"},"items":[' + b",".join([ok % b"a", DEEP, ok % b"b"]) + b"]}"
    page = ObjectDecoder("v1", "Pod").page(body)
    assert [obj.name for obj in page] == ["a", "b"]
    assert page.unreadable == [ObjectKey("ns", "deep")]
    assert page.resource_version == "9"


def test_so_is_one_whose_metadata_is():
    metadata = b'{"name":"deep","annotations":' + ABYSS + b',"namespace":"ns"}'
    body = b'{"metadata":{"resourceVersion":"9"},"items":[{"metadata":' + metadata + b"}]}"
    assert ObjectDecoder("v1", "Pod").page(body).unreadable == [ObjectKey("ns", "deep")]


@pytest.mark.parametrize(
    "body", [ABYSS, b'{"items":' + ABYSS[:-1], b'{"x":' + ABYSS + b"}", b'{"items":[],"metadata":' + ABYSS + b"}"]
)
def test_what_is_no_list_around_the_abyss_is_malformed(body):
    with pytest.raises(MalformedResponseError):
        ObjectDecoder("v1", "Pod").page(body)


def test_an_event_that_is_nested_too_deeply_is_named():
    event = ObjectDecoder("v1", "Pod").event(b'{"type":"MODIFIED","object":' + DEEP + b"}")
    assert isinstance(event, Malformed)
    assert (event.key, event.event_type) == (ObjectKey("ns", "deep"), "MODIFIED")


@pytest.mark.parametrize("event", [b'{"object":' + DEEP + b"}", b'{"type":"ADDED","x":' + ABYSS + b"}", ABYSS])
def test_an_event_that_is_none_around_the_abyss_is_malformed(event):
    assert isinstance(ObjectDecoder("v1", "Pod").event(event), Malformed)


def test_a_single_object_that_is_nested_too_deeply_is_malformed():
    with pytest.raises(MalformedResponseError):
        ObjectDecoder("v1", "Pod").object(DEEP)


def test_the_parser_really_needs_a_stack():
    with pytest.raises(RecursionError):
        msgspec.json.decode(DEEP, type=dict[str, msgspec.Raw])
