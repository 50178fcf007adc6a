"""Where the record of an election lives: the `Lock` protocol, a Kubernetes Lease, and a lock in memory for tests.

A lock reads and writes one record with compare-and-swap; it decides nothing. Whatever it raises is a failed attempt;
`LockConflict` alone says that a write was certainly not done, and that reading again will tell why.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from informers.errors import AlreadyExistsError, ConflictError, KindNotFoundError, NotFoundError
from informers.key import ObjectKey
from leaderelection.core import Record, Version
from leaderelection.errors import LockConflict, LockError
from leaderelection.microtime import format_micro_time, parse_micro_time

if TYPE_CHECKING:
    from informers.client import Client
    from informers.object import Object

__all__ = ["LeaseLock", "Lock", "MemoryLock"]

R = TypeVar("R")


class Lock(Protocol):
    """One record, with compare-and-swap. Each call blocks for at most `timeout` seconds and may raise anything."""

    def get(self, timeout: float) -> Record | None:
        """The record as stored now, or None if there is certainly none."""

    def create(self, record: Record, timeout: float) -> Record:
        """Store the first record; gives it as stored. Raises `LockConflict` if there is one."""

    def update(self, record: Record, version: Version, timeout: float) -> Record:
        """Replace exactly `version`; gives the record as stored. Raises `LockConflict` if that is not stored.

        `record.origin` is what `get`, `create` or `update` gave with that version.
        """


class LeaseLock:
    """A `coordination.k8s.io/v1` Lease, as client-go and the other clients use it. Thread-safe.

    Only the members of an election are written; labels, annotations and other members of the Lease stay as they are.

    :param client: every call is one request of it
    :param key: namespace and name of the Lease
    """

    def __init__(self, client: Client, key: ObjectKey | str) -> None:
        self.key = ObjectKey.parse(key) if isinstance(key, str) else key
        if not self.key.namespace or not self.key.name:
            raise ValueError(f"a Lease needs a namespace and a name: {str(self.key)!r}")
        self._leases = client.resource("coordination.k8s.io/v1", "Lease")

    def __str__(self) -> str:
        return f"lease {self.key}"

    def get(self, timeout: float) -> Record | None:
        """See `Lock.get`. A server that does not know Leases is an error, not an absent Lease."""
        try:
            return _record(self._leases.get(self.key, timeout=timeout))
        except KindNotFoundError:
            raise
        except NotFoundError:
            return None

    def create(self, record: Record, timeout: float) -> Record:
        """See `Lock.create`."""
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": self.key.namespace, "name": self.key.name},
            "spec": _spec(record),
        }
        try:
            return _record(self._leases.create(lease, timeout=timeout))
        except AlreadyExistsError as error:
            raise LockConflict(f"{self} was created by somebody else") from error

    def update(self, record: Record, version: Version, timeout: float) -> Record:
        """See `Lock.update`."""
        base: Any = record.origin
        lease = {} if base is None else base.to_dict()
        lease["apiVersion"], lease["kind"] = "coordination.k8s.io/v1", "Lease"
        metadata = lease.setdefault("metadata", {})
        metadata.update(namespace=self.key.namespace, name=self.key.name)
        # Both are preconditions: a Lease that was deleted and made anew is another one.
        metadata.update(uid=version.uid, resourceVersion=version.resource_version)
        lease["spec"] = {**(lease.get("spec") or {}), **_spec(record)}
        try:
            return _record(self._leases.replace(lease, timeout=timeout))
        except KindNotFoundError:
            raise
        except (ConflictError, NotFoundError) as error:
            raise LockConflict(f"{self} has changed or is gone") from error


def _spec(record: Record) -> dict[str, Any]:
    spec: dict[str, Any] = {"holderIdentity": record.holder, "leaseTransitions": record.transitions}
    if record.lease_duration is not None:
        spec["leaseDurationSeconds"] = record.lease_duration
    if record.acquire_time is not None:
        spec["acquireTime"] = format_micro_time(record.acquire_time)
    if record.renew_time is not None:
        spec["renewTime"] = format_micro_time(record.renew_time)
    return spec


def _record(lease: Object) -> Record:
    """Read a Lease that anybody may have written: what is missing or of the wrong type counts as left out."""
    spec = lease.get("spec")
    if not isinstance(spec, Mapping):
        spec = {}
    holder, duration, transitions = (
        spec.get(name) for name in ("holderIdentity", "leaseDurationSeconds", "leaseTransitions")
    )
    return Record(
        holder="" if holder is None else str(holder),  # what is not understood is not free
        lease_duration=duration if type(duration) is int and duration > 0 else None,
        acquire_time=parse_micro_time(spec.get("acquireTime")),
        renew_time=parse_micro_time(spec.get("renewTime")),
        transitions=max(transitions, 0) if type(transitions) is int else 0,
        version=Version(lease.uid, lease.resource_version),
        origin=lease,
    )


class MemoryLock:
    """A lock in memory, for tests: versions and conflicts like a real one, and faults on demand. Thread-safe.

    A fault is raised instead of the next call of a kind, before it is done or, with `after=True`, after it was done,
    which is what a lost answer looks like. A *hook* runs in the calling thread before each call, without any lock held:
    it may block, to play a slow API server, or raise.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._record: Record | None = None
        self._writes = 0
        self._creations = 0
        self._faults: dict[str, deque[tuple[BaseException, bool]]] = {}
        self.hook: Callable[[str], None] | None = None
        self.calls: deque[str] = deque(maxlen=1000)
        """The verbs of the latest calls: get, create, update."""

    def __str__(self) -> str:
        return "lock in memory"

    @property
    def record(self) -> Record | None:
        """What is stored."""
        return self._record

    def fail_next(self, verb: str, error: BaseException | None = None, *, count: int = 1, after: bool = False) -> None:
        """Let the next `count` calls of `verb` ("get", "create", "update") raise `error` (by default a `LockError`)."""
        with self._lock:
            faults = self._faults.setdefault(verb, deque())
            faults.extend([(error or LockError(f"injected failure of {verb}"), after)] * count)

    def write(self, record: Record) -> Record:
        """Store a record as another party would, whatever is stored."""
        with self._lock:
            return self._store(record)

    def delete(self) -> None:
        """Delete the record; the next one has another uid."""
        with self._lock:
            self._record = None

    def get(self, timeout: float) -> Record | None:
        """See `Lock.get`."""
        return self._call("get", lambda: self._record)

    def create(self, record: Record, timeout: float) -> Record:
        """See `Lock.create`."""

        def create() -> Record:
            if self._record is not None:
                raise LockConflict("there is a record already")
            return self._store(record)

        return self._call("create", create)

    def update(self, record: Record, version: Version, timeout: float) -> Record:
        """See `Lock.update`."""

        def update() -> Record:
            if self._record is None or self._record.version != version:
                raise LockConflict("another version is stored, or none")
            return self._store(record)

        return self._call("update", update)

    def _store(self, record: Record) -> Record:
        self._writes += 1
        if self._record is None:
            self._creations += 1
        self._record = replace(record, version=Version(f"uid-{self._creations}", str(self._writes)))
        return self._record

    def _call(self, verb: str, do: Callable[[], R]) -> R:
        hook = self.hook
        if hook is not None:
            hook(verb)
        with self._lock:
            self.calls.append(verb)
            faults = self._faults.get(verb)
            error, after = faults.popleft() if faults else (None, False)
            if error is not None and not after:
                raise error
            result = do()
            if error is not None:
                raise error
            return result
