"""Reading an informer's cache by name, selector and index, as controllers do."""

from __future__ import annotations

from collections.abc import Iterable

from informers.errors import NotFoundError
from informers.indexer import NAMESPACE_INDEX, Indexer
from informers.key import ObjectKey, as_key
from informers.object import Object
from informers.selectors import LabelSelector

__all__ = ["Lister"]

# An alias, because inside the class the name `list` is the method's.
Objects = list[Object]


class Lister:
    """A view on a cache; no method talks to the server. Objects are shared and immutable. Thread-safe."""

    def __init__(self, indexer: Indexer, what: str) -> None:
        """`what` names the kind of object in messages."""
        self._indexer = indexer
        self._what = what

    def get(self, key: ObjectKey | str) -> Object:
        """The object under `key`. Raises `NotFoundError` if the cache has none (the server may have it already)."""
        key = as_key(key)
        obj = self._indexer.get(key)
        if obj is None:
            raise NotFoundError(f'"{key}" is not in the cache', verb="get", resource=self._what, key=key)
        return obj

    def list(self, *, selector: LabelSelector | str | None = None, namespace: str | None = None) -> Objects:
        """All objects, or those in `namespace`, whose labels the selector matches."""
        found: Iterable[Object] = self._indexer.list() if namespace is None else self._in_namespace(namespace)
        if selector is None:
            return [*found]
        if isinstance(selector, str):
            selector = LabelSelector.parse(selector)
        return [obj for obj in found if selector.matches(obj.labels)]

    def by_index(self, name: str, value: str) -> Objects:
        """The objects that the index `name` has under `value`. Raises `UnknownIndex`."""
        return self._indexer.by_index(name, value)

    def _in_namespace(self, namespace: str) -> Iterable[Object]:
        return self._indexer.by_index(NAMESPACE_INDEX, namespace)
