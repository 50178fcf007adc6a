"""Where a reflector puts what it sees, and a source's end of an informer's queue, which is one such place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from informers.delta_fifo import Delta, DeltaFIFO, DeltaType
from informers.key import ObjectKey
from informers.object import Object
from informers.source import WatchEvent

__all__ = ["EVENT_TYPES", "QueueSink", "Sink", "runs"]

_DELTA_TYPES = {"ADDED": DeltaType.ADDED, "MODIFIED": DeltaType.UPDATED, "DELETED": DeltaType.DELETED}
EVENT_TYPES = {delta_type: event_type for event_type, delta_type in _DELTA_TYPES.items()}


class Sink(Protocol):
    """Where a reflector puts what it sees: a `DeltaFIFO`, an `Indexer`, or anything like them.

    Methods may raise: the error is counted and logged, and the reflector goes on (after a failed `replace` it lists
    again). `keep` of `replace` names objects that are listed but could not be read. Where a sink has a method
    `extend(changes)`, a sequence of `Delta`s, it is called for several events at once; if it raises, it must not have
    taken any of them.
    """

    def add(self, obj: Object) -> None: ...
    def update(self, obj: Object) -> None: ...
    def delete(self, obj: Object) -> None: ...
    def replace(
        self, objs: Iterable[Object], resource_version: str = "", *, keep: Iterable[ObjectKey] = ()
    ) -> None: ...


def runs(events: Iterable[WatchEvent], plain: Callable[[], bool]) -> Iterator[list[Delta] | WatchEvent]:
    """Changes in a row as one list of deltas, and each other event by itself.

    While not `plain()`, each change is by itself too; it is asked at the beginning and after each such event.
    """
    changes: list[Delta] = []
    types: Mapping[str, DeltaType] = _DELTA_TYPES if plain() else {}
    for event in events:
        type_ = types.get(event.type)
        if type_ is not None:
            changes.append(Delta(type_, event.object))
            continue
        if changes:
            yield changes
            changes = []
        yield event
        types = _DELTA_TYPES if plain() else {}
    if changes:
        yield changes


class QueueSink:
    """Puts what one reflector sees into the queue, and remembers up to which version everything has been queued.

    With `namespace` it is one of several sources of the queue, and takes objects of that namespace only: ValueError.
    """

    def __init__(self, fifo: DeltaFIFO, namespace: str | None) -> None:
        self._fifo = fifo
        self._namespace = namespace
        self.version = ""

    def add(self, obj: Object) -> None:
        """See `Sink`."""
        self._check(obj.key)
        self._fifo.add(obj)
        self.version = obj.resource_version

    def update(self, obj: Object) -> None:
        """See `Sink`."""
        self._check(obj.key)
        self._fifo.update(obj)
        self.version = obj.resource_version

    def delete(self, obj: Object) -> None:
        """See `Sink`."""
        self._fifo.delete(obj)
        self.version = obj.resource_version

    def extend(self, changes: Sequence[Delta]) -> None:
        """See `Sink`."""
        if self._namespace is not None:
            for change in changes:
                if change.type is not DeltaType.DELETED:
                    self._check(change.key)
        self._fifo.extend(changes)
        if changes and isinstance(last := changes[-1].object, Object):
            self.version = last.resource_version

    def replace(self, objs: Iterable[Object], resource_version: str = "", *, keep: Iterable[ObjectKey] = ()) -> None:
        """See `Sink`."""
        if self._namespace is not None:
            objs = [*objs]
            for obj in objs:
                self._check(obj.key)
        self._fifo.replace(objs, resource_version, namespace=self._namespace, keep=keep)
        self.version = resource_version

    def _check(self, key: ObjectKey) -> None:
        if self._namespace is None or key.namespace == self._namespace:
            return
        if not key.namespace:
            # Every source would bring all objects, and none could tell which are gone.
            raise ValueError(f"{key} is cluster scoped: ask for this kind with namespace=None, not by namespaces")
        raise ValueError(f"{key} came from the source of namespace {self._namespace}")
