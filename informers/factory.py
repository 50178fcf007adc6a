"""Shared informers by kind and scope: who asks twice for the same cache gets the same informer."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from enum import Enum
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self

from informers.delta_fifo import Transform
from informers.errors import InformerStopped
from informers.indexer import IndexFunction
from informers.protocol import ProtocolConfig
from informers.selectors import FieldSelector, LabelSelector
from informers.shared_informer import SharedInformer
from informers.source import ListWatch
from informers.status import MetricsProvider
from informers.sync import wait_for_sync
from workqueue.clock import Clock, MonotonicClock

__all__ = ["SharedInformerFactory"]


class _Default(Enum):
    FACTORY = "the factory's"


_FACTORY: Final = _Default.FACTORY

Namespaces = str | Sequence[str] | None
Labels = LabelSelector | str | None
Fields = FieldSelector | str | None


class ListWatches(Protocol):
    """A resource, as far as a factory needs it."""

    def list_watch(
        self,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
    ) -> ListWatch: ...


class Resources(Protocol):
    """A client, as far as a factory needs it: `Client` and `FakeClient` are such."""

    def resource(self, api_version: str, kind: str) -> ListWatches: ...


class _Key(NamedTuple):
    api_version: str
    kind: str
    namespaces: tuple[str, ...] | None
    label_selector: str
    field_selector: str
    metadata_only: bool


class SharedInformerFactory:
    """Makes, shares, starts and stops informers. Thread-safe; a context manager that starts and stops.

    `namespace` (one, several, or None for all), the selectors and `resync` (seconds, 0: never) are the defaults of
    the informers made here. `metrics`, `protocol` and `clock` are handed to all of them.
    """

    def __init__(
        self,
        client: Resources,
        *,
        namespace: Namespaces = None,
        label_selector: Labels = None,
        field_selector: Fields = None,
        resync: float = 0.0,
        metrics: MetricsProvider | None = None,
        protocol: ProtocolConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._resync = resync
        self._metrics = metrics
        self._protocol = protocol
        self._clock = clock
        self._lock = threading.Lock()
        self._informers: dict[_Key, SharedInformer] = {}
        self._transforms: dict[_Key, Transform | None] = {}
        self._started = False
        self._stopped = False

    def informer(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: Namespaces | _Default = _FACTORY,
        label_selector: Labels | _Default = _FACTORY,
        field_selector: Fields | _Default = _FACTORY,
        metadata_only: bool = False,
        transform: Transform | None = None,
        indexers: Mapping[str, IndexFunction] | None = None,
    ) -> SharedInformer:
        """The informer for this kind in this scope; made on the first call, started at once if the factory is.

        Does no I/O. With several namespaces one cache is filled by a watch in each. `metadata_only` asks the server
        for metadata alone. A later call adds the `indexers` that are missing; one with a transform other than the
        first call's raises ValueError, because one cache cannot hold both. Raises `InformerStopped` after `stop`.
        """
        key = _Key(
            api_version,
            kind,
            _namespaces(self._namespace if isinstance(namespace, _Default) else namespace),
            _labels(self._label_selector if isinstance(label_selector, _Default) else label_selector),
            _fields(self._field_selector if isinstance(field_selector, _Default) else field_selector),
            metadata_only,
        )
        with self._lock:
            informer = self._informers.get(key)
            if informer is not None:
                self._share(key, informer, transform, indexers)
                return informer
            if self._stopped:
                raise InformerStopped(f"the factory was stopped; no informer of {kind} can be made")
            informer = self._make(key, transform, indexers)
            self._informers[key] = informer
            self._transforms[key] = transform
            if self._started:
                informer.start()
        return informer

    def informers(self) -> list[SharedInformer]:
        """All informers made so far."""
        with self._lock:
            return [*self._informers.values()]

    def start(self) -> None:
        """Start every informer made so far; later ones start when they are asked for. Idempotent; does not block."""
        with self._lock:
            if self._stopped:
                raise InformerStopped("the factory was stopped and cannot be started again")
            self._started = True
            for informer in self._informers.values():
                informer.start()

    def wait_for_sync(self, timeout: float | None = None) -> None:
        """Wait until every informer made so far has synced. Raises `SyncError` naming those that have not, and why."""
        wait_for_sync(*self.informers(), timeout=timeout)

    def stop(self, timeout: float | None = None) -> bool:
        """Stop all informers and wait for their threads; False if some had not ended after `timeout` seconds."""
        with self._lock:
            self._stopped = True
            informers = [*self._informers.values()]
        for informer in informers:
            informer.end()
        clock = MonotonicClock()
        deadline = None if timeout is None else clock.now() + timeout

        def left() -> float | None:
            return None if deadline is None else max(0.0, deadline - clock.now())

        ended = [informer.stop(left()) for informer in informers]  # a list: all are waited for, whatever the first says
        return all(ended)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # ---- inside

    def _make(
        self, key: _Key, transform: Transform | None, indexers: Mapping[str, IndexFunction] | None
    ) -> SharedInformer:
        resource = self._client.resource(key.api_version, key.kind)

        def source(namespace: str | None) -> ListWatch:
            return resource.list_watch(
                namespace=namespace,
                label_selector=key.label_selector or None,
                field_selector=key.field_selector or None,
                metadata_only=key.metadata_only,
            )

        namespaces = key.namespaces
        if namespaces is None or len(namespaces) == 1:
            sources: ListWatch | Mapping[str, ListWatch] = source(namespaces[0] if namespaces else None)
        else:
            sources = {namespace: source(namespace) for namespace in namespaces}
        return SharedInformer(
            sources,
            resync=self._resync,
            indexers=indexers,
            transform=transform,
            name=_name(key),
            metrics=self._metrics,
            protocol=self._protocol,
            clock=self._clock,
        )

    def _share(
        self,
        key: _Key,
        informer: SharedInformer,
        transform: Transform | None,
        indexers: Mapping[str, IndexFunction] | None,
    ) -> None:
        if transform is not None and transform is not self._transforms[key]:
            raise ValueError(f"the informer of {_name(key)} was made with another transform; one cache has one")
        present = informer.indexer.index_names()
        for name, fn in (indexers or {}).items():
            if name not in present:
                informer.indexer.add_index(name, fn)


def _namespaces(namespace: Namespaces) -> tuple[str, ...] | None:
    if namespace is None or namespace == "":
        return None
    names = (namespace,) if isinstance(namespace, str) else tuple(sorted(dict.fromkeys(namespace)))
    if not names:
        raise ValueError("an empty list of namespaces would watch nothing; None watches all")
    if "" in names:
        raise ValueError('"" (all namespaces) cannot be one of several namespaces')
    return names


def _labels(selector: Labels) -> str:
    # Parsed, so that two spellings of one selector share an informer and a wrong one is refused here.
    return str(LabelSelector.parse(selector) if isinstance(selector, str) else selector or "")


def _fields(selector: Fields) -> str:
    return str(FieldSelector.parse(selector) if isinstance(selector, str) else selector or "")


def _name(key: _Key) -> str:
    words = [f"{key.api_version} {key.kind}"]
    if key.namespaces is not None:
        words.append("in " + ", ".join(key.namespaces))
    if key.label_selector:
        words.append(f"with labels {key.label_selector}")
    if key.field_selector:
        words.append(f"with fields {key.field_selector}")
    if key.metadata_only:
        words.append("(metadata only)")
    return " ".join(words)
