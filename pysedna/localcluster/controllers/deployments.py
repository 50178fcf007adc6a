"""The Deployment controller: a ReplicaSet a template, rolled from the old one to the new one.

Thin: `rollout` decides. Every write of a ReplicaSet names the version it was decided on, so a decision on an old
cache is refused by the server and taken again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from informers import Lister, Object, ObjectKey
from informers.errors import AlreadyExistsError, ConflictError, ForbiddenError, NotFoundError
from pysedna.controller import Context, EventRecorder, Manager, Result, Watch, owner_reference
from pysedna.localcluster.controllers import rollout
from pysedna.localcluster.controllers.replicasets import CONTROLLER_INDEX, POD, REPLICA_SET, controller_uid

DEPLOYMENT = ("apps/v1", "Deployment")
_NONE: Mapping[str, str] = MappingProxyType({})
_SOON = 0.05


def setup_deployments(manager: Manager) -> None:
    """Add the Deployment controller to a manager."""
    replica_sets = manager.informers.informer(*REPLICA_SET, indexers={CONTROLLER_INDEX: controller_uid})
    pods = manager.informers.informer(*POD, indexers={CONTROLLER_INDEX: controller_uid})
    reconciler = Deployments(
        manager.informers.informer(*DEPLOYMENT).lister,
        replica_sets.lister,
        pods.lister,
        manager.recorder("deployment-controller"),
    )
    # Recreate waits for old pods to be gone, of which the status of their ReplicaSet says nothing.
    gone = Watch(POD, reconciler.deployment_of_pod, predicates=[lambda event: event.new is None])
    manager.controller("deployments", DEPLOYMENT, reconciler, owns=[REPLICA_SET], watches=[gone], workers=2)


class Deployments:
    """Makes, scales and removes ReplicaSets, and writes the status."""

    def __init__(
        self,
        deployments: Lister,
        replica_sets: Lister,
        pods: Lister,
        recorder: EventRecorder,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._deployments = deployments
        self._replica_sets = replica_sets
        self._pods = pods
        self._recorder = recorder
        self._now = now

    def deployment_of_pod(self, pod: Object) -> list[ObjectKey]:
        """The key of the Deployment whose ReplicaSet controls the pod."""
        owner = pod.controller
        if owner is None or owner.kind != "ReplicaSet":
            return []
        try:
            above = self._replica_sets.get(ObjectKey(pod.namespace, owner.name)).controller
        except NotFoundError:
            return []
        return [ObjectKey(pod.namespace, above.name)] if above is not None and above.kind == "Deployment" else []

    def reconcile(self, key: ObjectKey, context: Context) -> Result | None:
        """Take a Deployment one step further; the next one follows from the events of this one."""
        try:
            cached = self._deployments.get(key)
        except NotFoundError:
            return None
        deployment = cached.to_dict()
        owned = [one.to_dict() for one in self._replica_sets.by_index(CONTROLLER_INDEX, cached.uid)]
        pods = [pod.to_dict() for one in owned for pod in self._pods.by_index(CONTROLLER_INDEX, one["metadata"]["uid"])]
        found = rollout.plan(deployment, owned, pods)
        try:
            self._carry_out(cached, found, context)
            status, wake = rollout.status(deployment, owned, self._now(), new=found.new)
            self._write_status(cached, status, found.revision, context)
        except ConflictError as error:
            context.log.debug("%s was decided on an old state: %s", key, error)
            return Result(requeue_after=_SOON)
        return None if wake is None else Result(requeue_after=max(0.0, wake - self._now()))

    def _carry_out(self, deployment: Object, found: rollout.Rollout, context: Context) -> None:
        replica_sets = context.client.resource(*REPLICA_SET)
        if found.create is not None:
            self._create(deployment, found.create, context)
        for scale in found.scale:
            self._scale(deployment, scale, replica_sets)
        self._annotate(deployment, found, replica_sets)
        for one in found.remove:
            old = Object.from_dict(one)
            replica_sets.delete(old.key, uid=old.uid, resource_version=old.resource_version)

    def _create(self, deployment: Object, fresh: dict[str, Any], context: Context) -> None:
        fresh["metadata"]["ownerReferences"] = [owner_reference(deployment)]
        resource = context.client.resource(*REPLICA_SET)
        try:
            made = resource.create(fresh)
        except AlreadyExistsError:
            present = resource.get(ObjectKey(deployment.namespace, fresh["metadata"]["name"]))
            if present.controller is None or present.controller.uid != deployment.uid:
                # The name is somebody else's: the next attempt makes another one.
                count = int((deployment.to_dict().get("status") or {}).get("collisionCount") or 0) + 1
                self._patch_status(deployment, {"collisionCount": count}, context)
            return
        except ForbiddenError as error:
            if error.has_cause("NamespaceTerminating"):
                return  # everything in there goes away
            raise
        self._say(deployment, "up", made.name, 0, fresh["spec"]["replicas"])

    def _scale(self, deployment: Object, scale: rollout.Scale, resource: Any) -> None:
        old = Object.from_dict(scale.replica_set)
        annotations = {rollout.DESIRED: str(deployment["spec"].get("replicas", 1))}
        metadata = {"resourceVersion": old.resource_version, "annotations": annotations}
        resource.patch(old.key, {"metadata": metadata, "spec": {"replicas": scale.replicas}})
        before = int(scale.replica_set["spec"].get("replicas", 1))
        self._say(deployment, "up" if scale.replicas > before else "down", old.name, before, scale.replicas)

    def _annotate(self, deployment: Object, found: rollout.Rollout, resource: Any) -> None:
        """An old template that became the new one again gets a new revision."""
        if found.new is None or any(scale.replica_set is found.new for scale in found.scale):
            return
        new = Object.from_dict(found.new)
        if new.annotations.get(rollout.REVISION) != str(found.revision):
            annotations = {rollout.REVISION: str(found.revision)}
            resource.patch(new.key, {"metadata": {"resourceVersion": new.resource_version, "annotations": annotations}})

    def _write_status(self, deployment: Object, status: Mapping[str, Any], revision: int, context: Context) -> None:
        annotations = {rollout.REVISION: str(revision)} if revision else {}
        if annotations.items() <= deployment.annotations.items() and status == deployment.to_dict().get("status"):
            return
        self._patch_status(deployment, status, context, annotations)

    def _patch_status(
        self, deployment: Object, status: Mapping[str, Any], context: Context, annotations: Mapping[str, str] = _NONE
    ) -> None:
        metadata = {"resourceVersion": deployment.resource_version, "annotations": dict(annotations)}
        body = {"metadata": metadata, "status": dict(status)}
        try:
            context.client.resource(*DEPLOYMENT).patch(deployment.key, body, subresource="status")
        except NotFoundError:
            context.log.debug("deployment %s is gone", deployment.key)

    def _say(self, deployment: Object, way: str, name: str, before: int, after: int) -> None:
        text = f"Scaled {way} replica set {name} from {before} to {after}"
        self._recorder.event(deployment, "Normal", "ScalingReplicaSet", text)
