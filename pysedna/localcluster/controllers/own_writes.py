"""Reading one's own writes: what a controller wrote must be in its cache before it decides again.

Pods get generated names, so a ReplicaSet that decides on a cache from before its last creation would make them
twice. Instead of counting expectations, the run waits until the cache shows what it wrote; what it could not wait
for is waited for first next time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from informers import InformerStopped, Object, ObjectKey, SharedInformer
from pysedna.controller import Cancelled


class OwnWrites:
    """What was written for each key and has not been seen in the cache of `informer` yet. Thread-safe."""

    def __init__(self, informer: SharedInformer, *, timeout: float = 10.0) -> None:
        self._informer = informer
        self._timeout = timeout
        self._lock = threading.Lock()
        self._unseen: dict[ObjectKey, list[Callable[[float], None]]] = {}

    def created(self, key: ObjectKey, obj: Object) -> None:
        """For `key`, `obj` was created or changed."""
        self._add(key, lambda timeout: self._informer.wait_for(obj, timeout))

    def deleted(self, key: ObjectKey, obj: Object, marked: Object | None) -> None:
        """For `key`, `obj` was deleted; `marked` is what the server answered, if the object is still there."""
        if marked is not None and marked.uid == obj.uid and marked.deletion_timestamp is not None:
            self._add(key, lambda timeout: self._informer.wait_for(marked, timeout))
        else:
            self._add(key, lambda timeout: self._informer.wait_for_deletion(obj.key, obj.uid, timeout))

    def wait(self, key: ObjectKey) -> None:
        """Wait until the cache shows all that was written for `key`. Raises informers.Timeout, and Cancelled at a
        stop.
        """
        with self._lock:
            unseen = list(self._unseen.get(key, ()))
        for seen in unseen:
            try:
                seen(self._timeout)
            except InformerStopped as error:
                raise Cancelled(str(error)) from error
            with self._lock:
                left = self._unseen[key]
                left.remove(seen)
                if not left:
                    del self._unseen[key]

    def _add(self, key: ObjectKey, seen: Callable[[float], None]) -> None:
        with self._lock:
            self._unseen.setdefault(key, []).append(seen)
