"""The factory: one informer for each kind and scope, started and stopped together."""

from __future__ import annotations

from typing import Any

import pytest

from informers import InformerStopped, SharedInformerFactory, SyncTimeout
from informers.errors import SelectorError
from informers.testing import FakeListWatch

pytestmark = pytest.mark.usefixtures("no_stray_threads")


class Resource:
    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name

    def list_watch(self, **options: Any) -> FakeListWatch:
        self.client.made.append((self.name, {name: value for name, value in options.items() if value}))
        source = FakeListWatch()
        self.client.sources.append(source)
        return source


class Client:
    def __init__(self) -> None:
        self.made: list[tuple[str, dict[str, Any]]] = []
        self.sources: list[FakeListWatch] = []

    def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(self, f"{api_version} {kind}")


@pytest.fixture
def client() -> Client:
    return Client()


def test_the_same_kind_and_scope_is_one_informer(client):
    factory = SharedInformerFactory(client)
    pods = factory.informer("v1", "Pod")
    assert factory.informer("v1", "Pod") is pods
    assert factory.informer("v1", "Pod", namespace="x") is not pods
    assert factory.informer("v1", "Pod", label_selector="a=b") is not pods
    assert factory.informer("v1", "Pod", field_selector="spec.nodeName=n") is not pods
    assert factory.informer("v1", "Pod", metadata_only=True) is not pods
    assert factory.informer("v1", "Secret") is not pods
    assert len(factory.informers()) == 6
    factory.stop()


def test_two_spellings_of_a_scope_are_one(client):
    factory = SharedInformerFactory(client)
    first = factory.informer("v1", "Pod", namespace=["b", "a"], label_selector="x=1,a in (b)")
    assert factory.informer("v1", "Pod", namespace=("a", "b", "a"), label_selector="a=b, x==1") is first
    assert factory.informer("v1", "Pod", namespace="") is factory.informer("v1", "Pod", namespace=None)
    factory.stop()


def test_the_factorys_scope_is_the_default(client):
    factory = SharedInformerFactory(client, namespace="ns", label_selector="a=b", field_selector="x=y")
    factory.informer("v1", "Pod")
    factory.informer("v1", "Node", namespace=None, label_selector=None, field_selector=None)
    assert client.made == [
        ("v1 Pod", {"namespace": "ns", "label_selector": "a=b", "field_selector": "x=y"}),
        ("v1 Node", {}),
    ]
    factory.stop()


def test_several_namespaces_are_one_informer_with_a_watch_in_each(client, pod):
    with SharedInformerFactory(client, namespace=["two", "one"]) as factory:
        informer = factory.informer("v1", "Pod")
        assert [options for _, options in client.made] == [{"namespace": "one"}, {"namespace": "two"}]
        factory.wait_for_sync(10)
        client.sources[0].add(pod("a", namespace="one"))
        informer.wait_for(client.sources[1].add(pod("a", namespace="two")), 10)
        informer.wait_for(client.sources[0].add(pod("b", namespace="one")), 10)
        assert len(informer.lister.list()) == 3
        assert informer.name == "v1 Pod in one, two"


def test_informers_asked_for_after_the_start_run_at_once(client):
    factory = SharedInformerFactory(client)
    factory.informer("v1", "Pod")
    with pytest.raises(SyncTimeout, match="v1 Pod did not sync"):
        factory.wait_for_sync(0)
    factory.start()
    late = factory.informer("v1", "Secret")
    late.wait_for_sync(10)
    factory.start()
    factory.wait_for_sync(10)
    assert factory.stop(10)
    assert factory.stop(10)
    with pytest.raises(InformerStopped):
        factory.start()
    with pytest.raises(InformerStopped):
        factory.informer("v1", "Node")


def test_a_later_call_adds_indices_but_cannot_change_the_transform(client):
    factory = SharedInformerFactory(client)

    def first(obj):
        return obj

    informer = factory.informer("v1", "Pod", transform=first, indexers={"name": lambda obj: [obj.name]})
    assert factory.informer("v1", "Pod", transform=first) is informer
    assert factory.informer("v1", "Pod") is informer
    factory.informer("v1", "Pod", indexers={"name": lambda obj: ["other"], "uid": lambda obj: [obj.uid]})
    assert set(informer.indexer.index_names()) == {"namespace", "name", "uid"}
    with pytest.raises(ValueError, match="another transform"):
        factory.informer("v1", "Pod", transform=lambda obj: obj)
    factory.stop()


@pytest.mark.parametrize("namespace", [[], ["a", ""]])
def test_a_scope_without_sense_is_refused(client, namespace):
    with pytest.raises(ValueError, match="namespaces"):
        SharedInformerFactory(client).informer("v1", "Pod", namespace=namespace)


def test_a_wrong_selector_is_refused_where_it_is_given(client):
    with pytest.raises(SelectorError):
        SharedInformerFactory(client).informer("v1", "Pod", label_selector="a in b")
