"""A controller of one's own: a Team lists its members, and each member gets a ConfigMap that belongs to the Team.

`python examples/custom_controller.py [KUBECONFIG]`; without a kubeconfig it brings its own cluster and shows itself.
"""

import contextlib
import sys
from typing import Any

from informers import Client, Object, ObjectKey
from informers.errors import AlreadyExistsError
from pysedna.controller import Context, Manager, create_or_update, owner_reference
from pysedna.localcluster import LocalCluster

TEAM, CONFIG_MAP = ("example.com/v1", "Team"), ("v1", "ConfigMap")
MEMBERS = {"type": "object", "properties": {"members": {"type": "array", "items": {"type": "string"}}}}
SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": MEMBERS}}}
CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "teams.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Team", "plural": "teams", "singular": "team"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": SCHEMA}],
    },
}


def add_team_controller(manager: Manager) -> None:
    teams = manager.informers.informer(*TEAM).indexer
    config_maps = manager.informers.informer(*CONFIG_MAP).lister

    def reconcile(key: ObjectKey, context: Context) -> None:
        team = teams.get(key)
        if team is None or team.deletion_timestamp:
            return  # its ConfigMaps are collected with it
        children = context.client.resource(*CONFIG_MAP)
        wanted = {f"{team.name}-{member}": member for member in team["spec"]["members"]}

        for name, member in wanted.items():

            def greet(child: dict[str, Any], member: str = member) -> None:
                child["metadata"]["ownerReferences"] = [owner_reference(team)]
                child["data"] = {"greeting": f"Hello {member}!"}

            child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": team.namespace}}
            _, outcome = create_or_update(children, child, greet)
            print(f"{name}: {outcome}", flush=True)
        for found in config_maps.list(namespace=team.namespace):
            if found.controller and found.controller.uid == team.uid and found.name not in wanted:
                children.delete(found.key, uid=found.uid)
                print(f"{found.name}: deleted", flush=True)

    manager.controller("team", TEAM, reconcile, owns=[CONFIG_MAP])


def is_established(definition: Object | None) -> bool:
    conditions = definition.get("status", {}).get("conditions", ()) if definition else ()
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)


def main() -> None:
    with contextlib.ExitStack() as stack:
        if len(sys.argv) > 1:
            client = stack.enter_context(Client.from_kubeconfig(sys.argv[1]))
        else:
            cluster = stack.enter_context(LocalCluster())
            client = cluster.client
            print(f"try: kubectl --kubeconfig {cluster.kubeconfig} edit team red", flush=True)
        definitions = client.resource(CRD["apiVersion"], CRD["kind"])
        with contextlib.suppress(AlreadyExistsError):
            definitions.create(CRD)
        definitions.wait_until("teams.example.com", is_established, timeout=10)
        with contextlib.suppress(AlreadyExistsError):
            team = {"kind": "Team", "apiVersion": TEAM[0], "metadata": {"name": "red", "namespace": "default"}}
            client.resource(*TEAM).create({**team, "spec": {"members": ["ann", "bob"]}})
        manager = Manager(client, name="example")
        add_team_controller(manager)
        manager.run()  # until Ctrl-C


if __name__ == "__main__":
    main()
