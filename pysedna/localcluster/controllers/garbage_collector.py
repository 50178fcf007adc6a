"""The garbage collector: dependents go when their owners are gone, whatever their kinds.

Thin: `ownership_rules` decides, `kind_caches` shows all objects' metadata. A cache only says what to look at;
before anything is deleted the object and its owners are read from the server, since a cache may be behind.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from informers import Event, Object, ObjectKey, OwnerReference
from informers.errors import ConflictError, InformersError, InvalidError, KindNotFoundError, NotFoundError
from pysedna.controller import Manager
from pysedna.localcluster.controllers import ownership_rules as rules
from pysedna.localcluster.controllers.kind_caches import CRD, Discovery, Kind, KindCaches
from workqueue import ShutDown, WorkQueue

if TYPE_CHECKING:
    from informers import Client

_log = logging.getLogger(__name__)
_WORKERS = 4


@dataclass(frozen=True, slots=True)
class Item:
    """An object to look at, as owner (`as_owner`) or as dependent."""

    kind: Kind
    key: ObjectKey
    uid: str
    as_owner: bool


def setup_garbage_collector(manager: Manager) -> None:
    """Add the garbage collector to a manager."""
    manager.add(GarbageCollector(manager.client))


class GarbageCollector:
    """Watches every kind and deletes what nobody owns any more. `run` once."""

    name = "garbage-collector"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._caches = KindCaches(client, self._observe)
        self._discovery = Discovery(self._caches)
        self._queue: WorkQueue[Item] = WorkQueue("garbage-collector")
        # What the server has said is gone, by uid and the namespace it was looked for in. A uid never comes back.
        self._absent: LRUCache[tuple[str, str], bool] = LRUCache(4096)
        self._absent_lock = threading.Lock()

    def run(self, stop: threading.Event) -> None:
        """Collect until `stop`."""
        threads = [threading.Thread(target=self._discovery.run, args=(stop,), name="gc-discovery", daemon=True)]
        try:
            self._wait_for_caches(stop, threads[0])
            for number in range(_WORKERS):
                threads.append(
                    threading.Thread(target=self._work, args=(stop,), name=f"gc-worker-{number}", daemon=True)
                )
                threads[-1].start()
            stop.wait()
        finally:
            self._queue.shut_down()
            self._caches.stop(1.0)
            for thread in threads:
                thread.join(5.0)

    def _wait_for_caches(self, stop: threading.Event, discovery: threading.Thread) -> None:
        # Owners and dependents are in different caches: before all are filled, most owners would look gone.
        while not stop.is_set():
            try:
                self._caches.refresh()
                break
            except InformersError as error:
                _log.warning("the garbage collector waits: %s", error)
                stop.wait(1.0)
        self._caches.wait_for_sync(stop)
        discovery.start()

    # What the caches report

    def _observe(self, kind: Kind, event: Event) -> None:
        obj = event.object
        if kind == CRD:
            self._caches.defined(obj.name, gone=event.new is None)
            self._discovery.ask()
        if event.new is None:
            if not event.final_state_unknown:
                with self._absent_lock:
                    self._absent[obj.uid, obj.namespace] = True
            for other, dependent in self._caches.dependents(obj.uid):
                self._look_at(other, dependent)
            self._look_at_waiting_owners(obj)
            return
        if rules.is_work(obj):
            self._queue.add(Item(kind, obj.key, obj.uid, as_owner=True))
        if event.old is not None and event.old.owner_references != obj.owner_references:
            self._look_at_waiting_owners(event.old)
        if obj.owner_references and any(self._suspicious(obj, one) for one in obj.owner_references):
            self._look_at(kind, obj)

    def _look_at(self, kind: Kind, obj: Object) -> None:
        self._queue.add(Item(kind, obj.key, obj.uid, as_owner=False))

    def _look_at_waiting_owners(self, dependent: Object) -> None:
        for reference in dependent.owner_references:
            found = self._caches.by_uid(reference.uid)
            if found is not None and rules.is_work(found[1]):
                kind, owner = found
                self._queue.add(Item(kind, owner.key, owner.uid, as_owner=True))

    def _suspicious(self, dependent: Object, reference: OwnerReference) -> bool:
        owner = self._cached_owner(dependent, reference)
        return owner is None or rules.is_deleted_in_foreground(owner)

    def _cached_owner(self, dependent: Object, reference: OwnerReference) -> Object | None:
        """The owner as the caches show it. One in another namespace is none: references do not cross namespaces."""
        found = self._caches.by_uid(reference.uid)
        return found[1] if found is not None and found[1].namespace in ("", dependent.namespace) else None

    # What the workers do

    def _work(self, stop: threading.Event) -> None:
        while True:
            try:
                item = self._queue.get()
            except ShutDown:
                return
            try:
                if not stop.is_set():
                    self._handle(item)
            finally:
                self._queue.done(item)

    def _handle(self, item: Item) -> None:
        try:
            if item.as_owner:
                self._as_owner(item)
            else:
                self._as_dependent(item)
        except (ConflictError, InformersError) as error:
            level = logging.DEBUG if isinstance(error, ConflictError) else logging.WARNING
            _log.log(level, "%s %s is looked at again: %s", item.kind[1], item.key, error)
            self._queue.add_rate_limited(item)
        except Exception:  # noqa: BLE001 - one object must not end the collection of all others
            _log.exception("looking at %s %s failed", item.kind[1], item.key)
            self._queue.add_rate_limited(item)
        else:
            self._queue.forget(item)

    def _as_dependent(self, item: Item) -> None:
        cached = self._caches.by_uid(item.uid)
        if cached is not None and not any(self._suspicious(cached[1], one) for one in cached[1].owner_references):
            return  # while the first caches were filled, its owners were not there yet
        live = self._live(item)
        if live is None:
            return
        owners = {reference.uid: self._owner(live, reference) for reference in live.owner_references}
        if all(owner is rules.Owner.SOLID for owner in owners.values()):
            return
        dependents = [obj for _, obj in self._caches.dependents(live.uid)]
        verdict = rules.judge(live, owners, dependents)
        if isinstance(verdict, tuple):
            unblock, verdict = verdict
            self._rewrite_references(item.kind, live, unblocked=unblock.uids)
            live = self._live(item) or live
        if isinstance(verdict, rules.Release):
            self._rewrite_references(item.kind, live, dropped=verdict.uids)
        elif isinstance(verdict, rules.Delete):
            self._delete(item, live, verdict.propagation)

    def _as_owner(self, item: Item) -> None:
        live = self._live(item)
        if live is None:
            return
        dependents = self._caches.dependents(live.uid)
        step = rules.owner_step(live, [obj for _, obj in dependents])
        kinds = {obj.uid: kind for kind, obj in dependents}
        for dependent in step.examine:
            self._look_at(kinds[dependent.uid], dependent)
        for dependent in step.release:
            kind = kinds[dependent.uid]
            latest = self._live(Item(kind, dependent.key, dependent.uid, as_owner=False))
            if latest is not None:
                self._rewrite_references(kind, latest, dropped=(live.uid,))
        if step.done:
            finalizers = [name for name in live.finalizers if name != step.done]
            metadata = {"resourceVersion": live.resource_version, "uid": live.uid, "finalizers": finalizers}
            self._client.resource(*item.kind).patch(live.key, {"metadata": metadata})
        elif step.release:
            # Whether more dependents came meanwhile is seen in the caches a moment later.
            self._queue.add_after(item, 0.05)

    def _owner(self, dependent: Object, reference: OwnerReference) -> rules.Owner:
        """How the owner stands, by the caches if they have it, else by the server."""
        cached = self._cached_owner(dependent, reference)
        if cached is not None:
            return rules.Owner.WAITING if rules.is_deleted_in_foreground(cached) else rules.Owner.SOLID
        with self._absent_lock:
            if any((reference.uid, namespace) in self._absent for namespace in (dependent.namespace, "")):
                return rules.Owner.ABSENT
        kind = (reference.api_version, reference.kind)
        namespaced = self._caches.is_namespaced(kind)
        if namespaced is None and self._caches.is_gone(kind):
            return rules.Owner.ABSENT
        if namespaced is None:
            raise KindNotFoundError(f"owner {reference.kind} {reference.name} is of a kind that is not served")
        if namespaced and not dependent.namespace:
            return rules.Owner.SOLID  # a reference that cannot be resolved is left alone
        key = ObjectKey(dependent.namespace if namespaced else "", reference.name)
        try:
            live = self._client.resource(*kind).get(key)
        except KindNotFoundError:
            raise
        except NotFoundError:
            live = None
        if live is None or live.uid != reference.uid:
            with self._absent_lock:
                self._absent[reference.uid, dependent.namespace] = True
            return rules.Owner.ABSENT
        return rules.Owner.WAITING if rules.is_deleted_in_foreground(live) else rules.Owner.SOLID

    def _live(self, item: Item) -> Object | None:
        try:
            live = self._client.resource(*item.kind).get(item.key)
        except NotFoundError:
            return None
        return live if live.uid == item.uid else None

    def _delete(self, item: Item, live: Object, propagation: rules.Propagation) -> None:
        try:
            self._client.resource(*item.kind).delete(
                item.key, uid=live.uid, resource_version=live.resource_version, propagation=propagation
            )
        except NotFoundError:
            _log.debug("%s %s was gone already", item.kind[1], item.key)

    def _rewrite_references(
        self, kind: Kind, live: Object, *, dropped: tuple[str, ...] = (), unblocked: tuple[str, ...] = ()
    ) -> None:
        references: list[Mapping[str, Any]] = live.to_dict()["metadata"].get("ownerReferences") or []
        kept = [
            {**one, "blockOwnerDeletion": False} if one["uid"] in unblocked else one
            for one in references
            if one["uid"] not in dropped
        ]
        metadata = {"resourceVersion": live.resource_version, "uid": live.uid, "ownerReferences": kept}
        try:
            self._client.resource(*kind).patch(live.key, {"metadata": metadata})
        except (NotFoundError, InvalidError) as error:
            _log.debug("references of %s %s were not rewritten: %s", kind[1], live.key, error)
