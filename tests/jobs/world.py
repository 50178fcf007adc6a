"""A cluster and its managers without threads, time or HTTP: every step is taken by the test.

`Cluster` is a `FakeClient` plus what the rest of a cluster does when it is told to (kubelets, garbage
collection, the Deployment controller). `HandManager` runs the production wiring over caches that move by hand: events
are delivered when the test says so, watches can be lost, and a reconcile can be stopped between any two API calls, so
that two managers interleave at the granularity of single requests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from informers import Event, EventType, Indexer, Lister, Object, ObjectKey
from informers.errors import ExpiredError, InformersError, KindNotFoundError
from informers.event import Reason
from informers.testing import FakeClient
from pysedna.api import crds
from pysedna.controller.ownership import owners
from pysedna.controller.sources import Watch, own_key, requests
from pysedna.jobs import JobOptions
from workqueue import MonotonicClock

SEDNA = "sedna.io/v1alpha1"
FL, JI = (SEDNA, "FederatedLearningJob"), (SEDNA, "JointInferenceService")
MODEL, DATASET, SECRET = (SEDNA, "Model"), (SEDNA, "Dataset"), ("v1", "Secret")
POD, SERVICE, DEPLOYMENT = ("v1", "Pod"), ("v1", "Service"), ("apps/v1", "Deployment")
NAMESPACE = "ns"
FOREGROUND = "foregroundDeletion"

AUTOSCALER = ("autoscaling/v2", "HorizontalPodAutoscaler")
CHILDREN = (DEPLOYMENT, SERVICE, POD, AUTOSCALER)

Kind = tuple[str, str]


class ImpatientClock(MonotonicClock):
    """Every wait is over at once, so a watch ends when it has given what there is."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:  # type: ignore[override]
        return self._now

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        self._now += timeout or 0.0
        return False


class Cluster:
    """The server (`api`), and the rest of the cluster, one deliberate step at a time."""

    def __init__(self) -> None:
        self.api = FakeClient(kinds=crds(), now=lambda: 1.0e9, clock=ImpatientClock())

    def all(self, kind: Kind) -> list[dict[str, Any]]:
        return [obj.to_dict() for obj in self.api.stored(*kind)]

    def find(self, kind: Kind, name: str) -> dict[str, Any] | None:
        found = self.api.stored(*kind, ObjectKey(NAMESPACE, name))
        return found[0].to_dict() if found else None

    def create(self, manifest: Mapping[str, Any]) -> Object:
        return self.api.resource(manifest["apiVersion"], manifest["kind"]).create(manifest)

    def patch(self, kind: Kind, name: str, patch: Any, *, subresource: str | None = None) -> None:
        self.api.resource(*kind).patch(ObjectKey(NAMESPACE, name), patch, subresource=subresource)

    def delete(self, kind: Kind, name: str, *, propagation: str | None = None, grace: int | None = None) -> None:
        self.api.resource(*kind).delete(ObjectKey(NAMESPACE, name), propagation=propagation, grace_period=grace)

    # The rest of the cluster

    def set_phase(self, pod: str, phase: str) -> None:
        self.patch(POD, pod, {"status": {"phase": phase}}, subresource="status")

    def stop_pod(self, pod: str) -> None:
        """The kubelet has stopped the containers of a pod that is being deleted."""
        self.delete(POD, pod, grace=0)

    def collect(self) -> bool:
        """Garbage collection: children whose owners are gone go, foreground deletions end. True if anything was
        done."""
        everything = [obj["metadata"] for kind in (FL, JI, *CHILDREN) for obj in self.all(kind)]
        uids = {metadata["uid"] for metadata in everything}
        ending = {metadata["uid"] for metadata in everything if FOREGROUND in (metadata.get("finalizers") or [])}
        done = False
        for kind in CHILDREN:
            for child in self.all(kind):
                metadata = child["metadata"]
                owners = {reference["uid"] for reference in metadata.get("ownerReferences") or []}
                if owners and (not owners & uids or owners & ending) and "deletionTimestamp" not in metadata:
                    self.delete(kind, metadata["name"])
                    done = True
        for kind in (FL, JI, DEPLOYMENT):
            for owner in self.all(kind):
                metadata = owner["metadata"]
                if metadata["uid"] in ending and not self._dependents(metadata["uid"]):
                    rest = [name for name in metadata["finalizers"] if name != FOREGROUND]
                    self.patch(kind, metadata["name"], {"metadata": {"finalizers": rest or None}})
                    done = True
        return done

    def _dependents(self, uid: str) -> list[str]:
        return [
            child["metadata"]["name"]
            for kind in CHILDREN
            for child in self.all(kind)
            if any(r["uid"] == uid for r in child["metadata"].get("ownerReferences") or [])
        ]

    def run_kubelets(self) -> bool:
        """Stop what is being deleted, start what waits."""
        done = False
        for pod in self.all(POD):
            name = pod["metadata"]["name"]
            if "deletionTimestamp" in pod["metadata"]:
                self.stop_pod(name)
            elif not (pod.get("status") or {}).get("phase"):
                self.set_phase(name, "Running")
            else:
                continue
            done = True
        return done

    def run_deployments(self) -> bool:
        """The Deployment controller: one pod a Deployment, of its current template, under a name that follows from
        it."""
        done = False
        for deployment in self.all(DEPLOYMENT):
            done = self._run_deployment(deployment) or done
        return done

    def _run_deployment(self, deployment: dict[str, Any]) -> bool:
        metadata, template = deployment["metadata"], deployment["spec"]["template"]
        if "deletionTimestamp" in metadata:
            return False
        name = f"{metadata['name']}-{metadata['generation']}"
        old = [pod for pod in self._dependents(metadata["uid"]) if pod != name]
        for pod in old:
            self.delete(POD, pod, grace=0)
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": name,
            "uid": metadata["uid"],
            "controller": True,
        }
        if self.find(POD, name) is None:
            pod_metadata = {**template["metadata"], "name": name, "namespace": NAMESPACE, "ownerReferences": [owner]}
            self.create({"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": template["spec"]})
            self.set_phase(name, "Running")
            old.append(name)
        status = {"observedGeneration": metadata["generation"], "updatedReplicas": 1, "availableReplicas": 1}
        if deployment.get("status") != status:
            self.patch(DEPLOYMENT, metadata["name"], {"status": status}, subresource="status")
            old.append(name)
        return bool(old)


class Client:
    """A manager's way to the server. `before(verb, kind, key)` runs ahead of each call; writes are kept in `writes`."""

    def __init__(self, cluster: Cluster, before: Callable[[str, Kind, ObjectKey], None]) -> None:
        self._cluster = cluster
        self._before = before
        self.writes: list[tuple[str, str, str]] = []

    def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(self._cluster.api.resource(api_version, kind), self._hook, (api_version, kind))

    def _hook(self, verb: str, kind: Kind, key: ObjectKey) -> None:
        self._before(verb, kind, key)
        if verb != "get":
            self.writes.append((verb, kind[1], key.name))


class Resource:
    """One kind at the server, as a reconcile uses it."""

    def __init__(self, resource: Any, before: Callable[[str, Kind, ObjectKey], None], kind: Kind) -> None:
        self._resource, self._before, self._kind = resource, before, kind

    def get(self, key: ObjectKey) -> Any:
        self._before("get", self._kind, key)
        return self._resource.get(key)

    def create(self, obj: Any) -> Any:
        self._before("create", self._kind, Object.from_dict(obj).key)
        return self._resource.create(obj)

    def replace(self, obj: Any) -> Any:
        self._before("replace", self._kind, Object.from_dict(obj).key)
        return self._resource.replace(obj)

    def patch(self, key: ObjectKey, patch: Any, *, subresource: str | None = None) -> Any:
        self._before("patch", self._kind, key)
        return self._resource.patch(key, patch, subresource=subresource)

    def delete(self, key: ObjectKey, *, uid: str | None = None) -> Any:
        self._before("delete", self._kind, key)
        return self._resource.delete(key, uid=uid)


class HandInformer:
    """A cache that moves when it is told to. Fits what the wiring asks of a shared informer."""

    def __init__(self, cluster: Cluster, kind: Kind, *, metadata_only: bool) -> None:
        self._source = cluster.api.resource(*kind).list_watch(metadata_only=metadata_only)
        self.indexer = Indexer()
        self.lister = Lister(self.indexer, kind[1])
        self.handlers: list[Callable[[Event], None]] = []
        self._version = ""
        self.relist()

    def relist(self) -> None:
        """A new list and watch: what happened in between shows as differences only."""
        listing = self._source.list()
        self._version = listing.resource_version
        fresh = {obj.key: obj for obj in listing.items}
        held = {key: self.indexer.get(key) for key in self.indexer.keys()}  # noqa: SIM118 - not a dict
        self.indexer.replace(fresh.values())
        for key in held.keys() | fresh.keys():
            old, new = held.get(key), fresh.get(key)
            if old is None or new is None or old != new:
                self._tell(old, new, Reason.RELIST)

    def pull(self, limit: int | None = None) -> bool:
        """Deliver the next events of the watch. True if there were any."""
        try:
            with self._source.watch(resource_version=self._version, timeout_seconds=1) as watch:
                events = list(watch)
        except ExpiredError:
            self.relist()
            return True
        events = events if limit is None else events[:limit]
        for event in events:
            self._version = event.object.resource_version
            if event.type == "DELETED":
                self.indexer.delete(event.object)
                self._tell(event.object, None, Reason.WATCH)
            elif event.type != "BOOKMARK":
                old = self.indexer.get(event.object.key)
                self.indexer.add(event.object)
                self._tell(old, event.object, Reason.WATCH)
        return bool(events)

    def _tell(self, old: Object | None, new: Object | None, reason: Reason) -> None:
        type = EventType.DELETE if new is None else EventType.ADD if old is None else EventType.UPDATE
        for handler in self.handlers:
            handler(Event(type, old, new, reason))


class Factory:
    """Fits what the wiring asks of a factory of informers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.all: dict[tuple[Kind, bool], HandInformer] = {}

    def informer(self, api_version: str, kind: str, *, metadata_only: bool = False) -> HandInformer:
        key = ((api_version, kind), metadata_only)
        if key not in self.all:
            self.all[key] = HandInformer(self._cluster, key[0], metadata_only=metadata_only)
        return self.all[key]


class Crash(BaseException):
    """The manager's process is killed where it stands."""


class HandManager:
    """A manager whose caches and reconciles are moved by hand. Fits what the wiring asks of a manager."""

    def __init__(
        self, cluster: Cluster, setups: Sequence[Callable[..., Any]], *, recorder: Any, sink: Any = None
    ) -> None:
        self.cluster, self._setups, self._recorder, self._sink = cluster, setups, recorder, sink
        self.client = Client(cluster, self._wait_for_turn)
        self.errors: list[Exception] = []
        self.running: Turn | None = None
        self.fail_next: InformersError | None = None
        self.unserved: set[Kind] = set()
        self.restart()

    def restart(self) -> None:
        """A new process: nothing is remembered."""
        self.kill()
        self.informers = Factory(self.cluster)
        self.queue: dict[tuple[str, ObjectKey], None] = {}
        self._reconcilers: dict[str, Any] = {}
        for setup in self._setups:
            setup(self, options=JobOptions(), sink=self._sink)

    # What the wiring calls

    def recorder(self, component: str) -> Any:
        return self._recorder

    def controller(
        self, name: str, kind: Kind, reconcile: Any, *, owns: Iterable[Kind], watches: Iterable[Watch], workers: int
    ) -> None:
        self._reconcilers[name] = reconcile
        for watch in [Watch(kind, own_key), *(Watch(child, owners(kind)) for child in owns), *watches]:
            informer = self.informers.informer(*watch.kind, metadata_only=watch.metadata_only)
            informer.handlers.append(self._handler(name, watch))
            for obj in informer.indexer.list():
                informer.handlers[-1](Event(EventType.ADD, None, obj, Reason.INITIAL))

    def _handler(self, name: str, watch: Watch) -> Callable[[Event], None]:
        def enqueue(event: Event) -> None:
            for key in requests(watch, event):
                self.queue[name, key] = None

        return enqueue

    # Steps

    def pull(self, kind: Kind, limit: int | None = None) -> bool:
        moved = [cache.pull(limit) for (found, _), cache in self.informers.all.items() if found == kind]
        return any(moved)

    def pull_all(self) -> bool:
        moved = [cache.pull() for cache in self.informers.all.values()]
        return any(moved)

    def relist(self, kind: Kind) -> None:
        for (found, _), cache in self.informers.all.items():
            if found == kind:
                cache.relist()

    def begin(self, index: int = 0) -> bool:
        """Take a key and run its reconcile up to its first API call. False if there is nothing to do, or one runs."""
        if self.running is not None or not self.queue:
            return False
        name, key = list(self.queue)[index % len(self.queue)]
        del self.queue[name, key]
        self.running = Turn(lambda: self._reconcile(name, key))
        self.running.begin()
        self._after_step()
        return True

    def step(self) -> bool:
        """Let the running reconcile make its next API call. False if none runs."""
        if self.running is None:
            return False
        self.running.step()
        self._after_step()
        return True

    def drain(self) -> bool:
        """Run the running reconcile and then each queued one once, to its end. True if there were any."""
        done = self.step()
        for _ in range(len(self.queue) + 1):
            while self.step():
                done = True
            done = self.begin() or done
        while self.step():
            pass
        return done

    def kill(self) -> None:
        if getattr(self, "running", None) is not None:
            assert self.running is not None
            self.running.kill()
        self.running = None

    def _after_step(self) -> None:
        if self.running is not None and self.running.done:
            self.running = None

    def _wait_for_turn(self, verb: str, kind: Kind, key: ObjectKey) -> None:
        if self.running is not None:
            self.running.pause()
        if kind in self.unserved:
            raise KindNotFoundError(f"the server does not serve {kind}")
        if self.fail_next is not None and verb != "get":
            error, self.fail_next = self.fail_next, None
            raise error

    def _reconcile(self, name: str, key: ObjectKey) -> None:
        try:
            if self._reconcilers[name].reconcile(key, self) is not None:
                self.queue[name, key] = None
        except Exception as error:  # noqa: BLE001 - the controller would log it and try again
            self.errors.append(error)
            self.queue[name, key] = None


class Turn:
    """Runs a function on a thread of its own that moves only while it is this one's turn: nothing runs at once."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._mine, self._yours = threading.Semaphore(0), threading.Semaphore(0)
        self._killed = False
        self.done = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="turn", daemon=True)

    def begin(self) -> None:
        """Run the function up to its first `pause`."""
        self._thread.start()
        self._wait()

    def step(self) -> None:
        self._mine.release()
        self._wait()

    def pause(self) -> None:
        """Called by the function: give the turn back and wait for the next one."""
        self._yours.release()
        self._mine.acquire()
        if self._killed:
            raise Crash

    def kill(self) -> None:
        self._killed = True
        if not self.done:
            self.step()

    def _wait(self) -> None:
        assert self._yours.acquire(timeout=30), "the function neither paused nor ended"
        if self.done:
            self._thread.join()
            if self.failure is not None:
                raise self.failure

    def _run(self) -> None:
        try:
            self._function()
        except Crash:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again where the step was taken
            self.failure = error
        self.done = True
        self._yours.release()


def settle(cluster: Cluster, *managers: HandManager, kubelets: bool = True) -> None:
    """Let everything happen that is due, until nothing is. Raises if the world does not come to rest."""
    for _ in range(100):
        moved = [cluster.collect(), cluster.run_deployments(), kubelets and cluster.run_kubelets()]
        for manager in managers:
            moved += [manager.pull_all(), manager.drain()]
        if not any(moved):
            return
    raise AssertionError("the world does not come to rest")
