"""`FakeClient`: a `Client` for unit tests, over a store in memory, without HTTP.

The client, its resources and their argument checks are the real ones; only the backend is another. The store behind it
is the one of the embedded cluster, so versions, conflicts, watches, finalizers and pages behave as on an API server.
What it does not do: validate, default, collect garbage, run controllers, ask whether a namespace exists.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from informers.client import Client
from informers.key import ObjectKey, as_key
from informers.object import MemberCache, Object, ObjectSource
from informers.store.builtin import builtin_kinds
from informers.testing.fake_backend import Action, FakeBackend
from informers.testing.kinds import KindLike, derive, kinds_of
from workqueue.clock import Clock, MonotonicClock

__all__ = ["Action", "FakeClient"]


class FakeClient(Client):
    """A client of a cluster that holds `objects` and nothing else. Everything that a `Client` can, it can.

    Objects are dicts or `Object`s with apiVersion and kind; what a server would have set (uid, resourceVersion,
    creationTimestamp) is added where it is missing. Known are the built-in kinds, those of the objects, and `kinds`:
    pairs of api_version and kind, `informers.store.ResourceType`s, or CustomResourceDefinitions. Uids and generated
    names are counted up, so that runs are alike.
    Patches other than merge patches raise UnsupportedMediaTypeError. `clock` (for the end of watches) and `now` (epoch
    seconds for timestamps) may be replaced.
    """

    def __init__(
        self,
        *objects: Mapping[str, Any] | Object,
        kinds: Iterable[KindLike] = (),
        clock: Clock | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        known = {(kind.api_version, kind.kind): kind for kind in (*builtin_kinds(), *kinds_of(kinds))}
        plain = [Object.from_dict(obj).to_dict() for obj in objects]
        for obj in plain:
            named = _named(obj)
            namespaced = bool(obj["metadata"].get("namespace"))
            known.setdefault(named, derive(*named, namespaced=namespaced))
        self._fake = FakeBackend(known.values(), plain, clock=clock or MonotonicClock(), now=now)
        super().__init__(self._fake)

    @classmethod
    def _over(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a FakeClient is made by its constructor: it has no server")

    @property
    def actions(self) -> Sequence[Action]:
        """Every request so far, in order, failed ones too; a snapshot."""
        with self._fake.changed:
            return tuple(self._fake.actions)

    @property
    def writes(self) -> Sequence[Action]:
        """The requests among `actions` that were to change something."""
        return tuple(action for action in self.actions if action.is_write)

    def clear_actions(self) -> None:
        """Forget the requests so far."""
        with self._fake.changed:
            self._fake.actions.clear()

    def fail_next(self, verb: str, kind: str, error: Exception, *, times: int = 1, applied: bool = False) -> None:
        """Let the next `times` requests of this verb and kind raise `error`; ``*`` stands for any of them.

        Verbs are create, get, list, watch, update (or replace), patch, delete and deletecollection. With `applied` the
        request takes effect first and only its answer is lost.
        """
        self._fake.fail_next(verb, kind, error, times=times, applied=applied)

    def stored(self, api_version: str, kind: str, key: ObjectKey | str | None = None) -> Sequence[Object]:
        """What the store holds of a kind (or under one key of it), in key order. Is no action, and never fails."""
        resource = self._fake.kind(api_version, kind)
        wanted = None if key is None else as_key(key)
        source = ObjectSource(api_version, kind, MemberCache())
        with self._fake.changed:
            found = self._fake.store.list(resource).items
            return tuple(
                Object.from_bytes(one.raw, source=source) for one in found if wanted is None or one.key == wanted
            )

    def compact(self) -> None:
        """Forget the history, so that watches and lists from before raise ExpiredError."""
        with self._fake.changed:
            self._fake.store.compact()
            self._fake.changed.notify_all()

    def drop_watches(self, error: Exception | None = None) -> None:
        """End all open watches, after the events that are under way: with an error, or as if their time was up."""
        self._fake.drop_watches(error)


def _named(obj: Mapping[str, Any]) -> tuple[str, str]:
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise ValueError(f"an object needs apiVersion and kind: {obj!r}")
    if not obj["metadata"].get("name"):
        raise ValueError(f"an object needs metadata.name: {obj!r}")
    return api_version, kind
