"""From a request to an answer: which object or list the path means, which options the query gives, which verb it is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import orjson
from aiohttp import web

from informers.errors import ApiError, BadRequestError, MethodNotAllowedError, UnsupportedMediaTypeError
from informers.key import ObjectKey
from informers.store import DeleteOptions, FieldProblem, Json, Stored, Watch, invalid
from informers.store.failures import invalid_options, no_such_resource
from pysedna.localcluster import patches, scale
from pysedna.localcluster.backend import Backend, WriteOptions, read_json, readable
from pysedna.localcluster.kinds import Kind
from pysedna.localcluster.views import View, negotiate
from pysedna.localcluster.watching import Hub, stream

MAX_BODY = 3 << 20
_WATCH_SECONDS = 1800.0
_NOT_DONE = ("attach", "eviction", "exec", "log", "portforward")
_USE_REAL = "the embedded cluster does not do this, use a real API server"


@dataclass(frozen=True, slots=True)
class Target:
    """What a resource path names. Without a name it is the collection; without a namespace, all of them."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str | None = None

    @property
    def key(self) -> ObjectKey:
        return self.kind.resource.key(self.namespace, self.name)


class Handlers:
    """The resource API over one backend. `bookmark_interval` and `stall` are seconds."""

    def __init__(self, backend: Backend, hub: Hub, *, bookmark_interval: float = 10.0, stall: float = 30.0) -> None:
        self._backend = backend
        self._hub = hub
        self._bookmark_interval = bookmark_interval
        self._stall = stall

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers a request below /api or /apis; raises `ApiError`."""
        target = self._target(request.path)
        query, method = request.query, request.method
        timeout = _number(query, "timeoutSeconds")
        if target.subresource in _NOT_DONE and target.kind.resource.kind == "Pod":
            raise ApiError(f"pods/{target.subresource}: {_USE_REAL}", status=501, reason="NotImplemented")
        if target.subresource and target.subresource not in target.kind.subresources:
            raise no_such_resource()
        if method == "GET":
            if _flag(query, "watch") and not target.name:
                return await self._watch(request, target, float(timeout or _WATCH_SECONDS))
            return self._read(request, target)
        body = await request.read()
        if method == "POST" and (not target.name or target.subresource == "binding"):
            return self._create(request, target, body)
        if method == "PUT" and target.name and target.subresource != "binding":
            return self._replace(request, target, body)
        if method == "PATCH" and target.name and target.subresource not in ("binding", "finalize"):
            return self._patch(request, target, body)
        if method == "DELETE" and target.subresource is None:
            return self._delete(request, target, body)
        raise _not_allowed()

    # Verbs

    def _read(self, request: web.Request, target: Target) -> web.Response:
        query, store = request.query, self._backend.store
        view = _view(request, target.kind)
        if target.name:
            version = query.get("resourceVersion")
            stored = store.get(target.kind.resource, target.key, resource_version=version)
            return _answer(self._shown(target, view, stored))
        if "sendInitialEvents" in query:
            raise invalid_options("sendInitialEvents", "sendInitialEvents is forbidden for list")
        listing = store.list(
            target.kind.resource,
            namespace=target.namespace,
            limit=_number(query, "limit"),
            continue_=query.get("continue"),
            resource_version=query.get("resourceVersion"),
            resource_version_match=query.get("resourceVersionMatch"),
            **_selectors(query),
        )
        return _answer(view.many(listing))

    async def _watch(self, request: web.Request, target: Target, timeout: float) -> web.StreamResponse:
        query, resource = request.query, target.kind.resource
        view = _view(request, target.kind)
        bookmarks = _flag(query, "allowWatchBookmarks")
        watch: Watch | ApiError
        with self._hub.waiting(resource.qualified) as wakeup:
            try:
                watch = self._backend.store.watch(
                    resource,
                    namespace=target.namespace,
                    resource_version=query.get("resourceVersion"),
                    resource_version_match=query.get("resourceVersionMatch"),
                    send_initial_events=_flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
                    allow_bookmarks=bookmarks,
                    **_selectors(query),
                )
            except ApiError as error:
                if error.status != 504:
                    raise
                watch = error  # a version from the future: told as an event
            return await stream(
                request,
                watch,
                view,
                wakeup,
                timeout=timeout,
                bookmark_interval=self._bookmark_interval if bookmarks else None,
                stall=self._stall,
            )

    def _create(self, request: web.Request, target: Target, body: bytes) -> web.Response:
        kind, options = target.kind, _write_options(request.query)
        decoded = _json_body(request, body, "Binding" if target.subresource else kind.resource.kind)
        if target.subresource == "binding":
            self._backend.bind(kind, target.key, decoded, options)
            return _success(status=201, code=201)
        view = _view(request, kind)
        if kind.resource.namespaced and not target.namespace:
            raise _not_allowed()
        stored, warnings = self._backend.create(kind, target.namespace, decoded, options)
        return _answer(view.one(stored), status=201, warnings=warnings)

    def _replace(self, request: web.Request, target: Target, body: bytes) -> web.Response:
        kind = target.kind
        view = _view(request, kind)
        decoded = _json_body(request, body, "Scale" if target.subresource == "scale" else kind.resource.kind)
        options = _write_options(request.query)
        stored, warnings = self._backend.replace(kind, target.key, decoded, target.subresource, options)
        return _answer(self._shown(target, view, stored), warnings=warnings)

    def _patch(self, request: web.Request, target: Target, body: bytes) -> web.Response:
        view = _view(request, target.kind)
        patches.check(request.content_type, custom=target.kind.custom is not None)
        try:
            patch = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise BadRequestError(f"error decoding patch: {error}") from error
        stored, warnings = self._backend.patch(
            target.kind, target.key, request.content_type, patch, target.subresource, _write_options(request.query)
        )
        return _answer(self._shown(target, view, stored), warnings=warnings)

    def _delete(self, request: web.Request, target: Target, body: bytes) -> web.Response:
        query = request.query
        given = _json_body(request, body, "DeleteOptions") if body.strip() else {}
        with readable("DeleteOptions"):
            conditions, grace = given.get("preconditions") or {}, given.get("gracePeriodSeconds")
            if given.get("orphanDependents") is not None:
                raise BadRequestError("orphanDependents: use propagationPolicy")
            options = DeleteOptions(
                propagation=given.get("propagationPolicy") or query.get("propagationPolicy"),
                grace_period=_number(query, "gracePeriodSeconds") if grace is None else int(grace),
                uid=conditions.get("uid"),
                resource_version=conditions.get("resourceVersion"),
            )
        dry_run = bool(given.get("dryRun")) or _write_options(query).dry_run
        view = _view(request, target.kind)
        if not target.name:
            listing = self._backend.delete_collection(
                target.kind, options, dry_run=dry_run, namespace=target.namespace, **_selectors(query)
            )
            return _answer(view.many(listing))
        deletion = self._backend.delete(target.kind, target.key, options, dry_run=dry_run)
        if not deletion.gone or target.kind.returns_deleted:
            return _answer(view.one(deletion.stored))
        resource = target.kind.resource
        group = {"group": resource.group} if resource.group else {}
        uid = deletion.stored.object["metadata"]["uid"]
        return _success(details={"name": target.name, **group, "kind": resource.plural, "uid": uid})

    # Paths

    def _target(self, path: str) -> Target:
        """What a path names; raises 404 for what is not served."""
        prefix, *rest = path.strip("/").split("/")
        group, namespace = rest.pop(0) if rest and prefix == "apis" else "", ""
        if len(rest) < 2 or not all(rest):
            raise no_such_resource()
        version, *rest = rest
        if rest[0] == "namespaces" and len(rest) > 2 and self._backend.kinds.find(group, version, rest[2]):
            _, namespace, *rest = rest
        kind = self._backend.kinds.find(group, version, rest[0])
        if kind is None or len(rest) > 3 or (namespace and not kind.resource.namespaced):
            raise no_such_resource()
        if len(rest) > 1 and kind.resource.namespaced and not namespace:
            raise no_such_resource()
        _, name, subresource, *_ = [*rest, "", "", ""]
        return Target(kind, namespace, name, subresource or None)

    def _shown(self, target: Target, view: View, stored: Stored) -> bytes:
        if target.subresource != "scale":
            return view.one(stored)
        return orjson.dumps(scale.of(target.kind, stored.object))


def _view(request: web.Request, kind: Kind) -> View:
    return View(kind, negotiate(request.headers.get("Accept", "")), request.query.get("includeObject", "Metadata"))


def _answer(body: bytes, *, status: int = 200, warnings: list[str] | None = None) -> web.Response:
    response = web.Response(body=body, status=status, content_type="application/json")
    for warning in warnings or ():
        response.headers.add("Warning", f"299 - {json.dumps(warning)}")
    return response


def _success(*, status: int = 200, **members: object) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", **members}
    return _answer(orjson.dumps(body), status=status)


def _not_allowed() -> MethodNotAllowedError:
    return MethodNotAllowedError("the server does not allow this method on the requested resource", details={})


def _json_body(request: web.Request, body: bytes, kind: str) -> Json:
    if request.content_type not in ("application/json", "application/octet-stream"):
        text = "the body of the request was in an unknown format - accepted media types include: application/json"
        if "protobuf" in request.content_type:
            text += f" ({_USE_REAL}; kubectl create ... --dry-run=client -o yaml | kubectl apply -f - sends JSON,"
            text += " and so does client-go with rest.Config.ContentType application/json)"
        raise UnsupportedMediaTypeError(text)
    return read_json(body, kind)


def _write_options(query: Mapping[str, str]) -> WriteOptions:
    dry_run = query.get("dryRun", "")
    problems = []
    if dry_run not in ("", "All"):
        problems.append(FieldProblem.unsupported("dryRun", [dry_run], ["All"]))
    validation = query.get("fieldValidation", "")
    choices = ("", "Ignore", "Strict", "Warn")
    if validation not in choices:
        problems.append(FieldProblem.unsupported("fieldValidation", validation, choices))
    if problems:
        raise invalid("meta.k8s.io", "CreateOptions", "", problems)
    return WriteOptions(dry_run == "All", validation == "Strict", validation == "Ignore")


def _selectors(query: Mapping[str, str]) -> dict[str, str | None]:
    return {"label_selector": query.get("labelSelector"), "field_selector": query.get("fieldSelector")}


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "false").lower() not in ("0", "false")


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise BadRequestError(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error
