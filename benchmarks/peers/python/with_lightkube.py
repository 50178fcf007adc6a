"""lightkube, which has a list and a watch but no informer: both into a plain cache with an index."""

from __future__ import annotations

import meter
from lightkube import Client, KubeConfig
from lightkube.config.kubeconfig import Cluster, User
from lightkube.resources.core_v1 import Pod
from meter import Counter, Meter, Store

from workqueue import WorkQueue


def main() -> None:
    """List and watch with it."""
    told = meter.arguments()
    measured = Meter(told.server, told.pods, told.events)
    queue: WorkQueue[str] = WorkQueue()
    counter = Counter(queue, told.pods, told.events)
    store = Store()
    config = KubeConfig.from_one(cluster=Cluster(server=told.server), user=User(token="unused"))
    client = Client(config=config)

    def keep(pod: Pod) -> str:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        store.put(key, pod, pod.spec.nodeName)
        return key

    measured.begin()
    pods = client.list(Pod, namespace="*", chunk_size=500)
    for pod in pods:
        counter.added(keep(pod))
    version = pods.resourceVersion
    events = client.watch(Pod, namespace="*", resource_version=version)
    measured.listed()
    if told.events:
        for _, pod in events:
            counter.updated(keep(pod))
            if counter.done.is_set():
                break
        measured.done()
    meter.check(len(store.objects), len(queue), told.pods)
    measured.report()


if __name__ == "__main__":
    main()
