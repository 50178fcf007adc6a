"""Read-only views: equal to plain data, never changeable, plain again on demand."""

import pytest

from informers import ListView, MappingView, thaw
from informers.views import view

DATA = {"a": {"b": [1, {"c": None}, []]}, "d": "x"}


def test_views_equal_plain_data_in_both_directions():
    seen = view(DATA)
    assert seen == DATA
    assert seen == DATA
    assert seen["a"] == {"b": [1, {"c": None}, []]}
    assert seen["a"]["b"] == [1, {"c": None}, []]
    assert seen["a"]["b"] == [1, {"c": None}, []]
    assert seen != {**DATA, "e": 1}
    assert seen["a"]["b"] != [1]
    assert seen["a"]["b"] != (1, {"c": None}, [])
    assert seen == view(dict(DATA))
    assert {"a": seen["a"], "d": "x"} == DATA
    assert seen == {"a": seen["a"], "d": "x"}


def test_views_read_like_what_they_stand_for():
    seen = view(DATA)
    assert isinstance(seen, MappingView)
    assert isinstance(seen["a"]["b"], ListView)
    assert list(seen) == ["a", "d"]
    assert dict(seen.items())["a"] == DATA["a"]
    assert list(seen.values())[1] == "x"
    assert seen.get("nope", 5) == 5
    assert "a" in seen
    items = seen["a"]["b"]
    assert len(items) == 3
    assert items[1:] == [{"c": None}, []]
    assert items[-1] == []
    assert {"c": None} in items
    assert 2 not in items
    assert items.index({"c": None}) == 1
    assert [*items, 5] == [*DATA["a"]["b"], 5]
    assert items + [5] == [*DATA["a"]["b"], 5]  # noqa: RUF005 - the operator is what is tested
    assert [5] + items == [5, *DATA["a"]["b"]]  # noqa: RUF005
    assert repr(seen) == repr(DATA)
    assert {**seen} == DATA


def test_views_cannot_be_hashed():
    for seen in (view(DATA), view([1])):
        with pytest.raises(TypeError):
            hash(seen)


def test_thawed_data_is_plain_and_fresh():
    seen = view(DATA)
    copy = thaw({"wrapped": seen["a"], "list": [seen["a"]["b"]]})
    assert copy == {"wrapped": DATA["a"], "list": [DATA["a"]["b"]]}
    assert type(copy["wrapped"]) is dict
    assert type(copy["wrapped"]["b"]) is list
    copy["wrapped"]["b"].clear()
    assert seen["a"]["b"] == [1, {"c": None}, []]
    assert type(seen.to_dict()["a"]) is dict
    assert type(seen["a"]["b"].to_list()[1]) is dict
