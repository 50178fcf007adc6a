"""What a handler was shown, and whether it can be so: one set of rules for both sides.

`deviations` names what a history does that a reader of adds, updates and deletes would not expect. Ours may do what is
in `WE_DO` only, client-go what is in `CLIENT_GO_DOES`; docs/informers.md names each of these among the differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from informer_sessions.script import MARKER
from informer_sessions.session import Session


@dataclass(frozen=True)
class Shown:
    """One call of a handler. A delete has the uid and version of the object that it was given."""

    event: str
    key: str
    uid: str
    rv: str
    old_uid: str = ""
    old_rv: str = ""
    unknown: bool = False
    initial: bool = False

    def __str__(self) -> str:
        old = f" was {self.old_uid}@{self.old_rv}" if self.event == "update" else ""
        return f"{self.event} {self.uid}@{self.rv}{old}" + " unknown" * self.unknown + " initial" * self.initial


@dataclass(frozen=True)
class Played:
    """What one side made of a session: calls of the handler in order, and the final cache (uid, version, data).

    `trouble` is what it found wrong by itself, `status` what it says of its state.
    """

    ended: bool
    history: tuple[Shown, ...]
    cache: Mapping[str, tuple[str, str, str]]
    synced: bool = True
    handler_synced: bool = True
    trouble: Sequence[str] = ()
    status: str = ""


UID_CHANGED = "an update from one object to another"
SAME_AGAIN = "an update to the same version"
UNKNOWN_DELETED = "a delete of what was not shown"
OTHER_ORDER = "an object of the first list after news of another"
CLIENT_GO_DOES = frozenset({UID_CHANGED, SAME_AGAIN, UNKNOWN_DELETED})
WE_DO = frozenset({OTHER_ORDER})


def deviations(history: Iterable[Shown], session: Session) -> dict[str, list[str]]:
    """By rule, the calls that break it."""
    checker = _Checker(session)
    for shown in history:
        checker.check(shown)
    checker.check_end()
    return checker.found


class _Checker:
    def __init__(self, session: Session) -> None:
        self.found: dict[str, list[str]] = {}
        self._session = session
        self._held: dict[str, Shown] = {}
        self._told: set[tuple[str, str]] = set()
        self._left: set[str] = set()
        self._met: set[str] = set()
        self._later = False

    def _wrong(self, rule: str, shown: object) -> None:
        self.found.setdefault(rule, []).append(str(shown))

    def check(self, shown: Shown) -> None:
        held = self._held.get(shown.key)
        if shown.initial and shown.key in self._met:
            self._wrong("an object of the first list after something else of that name", shown)
        if shown.initial and self._later:
            self._wrong(OTHER_ORDER, shown)
        self._met.add(shown.key)
        self._later = self._later or not shown.initial
        {"add": self._add, "update": self._update, "delete": self._delete}[shown.event](shown, held)

    def _add(self, shown: Shown, held: Shown | None) -> None:
        if held is not None:
            self._wrong("an add of what is there", shown)
        self._take(shown)

    def _update(self, shown: Shown, held: Shown | None) -> None:
        if held is None:
            self._wrong("an update of what was not shown", shown)
        elif (shown.old_uid, shown.old_rv) != (held.uid, held.rv):
            self._wrong("an update from another state than was shown", f"{shown}; shown was {held}")
        elif shown.uid != held.uid:
            self._wrong(UID_CHANGED, shown)
        elif shown.rv == held.rv:
            self._wrong(SAME_AGAIN, shown)
            return
        elif int(shown.rv) < int(held.rv):
            self._wrong("an update back in time", shown)
        self._take(shown)

    def _take(self, shown: Shown) -> None:
        if (shown.uid, shown.rv) in self._told:
            self._wrong("a version told twice", shown)
        if shown.uid in self._left:
            self._wrong("an object that was deleted comes back", shown)
        self._told.add((shown.uid, shown.rv))
        self._held[shown.key] = shown

    def _delete(self, shown: Shown, held: Shown | None) -> None:
        if held is None:
            self._wrong(UNKNOWN_DELETED, shown)
            return
        del self._held[shown.key]
        self._left.add(held.uid)
        if shown.unknown and (shown.uid != held.uid or int(shown.rv) < int(held.rv)):
            self._wrong("a tombstone with a state before the one that was shown", f"{shown}; shown was {held}")
        if shown.unknown and held.uid in self._session.deletes_read:
            self._wrong("a tombstone although the deletion was told", shown)
        if not shown.unknown and shown.uid not in self._session.deletes_sent:
            self._wrong("a final state that nobody told", shown)
        if not shown.unknown and shown.uid != held.uid:
            self._wrong("a delete of another object than was shown", f"{shown}; shown was {held}")

    def check_end(self) -> None:
        final = {key: (one.uid, one.rv) for key, one in self._held.items()}
        wanted = {key: (uid, rv) for key, (uid, rv, _) in final_cache(self._session).items()}
        if final != wanted:
            self._wrong("another end than the server's", f"{final} instead of {wanted}")
        if f"ns/{MARKER}" not in final:
            self._wrong("no end", "the marker was not shown")


def final_cache(session: Session) -> dict[str, tuple[str, str, str]]:
    """What a cache must hold at the end."""
    return {
        f"ns/{name}": (body["metadata"]["uid"], body["metadata"]["resourceVersion"], body["data"]["n"])
        for name, body in session.world.now().items()
    }
