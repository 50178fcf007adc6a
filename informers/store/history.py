"""One resource: its objects, past states of them, and the events after a version."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping

from informers.key import ObjectKey
from informers.store.types import Event, Hooks, ResourceType, Stored


class Table:
    """One resource. Paths (`namespace/name` or `name`) order it as etcd orders keys."""

    def __init__(self, resource: ResourceType, hooks: Hooks) -> None:
        self.resource = resource
        self.hooks = hooks
        self.objects: dict[str, Stored] = {}
        self.events: list[Event] = []
        self.forgotten = 0
        """The version of the newest event that was dropped."""
        self._paths: list[str] = []

    def get(self, key: ObjectKey) -> Stored | None:
        return self.objects.get(str(key))

    def put(self, stored: Stored) -> None:
        path = str(stored.key)
        if path not in self.objects:
            insort(self._paths, path)
        self.objects[path] = stored

    def remove(self, key: ObjectKey) -> None:
        path = str(key)
        del self.objects[path]
        del self._paths[bisect_left(self._paths, path)]

    def events_after(self, version: int, limit: int | None = None) -> list[Event]:
        """Events newer than `version`, oldest first, at most `limit`."""
        start = bisect_right(self.events, version, key=_version)
        return self.events[start:] if limit is None else self.events[start : start + limit]

    def overlay(self, version: int) -> dict[str, Stored | None]:
        """What differs from the present in the state at `version`: the older object, or None where there was none."""
        changed: dict[str, Stored | None] = {}
        for event in self.events_after(version):
            changed.setdefault(str(event.stored.key), event.previous)
        return changed

    def walk(self, start: str, namespace: str, overlay: Mapping[str, Stored | None]) -> Iterator[Stored]:
        """Objects from path `start` on, in order, of one namespace or all, as the overlay corrects them."""
        if overlay:
            paths = sorted({*self._paths, *overlay})
        else:
            paths = self._paths
        # "0" is the character after "/": the first path behind the namespace.
        first = bisect_left(paths, max(start, f"{namespace}/") if namespace else start)
        last = bisect_left(paths, f"{namespace}0") if namespace else len(paths)
        for path in paths[first:last]:
            stored = overlay[path] if path in overlay else self.objects.get(path)
            if stored is not None:
                yield stored

    def forget(self, version: int) -> None:
        """Drops the events up to and including `version`."""
        count = bisect_right(self.events, version, key=_version)
        if count:
            self.forgotten = self.events[count - 1].version
            del self.events[:count]


def _version(event: Event) -> int:
    return event.version
