"""A source's end of an informer's queue."""

from __future__ import annotations

from collections.abc import Iterable

from informers.delta_fifo import DeltaFIFO
from informers.key import ObjectKey
from informers.object import Object

__all__ = ["QueueSink"]


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

    def replace(self, objs: Iterable[Object], resource_version: str = "", *, keep: Iterable[ObjectKey] = ()) -> None:
        """See `Sink`."""
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
