"""Object keys: two parts, one text form."""

import pytest

from informers import ObjectKey
from informers.key import as_key


@pytest.mark.parametrize(
    ("text", "key"), [("ns/name", ObjectKey("ns", "name")), ("name", ObjectKey("", "name")), ("a/b.c", ("a", "b.c"))]
)
def test_text_and_key_are_each_others_reverse(text, key):
    assert ObjectKey.parse(text) == key
    assert str(ObjectKey.parse(text)) == text


@pytest.mark.parametrize("text", ["", "/", "/name", "ns/", "a/b/c", "a//b", "//"])
def test_what_is_no_key_is_refused_with_the_text_shown(text):
    with pytest.raises(ValueError, match=repr(text)):
        ObjectKey.parse(text)


def test_a_key_is_a_plain_tuple_to_dicts_and_sorting():
    assert {ObjectKey("a", "b"): 1}[("a", "b")] == 1
    assert sorted([ObjectKey("b", "a"), ObjectKey("a", "z")])[0] == ("a", "z")


def test_both_forms_of_a_key_are_taken():
    key = ObjectKey("a", "b")
    assert as_key(key) is key
    assert as_key("a/b") == key
