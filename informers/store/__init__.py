"""A versioned object store with the API server's semantics: pure, synchronous, without I/O, clock, lock or thread.

It is the heart of the embedded cluster (`pysedna.localcluster` puts HTTP in front of it) and of
`informers.testing.FakeClient` (which puts nothing in front of it), so both decide alike.

- `Store` holds every resource under one `resourceVersion` counter and one bounded history of events. Each write
  yields exactly one version (the delete of a pod two: it is marked first); one that changes nothing yields none.
- `ResourceType` is all that it knows of a kind; `Hooks` are what the owner adds (defaults, validation).
- `Stored` is one version of one object: a plain dict that nobody may change, and its JSON bytes, made once.
- `Store.list` answers at any version that the history still reaches; `Store.watch` gives a `Watch` that is polled and
  never holds events of its own, so a slow reader costs nothing and in the end meets `ExpiredError`.
- Failures are `informers.errors.ApiError` with the API server's reasons, messages, details and causes.

The caller serialises all calls (one lock or one event loop). Times are epoch seconds from the callable `now`.
"""

from informers.store.failures import FieldProblem, conflict, invalid
from informers.store.selection import Listing
from informers.store.store import Store
from informers.store.types import DeleteOptions, Deletion, Event, Hooks, Json, ResourceType, Stored, timestamp
from informers.store.watch import Watch, WatchItem

__all__ = [
    "DeleteOptions",
    "Deletion",
    "Event",
    "FieldProblem",
    "Hooks",
    "Json",
    "Listing",
    "ResourceType",
    "Store",
    "Stored",
    "Watch",
    "WatchItem",
    "conflict",
    "invalid",
    "timestamp",
]
