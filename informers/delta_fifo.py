"""The informer's queue: what happened to each object since it was last looked at.

Reflectors put changes in, one thread takes them out, both in batches under one lock. There is one entry a key, so the
queue holds no more keys than the store and the server have; deltas of one key stay in order of arrival. `replace`
turns a list into the deltas that lead to it, tombstones first, in one atomic step.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import chain
from typing import Protocol

import msgspec

from informers.errors import FIFOClosed, Timeout
from informers.key import ObjectKey
from informers.object import Object
from informers.version import is_older
from workqueue.clock import Clock, MonotonicClock

__all__ = ["Delta", "DeltaFIFO", "DeltaType", "Deltas", "Tombstone"]


class DeltaType(Enum):
    """What happened. REPLACED: the object is part of a new list. SYNC: nothing did, it is shown again."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    SYNC = "Sync"


_DELETED, _REPLACED = DeltaType.DELETED, DeltaType.REPLACED
_CHANGES = (DeltaType.ADDED, DeltaType.UPDATED)
_MOST_DELTAS = 1000  # of one key; whoever takes them out that late can do without some


class Tombstone(msgspec.Struct, frozen=True, gc=False):
    """A delete that was not observed: the object was missing from a list. `object` is its last known state, if any.

    Client-go's DeletedFinalStateUnknown.
    """

    key: ObjectKey
    object: Object | None


class Delta(msgspec.Struct, frozen=True, gc=False):
    """One change of one object."""

    type: DeltaType
    object: Object | Tombstone

    @property
    def key(self) -> ObjectKey:
        return self.object.key


Deltas = tuple[Delta, ...]
Transform = Callable[[Object], Object]


class KnownObjects(Protocol):
    """The store that the queue feeds, as far as the queue reads it."""

    def get(self, key: ObjectKey) -> Object | None: ...
    def keys(self) -> Iterable[ObjectKey]: ...
    def __contains__(self, key: object) -> bool: ...


class DeltaFIFO:
    """Queue of `Deltas` by object. Thread-safe.

    `known` is the store that the consumer fills: deletes of what is neither there nor queued are dropped, and
    `replace` derives deletes from it. `transform` is applied once to every object as it comes in, never to tombstones
    or SYNC. If it raises, `add`, `update`, `delete` and `extend` raise before anything changed; with `on_poison` the
    hook gets the key and the error instead and the change is left out. `replace` always leaves such an item out and
    keeps what is known under its key. With `namespaces` the queue is fed by one source for each of them: `replace`
    then says which one it lists, and `has_synced` waits for all.

    Of one key at most a thousand or so deltas are kept while nobody takes them out: beyond that, what an object went
    through between two of its changes is dropped.
    After `close` what is queued is still handed out; writes are still taken.
    """

    def __init__(
        self,
        known: KnownObjects | None = None,
        *,
        transform: Transform | None = None,
        on_poison: Callable[[ObjectKey, BaseException], None] | None = None,
        namespaces: Iterable[str] = (),
        clock: Clock | None = None,
    ) -> None:
        self._known = known
        self._transform = transform
        self._on_poison = on_poison
        self._clock: Clock = clock or MonotonicClock()
        # Re-entrant, because `process` runs under it and may add.
        self._condition = threading.Condition(threading.RLock())
        # Most keys have one delta when they are taken out; it stands by itself, so that nothing needs collecting.
        self._items: dict[ObjectKey, Delta | list[Delta]] = {}
        # The order of the keys. Popping from the front of the dict itself would be quadratic.
        self._queue: deque[ObjectKey] = deque()
        self._unlisted: set[str] = set(namespaces) or {""}
        self._by_namespace = bool(namespaces)
        self._initial = 0  # entries from the front of the queue to the last one of a first list
        self._processing = False
        self._interrupted = False
        self._closed = False

    # ---- writing

    def add(self, obj: Object) -> None:
        """Queue that `obj` was added."""
        self.extend([Delta(DeltaType.ADDED, obj)])

    def update(self, obj: Object) -> None:
        """Queue that `obj` was changed."""
        self.extend([Delta(DeltaType.UPDATED, obj)])

    def delete(self, obj: Object | Tombstone) -> None:
        """Queue that `obj` was deleted; dropped if its key is neither queued nor known."""
        self.extend([Delta(DeltaType.DELETED, obj)])

    def extend(self, changes: Iterable[Delta]) -> None:
        """Queue several changes under one lock, in order."""
        if self._transform is None:
            prepared = [*changes]
        else:
            prepared = [change for change in map(self._prepared, changes) if change is not None]
        if not prepared:
            return
        with self._condition:
            if not self._by_namespace and self._unlisted:
                self._unlisted.clear()  # who adds before the first list does not mean to give one
            self._append_all(prepared)
            self._condition.notify_all()

    def replace(
        self,
        objs: Iterable[Object],
        resource_version: str = "",
        *,
        namespace: str | None = None,
        keep: Iterable[ObjectKey] = (),
    ) -> None:
        """Make the queue lead to exactly `objs`: DELETED tombstones for what is missing, then REPLACED in list order.

        `keep` names listed keys whose objects could not be read: they are neither deleted nor changed. `namespace`
        limits the step to that namespace. A key listed twice counts once, with its last object.
        `resource_version`, the version of the list, is taken for symmetry with `Indexer.replace` and not needed here.
        """
        kept = set(keep)
        if self._transform is None:
            listed = {obj.key: obj for obj in objs}
        else:
            listed = self._transformed_list(objs, kept)
        with self._condition:
            tombstones = self._missing(listed, kept, namespace)
            self._append_all([Delta(_DELETED, tombstone) for tombstone in tombstones])
            self._append_all([Delta(_REPLACED, obj) for obj in listed.values()])
            source = namespace if namespace is not None else ""
            if source in self._unlisted:
                self._unlisted.discard(source)
                initial = listed.keys() | {tombstone.key for tombstone in tombstones} if tombstones else listed.keys()
                behind = next((index for index, key in enumerate(reversed(self._queue)) if key in initial), None)
                if behind is not None:
                    self._initial = max(self._initial, len(self._queue) - behind)
            self._condition.notify_all()

    def resync(self) -> None:
        """Queue SYNC for every known object that has nothing queued (so a pending change is never overtaken)."""
        if self._known is None:
            return
        with self._condition:
            for key in self._known.keys():  # noqa: SIM118 - a store, not a dict
                obj = self._known.get(key)
                if obj is not None and key not in self._items:
                    self._append(key, Delta(DeltaType.SYNC, obj))
            self._condition.notify_all()

    def close(self) -> None:
        """Let `pop` raise `FIFOClosed` once the queue is empty."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def interrupt(self) -> None:
        """Let the `pop` that waits now, or the next one that would wait, raise `Timeout` early."""
        with self._condition:
            self._interrupted = True
            self._condition.notify_all()

    # ---- taking out

    def pop(self, process: Callable[[Deltas, bool], None], timeout: float | None = None) -> Deltas:
        """Wait for an entry, give it to `process(deltas, is_initial)` under the queue's lock, and return it.

        `is_initial`: the first list had not been handed out before. An exception of `process` passes to the caller;
        the deltas are gone then. Adding from `process` is allowed, popping raises RuntimeError. Raises `FIFOClosed`
        when the queue is closed and empty, `Timeout` after `timeout` seconds (0 polls).
        """
        result: list[Deltas] = []

        def one(batch: Sequence[Deltas], is_initial: bool) -> None:
            result.append(batch[0])
            process(batch[0], is_initial)

        self.pop_batch(one, 1, timeout)
        return result[0]

    def pop_batch(
        self, process: Callable[[Sequence[Deltas], bool], None], limit: int = 1000, timeout: float | None = None
    ) -> int:
        """As `pop`, for up to `limit` entries in one call of `process`; waits for the first, never for more.

        A batch ends where the first list ends. Returns the number of entries.
        """
        with self._condition:
            self._wait(timeout)
            is_initial = not self.has_synced()
            # so that no later change passes for a part of the first list
            batch = self._take(min(limit, self._initial) if self._initial else limit)
            self._processing = True
            try:
                process(batch, is_initial)
            finally:
                self._processing = False
                self._initial = max(0, self._initial - len(batch))
            return len(batch)

    def has_synced(self) -> bool:
        """Whether the first list was handed out and processed to its last item."""
        with self._condition:
            return not self._unlisted and not self._initial

    def __len__(self) -> int:
        with self._condition:
            return len(self._items)

    # ---- inside

    def _transformed_list(self, objs: Iterable[Object], kept: set[ObjectKey]) -> dict[ObjectKey, Object]:
        listed: dict[ObjectKey, Object] = {}
        for obj in objs:
            try:
                listed[obj.key] = self._transformed(obj)
            except BaseException as error:  # a transform is foreign code; one bad item must not stop a list
                if self._on_poison is None and not isinstance(error, Exception):
                    raise
                kept.add(obj.key)
                if self._on_poison is not None:
                    self._on_poison(obj.key, error)
        return listed

    def _transformed(self, obj: Object) -> Object:
        if self._transform is None:
            return obj
        result = self._transform(obj)
        if not isinstance(result, Object):
            raise TypeError(f"the transform gave {type(result).__name__}, not informers.Object")
        if result.key != obj.key:
            raise ValueError(f"the transform changed the key from {obj.key} to {result.key}")
        return result

    def _prepared(self, change: Delta) -> Delta | None:
        if self._transform is None or change.type is DeltaType.SYNC or isinstance(change.object, Tombstone):
            return change
        try:
            return Delta(change.type, self._transformed(change.object))
        except BaseException as error:
            if self._on_poison is None:
                raise
            self._on_poison(change.object.key, error)
            return None

    def _append_all(self, changes: Iterable[Delta]) -> None:
        items, enqueue = self._items, self._queue.append
        for delta in changes:
            key = delta.object.key
            if key in items or delta.type is _DELETED:
                self._append(key, delta)
            else:
                items[key] = delta
                enqueue(key)

    def _append(self, key: ObjectKey, delta: Delta) -> None:
        queued = self._items.get(key)
        if queued is None:
            if delta.type is not _DELETED or (self._known is not None and key in self._known):
                self._items[key] = delta
                self._queue.append(key)
            return
        if not isinstance(queued, list):
            queued = self._items[key] = [queued]
        if delta.type is not _DELETED or queued[-1].type is not _DELETED:
            queued.append(delta)
        elif isinstance(queued[-1].object, Tombstone):
            queued[-1] = delta  # an observed delete tells more than a derived one
        if len(queued) > _MOST_DELTAS:
            _shorten(queued)

    def _missing(self, listed: dict[ObjectKey, Object], kept: set[ObjectKey], namespace: str | None) -> list[Tombstone]:
        known = self._known.keys() if self._known is not None else ()
        found = []
        for key in dict.fromkeys(chain(self._items, known)):
            if key in listed or key in kept or (namespace is not None and key.namespace != namespace):
                continue
            found.append(Tombstone(key, self._last_state(key)))
        return found

    def _last_state(self, key: ObjectKey) -> Object | None:
        queued = self._items.get(key)
        if queued is not None:
            newest = (queued[-1] if isinstance(queued, list) else queued).object
            return newest.object if isinstance(newest, Tombstone) else newest
        return self._known.get(key) if self._known is not None else None

    def _wait(self, timeout: float | None) -> None:
        if self._processing:  # only the thread inside `process` can get here: it holds the lock
            raise RuntimeError("process must not pop from the queue that runs it")
        deadline = None if timeout is None else self._clock.now() + timeout
        while not self._queue:
            if self._closed:
                raise FIFOClosed("the queue is closed")
            left = None if deadline is None else deadline - self._clock.now()
            if self._interrupted or (left is not None and left <= 0):
                self._interrupted = False
                raise Timeout("nothing was queued in time")
            self._clock.wait(self._condition, left)

    def _take(self, limit: int) -> list[Deltas]:
        items, queue = self._items, self._queue
        batch: list[Deltas] = []
        for _ in range(min(limit, len(queue))):
            queued = items.pop(queue.popleft())
            batch.append(tuple(queued) if isinstance(queued, list) else (queued,))
        return batch


def _shorten(deltas: list[Delta]) -> None:
    """Drop the changes of an object that its last delta makes needless; they are too many of one key.

    An object of which all is dropped but its end, and which came after another one's end, was never there.
    """
    last = deltas[-1]
    if not isinstance(last.object, Object) or not last.object.uid or last.type not in (*_CHANGES, _DELETED):
        return
    before = len(deltas)
    while len(deltas) > 1 and _supersedes(last.object, deltas[-2]):
        del deltas[-2]
    if last.type is _DELETED and 1 < len(deltas) < before and deltas[-2].type is _DELETED:
        del deltas[-1]


def _supersedes(obj: Object, delta: Delta) -> bool:
    before = delta.object
    return (
        delta.type in _CHANGES
        and isinstance(before, Object)
        and before.uid == obj.uid
        and not is_older(obj.resource_version, before.resource_version)
    )
