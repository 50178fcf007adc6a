"""From an informer's event to keys in the queue: which, and at what priority. Pure.

First events and updates that change nothing come at a low priority, so that a restart or a relist over thousands
of objects does not hold up the one that just changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from informers import Event, Object, ObjectKey, Reason
from pysedna.controller.predicates import Predicate

LOW_PRIORITY = -100
Map = Callable[[Object], Iterable[ObjectKey]]


@dataclass(frozen=True, slots=True)
class Watch:
    """A kind that a controller listens to beside its own.

    `kind`: (api_version, kind). `map`: the keys to reconcile for an object of that kind; called for the old and
    the new state of an update. `predicates`: all of them must pass. `metadata_only`: the objects come, and are
    cached, without spec, data and status.
    """

    kind: tuple[str, str]
    map: Map
    predicates: Sequence[Predicate] = ()
    metadata_only: bool = False


def own_key(obj: Object) -> tuple[ObjectKey]:
    """The mapping for a controller's own kind: the object itself."""
    return (obj.key,)


def requests(watch: Watch, event: Event) -> list[ObjectKey]:
    """The keys that this event asks to be reconciled, each once, in order."""
    if not all(predicate(event) for predicate in watch.predicates):
        return []
    objects = [obj for obj in (event.old, event.new) if obj is not None]
    return list(dict.fromkeys(key for obj in objects for key in watch.map(obj)))


def priority(event: Event) -> int:
    """`LOW_PRIORITY` for a first event or an update to the same version, else 0."""
    if event.reason is Reason.INITIAL:
        return LOW_PRIORITY
    if event.old is not None and event.new is not None:
        same = event.old.uid == event.new.uid and event.old.resource_version == event.new.resource_version
        return LOW_PRIORITY if same else 0
    return 0
