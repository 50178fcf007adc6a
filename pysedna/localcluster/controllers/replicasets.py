"""The ReplicaSet controller: as many pods as wanted, no surplus.

Thin: `replica_set_plan` decides. Pods belong to a ReplicaSet by controller reference; strays are not adopted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from informers import Lister, Object, ObjectKey
from informers.errors import ApiError, ConflictError, NotFoundError
from pysedna.controller import (
    Context,
    EventRecorder,
    Manager,
    Result,
    owner_reference,
    rfc3339,
    set_condition,
)
from pysedna.localcluster.controllers.own_writes import OwnWrites
from pysedna.localcluster.controllers.replica_set_plan import ReplicaSetPlan, plan, pod_of

POD, REPLICA_SET = ("v1", "Pod"), ("apps/v1", "ReplicaSet")
CONTROLLER_INDEX = "cluster-controller-uid"


def controller_uid(obj: Object) -> list[str]:
    """Index function: the uid of the object's controller."""
    owner = obj.controller
    return [owner.uid] if owner is not None else []


def setup_replica_sets(manager: Manager) -> None:
    """Add the ReplicaSet controller to a manager."""
    pods = manager.informers.informer(*POD, indexers={CONTROLLER_INDEX: controller_uid})
    reconciler = ReplicaSets(
        manager.informers.informer(*REPLICA_SET).lister,
        pods.lister,
        OwnWrites(pods),
        manager.recorder("replicaset-controller"),
    )
    manager.controller("replica-sets", REPLICA_SET, reconciler, owns=[POD], workers=2)


class ReplicaSets:
    """Makes and deletes pods until there are as many as wanted, and writes the status."""

    def __init__(
        self,
        replica_sets: Lister,
        pods: Lister,
        own_writes: OwnWrites,
        recorder: EventRecorder,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._replica_sets = replica_sets
        self._pods = pods
        self._own_writes = own_writes
        self._recorder = recorder
        self._now = now

    def reconcile(self, key: ObjectKey, context: Context) -> Result | None:
        """Bring one ReplicaSet to where it should be."""
        self._own_writes.wait(key)
        try:
            cached = self._replica_sets.get(key)
        except NotFoundError:
            return None
        owned = [pod.to_dict() for pod in self._pods.by_index(CONTROLLER_INDEX, cached.uid)]
        found = plan(cached.to_dict(), owned, self._now())
        failure: ApiError | None = None
        try:
            if found.create or found.delete:
                self._carry_out(key, cached, found, context)
        except ApiError as error:
            failure = error
        self._write_status(cached, found.status, failure, context)
        if failure is not None:
            raise failure
        if found.create or found.delete:
            self._own_writes.wait(key)
        return None if found.wake is None else Result(requeue_after=max(0.0, found.wake - self._now()))

    def _carry_out(self, key: ObjectKey, replica_set: Object, found: ReplicaSetPlan, context: Context) -> None:
        pods = context.client.resource(*POD)
        pod = pod_of(replica_set.to_dict(), owner_reference(replica_set))
        for _ in range(found.create):  # one by one: the first refusal ends it, so a quota is not hammered
            context.check()
            try:
                made = pods.create(pod)
            except ApiError as error:
                if error.has_cause("NamespaceTerminating"):
                    return  # everything in there goes away: a retry or an event would only be noise
                self._recorder.event(replica_set, "Warning", "FailedCreate", f"Error creating: {error.message}")
                raise
            self._own_writes.created(key, made)
            self._recorder.event(replica_set, "Normal", "SuccessfulCreate", f"Created pod: {made.name}")
        for surplus in found.delete:
            context.check()
            doomed = Object.from_dict(surplus)
            try:
                marked = pods.delete(doomed.key, uid=doomed.uid)
            except (NotFoundError, ConflictError):
                marked = None  # gone already, perhaps with another under its name
            self._own_writes.deleted(key, doomed, marked)
            self._recorder.event(replica_set, "Normal", "SuccessfulDelete", f"Deleted pod: {doomed.name}")

    def _write_status(
        self, replica_set: Object, status: dict[str, Any], failure: ApiError | None, context: Context
    ) -> None:
        before: Mapping[str, Any] = replica_set.to_dict().get("status") or {}
        conditions = [one for one in before.get("conditions") or [] if one.get("type") != "ReplicaFailure"]
        if failure is not None:
            present = before.get("conditions") or []
            stamp = rfc3339(self._now())
            conditions = set_condition(
                present, "ReplicaFailure", True, reason="FailedCreate", message=failure.message, now=stamp
            )
        if conditions or before.get("conditions"):
            status = {**status, "conditions": conditions}
        if status == before:
            return
        metadata = {"resourceVersion": replica_set.resource_version}
        resource = context.client.resource(*REPLICA_SET)
        try:
            resource.patch(replica_set.key, {"metadata": metadata, "status": status}, subresource="status")
        except (ConflictError, NotFoundError) as error:
            context.log.debug("status of %s was not written: %s", replica_set.key, error)
