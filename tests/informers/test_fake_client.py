"""The fake client: what it is given, what it records, how it fails on demand, and what it is good for."""

import threading

import pytest

from informers import (
    Client,
    ClientClosed,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    KindNotFoundError,
    NotFoundError,
    Object,
    ObjectKey,
    RequestTimeout,
    SharedInformerFactory,
    UnsupportedMediaTypeError,
)
from informers.store import ResourceType
from informers.testing import FakeClient
from workqueue.testing import FakeClock

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}, "spec": {"nodeName": "n"}}
FOO = {"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "f", "namespace": "ns"}, "status": {"ready": True}}
CRD = {
    "kind": "CustomResourceDefinition",
    "spec": {
        "group": "y.io",
        "scope": "Cluster",
        "names": {"kind": "Bar", "plural": "barren"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec.x"}],
            }
        ],
    },
}


def test_it_is_a_client():
    with FakeClient() as client:
        assert isinstance(client, Client)
        assert client.raw("GET", "/readyz") == b"ok"
        with pytest.raises(NotFoundError):
            client.raw("GET", "/apis")
    with pytest.raises(ClientClosed):
        client.resource("v1", "Pod").list()
    with pytest.raises(TypeError):
        FakeClient.from_url("http://127.0.0.1:1")


def test_initial_objects_are_there_with_what_a_server_would_have_set():
    client = FakeClient(POD, Object.from_dict(FOO))
    pod = client.resource("v1", "Pod").get("ns/p")
    foo = client.resource("x.io/v1", "Foo").get("ns/f")
    assert pod.uid
    assert pod.uid != foo.uid
    assert int(pod.resource_version) < int(foo.resource_version)
    assert pod.creation_timestamp
    assert (pod.generation, foo.generation) == (1, 1)
    assert foo["status"] == {"ready": True}


def test_what_an_initial_object_says_of_itself_stays():
    metadata = {**POD["metadata"], "uid": "mine", "resourceVersion": "77", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    client = FakeClient({**POD, "metadata": metadata})
    pods = client.resource("v1", "Pod")
    assert pods.get("ns/p").uid == "mine"
    assert pods.get("ns/p").deletion_timestamp
    assert int(pods.create({"metadata": {"name": "q", "namespace": "ns"}}).resource_version) > 77


@pytest.mark.parametrize("obj", [{"metadata": {"name": "x"}}, {**POD, "metadata": {}}, {**POD, "kind": 5}])
def test_initial_objects_must_say_what_they_are(obj):
    with pytest.raises(ValueError):
        FakeClient(obj)


def test_custom_kinds_are_made_known():
    own = ResourceType("z.io", "v1", "Baz", "bazzes", namespaced=False)
    client = FakeClient(kinds=[("x.io/v1", "Policy"), CRD, own])
    infos = {info.kind: info for info in client.resources()}
    assert (infos["Policy"].plural, infos["Policy"].namespaced) == ("policies", True)
    assert (infos["Bar"].plural, infos["Bar"].namespaced) == ("barren", False)
    assert infos["Baz"].plural == "bazzes"
    assert infos["Ingress"].plural == "ingresses"
    assert infos["Endpoints"].plural == "endpoints"
    assert infos["NetworkPolicy"].plural == "networkpolicies"
    client.resource("y.io/v1", "Bar").create({"metadata": {"name": "b"}, "spec": {"x": "1"}})
    assert len(client.resource("y.io/v1", "Bar").list(field_selector="spec.x=1")) == 1
    with pytest.raises(TypeError):
        FakeClient(kinds=["Policy"])


def test_an_unknown_kind_is_not_found_and_the_message_says_what_to_do():
    with pytest.raises(KindNotFoundError, match="kinds="):
        FakeClient().resource("x.io/v1", "Foo").list()


def test_requests_are_recorded():
    client = FakeClient(POD)
    pods = client.resource("v1", "Pod")
    pods.list(label_selector="a=b")
    pods.patch("ns/p", {"status": {"phase": "Running"}}, subresource="status")
    with pytest.raises(NotFoundError):
        pods.delete("ns/none")
    assert [str(action) for action in client.actions] == [
        "list Pod ",
        "patch Pod/status ns/p",
        "delete Pod ns/none",
    ]
    assert client.actions[0].query == {"labelSelector": "a=b"}
    assert client.writes[0].body == {"status": {"phase": "Running"}}
    assert client.writes[0].key == ObjectKey("ns", "p")
    client.clear_actions()
    assert not client.actions


def test_status_and_the_rest_are_written_apart():
    foos = FakeClient(FOO).resource("x.io/v1", "Foo")
    current = foos.get("ns/f")
    spec = foos.replace({**current, "spec": {"a": 1}, "status": {"ready": False}})
    assert (spec["status"], spec["spec"], spec.generation) == ({"ready": True}, {"a": 1}, 2)
    status = foos.patch("ns/f", {"spec": {"a": 2}, "status": {"ready": False}}, subresource="status")
    assert (status["status"], status["spec"], status.generation) == ({"ready": False}, {"a": 1}, 2)
    assert "status" not in foos.create({"metadata": {"name": "g", "namespace": "ns"}, "status": {"ready": True}})
    with pytest.raises(NotFoundError):
        foos.get("ns/f", subresource="scale")


def test_pods_are_bound_once():
    client = FakeClient()
    pods = client.resource("v1", "Pod")
    pods.create({"metadata": {"name": "p", "namespace": "ns"}})
    binding = {"metadata": {"name": "p", "namespace": "ns"}, "target": {"kind": "Node", "name": "n1"}}
    pods.create(binding, subresource="binding")
    assert pods.get("ns/p")["spec"]["nodeName"] == "n1"
    with pytest.raises(ConflictError, match="already assigned"):
        pods.create(binding, subresource="binding")


def test_pods_with_a_node_are_given_time():
    pods = FakeClient(POD).resource("v1", "Pod")
    assert pods.delete("ns/p").deletion_timestamp
    assert pods.delete("ns/p", grace_period=0) is None


def test_merge_patches_only():
    foos = FakeClient(FOO).resource("x.io/v1", "Foo")
    patched = foos.patch("ns/f", {"metadata": {"labels": {"a": "b"}}, "spec": {"x": {"y": 1, "z": None}}})
    assert (patched.labels, patched["spec"]) == ({"a": "b"}, {"x": {"y": 1}})
    assert foos.patch("ns/f", {"spec": {"x": None}})["spec"] == {}
    for patch in (
        lambda: foos.patch("ns/f", [], type="json"),
        lambda: foos.patch("ns/f", {}, type="strategic"),
        lambda: foos.apply(FOO, field_manager="me"),
    ):
        with pytest.raises(UnsupportedMediaTypeError, match="LocalCluster"):
            patch()


def test_failures_on_demand():
    client = FakeClient(POD)
    pods = client.resource("v1", "Pod")
    client.fail_next("get", "Pod", ForbiddenError("no"), times=2)
    for _ in range(2):
        with pytest.raises(ForbiddenError):
            pods.get("ns/p")
    pods.get("ns/p")
    client.fail_next("*", "*", RequestTimeout("slow"))
    client.resource("v1", "Pod").info()
    with pytest.raises(RequestTimeout):
        pods.list()
    pods.list()
    with pytest.raises(ValueError, match="verb"):
        client.fail_next("steal", "Pod", ForbiddenError("no"))


def test_a_lost_answer_leaves_the_write_done():
    client = FakeClient()
    pods = client.resource("v1", "Pod")
    client.fail_next("create", "Pod", RequestTimeout("lost", maybe_applied=True), applied=True)
    with pytest.raises(RequestTimeout):
        pods.create({"metadata": {"name": "p", "namespace": "ns"}})
    assert [obj.name for obj in client.stored("v1", "Pod")] == ["p"]
    assert client.stored("v1", "Pod", "ns/other") == ()


def test_runs_are_alike():
    def run():
        client = FakeClient(POD, now=lambda: 0.0)
        pods = client.resource("v1", "Pod")
        for _ in range(3):
            pods.create({"metadata": {"generateName": "x-", "namespace": "ns"}})
        return [obj.to_dict() for obj in client.stored("v1", "Pod")]

    assert run() == run()


def test_a_compacted_history_expires_watches_and_tokens():
    client = FakeClient(POD)
    pods = client.resource("v1", "Pod")
    for number in range(3):
        pods.create({"metadata": {"name": f"p{number}", "namespace": "ns"}})
    token = pods.list(limit=1).continue_
    pods.delete("ns/p0")
    client.compact()
    with pytest.raises(ExpiredError), pods.watch(resource_version="1") as stream:
        next(stream)
    with pytest.raises(ExpiredError) as caught:
        pods.list(limit=1, continue_=token)
    assert [obj.name for obj in pods.list(continue_=caught.value.continue_token)] == ["p1", "p2"]


def test_a_version_that_contradicts_itself_is_refused():
    with pytest.raises(InvalidError):
        FakeClient(POD).resource("v1", "Pod").list(resource_version_match="Exact")


def test_a_watch_ends_when_its_time_is_up_on_the_clock_given():
    clock = FakeClock()
    pods = FakeClient(POD, clock=clock).resource("v1", "Pod")
    stream = pods.watch(timeout_seconds=30)
    assert next(stream).type == "ADDED"
    ended = threading.Event()
    thread = threading.Thread(target=lambda: (list(stream), ended.set()))
    thread.start()
    assert not ended.wait(0.05)
    clock.advance(31)
    assert ended.wait(10)
    thread.join()


def test_a_watch_is_closed_from_another_thread():
    pods = FakeClient().resource("v1", "Pod")
    stream = pods.watch(allow_bookmarks=False)
    timer = threading.Timer(0.05, stream.close)
    timer.start()
    assert list(stream) == []
    timer.join()


def test_it_feeds_informers():
    client = FakeClient(POD, FOO)
    pods = client.resource("v1", "Pod")
    with SharedInformerFactory(client) as factory:
        informer = factory.informer("v1", "Pod")
        factory.start()
        factory.wait_for_sync(10)
        assert [obj.name for obj in informer.lister.list()] == ["p"]
        created = pods.create({"metadata": {"name": "q", "namespace": "ns"}})
        informer.wait_for(created, 10)
        assert informer.lister.get("ns/q") == created
        client.compact()
        client.drop_watches()
        pods.delete("ns/q")
        informer.wait_for_deletion(created.key, created.uid, 10)


def test_threads_may_share_it():
    client = FakeClient()
    pods = client.resource("v1", "Pod")

    def work(number):
        for turn in range(20):
            pods.create({"metadata": {"name": f"p{number}-{turn}", "namespace": "ns"}})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    listed = client.stored("v1", "Pod")
    assert len(listed) == len({obj.resource_version for obj in listed}) == 80
