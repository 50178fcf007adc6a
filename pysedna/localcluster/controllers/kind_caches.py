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

from cachetools import LRUCache

from informers import Event, EventType, Object, Reason, SharedInformer
from informers.errors import InformersError, NotFoundError

if TYPE_CHECKING:
    from informers import Client, ResourceInfo

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
        self._infos: dict[Kind, ResourceInfo] = {}
        # Definitions that were seen, those seen to go since the last refresh, and which definition made which kind.
        self._defined: LRUCache[str, bool] = LRUCache(4096)
        self._dead: set[str] = set()
        self._definitions: LRUCache[tuple[str, str], str] = LRUCache(4096)
        self._stopped = False

    def refresh(self) -> None:
        """Ask the server for its kinds; start informers of new ones, stop those of kinds that went. Raises
        InformersError.
        """
        found: dict[Kind, ResourceInfo] = {}
        for info in self._client.resources():
            kind = (info.api_version, info.kind)
            if kind not in _IGNORED and set(info.verbs) >= _NEEDED:
                found[kind] = info
        with self._lock:
            dead, self._dead = self._dead, set()
            present = list(self._infos.items())
        for kind, info in present:
            if _definition(info) in dead:
                self._retire(kind, gone=True)  # also when a new definition serves it again: these are other objects
            elif kind not in found:
                self._consider(kind, info, found.values())
        with self._lock:
            if self._stopped:
                return
            for kind, info in found.items():
                self._infos[kind] = info
                self._definitions[info.group, info.kind] = _definition(info)
                if kind not in self._informers:
                    self._informers[kind] = self._make(kind)

    def defined(self, name: str, *, gone: bool) -> None:
        """A CustomResourceDefinition of that name was seen, or was seen to go."""
        with self._lock:
            self._defined[name] = True
            if gone:
                self._dead.add(name)

    def is_gone(self, kind: Kind) -> bool:
        """Whether the kind was defined once and is no more, so that none of its objects can be there. Asks the
        server.
        """
        with self._lock:
            name = self._definitions.get((kind[0].rpartition("/")[0], kind[1]), "")
            if name not in self._defined:
                return False
        try:
            self._client.resource(*CRD).get(name)
        except NotFoundError:
            return True
        return False

    def _consider(self, kind: Kind, info: ResourceInfo, served: Iterable[ResourceInfo]) -> None:
        """A kind is missing from discovery. That may be for a moment only, or for good."""
        if any((one.group, one.plural) == (info.group, info.plural) for one in served):
            self._retire(kind, gone=False)  # it is served in another version now
        elif self.is_gone(kind):
            self._retire(kind, gone=True)

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
            for info in self._infos.values():
                if (info.group, info.kind) == (group, kind[1]):
                    return info.namespaced
        return None

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

    def _retire(self, kind: Kind, *, gone: bool) -> None:
        with self._lock:
            informer = self._informers.pop(kind)
            del self._infos[kind]
        informer.stop(1.0)
        for obj in informer.lister.list() if gone else ():
            self._on_event(kind, Event(EventType.DELETE, obj, None, Reason.RELIST))

    def _items(self) -> list[tuple[Kind, SharedInformer]]:
        with self._lock:
            return list(self._informers.items())

    def _all(self) -> list[SharedInformer]:
        return [informer for _, informer in self._items()]


def _definition(info: ResourceInfo) -> str:
    """The name that the definition of a custom kind has."""
    return f"{info.plural}.{info.group}"


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
