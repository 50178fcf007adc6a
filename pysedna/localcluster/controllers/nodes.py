"""Simulated nodes: pods are bound, run, end and are stopped without any kubelet, on this or any other API server.

Three parts on one manager: `NodeKeeper` keeps the Node objects alive, `Binder` binds pods that no node has, and
`PodRunner` writes the statuses that `pod_lifecycle` decides. They touch pods of the named nodes only.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from informers import Event, Lister, Object, ObjectKey
from informers.errors import AlreadyExistsError, ConflictError, ForbiddenError, InformersError, NotFoundError
from pysedna.controller import Context, Manager, Result, rfc3339, set_condition
from pysedna.localcluster.controllers.binding import choose, is_ours
from pysedna.localcluster.controllers.node_options import NodeOptions
from pysedna.localcluster.controllers.pod_lifecycle import look

if TYPE_CHECKING:
    from informers import Client

_log = logging.getLogger(__name__)
POD, NODE = ("v1", "Pod"), ("v1", "Node")
HOST_IP = "127.0.0.1"
_SOON = 0.05


def setup_nodes(
    manager: Manager,
    nodes: Sequence[str],
    options: NodeOptions | None = None,
    *,
    labels: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Add simulated nodes of these names to a manager. `labels`: further labels of nodes, by their names.

    The Node objects are made when the manager runs and removed when it stops, if they were not there before. Pods
    without a node are bound to them in turn.
    """
    if not nodes:
        return
    options = options if options is not None else NodeOptions()
    more = labels or {}
    labelled = [(name, {**_labels(name), **more.get(name, {})}) for name in nodes]
    pods = manager.informers.informer(*POD).lister
    manager.add(NodeKeeper(manager.client, labelled, options))
    manager.controller("pod-binder", POD, Binder(pods, labelled), predicates=[_unbound])
    runner = PodRunner(pods, frozenset(nodes), options)
    manager.controller("pod-runner", POD, runner, predicates=[runner.concerns], workers=2)


def _labels(name: str) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "simulate.pysedna.io/node": "true",
    }


def _unbound(event: Event) -> bool:
    return event.new is not None and not event.new["spec"].get("nodeName")


class Binder:
    """Binds pods through the `binding` subresource, as a scheduler does."""

    def __init__(self, pods: Lister, nodes: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        self._pods = pods
        self._nodes = nodes
        self._turns = itertools.count()

    def reconcile(self, key: ObjectKey, context: Context) -> None:
        """Bind one pod, or say on it that no node fits."""
        try:
            pod = self._pods.get(key).to_dict()
        except NotFoundError:
            return
        if not is_ours(pod):
            return
        pods = context.client.resource(*POD)
        node = choose(pod, self._nodes, next(self._turns))
        try:
            if node is None:
                self._unschedulable(key, pod, pods)
                return
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            metadata = {"name": key.name, "namespace": key.namespace, "uid": pod["metadata"]["uid"]}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
            pods.create(binding, subresource="binding")
        except (ConflictError, NotFoundError) as error:
            # Somebody else bound, changed or deleted it: what became of it comes as an event.
            context.log.debug("pod %s was not bound: %s", key, error)
        except ForbiddenError as error:
            if not error.has_cause("NamespaceTerminating"):
                raise
            context.log.debug("pod %s goes with its namespace: %s", key, error)

    def _unschedulable(self, key: ObjectKey, pod: Mapping[str, Any], pods: Any) -> None:
        status = pod.get("status") or {}
        before = status.get("conditions") or []
        message = f"0/{len(self._nodes)} simulated nodes match the pod's node selector"
        after = set_condition(
            before, "PodScheduled", False, reason="Unschedulable", message=message, now=rfc3339(time.time())
        )
        if after != before:
            version = {"resourceVersion": pod["metadata"]["resourceVersion"]}
            pods.patch(key, {"metadata": version, "status": {"conditions": after}}, subresource="status")


class PodRunner:
    """Carries out, for the pods of the given nodes, what `pod_lifecycle.look` decides."""

    def __init__(
        self, pods: Lister, nodes: frozenset[str], options: NodeOptions, *, now: Callable[[], float] = time.time
    ) -> None:
        self._pods = pods
        self._nodes = nodes
        self._options = options
        self._now = now
        self._addresses = itertools.count(2)
        self._lock = threading.Lock()
        # Exact times, and the address that was given, by pod; dropped when the pod is gone.
        self._known: dict[ObjectKey, tuple[str, str, Mapping[str, float]]] = {}

    def concerns(self, event: Event) -> bool:
        """The predicate of its controller: pods of these nodes."""
        obj = event.new if event.new is not None else event.old
        return obj is not None and obj["spec"].get("nodeName") in self._nodes

    def reconcile(self, key: ObjectKey, context: Context) -> Result | None:
        """Bring one pod to where it should be by now."""
        try:
            pod = self._pods.get(key)
        except NotFoundError:
            self._forget(key)
            return None
        now = self._now()
        address, moments = self._remembered(pod)
        found = look(pod.to_dict(), now, self._options, moments=moments, pod_ip=address, host_ip=HOST_IP)
        try:
            self._write(pod, found.status, context)
            with self._lock:  # only now: steps that were not written have not happened, and must not be counted
                self._known[key] = (pod.uid, address, found.moments)
            if found.remove:
                context.client.resource(*POD).delete(key, uid=pod.uid, grace_period=0)
                return None
        except ConflictError as error:
            # The cache was behind, or somebody wrote at the same moment: look again at what there is then.
            context.log.debug("status of pod %s was not written: %s", key, error)
            return Result(requeue_after=_SOON)
        except NotFoundError:
            self._forget(key)
            return None
        return None if found.wake is None else Result(requeue_after=max(0.0, found.wake - self._now()))

    def _write(self, pod: Object, status: Mapping[str, Any], context: Context) -> None:
        if status == pod.get("status"):
            return
        metadata = {"resourceVersion": pod.resource_version, "uid": pod.uid}
        context.client.resource(*POD).patch(
            pod.key, {"metadata": metadata, "status": dict(status)}, subresource="status"
        )

    def _remembered(self, pod: Object) -> tuple[str, Mapping[str, float]]:
        with self._lock:
            known = self._known.get(pod.key)
            if known is not None and known[0] == pod.uid:
                return known[1], known[2]
            number = next(self._addresses) % 65_000
        return f"10.244.{number // 250}.{number % 250 + 1}", {}

    def _forget(self, key: ObjectKey) -> None:
        with self._lock:
            self._known.pop(key, None)


class NodeKeeper:
    """Makes the Node objects, says every few seconds that they are ready, and removes those it made when it stops."""

    name = "node-keeper"

    def __init__(self, client: Client, nodes: Sequence[tuple[str, Mapping[str, str]]], options: NodeOptions) -> None:
        self._resource = client.resource(*NODE)
        self._nodes = nodes
        self._options = options
        self._made: dict[str, str] = {}

    def run(self, stop: threading.Event) -> None:
        """Until `stop`; an API server that cannot be reached is tried again at the next beat."""
        try:
            while True:
                pause = self._options.heartbeat_seconds
                for name, labels in self._nodes:
                    try:
                        self._keep(name, labels)
                    except InformersError as error:
                        _log.warning("node %s could not be kept: %s", name, error)
                        pause = min(pause, 1.0)
                if stop.wait(pause):
                    return
        finally:
            self._remove()

    def _keep(self, name: str, labels: Mapping[str, str]) -> None:
        try:
            node = self._resource.get(ObjectKey("", name))
        except NotFoundError:
            node = self._make(name, labels)
        before = (node.get("status") or {}).get("conditions") or []
        self._resource.patch(
            node.key, {"status": node_status(name, before, rfc3339(time.time()))}, subresource="status"
        )

    def _make(self, name: str, labels: Mapping[str, str]) -> Object:
        metadata = {"name": name, "labels": dict(labels)}
        try:
            node = self._resource.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}})
        except AlreadyExistsError:
            return self._resource.get(ObjectKey("", name))
        self._made[name] = node.uid
        return node

    def _remove(self) -> None:
        for name, uid in self._made.items():
            try:
                self._resource.delete(ObjectKey("", name), uid=uid, timeout=1.0)
            except InformersError as error:
                _log.info("node %s was left behind: %s", name, error)


def node_status(name: str, conditions: Sequence[Mapping[str, Any]], now: str) -> dict[str, Any]:
    """The status of a simulated node that is well."""
    facts = [
        ("MemoryPressure", False, "KubeletHasSufficientMemory"),
        ("DiskPressure", False, "KubeletHasNoDiskPressure"),
        ("PIDPressure", False, "KubeletHasSufficientPID"),
        ("Ready", True, "KubeletReady"),
    ]
    after = [dict(condition) for condition in conditions]
    for type, holds, reason in facts:
        after = set_condition(after, type, holds, reason=reason, message="simulated", now=now)
    resources = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000"}
    return {
        "conditions": [{**condition, "lastHeartbeatTime": now} for condition in after],
        "addresses": [{"type": "InternalIP", "address": HOST_IP}, {"type": "Hostname", "address": name}],
        "capacity": resources,
        "allocatable": resources,
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "simulated://1",
            "kernelVersion": "simulated",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.0.0-simulated",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "simulated",
            "systemUUID": "",
        },
    }
