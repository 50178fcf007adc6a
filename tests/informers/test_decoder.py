"""Decoding answers: one bad item spoils nothing but itself; managedFields never arrive; lists say what they are."""

import json

import pytest

from informers import ExpiredError, MalformedResponseError, ObjectKey, WatchEvent
from informers.decoder import Malformed, ObjectDecoder

decoder = ObjectDecoder("v1", "Pod")


def item(name="a", **metadata):
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": "5", **metadata}}


def page(*items, **metadata):
    body = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9", **metadata}, "items": items}
    return json.dumps(body).encode()


def event(kind, obj):
    return json.dumps({"type": kind, "object": obj}).encode()


def test_a_page_gives_items_version_token_and_rest():
    found = decoder.page(page(item("a"), item("b"), **{"continue": "t", "remainingItemCount": 7}))
    assert [obj.name for obj in found] == ["a", "b"]
    assert (found.resource_version, found.continue_, found.remaining, len(found)) == ("9", "t", 7, 2)
    assert not found.unreadable


def test_items_of_built_in_kinds_get_their_kind():
    (obj,) = decoder.page(page(item())).items
    assert (obj.kind, obj["apiVersion"]) == ("Pod", "v1")


@pytest.mark.parametrize("body", [b'{"items":null,"metadata":{}}', b'{"metadata":{"resourceVersion":null},"items":[]}'])
def test_an_empty_list_comes_in_several_spellings(body):
    found = decoder.page(body)
    assert (list(found.items), found.resource_version, found.continue_) == ([], "", "")


@pytest.mark.parametrize(
    "body", [b"", b"not json", b"[]", b'{"items":[{]}', b'{"kind":"Status"}', b'{"items":{}}', b"\xff"]
)
def test_what_is_no_list_is_refused_and_shown(body):
    with pytest.raises(MalformedResponseError):
        decoder.page(body)


@pytest.mark.parametrize(
    ("bad", "key"),
    [
        (item("bad", uid=5), ObjectKey("ns", "bad")),
        (item("bad", resourceVersion=7), ObjectKey("ns", "bad")),
        (item("bad", namespace=7), None),
        (item(""), None),
        ({"metadata": {}}, None),
        ({"metadata": None}, None),
        ({"metadata": 5}, None),
        ({"spec": {}}, None),
        ({}, None),
        (None, None),
        (5, None),
        ([item("bad")], None),
        ("text", None),
    ],
)
def test_an_unreadable_item_is_named_if_it_can_be_and_the_others_arrive(bad, key):
    found = decoder.page(page(item("a"), bad, item("b")))
    assert [obj.name for obj in found] == ["a", "b"]
    assert list(found.unreadable) == [key]
    assert found.resource_version == "9"


def test_managed_fields_are_cut_unless_asked_for():
    body = page(item(managedFields=[{"manager": "m"}]))
    assert "managedFields" not in decoder.page(body).items[0]["metadata"]
    kept = ObjectDecoder("v1", "Pod", managed_fields=True).page(body).items[0]
    assert kept["metadata"]["managedFields"] == [{"manager": "m"}]


def test_partial_metadata_keeps_its_own_kind():
    partial = ObjectDecoder("apps/v1", "Deployment", partial=True)
    body = page({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", **item()})
    (obj,) = partial.page(body).items
    assert (obj.kind, obj["kind"], obj["apiVersion"]) == ("Deployment", "Deployment", "apps/v1")


def test_events():
    found = decoder.event(event("MODIFIED", {"kind": "Pod", **item("a")}))
    assert isinstance(found, WatchEvent)
    assert (found.type, found.object.key, found.object.kind) == ("MODIFIED", ObjectKey("ns", "a"), "Pod")


def test_a_bookmark_needs_no_name():
    found = decoder.event(event("BOOKMARK", {"metadata": {"resourceVersion": "12", "annotations": {"x": "y"}}}))
    assert isinstance(found, WatchEvent)
    assert (found.object.resource_version, found.object.annotations) == ("12", {"x": "y"})


def test_an_error_event_is_raised():
    status = {"kind": "Status", "status": "Failure", "reason": "Expired", "message": "too old", "code": 410}
    with pytest.raises(ExpiredError, match="too old"):
        decoder.event(event("ERROR", status))


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b"not json", None),
        (b"[]", None),
        (b"{}", None),
        (b'{"type":"ADDED"}', None),
        (b'{"type":"ADDED","object":null}', None),
        (b'{"type":5,"object":{"metadata":{"name":"a"}}}', None),
        (event("ADDED", {"metadata": {"name": ""}}), None),
        (event("MODIFIED", item("bad", uid=1)), ObjectKey("ns", "bad")),
        (b"\xff\xfe", None),
    ],
)
def test_an_unreadable_event_is_reported_not_raised(line, key):
    found = decoder.event(line)
    assert isinstance(found, Malformed)
    assert found.key == key
    assert found.reason


@pytest.mark.parametrize("body", [b"", b"{", b"null", b'{"spec":{}}', b"<html>"])
def test_an_answer_that_is_no_object_is_refused_and_shown(body):
    with pytest.raises(MalformedResponseError, match=r"begins|empty"):
        decoder.object(body)


def test_bytes_that_are_no_utf8_do_not_get_past_the_first_look_into_them():
    body = b'{"items":[{"metadata":{"name":"a"},"data":{"x":"\xff"}}],"metadata":{}}'
    found = decoder.page(body)
    for obj in found:
        with pytest.raises(ValueError):
            obj["data"]
