"""A watch: a cursor over the store's history, filtered, that is polled for what came next.

It holds no events, only the version it has shown. So a reader that stops costs nothing; when it comes back behind the
compacted part of the history, `poll` raises `ExpiredError`, as the API server's ERROR event does.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from informers.store.failures import too_old
from informers.store.history import Table
from informers.store.selection import Selection
from informers.store.types import Event, Json, Stored

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchItem(NamedTuple):
    """One event as a watcher sees it; `stored` is shared by all watchers."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    stored: Stored


class Watch:
    """Made by `Store.watch`. Not thread-safe: `poll` and `bookmark` are calls into the store."""

    def __init__(
        self,
        table: Table,
        selection: Selection,
        *,
        version: int,
        bounds: Callable[[], tuple[int, int]],
        initial: list[Stored],
        end_bookmark: bool,
    ) -> None:
        self._table = table
        self._selection = selection
        self._bounds = bounds
        self._initial = initial
        self._end_bookmark = end_bookmark
        self._begun = False
        self.version = version
        """The newest version whose events were given out."""

    def poll(self, limit: int | None = None) -> list[WatchItem]:
        """What came since the last poll, oldest first, empty when nothing did; about `limit` items at most.

        Raises `ExpiredError` when the history no longer reaches back to `version`.
        """
        if self._initial or self._end_bookmark:
            return self._poll_initial(limit)
        current, compacted = self._bounds()
        # One that has kept up with its resource stays, however much of the others was forgotten since.
        if self.version < (self._table.forgotten if self._begun else compacted):
            raise too_old(self.version, compacted)
        self._begun = True
        events = self._table.events_after(self.version, limit)
        self.version = events[-1].version if limit is not None and len(events) == limit else max(current, self.version)
        return [item for item in map(self._seen, events) if item is not None]

    def _poll_initial(self, limit: int | None) -> list[WatchItem]:
        taken = self._initial if limit is None else self._initial[:limit]
        self._initial = self._initial[len(taken) :]
        items = [WatchItem("ADDED", stored) for stored in taken]
        if not self._initial and self._end_bookmark:
            self._end_bookmark = False
            items.append(self._bookmark({INITIAL_EVENTS_END: "true"}))
        return items

    def bookmark(self) -> WatchItem:
        """A BOOKMARK item that says how far this watch has come: an object of the kind with a version and no more."""
        return self._bookmark(None)

    def _bookmark(self, annotations: dict[str, str] | None) -> WatchItem:
        resource = self._table.resource
        metadata: Json = {"resourceVersion": str(self.version)}
        if annotations:
            metadata["annotations"] = annotations
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return WatchItem("BOOKMARK", Stored(resource.key("", ""), obj, self.version))

    def _seen(self, event: Event) -> WatchItem | None:
        """How a write looks through the selection: entering it is ADDED, leaving it DELETED."""
        selection = self._selection
        if selection.namespace and event.stored.key.namespace != selection.namespace:
            return None
        if not selection.selective:
            return WatchItem(event.type, event.stored)
        before = event.previous is not None and selection.matches(event.previous)
        if event.type == "DELETED":
            return WatchItem("DELETED", event.stored) if before else None
        if selection.matches(event.stored):
            return WatchItem("MODIFIED" if before else "ADDED", event.stored)
        if before and event.previous is not None:
            return WatchItem("DELETED", departed(event.previous, event.version))
        return None


def departed(last: Stored, version: int) -> Stored:
    """The last state of an object under the version of the event that removed it from view."""
    metadata = {**last.object["metadata"], "resourceVersion": str(version)}
    return Stored(last.key, {**last.object, "metadata": metadata}, version)
