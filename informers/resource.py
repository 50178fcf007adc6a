"""`Resource`: the verbs of one kind, over whatever backend the client has.

It checks arguments, builds `Request` values and decodes answers; it knows neither HTTP nor stores. Dicts and `Object`s
go in, `Object`s come out. Nothing is sent twice and nothing waits longer than `timeout`, the total time of a call in
seconds; without it the client's own default holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from informers.arguments import (
    Budget,
    body_of,
    check_scope,
    delete_options,
    given,
    key_of,
    metadata_of,
    scope,
    selection,
    selector_text,
    without_version,
    write_options,
)
from informers.decoder import ObjectDecoder
from informers.errors import KindNotFoundError, MalformedResponseError
from informers.key import ObjectKey, as_key
from informers.list_watch import ResourceListWatch
from informers.object import MemberCache, Object
from informers.request import Backend, Request, ResourceInfo
from informers.selectors import FieldSelector, LabelSelector
from informers.source import ObjectList, WatchStream
from informers.views import plain
from informers.waiting import wait_until

__all__ = ["Resource"]

Body = Mapping[str, Any] | Object
FieldValidation = Literal["Strict", "Warn", "Ignore"]
PatchType = Literal["merge", "json", "strategic"]
Propagation = Literal["Background", "Foreground", "Orphan"]
Labels = str | LabelSelector
Fields = str | FieldSelector

_PATCH_TYPES: Mapping[str, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_PARTIAL = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"
_encode = msgspec.json.Encoder(enc_hook=plain).encode


class Resource:
    """One resource of an API server. Made by `Client.resource`; no I/O until the first call. Thread-safe.

    Keys are `ObjectKey`s or ``namespace/name`` (``name`` where there are no namespaces). Wrong arguments raise
    ValueError before anything is sent. Every call raises `ApiError` children for what the server refuses
    (`KindNotFoundError` while the kind is not served), `TransportError` children where no answer came,
    `MalformedResponseError` for an answer that is none; `maybe_applied` says of a write whether it may have taken
    effect.
    Writes take `dry_run`, `field_manager` (who owns the fields that are set) and `field_validation`.
    """

    def __init__(
        self,
        backend: Backend,
        api_version: str,
        *,
        kind: str = "",
        plural: str = "",
        timeout: float | None = 30.0,
        cache: MemberCache | None = None,
        managed_fields: bool = False,
    ) -> None:
        self.api_version = api_version
        self._backend = backend
        self._wanted = {"kind": kind} if kind else {"plural": plural}
        self._timeout = timeout
        self._cache = MemberCache() if cache is None else cache
        self._managed_fields = managed_fields
        self._info: ResourceInfo | None = None
        self._decoder: ObjectDecoder | None = None

    def __repr__(self) -> str:
        return f"<Resource {self.description}>"

    @property
    def description(self) -> str:
        """What this is, for messages: ``v1 Pod at https://10.0.0.1:6443``."""
        return f"{self.api_version} {next(iter(self._wanted.values()))} at {self._backend.server}"

    def info(self, *, timeout: float | None = None) -> ResourceInfo:
        """What discovery says of the resource. Asks the server the first time. Raises KindNotFoundError."""
        info = self._info
        if info is None:
            info = self._backend.resolve(self.api_version, **self._wanted, timeout=self._time(timeout))
            self._decoder = self._new_decoder(info)
            self._info = info
        return info

    # --- reads

    def get(self, key: ObjectKey | str, *, subresource: str | None = None, timeout: float | None = None) -> Object:
        """Read one object in its newest state. Raises NotFoundError."""
        budget = self._budget(timeout)
        return self._ask(self._request("get", key, subresource, budget), budget)

    def list(
        self,
        *,
        namespace: str | None = None,
        label_selector: Labels | None = None,
        field_selector: Fields | None = None,
        limit: int | None = None,
        continue_: str | None = None,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> ObjectList:
        """Read a list, or with `limit` a page of it; `continue_` is the token of the page before.

        Without a namespace objects of all namespaces are listed. What resourceVersion and its match mean is as the API
        defines it: none is the newest state. With `metadata_only` the objects have nothing but their metadata.
        Raises ExpiredError for an old version or token.
        """
        budget = self._budget(timeout)
        query = selection(label_selector, field_selector)
        query |= given(
            limit=limit, **{"continue": continue_}, resourceVersion=resource_version,
            resourceVersionMatch=resource_version_match,
        )  # fmt: skip
        info = self.info(timeout=budget())
        accept = _PARTIAL.format("List") if metadata_only else "application/json"
        request = Request("list", info, scope(info, namespace), query=query, accept=accept)
        return self._decoder_for(metadata_only).page(self._call(request, budget()))

    def iterate(
        self,
        *,
        page_size: int = 500,
        namespace: str | None = None,
        label_selector: Labels | None = None,
        field_selector: Fields | None = None,
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> Iterator[Object]:
        """Read a list page by page, each when its first object is asked for. `timeout` is for each page.

        Raises ExpiredError if the reader is so slow that the rest is not kept any more (five minutes by default), and
        MalformedResponseError for a page that leads to itself.
        """
        token: str | None = None
        while True:
            page = self.list(
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=page_size,
                continue_=token,
                metadata_only=metadata_only,
                timeout=timeout,
            )
            yield from page.items
            if not page.continue_:
                return
            if page.continue_ == token:
                raise MalformedResponseError(f"{self.description}: a page of the list leads to itself", verb="list")
            token = page.continue_

    def watch(
        self,
        *,
        namespace: str | None = None,
        label_selector: Labels | None = None,
        field_selector: Fields | None = None,
        resource_version: str | None = None,
        timeout_seconds: float | None = None,
        allow_bookmarks: bool = True,
        send_initial_events: bool | None = None,
        resource_version_match: str | None = None,
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> WatchStream:
        """Open a stream of the changes after `resource_version` (without one: of the present objects first).

        `timeout` bounds the opening. `timeout_seconds` asks the server to end the stream then; 30 s later it is taken
        for dead. Bookmarks come as events of type BOOKMARK; ERROR events are raised. The stream is a context manager;
        `close()` from any thread ends a read that waits. Close it, or the connection stays until it is collected.
        """
        budget = self._budget(timeout)
        if send_initial_events and resource_version_match is None:
            resource_version_match = "NotOlderThan"
        seconds = None if timeout_seconds is None else max(1, round(timeout_seconds))
        query = {"watch": "true", **selection(label_selector, field_selector)}
        query |= given(
            resourceVersion=resource_version, timeoutSeconds=seconds, allowWatchBookmarks=allow_bookmarks or None,
            sendInitialEvents=send_initial_events, resourceVersionMatch=resource_version_match,
        )  # fmt: skip
        info = self.info(timeout=budget())
        accept = _PARTIAL.format("") if metadata_only else "application/json"
        request = Request("watch", info, scope(info, namespace), query=query, accept=accept)
        decoder = self._decoder_for(metadata_only)
        try:
            return self._backend.watch(request, decoder, timeout=budget(), seconds=seconds)
        except KindNotFoundError:
            self._info = None
            raise

    def list_watch(
        self,
        *,
        namespace: str | None = None,
        label_selector: Labels | None = None,
        field_selector: Fields | None = None,
        managed_fields: bool | None = None,
        metadata_only: bool = False,
    ) -> ResourceListWatch:
        """Give a source for a `Reflector` or `SharedInformer`: this resource in one scope.

        With `metadata_only` the objects have nothing but their metadata. `managed_fields` keeps that part of it, which
        is cut by default (or as the client was told).
        """
        resource = self
        if managed_fields is not None and managed_fields != self._managed_fields:
            resource = self._with_managed_fields(managed_fields)
        return ResourceListWatch(
            resource,
            namespace=namespace,
            label_selector=selector_text(label_selector),
            field_selector=selector_text(field_selector),
            metadata_only=metadata_only,
        )

    def wait_until(
        self,
        key: ObjectKey | str,
        predicate: Callable[[Object | None], bool],
        timeout: float | None = None,
    ) -> Object | None:
        """Wait until the predicate holds for the object's state (None: there is none), and give that state.

        Lists, then watches, this one object; does not poll. Failures that may pass are waited out. `timeout=None` waits
        for ever; past it raises Timeout, with the last failure if there was one.
        """
        return wait_until(self, as_key(key), predicate, timeout)

    # --- writes

    def create(
        self,
        obj: Body,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        timeout: float | None = None,
    ) -> Object:
        """Create an object (or write a subresource such as ``binding`` of the one that `obj` names).

        Raises AlreadyExistsError, InvalidError. With metadata.generateName and no name the server makes a name.
        """
        budget = self._budget(timeout)
        info = self.info(timeout=budget())
        key = key_of(obj, info)
        if subresource and not key.name:
            raise ValueError("metadata.name is missing")
        request = Request(
            "create",
            info,
            key.namespace,
            key.name if subresource else "",
            subresource or "",
            write_options(dry_run, field_manager, field_validation),
            body_of(obj, info, subresource),
            about=key if key.name else None,
        )
        return self._ask(request, budget)

    def replace(
        self,
        obj: Body,
        *,
        subresource: str | None = None,
        unconditional: bool = False,
        dry_run: bool = False,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        timeout: float | None = None,
    ) -> Object:
        """Replace an object if its resourceVersion is still the one given in it. Raises ConflictError, NotFoundError.

        Without a resourceVersion ValueError is raised; `unconditional=True` sends none, and overwrites whatever is
        there (the server refuses that for custom resources).
        """
        budget = self._budget(timeout)
        info = self.info(timeout=budget())
        key = key_of(obj, info)
        if not key.name:
            raise ValueError("metadata.name is missing")
        if unconditional:
            obj = without_version(obj)
        elif not metadata_of(obj).get("resourceVersion"):
            raise ValueError(f"{info.kind} {key}: a replacement needs metadata.resourceVersion, or unconditional=True")
        query = write_options(dry_run, field_manager, field_validation)
        body = body_of(obj, info, subresource)
        return self._ask(Request("update", info, key.namespace, key.name, subresource or "", query, body), budget)

    def patch(
        self,
        key: ObjectKey | str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: PatchType = "merge",
        subresource: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        timeout: float | None = None,
    ) -> Object:
        """Change parts of an object: a merge patch (RFC 7386), a JSON patch (RFC 6902), or, for built-in kinds only, a
        strategic merge patch. Raises NotFoundError, InvalidError, ConflictError (if the patch names a resourceVersion).
        """
        if type not in ("merge", "json", "strategic"):
            raise ValueError(f"a patch is of type merge, json or strategic, not {type!r}")
        if (type == "json") != (not isinstance(patch, Mapping)):
            raise ValueError("a JSON patch is a list of operations, every other patch is a mapping")
        budget = self._budget(timeout)
        request = self._request(
            "patch", key, subresource, budget, write_options(dry_run, field_manager, field_validation), _encode(patch),
            _PATCH_TYPES[type],
        )  # fmt: skip
        return self._ask(request, budget)

    def apply(
        self,
        obj: Body,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        timeout: float | None = None,
    ) -> Object:
        """Server-side apply: say what the fields that this manager owns should be; creates the object if need be.

        Raises ConflictError if another manager owns one of them with another value; `force` takes it over.
        """
        if not field_manager:
            raise ValueError("an apply needs a field manager")
        budget = self._budget(timeout)
        info = self.info(timeout=budget())
        key = key_of(obj, info)
        if not key.name:
            raise ValueError("metadata.name is missing")
        query = write_options(dry_run, field_manager, field_validation)
        if force:
            query["force"] = "true"
        body = body_of(obj, info, subresource)
        return self._ask(
            Request("apply", info, key.namespace, key.name, subresource or "", query, body, _PATCH_TYPES["apply"]),
            budget,
        )

    def delete(
        self,
        key: ObjectKey | str,
        *,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Object | None:
        """Delete an object, if it still has this uid and resourceVersion where they are given (else ConflictError).

        Gives its state if it is only marked (finalizers, a grace period in seconds) or if the server tells the last
        one, None if all that the server says is that it is gone. Raises NotFoundError.
        """
        budget = self._budget(timeout)
        preconditions = given(uid=uid, resourceVersion=resource_version)
        body = delete_options(propagation, grace_period, preconditions, dry_run)
        deleted = self._ask(self._request("delete", key, None, budget, body=body), budget)
        return None if deleted.get("kind") == "Status" else deleted

    def delete_collection(
        self,
        *,
        namespace: str | None = None,
        label_selector: Labels | None = None,
        field_selector: Fields | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Delete what the selectors choose; one object after the other, so a failure may leave some deleted."""
        budget = self._budget(timeout)
        info = self.info(timeout=budget())
        if info.namespaced and not namespace:
            raise ValueError(f"{info.plural} are deleted in one namespace at a time: namespace is missing")
        self._call(
            Request(
                "deletecollection",
                info,
                scope(info, namespace),
                query=selection(label_selector, field_selector),
                body=delete_options(propagation, grace_period, {}, dry_run),
            ),
            budget(),
        )

    # --- the ways of a request

    def _time(self, timeout: float | None) -> float | None:
        return self._timeout if timeout is None else timeout

    def _budget(self, timeout: float | None) -> Budget:
        return Budget(self._time(timeout))

    def _request(
        self,
        verb: str,
        key: ObjectKey | str,
        subresource: str | None,
        budget: Budget,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Request:
        key = as_key(key)
        info = self.info(timeout=budget())
        check_scope(info, key)
        return Request(verb, info, key.namespace, key.name, subresource or "", query or {}, body, content_type)

    def _ask(self, request: Request, budget: Budget) -> Object:
        body = self._call(request, budget())
        # a subresource answers with a kind of its own, and so does a delete
        own = not request.subresource or request.subresource == "status"
        if own and request.verb != "delete":
            return self._decoder_for(False).object(body)
        return ObjectDecoder(cache=self._cache, managed_fields=self._managed_fields).object(body)

    def _call(self, request: Request, timeout: float | None) -> bytes:
        try:
            return self._backend.call(request, timeout)
        except KindNotFoundError:
            self._info = None
            raise

    def _decoder_for(self, metadata_only: bool) -> ObjectDecoder:
        assert self._decoder is not None
        if not metadata_only:
            return self._decoder
        source = self._decoder.source
        return ObjectDecoder(
            source.api_version, source.kind, cache=self._cache, managed_fields=self._managed_fields, partial=True
        )

    def _new_decoder(self, info: ResourceInfo) -> ObjectDecoder:
        return ObjectDecoder(info.api_version, info.kind, cache=self._cache, managed_fields=self._managed_fields)

    def _with_managed_fields(self, managed_fields: bool) -> Resource:
        return Resource(
            self._backend,
            self.api_version,
            **self._wanted,
            timeout=self._timeout,
            cache=self._cache,
            managed_fields=managed_fields,
        )
