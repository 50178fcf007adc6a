"""The backend of `FakeClient`: requests are answered by the pure versioned store, in this process and at once.

The store decides (versions, conflicts, finalizers, selectors, pages, compaction); here are a lock around it, faults on
demand, a record of what was asked, and streams that wait for what comes next.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from informers.decoder import ObjectDecoder
from informers.errors import (
    ApiError,
    BadRequestError,
    ClientClosed,
    KindNotFoundError,
    MethodNotAllowedError,
    NotFoundError,
    UnsupportedMediaTypeError,
)
from informers.key import ObjectKey
from informers.request import Request, ResourceInfo
from informers.source import WatchStream
from informers.store import DeleteOptions, Event, Json, ResourceType, Store, Stored
from informers.testing.fake_stream import FakeStream
from workqueue.clock import Clock

__all__ = ["Action", "FakeBackend"]

SERVER = "fake://store"
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_ACCEPTED = (
    "informers.testing.FakeClient takes merge patches only, not {}: use pysedna.localcluster.LocalCluster"
    " (JSON and strategic merge patches) or a real API server (server-side apply too)"
)


@dataclass(frozen=True, slots=True)
class Action:
    """One request that a fake client was asked. `body` is the decoded object, patch or options; fresh plain data.

    `verb` is Kubernetes' word: create, get, list, watch, update, patch, delete, deletecollection.
    """

    verb: str
    api_version: str
    kind: str
    key: ObjectKey
    subresource: str = ""
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_write(self) -> bool:
        """Whether it was asked to change something."""
        return self.verb not in ("get", "list", "watch")

    def __str__(self) -> str:
        return f"{self.verb} {self.kind}{'/' if self.subresource else ''}{self.subresource} {self.key}"


@dataclass(slots=True)
class _Failure:
    verb: str
    kind: str
    error: Exception
    times: int
    applied: bool


class FakeBackend:
    """Implements `Backend`. Thread-safe; `changed` is notified after each change, and is the lock around the store."""

    def __init__(
        self, kinds: Iterable[ResourceType], objects: Iterable[Json], *, clock: Clock, now: Callable[[], float]
    ) -> None:
        self.changed = threading.Condition()
        self.actions: list[Action] = []
        self._clock = clock
        self._kinds = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._failures: list[_Failure] = []
        self._streams: set[FakeStream] = set()
        self._closed = False
        self._uids = itertools.count(1)
        self._names = itertools.count()
        present = [self._identified(obj, version) for version, obj in enumerate(objects, start=1)]
        versions = [int(obj["metadata"]["resourceVersion"]) for obj in present]
        self.store = Store(
            now=now,
            new_uid=self._new_uid,
            new_suffix=self._new_suffix,
            version=max(versions, default=1),
            committed=self._committed,
        )
        for kind in self._kinds.values():
            self.store.register(kind)
        for obj in present:
            self.store.restore(self._kinds[obj["apiVersion"], obj["kind"]], [obj])

    def _identified(self, obj: Json, version: int) -> Json:
        """An initial object with what a server would have set; what the test set stays."""
        kind = self._kinds[obj["apiVersion"], obj["kind"]]
        metadata = {"uid": self._new_uid(), "resourceVersion": str(version), **obj["metadata"]}
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        if kind.generation:
            metadata.setdefault("generation", 1)
        return {**obj, "metadata": metadata}

    def _new_uid(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._uids):012x}"

    def _new_suffix(self) -> str:
        number, letters = next(self._names), ""
        for _ in range(5):
            number, digit = divmod(number, len(_LETTERS))
            letters = _LETTERS[digit] + letters
        return letters

    def _committed(self, event: Event) -> None:
        self.changed.notify_all()

    # --- faults and what tests look at

    def fail_next(self, verb: str, kind: str, error: Exception, *, times: int, applied: bool) -> None:
        """See `FakeClient.fail_next`."""
        verb = "update" if verb == "replace" else verb
        if verb not in (*_VERBS, "*"):
            raise ValueError(f"there is no verb {verb!r}: {', '.join(_VERBS)} or *")
        with self.changed:
            self._failures.append(_Failure(verb, kind, error, times, applied))

    def kind(self, api_version: str, kind: str) -> ResourceType:
        """The type of a kind. Raises KindNotFoundError."""
        found = self._kinds.get((api_version, kind))
        if found is None:
            raise KindNotFoundError(
                f"the fake does not know {kind} in {api_version}: name it in FakeClient(kinds=[...])",
                verb="discover",
                resource=f"{kind} in {api_version}",
            )
        return found

    def drop_watches(self, error: Exception | None) -> None:
        """See `FakeClient.drop_watches`."""
        with self.changed:
            for stream in list(self._streams):
                stream.end(error)

    # --- Backend

    @property
    def server(self) -> str:
        """See `Backend.server`."""
        return SERVER

    def resolve(self, api_version: str, *, kind: str = "", plural: str = "", timeout: float | None) -> ResourceInfo:
        """See `Backend.resolve`."""
        if kind:
            return _info(self.kind(api_version, kind))
        for one in self._kinds.values():
            if (one.api_version, one.plural) == (api_version, plural):
                return _info(one)
        return _info(self.kind(api_version, plural))

    def resources(self, timeout: float | None) -> list[ResourceInfo]:
        """See `Backend.resources`."""
        return [_info(kind) for kind in self._kinds.values()]

    def call(self, request: Request, timeout: float | None) -> bytes:
        """See `Backend.call`."""
        with self.changed:
            failure = self._begin(request)
            if failure is not None and not failure.applied:
                raise failure.error
            try:
                body = self._answer(request, self.kind(request.info.api_version, request.info.kind))
            except ApiError as error:
                error.verb, error.resource, error.key = request.verb, request.resource, request.key
                raise
            if failure is not None:
                raise failure.error
            return body

    def watch(
        self, request: Request, decoder: ObjectDecoder, *, timeout: float | None, seconds: float | None
    ) -> WatchStream:
        """See `Backend.watch`."""
        kind = self.kind(request.info.api_version, request.info.kind)
        query = request.query
        with self.changed:
            failure = self._begin(request)
            if failure is not None:
                raise failure.error
            initial = query.get("sendInitialEvents")
            watch = self.store.watch(
                kind,
                namespace=request.namespace or None,
                resource_version=query.get("resourceVersion"),
                resource_version_match=query.get("resourceVersionMatch"),
                send_initial_events=None if initial is None else initial == "true",
                allow_bookmarks=query.get("allowWatchBookmarks") == "true",
                **_selectors(query),
            )
            stream = FakeStream(
                self.changed, watch.poll, decoder, render=_rendering(request), clock=self._clock, seconds=seconds,
                closed=self._streams.discard,
            )  # fmt: skip
            self._streams.add(stream)
            return stream

    def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
    ) -> bytes:
        """Knows ``/version`` and the health endpoints; anything else is not found."""
        if method == "GET" and path == "/version":
            return b'{"major":"1","minor":"0","gitVersion":"v1.0.0-fake"}'
        if method == "GET" and path in ("/healthz", "/livez", "/readyz"):
            return b"ok"
        raise NotFoundError("the fake serves objects only", verb="raw", resource=path)

    def close(self) -> None:
        """See `Backend.close`."""
        with self.changed:
            self._closed = True
            for stream in list(self._streams):
                stream.end(ClientClosed("the fake client is closed"))

    # --- answers

    def _begin(self, request: Request) -> _Failure | None:
        if self._closed:
            raise ClientClosed("the fake client is closed")
        verb = "patch" if request.verb == "apply" else request.verb
        body = None if request.body is None else json.loads(request.body)
        key = ObjectKey(request.namespace, request.name or _name_in(body))
        self.actions.append(
            Action(
                verb, request.info.api_version, request.info.kind, key, request.subresource, body, dict(request.query)
            )
        )
        for failure in self._failures:
            if failure.verb in (verb, "*") and failure.kind in (request.info.kind, "*"):
                failure.times -= 1
                if failure.times == 0:
                    self._failures.remove(failure)
                return failure
        return None

    def _answer(self, request: Request, kind: ResourceType) -> bytes:
        render = _rendering(request)
        dry_run = request.query.get("dryRun") == "All"
        key = ObjectKey(request.namespace, request.name)
        match request.verb:
            case "get":
                self._subresource(kind, request.subresource)
                return render(self.store.get(kind, key, resource_version=request.query.get("resourceVersion")))
            case "list":
                return self._list(request, kind, render)
            case "create" if request.subresource == "binding" and kind.kind == "Pod":
                return self._bind(kind, key, _body(request), dry_run)
            case "create" if not request.subresource:
                obj = _body(request)
                if "status" in kind.subresources:
                    obj.pop("status", None)
                return render(self.store.create(kind, obj, namespace=request.namespace, dry_run=dry_run))
            case "update":
                subresource = self._subresource(kind, request.subresource)
                return render(self.store.update(kind, key, _body(request), subresource=subresource, dry_run=dry_run))
            case "patch" | "apply":
                return render(self._patch(request, kind, key, dry_run))
            case "delete":
                deletion = self.store.delete(kind, key, _delete_options(request), dry_run=_is_dry(request))
                return _success(kind, key) if deletion.gone else render(deletion.stored)
            case "deletecollection":
                self.store.delete_collection(
                    kind,
                    _delete_options(request),
                    namespace=request.namespace or None,
                    dry_run=_is_dry(request),
                    **_selectors(request.query),
                )
                return _success(kind, key)
        raise MethodNotAllowedError(f"the fake cannot {request.verb} {request.resource}")

    def _subresource(self, kind: ResourceType, name: str) -> str | None:
        if name and name not in kind.subresources:
            raise NotFoundError("the server could not find the requested resource", details={"name": name})
        return name or None

    def _list(self, request: Request, kind: ResourceType, render: Callable[[Stored], bytes]) -> bytes:
        query = request.query
        limit = query.get("limit")
        found = self.store.list(
            kind,
            namespace=request.namespace or None,
            limit=int(limit) if limit else None,
            continue_=query.get("continue"),
            resource_version=query.get("resourceVersion"),
            resource_version_match=query.get("resourceVersionMatch"),
            **_selectors(query),
        )
        metadata: Json = {"resourceVersion": str(found.version), "continue": found.continue_}
        if found.remaining is not None:
            metadata["remainingItemCount"] = found.remaining
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
        return msgspec.json.encode(head)[:-1] + b',"items":[' + b",".join(map(render, found.items)) + b"]}"

    def _patch(self, request: Request, kind: ResourceType, key: ObjectKey, dry_run: bool) -> Stored:
        if request.content_type != "application/merge-patch+json":
            raise UnsupportedMediaTypeError(_ACCEPTED.format(request.content_type))
        subresource = self._subresource(kind, request.subresource)
        patched = merge_patched(self.store.get(kind, key).object, _body(request))
        return self.store.update(kind, key, patched, subresource=subresource, dry_run=dry_run)

    def _bind(self, kind: ResourceType, key: ObjectKey, binding: Json, dry_run: bool) -> bytes:
        pod = self.store.get(kind, key).object
        node = (binding.get("target") or {}).get("name")
        spec = pod.get("spec") or {}
        if not node:
            raise BadRequestError("a binding needs target.name")
        if spec.get("nodeName"):
            raise ApiError.from_status(
                {
                    "reason": "Conflict",
                    "message": f'Operation cannot be fulfilled on pods/binding "{key.name}": '
                    f'pod {key.name} is already assigned to node "{spec["nodeName"]}"',
                    "details": {"name": key.name, "kind": "pods/binding"},
                },
                http_status=409,
            )
        bound = {**pod, "spec": {**spec, "nodeName": node}}
        self.store.update(kind, key, bound, subresource="binding", dry_run=dry_run)
        return _success(kind, key)


def merge_patched(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386); the target is left as it is and may share parts with the result."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), value)
    return result


def _info(kind: ResourceType) -> ResourceInfo:
    return ResourceInfo(
        kind.api_version,
        kind.kind,
        kind.plural,
        kind.namespaced,
        kind.kind.lower(),
        _VERBS,
        (),
        kind.subresources,
    )


def _rendering(request: Request) -> Callable[[Stored], bytes]:
    return _metadata_only if "as=PartialObjectMetadata" in request.accept else lambda stored: stored.raw


def _metadata_only(stored: Stored) -> bytes:
    partial = {
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": stored.object["metadata"],
    }  # fmt: skip
    return msgspec.json.encode(partial)


def _selectors(query: Mapping[str, str]) -> dict[str, str | None]:
    return {"label_selector": query.get("labelSelector"), "field_selector": query.get("fieldSelector")}


def _body(request: Request) -> Json:
    decoded: Json = json.loads(request.body or b"{}")
    return decoded


def _name_in(body: Any) -> str:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _delete_options(request: Request) -> DeleteOptions:
    options = _body(request)
    preconditions = options.get("preconditions") or {}
    return DeleteOptions(
        options.get("propagationPolicy"),
        options.get("gracePeriodSeconds"),
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
    )


def _is_dry(request: Request) -> bool:
    return bool(_body(request).get("dryRun"))


def _success(kind: ResourceType, key: ObjectKey) -> bytes:
    details = {"name": key.name, "group": kind.group, "kind": kind.plural}
    return msgspec.json.encode(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    )
