"""What was seen in the demo's namespace, in order, and the questions that the story asks about it (pure).

The end of a story proves little: two pods may have been created and one of them deleted again. So every event of the
watches is kept, and a worker that exists twice at any moment is noticed when it happens. Filled by the recorder.
"""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from informers import Object, ObjectKey
from pysedna.demo.objects import environment

JOB_KINDS = ("federatedlearningjob", "jointinferenceservice")


class Sighting(NamedTuple):
    """One event of a watch: seconds since the start, ADDED, MODIFIED or DELETED, and the object as it then was."""

    seconds: float
    type: str
    object: Object


class History:
    """All sightings, and what lives now. Not thread-safe: the recorder calls it under its lock."""

    def __init__(self) -> None:
        self.sightings: list[Sighting] = []
        self.crowds: list[str] = []  # each a sentence about a worker that existed twice
        self.gaps = 0  # times that a watch could not be resumed, so that something may have been missed
        self._live: dict[tuple[str, ObjectKey], Object] = {}

    def observe(self, type: str, obj: Object, seconds: float) -> None:
        """Takes one event in; an object that was replaced under its name unseen is first noted as deleted."""
        place = (obj.kind, obj.key)
        before = self._live.get(place)
        if before is not None and before.uid != obj.uid:
            self.sightings.append(Sighting(seconds, "DELETED", before))
            del self._live[place]
        self.sightings.append(Sighting(seconds, type, obj))
        if type == "DELETED":
            self._live.pop(place, None)
            return
        self._live[place] = obj
        if obj.kind == "Pod" and type == "ADDED":
            self._note_crowd(obj, seconds)

    def replace(self, kind: str, listed: list[Object], seconds: float) -> None:
        """Takes in a whole list of one kind, as the events that lead from what was known to it."""
        present = {obj.key for obj in listed}
        for obj in self.live(kind):
            if obj.key not in present:
                self.observe("DELETED", obj, seconds)
        for obj in listed:
            known = self._live.get((kind, obj.key))
            if known is None or known.uid != obj.uid:
                self.observe("ADDED", obj, seconds)
            elif known.resource_version != obj.resource_version:
                self.observe("MODIFIED", obj, seconds)

    def get(self, kind: str, name: str) -> Object | None:
        """The object of that kind and name, if it lives."""
        return next((obj for obj in self.live(kind) if obj.name == name), None)

    def live(self, kind: str, labels: Mapping[str, str] | None = None) -> list[Object]:
        """The objects of that kind that exist, in order of name; those that carry all of `labels`."""
        found = [obj for (of_kind, _), obj in self._live.items() if of_kind == kind and _carries(obj, labels)]
        return sorted(found, key=lambda obj: obj.name)

    def all_live(self) -> list[Object]:
        """The objects of every kind that exist."""
        return list(self._live.values())

    def mark(self) -> int:
        """A point in time for `since`."""
        return len(self.sightings)

    def since(self, mark: int, type: str, kind: str, labels: Mapping[str, str] | None = None) -> list[Object]:
        """The objects of the events of that type and kind after `mark`."""
        return [
            seen.object
            for seen in self.sightings[mark:]
            if seen.type == type and seen.object.kind == kind and _carries(seen.object, labels)
        ]

    def _note_crowd(self, pod: Object, seconds: float) -> None:
        place = worker_place(pod)
        if place is None:
            return
        others = [
            other
            for other in self.live("Pod")
            if other.uid != pod.uid and worker_place(other) == place and not _leaves_its_place(other)
        ]
        for other in others:
            self.crowds.append(f"{pod.name} was created at {seconds:.2f} s while {other.name} held the same place")


def worker_place(pod: Object) -> Hashable | None:
    """What only one pod may be at a time: a job and a worker name, and for a Deployment's pods their ReplicaSet too.

    It deliberately does not use the pod's name, which could never exist twice. None for a pod that is no worker.
    """
    job = next((uid for kind in JOB_KINDS if (uid := pod.labels.get(f"{kind}.sedna.io/uid"))), None)
    if job is None:
        return None
    # A new template, or a new Deployment, brings a ReplicaSet whose pod may start while the old one is on its way out.
    replica_set = pod.controller.uid if pod.controller and pod.controller.kind == "ReplicaSet" else None
    return job, environment(pod).get("WORKER_NAME"), replica_set


def is_running(pod: Object) -> bool:
    """Whether the pod runs and nobody has asked it to stop."""
    return phase(pod) == "Running" and pod.deletion_timestamp is None


def phase(pod: Object) -> str:
    """The pod's phase; Pending before anybody wrote one."""
    return str(pod.get("status", {}).get("phase", "Pending"))


def _leaves_its_place(pod: Object) -> bool:
    # A ReplicaSet replaces a pod as soon as it is asked to stop; a bare worker holds its place until it is gone.
    of_replica_set = pod.controller is not None and pod.controller.kind == "ReplicaSet"
    return of_replica_set and (pod.deletion_timestamp is not None or phase(pod) in ("Succeeded", "Failed"))


def _carries(obj: Object, labels: Mapping[str, str] | None) -> bool:
    return labels is None or all(obj.labels.get(name) == value for name, value in labels.items())
