"""Label and field selectors: syntax, meaning, canonical form, and messages for what does not parse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from informers import FieldSelector, LabelSelector, Object, SelectorError

LABELS = {"app": "web", "tier": "front", "n": "5", "empty": "", "example.com/x": "y"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier=front", True),
        ("app=api", False),
        ("app!=api", True),
        ("app!=web", False),
        ("missing!=x", True),
        ("app", True),
        ("missing", False),
        ("!missing", True),
        ("!app", False),
        ("app in (web,api)", True),
        ("app in (api)", False),
        ("missing in (api)", False),
        ("app notin (api)", True),
        ("missing notin (api)", True),
        ("app notin (web)", False),
        ("empty=", True),
        ("empty in (,x)", True),
        ("missing=", False),
        ("n>4", True),
        ("n>5", False),
        ("n<6", True),
        ("app>1", False),
        ("missing<9", False),
        ("example.com/x=y", True),
        ("app=web,tier=back", False),
        ("in in (in)", False),
    ],
)
def test_label_selectors_mean_what_kubernetes_means(text, matches):
    selector = LabelSelector.parse(text)
    assert selector.matches(LABELS) is matches
    assert LabelSelector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    "text",
    [
        "a b",
        "=a",
        "a=b c",
        ",a",
        "a,",
        "a,,b",
        "a in b",
        "a in (b",
        "a in (b c)",
        "a in",
        "x>y",
        "x>",
        "a=b=c",
        "!",
        "a/b/c",
        "-a",
        "!a=b",
        "a=" + "x" * 64,
        "A.B!/x",
        "x" * 64,
        "a=b!",
        "a in (b)c",
        "(a)",
        "n>1_0",
        "n<-1",
        "n>99999999999999999999",
    ],
)
def test_what_does_not_parse_is_refused_with_the_text_shown(text):
    with pytest.raises(SelectorError) as caught:
        LabelSelector.parse(text)
    assert repr(text) in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_equal_selectors_print_alike():
    assert str(LabelSelector.parse("b=1, a in (y,x), a in (x,y)")) == "a in (x,y),b=1"
    assert LabelSelector.parse("a=1,b=2") == LabelSelector.parse("b=2,a=1")
    assert hash(LabelSelector.parse("a=1,b=2")) == hash(LabelSelector.parse("b=2,a=1"))


def test_the_structured_form():
    selector = LabelSelector.from_dict(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["front", "back"]},
                {"key": "x", "operator": "DoesNotExist"},
                {"key": "app", "operator": "Exists"},
                {"key": "z", "operator": "NotIn", "values": ["1"]},
            ],
        }
    )
    assert selector.matches(LABELS)
    assert not selector.matches({**LABELS, "x": "1"})
    assert str(selector) == "app,app=web,tier in (back,front),!x,z!=1"


def test_an_empty_structure_matches_everything_and_none_nothing():
    assert LabelSelector.from_dict({}).matches(None)
    assert LabelSelector.from_dict({}).empty
    nothing = LabelSelector.from_dict(None)
    assert not nothing.matches({})
    assert not nothing.empty


@pytest.mark.parametrize(
    "selector",
    [
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Near"}]},
        {"matchExpressions": [{"operator": "Exists"}]},
        {"matchLabels": {"a": 5}},
        {"matchLabels": {"a b": "c"}},
    ],
)
def test_bad_structures_are_refused(selector):
    with pytest.raises(SelectorError):
        LabelSelector.from_dict(selector)


@given(st.text(alphabet="ab=!,() <>in", max_size=20))
def test_any_text_parses_or_is_refused_and_what_parses_keeps_its_meaning(text):
    try:
        selector = LabelSelector.parse(text)
    except SelectorError:
        return
    again = LabelSelector.parse(str(selector))
    for labels in ({}, {"a": ""}, {"a": "b", "in": "a"}, {"b": "a", "ab": "in"}):
        assert again.matches(labels) == selector.matches(labels)


POD = {
    "metadata": {"name": "x", "namespace": "ns"},
    "spec": {"nodeName": "n1", "hostNetwork": True, "priority": 5},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("metadata.name=x", True),
        ("metadata.name==x", True),
        ("metadata.name!=x", False),
        ("metadata.namespace!=kube-system,spec.nodeName=n1", True),
        ("spec.missing=", True),
        ("spec.missing!=", False),
        ("spec.nodeName.deeper=", True),
        ("spec.hostNetwork=true", True),
        ("spec.priority=5", True),
        ("status.phase=Running,", True),
        ("status.phase!=Pending,status.phase!=Failed", True),
    ],
)
@pytest.mark.parametrize("as_object", [False, True])
def test_field_selectors_compare_texts_at_dotted_paths(text, matches, as_object):
    selector = FieldSelector.parse(text)
    assert selector.matches(Object.from_dict(POD) if as_object else POD) is matches
    assert FieldSelector.parse(str(selector)) == selector


def test_escapes_in_field_selectors():
    selector = FieldSelector.parse(r"spec.x=a\,b\=c\\d")
    assert selector.exact("spec.x") == r"a,b=c\d"
    assert selector.matches({"spec": {"x": r"a,b=c\d"}})
    assert FieldSelector.parse(str(selector)) == selector


@pytest.mark.parametrize("text", ["a", "=b", "a=b=c", r"a=\x", "!a", "a=b\\"])
def test_bad_field_selectors_are_refused(text):
    with pytest.raises(SelectorError, match="field selector"):
        FieldSelector.parse(text)


def test_a_field_selector_tells_its_fields():
    selector = FieldSelector.parse("metadata.name=x,spec.nodeName!=y")
    assert selector.fields == {"metadata.name", "spec.nodeName"}
    assert selector.exact("metadata.name") == "x"
    assert selector.exact("spec.nodeName") is None
