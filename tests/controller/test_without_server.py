"""A manager over `FakeClient`: how users test their own controllers without a server."""

from __future__ import annotations

import threading
from typing import Any

from informers import ObjectKey
from informers.testing import FakeClient
from pysedna.controller import Context, Manager, Result, create_or_update, owner_reference

WAIT = 20.0
CONFIG_MAP, SECRET = ("v1", "ConfigMap"), ("v1", "Secret")


def test_a_controller_keeps_a_child_and_survives_a_failing_server(run: Any, eventually: Any) -> None:
    client = FakeClient({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "ns"}})
    client.fail_next("create", "Secret", ConnectionError("broken pipe"))
    manager = Manager(client, name="m", http=None)
    maps = manager.informers.informer(*CONFIG_MAP).lister

    def reconcile(key: ObjectKey, context: Context) -> Result | None:
        owner = maps.get(key)
        child = {"metadata": {"name": key.name, "namespace": key.namespace}}

        def mutate(secret: dict[str, Any]) -> None:
            secret["metadata"]["ownerReferences"] = [owner_reference(owner)]

        create_or_update(context.client.resource(*SECRET), child, mutate)
        return None

    controller = manager.controller("maps", CONFIG_MAP, reconcile, owns=[SECRET])
    run(manager)
    first = eventually(lambda: client.stored(*SECRET, "ns/one"))[0]
    assert controller.status().failures == 1
    client.resource(*SECRET).delete(first.key)
    again = eventually(lambda: client.stored(*SECRET, "ns/one"))[0]
    assert again.uid != first.uid
    assert again.controller is not None
    assert again.controller.name == "one"


def test_two_managers_live_in_one_process(run: Any) -> None:
    client = FakeClient({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "ns"}})
    seen = [threading.Event(), threading.Event()]
    for number, event in enumerate(seen):
        manager = Manager(client, name=f"m{number}", http="127.0.0.1:0")
        manager.controller("maps", CONFIG_MAP, lambda key, context, event=event: event.set())
        run(manager)
    assert all(event.wait(WAIT) for event in seen)
