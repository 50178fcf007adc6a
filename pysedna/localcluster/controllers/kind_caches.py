"""Caches of the metadata of every kind that the server serves, kinds coming and going.

Kinds are found by discovery, again whenever a CustomResourceDefinition changes and every now and then. An informer
is made for each one that can be listed, watched and deleted; when a kind goes, its objects are reported as
deleted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from informers import Event, EventType, Object, Reason, SharedInformer
from informers.errors import InformersError

if TYPE_CHECKING:
    from informers import Client

_log = logging.getLogger(__name__)
Kind = tuple[str, str]
OWNERS, UID = "owner-uids", "uid"
CRD: Kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_NEEDED = frozenset({"list", "watch", "delete"})
# Events own nothing and are owned by nothing; they come in floods.
_IGNORED = frozenset({("v1", "Event"), ("events.k8s.io/v1", "Event")})


class KindCaches:
    """The caches. `on_event` is called for each change of each object, with its kind. Thread-safe."""

    def __init__(self, client: Client, on_event: Callable[[Kind, Event], None]) -> None:
        self._client = client
        self._on_event = on_event
        self._lock = threading.Lock()
        self._informers: dict[Kind, SharedInformer] = {}
        self._namespaced: dict[Kind, bool] = {}
        self._stopped = False

    def refresh(self) -> None:
        """Ask the server for its kinds; start informers of new ones, stop those of kinds that went. Raises
        InformersError.
        """
        found: dict[Kind, bool] = {}
        for info in self._client.resources():
            kind = (info.api_version, info.kind)
            if kind not in _IGNORED and set(info.verbs) >= _NEEDED:
                found[kind] = info.namespaced
        with self._lock:
            if self._stopped:
                return
            fresh = [kind for kind in found if kind not in self._informers]
            gone = [(kind, self._informers.pop(kind)) for kind in list(self._informers) if kind not in found]
            self._namespaced = found
            for kind in fresh:
                self._informers[kind] = self._make(kind)
        for kind, informer in gone:
            self._retire(kind, informer)

    def wait_for_sync(self, stop: threading.Event) -> bool:
        """Wait until every cache is filled, apart from kinds that go meanwhile. False when `stop` came first."""
        while not stop.is_set():
            missing = [informer for informer in self._all() if not informer.has_synced()]
            if not missing:
                return True
            stop.wait(0.01)
        return False

    def dependents(self, uid: str) -> list[tuple[Kind, Object]]:
        """All objects that name this uid as an owner."""
        return [(kind, obj) for kind, informer in self._items() for obj in informer.lister.by_index(OWNERS, uid)]

    def by_uid(self, uid: str) -> tuple[Kind, Object] | None:
        """The object of that uid, if a cache has it."""
        for kind, informer in self._items():
            for obj in informer.lister.by_index(UID, uid):
                return kind, obj
        return None

    def is_namespaced(self, kind: Kind) -> bool | None:
        """Whether objects of the kind live in namespaces; None for a kind that the server does not serve."""
        group = kind[0].rpartition("/")[0]
        with self._lock:
            for (api_version, name), namespaced in self._namespaced.items():
                if name == kind[1] and api_version.rpartition("/")[0] == group:
                    return namespaced
        return None

    def kinds(self) -> list[tuple[Kind, bool]]:
        """The kinds that are cached, and whether they are namespaced."""
        with self._lock:
            return list(self._namespaced.items())

    def failures(self) -> list[str]:
        """What keeps caches from being filled, for messages."""
        return [informer.status().last_error for informer in self._all() if not informer.has_synced()]

    def stop(self, timeout: float) -> None:
        """Stop all informers."""
        with self._lock:
            self._stopped = True
        informers = self._all()
        for informer in informers:
            informer.end()
        for informer in informers:
            informer.stop(timeout)

    def _make(self, kind: Kind) -> SharedInformer:
        source = self._client.resource(*kind).list_watch(metadata_only=True)
        informer = SharedInformer(
            source, name=f"metadata of {kind[0]} {kind[1]}", indexers={OWNERS: _owner_uids, UID: _own_uid}
        )
        informer.add_event_handler(on_event=lambda event: self._on_event(kind, event))
        informer.start()
        return informer

    def _retire(self, kind: Kind, informer: SharedInformer) -> None:
        informer.stop(1.0)
        for obj in informer.lister.list():
            self._on_event(kind, Event(EventType.DELETE, obj, None, Reason.RELIST, True))

    def _items(self) -> list[tuple[Kind, SharedInformer]]:
        with self._lock:
            return list(self._informers.items())

    def _all(self) -> list[SharedInformer]:
        return [informer for _, informer in self._items()]


def _owner_uids(obj: Object) -> Iterable[str]:
    return {reference.uid for reference in obj.owner_references}


def _own_uid(obj: Object) -> Iterable[str]:
    return (obj.uid,)


class Discovery:
    """Refreshes `KindCaches` when a CRD changes, and every `period` seconds. A runnable of the collector's."""

    def __init__(self, caches: KindCaches, *, period: float = 30.0) -> None:
        self._caches = caches
        self._period = period
        self._asked = threading.Event()

    def ask(self) -> None:
        """Refresh soon."""
        self._asked.set()

    def run(self, stop: threading.Event) -> None:
        """Until `stop`."""
        pause = 0.0
        while not stop.is_set():
            try:
                self._caches.refresh()
                pause = self._period
            except InformersError as error:
                _log.warning("the kinds of the server could not be found out: %s", error)
                pause = 1.0
            self._wait(pause, stop)

    def _wait(self, seconds: float, stop: threading.Event) -> None:
        left = seconds
        while left > 0 and not stop.is_set() and not self._asked.wait(min(0.2, left)):
            left -= 0.2
        if self._asked.is_set():
            self._asked.clear()
