"""Prints what happens to pods, from a shared informer: a cache kept equal to the server, and handlers that are told.

`python examples/pod_watcher.py [KUBECONFIG]`; without a kubeconfig it brings its own cluster, with a Deployment in it.
"""

import contextlib
import sys
import time

from informers import Client, Object, SharedInformerFactory
from pysedna.localcluster import LocalCluster

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        },
    },
}


def phase(pod: Object) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))


def node(pod: Object) -> str:
    return str(pod["spec"].get("nodeName", ""))


def on_add(pod: Object, is_initial: bool) -> None:
    print(f"{'found' if is_initial else 'added'} {pod.key} ({phase(pod)})", flush=True)


def on_update(old: Object, new: Object) -> None:
    if phase(old) != phase(new):
        print(f"{new.key}: {phase(old)} -> {phase(new)} on {node(new)}", flush=True)


def on_delete(pod: Object, final_state_unknown: bool) -> None:
    print(f"deleted {pod.key}", flush=True)


def main() -> None:
    with contextlib.ExitStack() as stack:
        if len(sys.argv) > 1:
            client = stack.enter_context(Client.from_kubeconfig(sys.argv[1]))
        else:
            cluster = stack.enter_context(LocalCluster())
            client = cluster.client
            client.resource("apps/v1", "Deployment").create(DEPLOYMENT)
            print(f"try: kubectl --kubeconfig {cluster.kubeconfig} scale deployment web --replicas 5", flush=True)
        factory = stack.enter_context(SharedInformerFactory(client))
        pods = factory.informer("v1", "Pod", indexers={"node": lambda pod: [node(pod)]})
        pods.add_event_handler(on_add=on_add, on_update=on_update, on_delete=on_delete)
        factory.start()
        with contextlib.suppress(KeyboardInterrupt):
            factory.wait_for_sync(timeout=30)
            while True:
                time.sleep(1)
        for name in sorted(pods.indexer.index_values("node")):
            print(f"{name or '(no node)'} has {len(pods.lister.by_index('node', name))} pods")


if __name__ == "__main__":
    main()
