"""The official client's SharedInformer (kubernetes.informer). It has no index and no queue: its handlers do both."""

from __future__ import annotations

from typing import Any

import meter
from kubernetes.client import ApiClient, Configuration, CoreV1Api
from kubernetes.informer import ADDED, MODIFIED, SharedInformer
from meter import Counter, Meter, Store

from workqueue import WorkQueue


def main() -> None:
    """List and watch with it."""
    told = meter.arguments()
    measured = Meter(told.server, told.pods, told.events)
    queue: WorkQueue[str] = WorkQueue()
    counter = Counter(queue, told.pods, told.events)
    index = Store()
    configuration = Configuration()
    configuration.host = told.server
    informer = SharedInformer(CoreV1Api(ApiClient(configuration)).list_pod_for_all_namespaces)

    def key_of(pod: Any) -> str:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        index.put(key, pod, pod.spec.node_name)
        return key

    informer.add_event_handler(ADDED, lambda pod: counter.added(key_of(pod)))
    informer.add_event_handler(MODIFIED, lambda pod: counter.updated(key_of(pod)))
    measured.begin()
    informer.start()
    counter.wait_listed()
    measured.listed()
    if told.events:
        counter.wait_done()
        measured.done()
    meter.check(len(informer.cache.list()), len(queue), told.pods)
    measured.report()


if __name__ == "__main__":
    main()
