"""Informers against API servers over HTTP: dropped watches, 410, kinds that come and go, dead servers."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pytest

from informers import Client, SharedInformer, SharedInformerFactory, SyncError
from informers.backoff import BackoffConfig
from informers.protocol import ProtocolConfig
from pysedna.localcluster import LocalCluster
from pysedna.testing import Cluster, ControlPlane

PATIENCE = 30.0
FAST = ProtocolConfig(backoff=BackoffConfig(base=0.01, cap=0.1), gone_after=0.2, not_found_cap=0.05)


@pytest.fixture
def factory(cluster):
    with SharedInformerFactory(cluster.client, protocol=FAST) as running:
        yield running


@pytest.fixture
def config_map(namespace):
    def make(name: str, namespace: str = namespace, **labels: str) -> dict[str, object]:
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "value"}}

    return make


@pytest.fixture
def widgets(namespace):
    """A definition of a group of the test's own."""
    group = f"{namespace}.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def expire(cluster: Cluster) -> None:
    """End every watch and forget the history, so that none can be resumed."""
    cluster.compact()
    if not isinstance(cluster, ControlPlane):  # which was restarted for it
        cluster.drop_watches()


def names(informer: SharedInformer) -> list[str]:
    return sorted(obj.name for obj in informer.lister.list())


def test_the_cache_follows_the_server_through_dropped_watches_and_compactions(
    cluster, factory, recorder, config_map, namespace
):
    maps = cluster.client.resource("v1", "ConfigMap")
    informer = factory.informer("v1", "ConfigMap", namespace=namespace, label_selector="test=gaps")
    informer.add_event_handler(on_event=recorder)
    factory.wait_for_sync(PATIENCE)
    uids: dict[int, str] = {}
    for number in range(6):
        made = maps.create(config_map(f"gap-{number}", test="gaps"))
        if number == 2:
            cluster.drop_watches()
        if number == 4:
            expire(cluster)
        if number % 2:
            maps.delete(f"{namespace}/gap-{number - 1}")
        uids[number] = made.uid
        informer.wait_for(made, PATIENCE)
    for number in (0, 2, 4):
        informer.wait_for_deletion(f"{namespace}/gap-{number}", uids[number], PATIENCE)
    expected = ["gap-1", "gap-3", "gap-5"]
    shown: set[str] = set()
    for event in recorder.wait(9):
        (shown.discard if event.type.value == "delete" else shown.add)(event.object.name)
    assert sorted(shown) == names(informer) == expected
    assert informer.status().internal_errors == 0


def test_a_version_that_is_gone_is_answered_by_a_new_list(cluster, factory, recorder, config_map, namespace):
    maps = cluster.client.resource("v1", "ConfigMap")
    informer = factory.informer("v1", "ConfigMap", namespace=namespace, label_selector="test=expired")
    informer.add_event_handler(on_event=recorder)
    first = maps.create(config_map("first", test="expired"))
    informer.wait_for(first, PATIENCE)
    before = informer.status().sources[0].snapshots
    for number in range(3):
        maps.create(config_map(f"other-{number}"))
    expire(cluster)
    informer.wait_for(maps.create(config_map("second", test="expired")), PATIENCE)
    assert names(informer) == ["first", "second"]
    assert informer.status().sources[0].snapshots >= before


def test_several_namespaces_and_metadata_only(cluster, factory, config_map, namespace):
    resource = cluster.client.resource("v1", "Namespace")
    three = [f"{namespace}-{number}" for number in range(3)]
    for name in three:
        resource.create({"metadata": {"name": name}})
        cluster.client.resource("v1", "ConfigMap").create(config_map("a", name))
    informer = factory.informer("v1", "ConfigMap", namespace=three[:2], metadata_only=True)
    informer.wait_for_sync(PATIENCE)
    assert sorted(str(obj.key) for obj in informer.lister.list()) == [f"{name}/a" for name in three[:2]]
    assert all("data" not in obj for obj in informer.lister.list())
    assert {obj.kind for obj in informer.lister.list()} == {"ConfigMap"}
    for name in three:
        resource.delete(name)


def test_a_crd_may_come_go_and_come_back(cluster, factory, recorder, widgets, namespace):
    client, (name, group) = cluster.client, (widgets["metadata"]["name"], widgets["spec"]["group"])
    informer = factory.informer(f"{group}/v1", "Widget")
    informer.add_event_handler(on_event=recorder)
    with pytest.raises(SyncError, match="Widget"):
        informer.wait_for_sync(PATIENCE, fail_fast=True)
    crds = client.resource("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    cluster.install_crds([widgets])
    informer.wait_for_sync(PATIENCE)
    resource = client.resource(f"{group}/v1", "Widget")
    first = resource.create({"metadata": {"name": "w", "namespace": namespace}})
    informer.wait_for(first, PATIENCE)
    crds.delete(name)
    informer.wait_for_deletion(f"{namespace}/w", first.uid, PATIENCE)
    crds.wait_until(name, lambda obj: obj is None, PATIENCE)
    cluster.install_crds([widgets])
    recorder.wait(2)
    second = client.resource(f"{group}/v1", "Widget").create({"metadata": {"name": "w2", "namespace": namespace}})
    informer.wait_for(second, PATIENCE)
    assert names(informer) == ["w2"]
    crds.delete(name)


def test_pages_and_streams_give_the_same(cluster, config_map, namespace):
    maps = cluster.client.resource("v1", "ConfigMap")
    for number in range(7):
        maps.create(config_map(f"page-{number}", test="pages"))
    source = maps.list_watch(namespace=namespace, label_selector="test=pages")
    found = []
    paged, stale = ProtocolConfig(watch_list=False, page_size=2), ProtocolConfig(prefer_stale=True)
    for protocol in (ProtocolConfig(), paged, stale):
        informer = SharedInformer(source, protocol=protocol)
        informer.start()
        informer.wait_for_sync(PATIENCE)
        found.append([obj.to_dict() for obj in sorted(informer.lister.list(), key=lambda obj: obj.key)])
        assert informer.stop(2)
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 7


def test_an_unreachable_server_is_said_and_waited_for():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    client = Client.from_url(f"http://127.0.0.1:{port}")
    with client, SharedInformerFactory(client, protocol=FAST) as factory:
        informer = factory.informer("v1", "ConfigMap")
        with pytest.raises(SyncError, match=f"127.0.0.1:{port}"):
            factory.wait_for_sync(0.5)
        assert informer.status().sources[0].failures >= 2
        with LocalCluster(port=port, controllers=False, nodes=()):
            factory.wait_for_sync(10)
            assert factory.stop(2)


def test_stop_ends_every_thread_at_once(cluster):
    before = set(threading.enumerate())
    factory = SharedInformerFactory(cluster.client)
    for kind in ("ConfigMap", "Secret", "Pod", "Service"):
        factory.informer("v1", kind).add_event_handler(on_event=lambda event: None)
    factory.start()
    factory.wait_for_sync(10)
    assert factory.stop(1)
    assert [thread.name for thread in set(threading.enumerate()) - before] == []


@pytest.mark.parametrize(
    "head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"], ids=["no answer", "half an answer"]
)
@pytest.mark.parametrize("protocol", [FAST, replace(FAST, watch_list=False)], ids=["streamed", "paged"])
def test_stop_ends_a_request_that_gets_no_answer(head, protocol):
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(head)
                asked.set()
                connection.recv(1 << 16)  # until the client goes away

        serving = threading.Thread(target=serve)
        serving.start()
        with Client.from_url(f"http://127.0.0.1:{server.getsockname()[1]}") as client:
            factory = SharedInformerFactory(client, protocol=protocol)
            factory.informer("v1", "ConfigMap")
            factory.start()
            assert asked.wait(10)
            assert factory.stop(1)
        serving.join(10)
        assert not serving.is_alive()


def test_stop_ends_a_wait_that_the_server_asked_for():
    body = b'{"kind": "Status", "status": "Failure", "code": 429, "reason": "TooManyRequests"}'
    answer = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 20\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with socket.create_server(("127.0.0.1", 0)) as server:
        answered = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)
                answered.set()
                connection.recv(1 << 16)

        serving = threading.Thread(target=serve)
        serving.start()
        with Client.from_url(f"http://127.0.0.1:{server.getsockname()[1]}") as client:
            factory = SharedInformerFactory(client, protocol=FAST)
            factory.informer("v1", "ConfigMap")
            factory.start()
            assert answered.wait(10)
            assert factory.stop(1)
        serving.join(10)


def test_stopping_one_reader_of_a_source_leaves_the_others_alone(cluster):
    source = cluster.client.resource("v1", "ConfigMap").list_watch()
    first, second = SharedInformer(source), SharedInformer(source)
    first.start()
    first.wait_for_sync(10)
    assert first.stop(1)
    second.start()
    second.wait_for_sync(10)
    assert second.stop(1)
