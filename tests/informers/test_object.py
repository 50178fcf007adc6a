"""Objects: immutable, lazily decoded, cheap, equal by identity of version."""

import copy
import gc
import pickle
import threading
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from informers import MalformedObjectError, Object, ObjectKey, OwnerReference
from informers.object import MemberCache, ObjectSource

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "x",
        "namespace": "ns",
        "uid": "u-1",
        "resourceVersion": "42",
        "generation": 3,
        "labels": {"app": "web"},
        "annotations": {"note": "hi"},
        "finalizers": ["a/b"],
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-02T00:00:00Z",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "o-1"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "o-2", "controller": True},
        ],
    },
    "spec": {"containers": [{"name": "c", "args": ["a", 1, None, 2.5, True]}], "empty": {}},
}


def test_accessors_give_what_every_object_has():
    obj = Object.from_dict(POD)
    assert (obj.key, obj.name, obj.namespace) == (ObjectKey("ns", "x"), "x", "ns")
    assert (obj.uid, obj.resource_version, obj.generation) == ("u-1", "42", 3)
    assert (obj.api_version, obj.kind) == ("v1", "Pod")
    assert obj.labels == {"app": "web"}
    assert obj.annotations == {"note": "hi"}
    assert list(obj.finalizers) == ["a/b"]
    assert obj.creation_timestamp == "2026-01-01T00:00:00Z"
    assert obj.deletion_timestamp == "2026-01-02T00:00:00Z"
    assert obj.controller == OwnerReference("apps/v1", "ReplicaSet", "rs", "o-2", True)
    assert [owner.kind for owner in obj.owner_references] == ["Node", "ReplicaSet"]
    assert obj.owner_references[1].group == "apps"


def test_what_is_missing_is_empty():
    obj = Object.from_dict({"metadata": {"name": "x", "labels": None}})
    assert (obj.namespace, obj.uid, obj.resource_version, obj.generation) == ("", "", "", 0)
    assert (obj.labels, obj.annotations, list(obj.finalizers), obj.owner_references) == ({}, {}, [], ())
    assert (obj.controller, obj.deletion_timestamp, obj.kind, obj.api_version) == (None, None, "", "")


def test_it_is_a_mapping_equal_member_by_member_to_the_dict():
    obj = Object.from_dict(POD)
    assert isinstance(obj, Mapping)
    assert list(obj) == list(POD)
    assert len(obj) == 4
    assert "spec" in obj
    assert "status" not in obj
    assert obj.get("status") is None
    assert obj["spec"] == POD["spec"]
    assert POD["spec"] == obj["spec"]
    assert dict(obj)["metadata"] == POD["metadata"]
    with pytest.raises(KeyError):
        obj["status"]


def test_nothing_in_it_can_be_changed():
    obj = Object.from_dict(POD)
    with pytest.raises(AttributeError):
        obj.uid = "other"
    with pytest.raises(TypeError):
        obj["spec"] = {}
    with pytest.raises(TypeError):
        obj["spec"]["empty"] = 1
    with pytest.raises(TypeError):
        obj["spec"]["containers"][0]["name"] = "d"
    with pytest.raises(AttributeError):
        obj["spec"]["containers"].append({})
    with pytest.raises(TypeError):
        obj.labels["a"] = "b"


def test_the_dict_it_was_made_of_stays_the_callers():
    data = copy.deepcopy(POD)
    obj = Object.from_dict(data)
    data["spec"]["containers"].clear()
    assert obj["spec"] == POD["spec"]


def test_to_dict_is_fresh_each_time():
    obj = Object.from_dict(POD)
    first = obj.to_dict()
    assert first == POD
    first["spec"]["containers"].clear()
    assert obj.to_dict() == POD
    assert obj["spec"] == POD["spec"]


def test_equality_and_hash_are_by_uid_and_version():
    one, same = Object.from_dict(POD), Object.from_dict({**POD, "spec": {}})
    newer = Object.from_dict({**POD, "metadata": {**POD["metadata"], "resourceVersion": "43"}})
    assert one == same
    assert hash(one) == hash(same)
    assert one != newer
    assert one != POD
    assert one != POD
    assert len({one, same, newer}) == 2


@pytest.mark.parametrize("member", ["uid", "resourceVersion"])
def test_without_uid_or_version_an_object_equals_itself_only(member):
    metadata = {name: value for name, value in POD["metadata"].items() if name != member}
    one, other = (Object.from_dict({**POD, "metadata": metadata}) for _ in range(2))
    assert one == one
    assert one != other
    assert len({one, other, one}) == 2


def test_kind_and_api_version_come_from_the_resource_where_the_bytes_lack_them():
    bare = {name: value for name, value in POD.items() if name not in ("apiVersion", "kind")}
    obj = Object.from_dict(bare, api_version="v1", kind="Pod")
    assert (obj.api_version, obj.kind, obj["kind"]) == ("v1", "Pod", "Pod")
    assert obj.to_dict() == POD
    assert list(obj) == list(POD)
    assert b'"Pod"' not in obj.raw
    assert msgspec.json.decode(obj.to_json()) == POD

    class Named(msgspec.Struct):
        kind: str
        apiVersion: str  # noqa: N815

    assert obj.decode(Named) == Named("Pod", "v1")


def test_managed_fields_are_cut_by_structure_not_by_text():
    metadata = {
        "managedFields": [{"manager": "m", "fieldsV1": {"f:metadata": {'f:"managedFields":[': {}}}}],
        "name": "x",
        "annotations": {"note": '"managedFields":[{}],'},
    }
    data = {"metadata": metadata, "data": {"managedFields": "kept", "x": '{"metadata":{"managedFields":1}}'}}
    obj = Object.from_dict(data)
    expected = {name: value for name, value in metadata.items() if name != "managedFields"}
    assert obj.to_dict() == {"metadata": expected, "data": data["data"]}
    assert Object.from_dict(data, managed_fields=True).to_dict() == data


def test_decoding_into_types():
    class Container(msgspec.Struct):
        name: str

    class Spec(msgspec.Struct):
        containers: list[Container]

    class Pod(msgspec.Struct):
        spec: Spec

    obj = Object.from_dict(POD)
    decoded = obj.decode(Pod)
    assert decoded.spec.containers[0].name == "c"
    assert decoded is not obj.decode(Pod)
    assert obj.decode(dict) == POD


def test_decoding_into_a_model_of_the_official_client():
    from kubernetes.client import V1ConfigMap

    obj = Object.from_dict({"metadata": {"name": "x"}, "data": {"a": "b"}}, api_version="v1", kind="ConfigMap")
    model = obj.decode(V1ConfigMap)
    assert (model.kind, model.metadata.name, model.data) == ("ConfigMap", "x", {"a": "b"})


def test_what_does_not_fit_a_type_is_named_with_its_path():
    class Spec(msgspec.Struct):
        containers: int

    class Pod(msgspec.Struct):
        spec: Spec

    with pytest.raises(MalformedObjectError, match=r"ns/x.*\$\.spec\.containers"):
        Object.from_dict(POD).decode(Pod)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"{}", b'{"metadata":null}', b'{"metadata":{"name":5}}', b'{"metadata":[]}'],
)
def test_what_is_no_object_is_refused(body):
    with pytest.raises(MalformedObjectError):
        Object.from_bytes(body)


@pytest.mark.parametrize(
    "value", [{"metadata": {"name": object()}}, {"metadata": {"name": "x"}, "spec": {"a": {1, object()}}}]
)
def test_what_has_no_json_form_is_refused(value):
    with pytest.raises(MalformedObjectError):
        Object.from_dict(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", ["a"]),
        ("generation", "3"),
        ("finalizers", 5),
        ("ownerReferences", [{"kind": "Pod"}]),
        ("creationTimestamp", 5),
    ],
)
def test_an_accessor_names_the_object_and_the_member_that_is_wrong(name, value):
    obj = Object.from_dict({"metadata": {"name": "x", name: value}})
    attributes = {
        "ownerReferences": "owner_references",
        "creationTimestamp": "creation_timestamp",
    }
    with pytest.raises(MalformedObjectError, match="x"):
        getattr(obj, attributes.get(name, name))


def test_it_can_be_pickled_and_copied():
    obj = Object.from_dict({"metadata": POD["metadata"], "spec": POD["spec"]}, api_version="v1", kind="Pod")
    again = pickle.loads(pickle.dumps(obj))
    assert again == obj
    assert again.to_dict() == POD
    assert copy.copy(obj) is obj
    assert copy.deepcopy(obj) is obj
    assert copy.deepcopy(obj["spec"]) == POD["spec"]
    assert pickle.loads(pickle.dumps(obj["spec"])) == POD["spec"]


def test_its_repr_is_one_short_line():
    assert repr(Object.from_dict(POD)) == "<v1 Pod ns/x @42>"
    assert repr(Object.from_dict({"metadata": {}})) == "<Object>"


def test_the_garbage_collector_does_not_track_it():
    obj = Object.from_dict(POD)
    assert not gc.is_tracked(obj)
    gc.collect()
    assert obj["spec"] == POD["spec"]


def test_decoded_members_are_kept_while_the_cache_has_room():
    source = ObjectSource(cache=MemberCache(10_000))
    obj = Object.from_dict(POD, source=source)
    assert obj["spec"] is obj["spec"]
    for number in range(100):
        Object.from_dict({"metadata": {"name": f"n{number}"}, "data": "x" * 500}, source=source)["data"]
    assert len(source.cache) < 25
    assert obj["spec"] == POD["spec"]


def test_an_object_larger_than_the_whole_cache_is_still_readable():
    source = ObjectSource(cache=MemberCache(100))
    obj = Object.from_dict(POD, source=source)
    assert obj["spec"] == POD["spec"]
    assert len(source.cache) == 0


def test_the_cache_never_mixes_up_objects_whose_bytes_were_freed():
    source = ObjectSource(cache=MemberCache(2_000))
    for number in range(2_000):
        obj = Object.from_dict({"metadata": {"name": "x"}, "data": {"number": number}}, source=source)
        assert obj["data"]["number"] == number


def test_threads_may_share_objects_and_their_cache():
    source = ObjectSource(cache=MemberCache(3_000))
    objects = [Object.from_dict({"metadata": {"name": f"n{n}"}, "data": {"n": n}}, source=source) for n in range(50)]
    wrong = []

    def read():
        for _ in range(40):
            wrong.extend(obj for n, obj in enumerate(objects) if obj["data"]["n"] != n or obj.name != f"n{n}")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=8).filter(lambda name: name != "metadata"), json_values, max_size=4))
def test_any_json_goes_through_unchanged(members):
    data = {"metadata": {"name": "x"}, **members}
    obj = Object.from_dict(data)
    assert obj.to_dict() == data
    assert {name: obj[name] for name in obj} == data
    assert Object.from_bytes(obj.raw).to_dict() == data
    assert Object.from_dict(dict(obj)).to_dict() == data
