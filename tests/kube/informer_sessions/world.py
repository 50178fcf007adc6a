"""What the server of a session holds: objects with versions, the history of every write, and how far it forgot it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One write as a watch shows it."""

    version: int
    type: str
    body: Body


class World:
    """A store with a history. Every write gets the next version; a uid is a name and the number of its life."""

    def __init__(self, names: Iterable[str], version: int, padding: int) -> None:
        self._padding = padding
        self._lives: dict[str, int] = {}
        self.log: list[Change] = []
        self.head = self._first = version
        self.compacted = 0
        for name in names:
            self.write(f"write {name}")

    def write(self, what: str) -> None:
        """Do "write NAME", "delete NAME", "recreate NAME", "compact" or "restore VERSION", from a backup made then.

        Deleting what is not there does nothing.
        """
        verb, _, name = what.partition(" ")
        if verb == "compact":
            self.compacted = self.head
            return
        if verb == "restore":
            self.head = int(name)
            self.log = [change for change in self.log if change.version <= self.head]
            return
        held = self.now().get(name)
        if held is not None and verb != "write":
            self._log("DELETED", name)
            held = None
        if verb == "delete":
            return
        if held is None:
            self._lives[name] = self._lives.get(name, 0) + 1
        self._log("ADDED" if held is None else "MODIFIED", name)

    def _log(self, type_: str, name: str) -> None:
        self.head += 1
        self.log.append(Change(self.head, type_, self._body(name)))

    def _body(self, name: str) -> Body:
        metadata = {
            "name": name,
            "namespace": "ns",
            "uid": f"{name}-{self._lives[name]}",
            "resourceVersion": str(self.head),
            "creationTimestamp": None,
            "managedFields": [{"manager": "m", "fieldsV1": {"f:data": {}}}],
        }
        data = {"n": str(self.head), "text": 'ü"\\' + "x" * self._padding}
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data, "unknown": [None, 1.5]}

    def now(self) -> dict[str, Body]:
        """The present objects by name, in the order of their names."""
        return self.at(self.head)

    def at(self, version: int) -> dict[str, Body]:
        """The objects as they were at a version."""
        found: dict[str, Body] = {}
        for change in self.log:
            if change.version <= version:
                name = change.body["metadata"]["name"]
                found[name] = change.body
                if change.type == "DELETED":
                    del found[name]
        return dict(sorted(found.items()))

    def since(self, version: int) -> Sequence[Change]:
        """The changes after a version."""
        return [change for change in self.log if change.version > version]

    def lagging(self, writes: int) -> int:
        """The version that many writes ago, as far back as it is remembered."""
        versions = [self._first, *(change.version for change in self.log)]
        return max(versions[max(0, len(versions) - 1 - writes)], self.compacted)
