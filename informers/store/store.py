"""The store itself: one version counter, one bounded history, every resource.

`journal` is called with each event before it takes effect (write-ahead: if it raises, nothing happened), `committed`
after it did.
"""

from collections.abc import Callable, Iterable

from informers.errors import BadRequestError
from informers.key import ObjectKey
from informers.store import deletion, failures, metadata
from informers.store.history import Table
from informers.store.selection import Listing, Selection, decode_continue, encode_continue
from informers.store.types import DeleteOptions, Deletion, Event, EventType, Hooks, Json, ResourceType, Stored
from informers.store.watch import Watch, departed

_NAME_ATTEMPTS = 8


class Store:
    """Not thread-safe: the owner serialises all calls. Dicts given to it belong to it from then on.

    `now` gives epoch seconds, `new_uid` a fresh uid, `new_suffix` the end of a generated name.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_uid: Callable[[], str],
        new_suffix: Callable[[], str],
        version: int = 1,
        history_limit: int = 10_000,
        journal: Callable[[Event], None] | None = None,
        committed: Callable[[Event], None] | None = None,
    ) -> None:
        self._now = now
        self._new_uid = new_uid
        self._new_suffix = new_suffix
        self._history_limit = history_limit
        self._journal = journal
        self._committed = committed
        self._tables: dict[str, Table] = {}
        self._held_events = 0
        self.version = version
        """The version of the newest write."""
        self.compacted = version
        """Watches and lists at versions older than this one are `Expired`."""

    # Resources

    def register(self, resource: ResourceType, hooks: Hooks | None = None) -> None:
        """Makes `resource` known; again, it replaces type and hooks and keeps the objects."""
        table = self._tables.get(resource.qualified)
        if table is None:
            self._tables[resource.qualified] = Table(resource, hooks or Hooks())
        else:
            table.resource, table.hooks = resource, hooks or Hooks()

    def unregister(self, resource: ResourceType) -> None:
        """Forgets `resource` with whatever it still holds. Watches of it see nothing more."""
        table = self._tables.pop(resource.qualified, None)
        self._held_events -= len(table.events) if table is not None else 0

    def restore(self, resource: ResourceType, objects: Iterable[Json]) -> None:
        """Puts back objects that an earlier store wrote, as they are: no event, no version, no hook."""
        table = self._table(resource)
        for obj in objects:
            meta = obj["metadata"]
            key = resource.key(meta.get("namespace", ""), meta["name"])
            table.put(Stored(key, obj, int(meta["resourceVersion"])))

    def count(self, resource: ResourceType) -> int:
        return len(self._table(resource).objects)

    # Reads

    def get(self, resource: ResourceType, key: ObjectKey, *, resource_version: str | None = None) -> Stored:
        """The newest state; raises `NotFoundError`, or 504 for a version from the future."""
        self._check_reached(failures.parse_version(resource_version))
        found = self.find(resource, key)
        if found is None:
            raise failures.not_found(resource, key.name)
        return found

    def find(self, resource: ResourceType, key: ObjectKey) -> Stored | None:
        """Like `get`, but None when there is none."""
        return self._table(resource).get(key)

    def list(
        self,
        resource: ResourceType,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int | None = None,
        continue_: str | None = None,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
    ) -> Listing:
        """One page of the objects, in order of namespace and name, at one version.

        Raises `BadRequestError` (selectors, tokens), `InvalidError` (options that contradict each other),
        `ExpiredError` (compacted; with a fresh token for the rest if a token expired), 504 (version from the future).
        """
        table = self._table(resource)
        selection = Selection.parse(resource, namespace, label_selector, field_selector)
        asked = failures.parse_version(resource_version)
        _check_match(asked, resource_version_match, continue_)
        if continue_:
            version, start = self._resume(continue_)
        else:
            exact = resource_version_match == "Exact" or (bool(limit) and not resource_version_match)
            version, start = self._snapshot(asked, exact=exact), ""
        overlay = table.overlay(version)
        return _page(selection, version, limit, table.walk(start, selection.namespace, overlay))

    def watch(
        self,
        resource: ResourceType,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        send_initial_events: bool | None = None,
        allow_bookmarks: bool = False,
    ) -> Watch:
        """A cursor behind `resource_version`; without one (or "0") it begins with the present objects as ADDED.

        A compacted version is told by the first `Watch.poll`, since the API server has answered 200 by then.
        """
        table = self._table(resource)
        selection = Selection.parse(resource, namespace, label_selector, field_selector)
        asked = failures.parse_version(resource_version)
        if send_initial_events is not None and resource_version_match != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise failures.invalid_options("resourceVersionMatch", text)
        if send_initial_events is None and resource_version_match:
            text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            raise failures.invalid_options("resourceVersionMatch", text)
        if send_initial_events:
            self._check_reached(asked)
        initial: list[Stored] = []
        from_present = send_initial_events or (not asked and send_initial_events is None)
        if from_present:
            asked = None
            initial = [each for each in table.walk("", selection.namespace, {}) if selection.matches(each)]
        return Watch(
            table,
            selection,
            version=asked or self.version,
            bounds=lambda: (self.version, self.compacted),
            initial=initial,
            end_bookmark=bool(from_present and allow_bookmarks),
        )

    # Writes

    def create(self, resource: ResourceType, obj: Json, *, namespace: str = "", dry_run: bool = False) -> Stored:
        """Stores a new object under its name or a generated one; raises `AlreadyExistsError` and what hooks raise."""
        table = self._table(resource)
        draft = metadata.for_create(resource, obj, namespace)
        for _ in range(_NAME_ATTEMPTS):
            name = draft["metadata"].get("name")
            if not name:
                name = metadata.generated_name(draft["metadata"]["generateName"], self._new_suffix())
            taken = table.get(resource.key(namespace, name))
            if taken is None:
                break
            if draft["metadata"].get("name"):
                raise failures.already_exists(resource, name, deleting="deletionTimestamp" in taken.object["metadata"])
        else:
            raise failures.already_exists(resource, name)
        new = metadata.identified(draft, name=name, uid=self._new_uid(), now=self._now())
        new = _prepare(table, new, None, None)
        return self._commit("ADDED", table, resource.key(namespace, name), new, None, dry_run)

    def update(
        self,
        resource: ResourceType,
        key: ObjectKey,
        obj: Json,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Stored:
        """Replaces an object, or what a subresource (status, finalize, binding) writes of it.

        The last finalizer removed ends a deletion.

        Raises `NotFoundError`, `ConflictError` (resourceVersion or uid), `BadRequestError` (name, namespace),
        `InvalidError` and what hooks raise. A write that changes nothing returns the stored version.
        """
        table = self._table(resource)
        old = self.get(resource, key)
        new = metadata.for_update(resource, key, old, obj, subresource)
        new = _prepare(table, new, old.object, subresource)
        if subresource is None:
            new = metadata.with_generation(resource, old.object, new)
        if deletion.finished(table, new):
            self._remove(table, old, dry_run)
            return Stored(key, new, old.version)
        if metadata.same(old.object, new):
            return old
        return self._commit("MODIFIED", table, key, new, old, dry_run)

    def delete(
        self, resource: ResourceType, key: ObjectKey, options: DeleteOptions | None = None, *, dry_run: bool = False
    ) -> Deletion:
        """Deletes an object or marks it as deleted; raises `NotFoundError`, `ConflictError` (preconditions)."""
        table = self._table(resource)
        options = options or DeleteOptions()
        old = self.get(resource, key)
        deletion.check(table, old, options)
        marked = deletion.marked(table, old.object, options, self._now())
        if marked is None:
            return Deletion(self._remove(table, old, dry_run), gone=True)
        if not metadata.same(old.object, marked):
            old = self._commit("MODIFIED", table, key, marked, old, dry_run)
        if deletion.finished(table, marked):
            return Deletion(self._remove(table, old, dry_run), gone=True)
        return Deletion(old, gone=False)

    def delete_collection(
        self,
        resource: ResourceType,
        options: DeleteOptions | None = None,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        dry_run: bool = False,
    ) -> Listing:
        """Deletes what the selectors choose, one version each; returns what was there."""
        chosen = self.list(resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector)
        for stored in chosen.items:
            self.delete(resource, stored.key, options, dry_run=dry_run)
        return chosen

    # History

    def compact(self, version: int | None = None) -> None:
        """Forgets the events up to `version` (default: all), so that older versions are `Expired`."""
        version = self.version if version is None else min(version, self.version)
        if version <= self.compacted:
            return
        self.compacted = version
        for table in self._tables.values():
            table.forget(version)
        self._held_events = sum(len(table.events) for table in self._tables.values())

    def _commit(
        self, type: EventType, table: Table, key: ObjectKey, new: Json, previous: Stored | None, dry_run: bool
    ) -> Stored:
        if dry_run:
            return Stored(key, new, previous.version if previous is not None else 0)
        version = self.version + 1
        return self._record(
            table, Event(type, table.resource, Stored(key, metadata.with_version(new, version), version), previous)
        )

    def _remove(self, table: Table, old: Stored, dry_run: bool) -> Stored:
        if dry_run:
            return old
        return self._record(table, Event("DELETED", table.resource, departed(old, self.version + 1), old))

    def _record(self, table: Table, event: Event) -> Stored:
        if self._journal is not None:
            self._journal(event)
        self.version = event.version
        if event.type == "DELETED":
            table.remove(event.stored.key)
        else:
            table.put(event.stored)
        table.events.append(event)
        self._held_events += 1
        if self._held_events > self._history_limit:
            self.compact(self.version - self._history_limit * 3 // 4)
        if self._committed is not None:
            self._committed(event)
        return event.stored

    def _table(self, resource: ResourceType) -> Table:
        table = self._tables.get(resource.qualified)
        if table is None:
            raise failures.no_such_resource()
        return table

    def _check_reached(self, version: int | None) -> None:
        if version is not None and version > self.version:
            raise failures.too_large(version, self.version)

    def _snapshot(self, asked: int | None, *, exact: bool) -> int:
        """The version that a list shows: the asked one if it must be that, else the newest."""
        self._check_reached(asked)
        if not asked or not exact:
            return self.version
        if asked < self.compacted:
            raise failures.list_too_old()
        return asked

    def _resume(self, token: str) -> tuple[int, str]:
        version, start = decode_continue(token)
        if version < 0:
            return self.version, start
        self._check_reached(version)
        if version < self.compacted:
            raise failures.continue_too_old(encode_continue(-1, start))
        return version, start


def _prepare(table: Table, new: Json, old: Json | None, subresource: str | None) -> Json:
    prepare = table.hooks.prepare
    return new if prepare is None else prepare(new, old, subresource)


def _check_match(asked: int | None, match: str | None, continue_: str | None) -> None:
    """The combinations of resourceVersion, resourceVersionMatch and continue that the API server refuses."""
    if not match:
        if continue_ and asked:
            raise BadRequestError("specifying resource version is not allowed when using continue")
        return
    if continue_:
        raise failures.invalid_options(
            "resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"
        )
    if asked is None:
        text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise failures.invalid_options("resourceVersionMatch", text)
    if match not in ("Exact", "NotOlderThan"):
        problem = failures.FieldProblem.unsupported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""])
        raise failures.invalid("meta.k8s.io", "ListOptions", "", [problem])
    if match == "Exact" and asked == 0:
        text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        raise failures.invalid_options("resourceVersionMatch", text)


def _page(selection: Selection, version: int, limit: int | None, walk: Iterable[Stored]) -> Listing:
    items: list[Stored] = []
    following = iter(walk)
    for stored in following:
        if limit and len(items) == limit:
            remaining = None if selection.selective else 1 + sum(1 for _ in following)
            return Listing(items, version, encode_continue(version, str(items[-1].key) + "\0"), remaining)
        if selection.matches(stored):
            items.append(stored)
    return Listing(items, version)
