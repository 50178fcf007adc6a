"""Index functions for fields: what they find, and what they do with what is not there or is no text."""

from __future__ import annotations

import pytest

from informers import Indexer, MalformedObjectError, Object, field_index


def of(**members) -> Object:
    return Object.from_dict({"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}}, **members})


FOUND = {
    "a text": ("spec.nodeName", of(spec={"nodeName": "n1", "other": [1]}), ("n1",)),
    "an empty text": ("spec.nodeName", of(spec={"nodeName": ""}), ("",)),
    "several texts": ("spec.hosts", of(spec={"hosts": ["a", "b"]}), ("a", "b")),
    "an empty list": ("spec.hosts", of(spec={"hosts": []}), ()),
    "null": ("spec.nodeName", of(spec={"nodeName": None}), ()),
    "no such field": ("spec.nodeName", of(spec={}), ()),
    "no such member": ("spec.nodeName", of(), ()),
    "null on the way": ("spec.nodeName", of(spec=None), ()),
    "a member": ("phase", of(phase="Running"), ("Running",)),
    "something deep": ("a.b.c.d", of(a={"b": {"c": {"d": "e"}}}), ("e",)),
    "a name with dots": (("metadata", "labels", "app.kubernetes.io/name"), of(), ("x",)),
    "a name that is no identifier": (("spec", "a-b c"), of(spec={"a-b c": "d"}), ("d",)),
}


@pytest.mark.parametrize(("path", "obj", "values"), FOUND.values(), ids=FOUND)
def test_it_finds(path, obj, values):
    assert field_index(path)(obj) == values


@pytest.mark.parametrize("spec", [{"nodeName": 5}, {"nodeName": {}}, {"nodeName": [5]}, "text", ["n1"]])
def test_what_is_no_text_is_an_error_that_names_object_and_field(spec):
    with pytest.raises(MalformedObjectError, match=r"a.*: spec\.nodeName: "):
        field_index("spec.nodeName")(of(spec=spec))


@pytest.mark.parametrize("path", ["", ".", "spec.", ".spec", (), ("spec", "")])
def test_a_path_with_empty_names_is_refused(path):
    with pytest.raises(ValueError, match="no path"):
        field_index(path)


def test_it_is_an_index_function_like_any_other():
    indexer = Indexer({"node": field_index("spec.nodeName")})
    indexer.add(obj := of(spec={"nodeName": "n1"}))
    assert indexer.by_index("node", "n1") == [obj]
    assert repr(field_index(["spec", "nodeName"])) == "field_index('spec.nodeName')"
