"""The cache behind an informer: objects by key, and by whatever values index functions find in them.

Client-go's thread-safe store with two differences: an index function that raises never leaves the store half changed
(the error comes before any change, or is reported and the object is left out of that index), and the values under
which an object is indexed are remembered, so that a function that changes its mind cannot leave stale entries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from informers.errors import UnknownIndex
from informers.field_index import FieldIndex
from informers.key import ObjectKey, as_key
from informers.object import Object

__all__ = ["NAMESPACE_INDEX", "IndexFunction", "Indexer", "IndexerView", "namespace_index"]

NAMESPACE_INDEX = "namespace"

IndexFunction = Callable[[Object], Iterable[str]]
IndexErrorHook = Callable[[str, ObjectKey, BaseException], None]
Change = tuple[ObjectKey, Object | None]
# Aliases, because inside the class the name `list` is the method's.
Objects = list[Object]
Keys = list[ObjectKey]
Strings = list[str]
Columns = list[tuple[str, ...]]


class Keyed(Protocol):
    """Anything with a key: an object, or the tombstone of one."""

    @property
    def key(self) -> ObjectKey: ...


def namespace_index(obj: Object) -> Sequence[str]:
    """Index function of `NAMESPACE_INDEX`; cluster-scoped objects are under ""."""
    return (obj.key.namespace,)


class _Index:
    """Keys by value, and what each key stands under."""

    __slots__ = ("entries", "fn", "name", "values")

    def __init__(self, name: str, fn: IndexFunction) -> None:
        self.name = name
        self.fn = fn
        # Dicts as ordered sets: smaller than sets, and lookups come out in a stable order.
        self.entries: dict[str, dict[ObjectKey, None]] = {}
        self.values: dict[ObjectKey, tuple[str, ...]] = {}

    def put(self, key: ObjectKey, values: tuple[str, ...]) -> None:
        before = self.values.get(key, ())
        if values == before:
            return
        for value in before:
            if value not in values:
                self._remove(key, value)
        for value in values:
            self._insert(key, value)
        if values:
            self.values[key] = values
        else:
            self.values.pop(key, None)

    def drop(self, key: ObjectKey) -> None:
        for value in self.values.pop(key, ()):
            self._remove(key, value)

    def apply(self, changes: Sequence[Change], column: Columns, turns: Sequence[Change]) -> None:
        """Take changes in: `column` has the values of each, `turns` those among them that add or remove a key."""
        put = self.put
        for (key, obj), values in zip(changes, column, strict=True):
            if obj is None:
                self.drop(key)
            else:
                put(key, values)

    def found(self, obj: Object) -> tuple[str, ...]:
        """What the function says of an object. Raises what it raises, and TypeError if it gives no strings."""
        values = self.fn(obj)
        if isinstance(values, str):
            raise TypeError(f"index function {self.name!r} gave a string where an iterable of strings is wanted")
        found = tuple(values)
        for value in found:
            if not isinstance(value, str):
                raise TypeError(f"index function {self.name!r} gave {value!r}, which is not a string")
        return found if len(found) < 2 else tuple(dict.fromkeys(found))

    def _insert(self, key: ObjectKey, value: str) -> None:
        keys = self.entries.get(value)
        if keys is None:
            keys = self.entries[value] = {}
        keys[key] = None

    def _remove(self, key: ObjectKey, value: str) -> None:
        keys = self.entries[value]
        keys.pop(key, None)
        if not keys:
            del self.entries[value]  # an empty set kept for each value ever seen would be a leak


class _NamespaceIndex(_Index):
    """The index of `namespace_index`, whose values the key says: there is nothing to remember, and never a change."""

    __slots__ = ()

    def apply(self, changes: Sequence[Change], column: Columns, turns: Sequence[Change]) -> None:
        for key, obj in turns:
            if obj is None:
                self._remove(key, key.namespace)
            else:
                self._insert(key, key.namespace)


class _TextIndex(_Index):
    """An index of a function that is known to give tuples of different texts, and needs no watching."""

    __slots__ = ()

    def found(self, obj: Object) -> tuple[str, ...]:
        return self.fn(obj)  # type: ignore[return-value]


def _index(name: str, fn: IndexFunction) -> _Index:
    if fn is namespace_index:
        return _NamespaceIndex(name, fn)
    return _TextIndex(name, fn) if isinstance(fn, FieldIndex) else _Index(name, fn)


class Indexer:
    """Thread-safe store of objects by key, with any number of indices.

    Objects are shared, never copied. No method blocks longer than the work on the store itself. A value that is not
    an `Object` raises TypeError, an index function's own exception passes through; both before anything changes.
    With `on_index_error` an exception of an index function is given to that hook (with the index's name and the key)
    instead, and the object is stored and absent from that index.
    """

    def __init__(
        self,
        indexers: Mapping[str, IndexFunction] | None = None,
        *,
        on_index_error: IndexErrorHook | None = None,
    ) -> None:
        self._lock = threading.RLock()
        self._items: dict[ObjectKey, Object] = {}
        self._indices = {name: _index(name, fn) for name, fn in (indexers or {}).items()}
        self._on_index_error = on_index_error
        self._version = ""

    @property
    def resource_version(self) -> str:
        """The version of the last change: of the object written, or of the list given to `replace`."""
        return self._version

    # ---- writing

    def add(self, obj: Object) -> None:
        """Store `obj` under its key, in the place of what was there."""
        self.apply([(_checked(obj).key, obj)])
        self._version = obj.resource_version

    update = add

    def delete(self, obj: Keyed) -> None:
        """Remove what is stored under the key of `obj` (an object or a tombstone); nothing there is no error."""
        self.apply([(obj.key, None)])
        if isinstance(obj, Object):
            self._version = obj.resource_version

    def apply(self, changes: Sequence[Change]) -> None:
        """Make several changes under one lock: (key, object) stores, (key, None) removes. All or nothing."""
        with self._lock:
            indices = [*self._indices.values()]
            columns = [self._column(index, changes) for index in indices]
            items = self._items
            turns: list[Change] = []
            for change in changes:
                key, obj = change
                if obj is None:
                    if items.pop(key, None) is not None:
                        turns.append(change)
                else:
                    if key not in items:
                        turns.append(change)
                    items[key] = obj
            for index, column in zip(indices, columns, strict=True):
                index.apply(changes, column, turns)

    def replace(self, objs: Iterable[Object], resource_version: str = "", *, keep: Iterable[ObjectKey] = ()) -> None:
        """Make `objs` the whole content, in one step. A key given twice holds the last; `keep`: keys left alone."""
        items = {_checked(obj).key: obj for obj in objs}
        with self._lock:
            for key in keep:
                if key not in items and key in self._items:
                    items[key] = self._items[key]
            indices = {name: self._filled(name, index.fn, items) for name, index in self._indices.items()}
            self._items, self._indices, self._version = items, indices, resource_version

    # ---- reading

    def get(self, key: ObjectKey | str) -> Object | None:
        """The object under `key`, or None."""
        # One dict look-up is atomic; a reader need not wait for a batch that is being applied.
        return self._items.get(as_key(key))

    def list(self) -> Objects:
        """All objects, in the order in which their keys came."""
        with self._lock:
            return [*self._items.values()]

    def keys(self) -> Keys:
        """All keys, in the order in which they came."""
        with self._lock:
            return [*self._items]

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    # ---- indices

    def add_index(self, name: str, fn: IndexFunction) -> None:
        """Add an index, also of what is stored already. Raises ValueError if there is one of that name."""
        with self._lock:
            if name in self._indices:
                raise ValueError(f"an index named {name!r} exists already")
            # A new dict, because readers of other threads may be iterating over the present one.
            self._indices = {**self._indices, name: self._filled(name, fn, self._items)}

    def index_names(self) -> Strings:
        """The names of all indices."""
        return [*self._indices]

    def by_index(self, name: str, value: str) -> Objects:
        """The objects for which the index function gives `value`. Raises `UnknownIndex`."""
        with self._lock:
            items = self._items
            return [items[key] for key in self._index(name).entries.get(value, ())]

    def index_keys(self, name: str, value: str) -> Keys:
        """The keys of those objects, sorted. Raises `UnknownIndex`."""
        with self._lock:
            return sorted(self._index(name).entries.get(value, ()))

    def index_values(self, name: str) -> Strings:
        """Every value that the index holds at present. Raises `UnknownIndex`."""
        with self._lock:
            return [*self._index(name).entries]

    # ---- inside

    def _index(self, name: str) -> _Index:
        index = self._indices.get(name)
        if index is None:
            known = ", ".join(sorted(self._indices)) or "none"
            raise UnknownIndex(f"no index named {name!r}; there is: {known}")
        return index

    def _filled(self, name: str, fn: IndexFunction, items: Mapping[ObjectKey, Object]) -> _Index:
        index = _index(name, fn)
        changes = [*items.items()]
        index.apply(changes, self._column(index, changes), changes)
        return index

    def _column(self, index: _Index, changes: Sequence[Change]) -> Columns:
        """What one index function says of many objects."""
        column: Columns = []
        if isinstance(index, _NamespaceIndex):
            return column  # the keys say it
        found, add = index.found, column.append
        for key, obj in changes:
            try:
                add(found(obj) if obj is not None else ())
            except BaseException as error:
                if self._on_index_error is None:
                    raise
                self._on_index_error(index.name, key, error)
                add(())
        return column


def _checked(obj: Object) -> Object:
    if not isinstance(obj, Object):
        raise TypeError(f"the store takes informers.Object, not {type(obj).__name__}")
    return obj


class IndexerView:
    """The reading half of an informer's store, and `add_index`. Thread-safe."""

    def __init__(self, indexer: Indexer) -> None:
        self.get = indexer.get
        self.list = indexer.list
        self.keys = indexer.keys
        self.add_index = indexer.add_index
        self.index_names = indexer.index_names
        self.by_index = indexer.by_index
        self.index_keys = indexer.index_keys
        self.index_values = indexer.index_values
        self._indexer = indexer

    def __len__(self) -> int:
        return len(self._indexer)

    def __contains__(self, key: object) -> bool:
        return key in self._indexer
