"""kubernetes_asyncio, which has a list and a watch but no informer: both into a plain cache with an index."""

from __future__ import annotations

import asyncio
from typing import Any

import meter
from kubernetes_asyncio.client import ApiClient, Configuration, CoreV1Api
from kubernetes_asyncio.watch import Watch
from meter import Counter, Meter, Store

from workqueue import WorkQueue

PAGE = 500


async def run() -> None:
    """List page by page and watch with it."""
    told = meter.arguments()
    measured = Meter(told.server, told.pods, told.events)
    queue: WorkQueue[str] = WorkQueue()
    counter = Counter(queue, told.pods, told.events)
    store = Store()
    configuration = Configuration(host=told.server)

    def keep(pod: Any) -> str:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        store.put(key, pod, pod.spec.node_name)
        return key

    async with ApiClient(configuration) as client:
        api = CoreV1Api(client)
        measured.begin()
        token: str | None = None
        while True:
            page = await api.list_pod_for_all_namespaces(limit=PAGE, **({"_continue": token} if token else {}))
            for pod in page.items:
                counter.added(keep(pod))
            token = page.metadata._continue
            if not token:
                break
        measured.listed()
        if told.events:
            version = page.metadata.resource_version
            watch = Watch()
            async for event in watch.stream(api.list_pod_for_all_namespaces, resource_version=version):
                counter.updated(keep(event["object"]))
                if counter.done.is_set():
                    break
            measured.done()
            watch.stop()
            await watch.close()
    meter.check(len(store.objects), len(queue), told.pods)
    measured.report()


if __name__ == "__main__":
    asyncio.run(run())
