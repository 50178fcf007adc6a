"""What the API does, without HTTP: kinds, defaults, validation, admission and subresources around the pure store.

Single-threaded like the store: the server calls it on its event loop. Reads go to `store` directly.
"""

import secrets
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from informers.errors import BadRequestError, ForbiddenError
from informers.key import ObjectKey
from informers.store import (
    DeleteOptions,
    Deletion,
    Event,
    FieldProblem,
    Hooks,
    Json,
    Listing,
    Store,
    Stored,
    conflict,
    invalid,
    timestamp,
)
from pysedna.localcluster import crd, defaults, patches, scale, tables, validation
from pysedna.localcluster.errors import StateFileError
from pysedna.localcluster.kinds import Kind, Kinds, built_in
from pysedna.localcluster.persistence import StateFile

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_METADATA_FIELDS = frozenset(
    {"annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers"}
    | {"generateName", "generation", "labels", "managedFields", "name", "namespace", "ownerReferences"}
    | {"resourceVersion", "selfLink", "uid"}
)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write. Unknown fields are dropped with a warning; `strict` refuses them, `quiet` does not warn."""

    dry_run: bool = False
    strict: bool = False
    quiet: bool = False


class Backend:
    """The cluster's state and its rules. `committed` is told each write after it took effect."""

    def __init__(
        self,
        *,
        state: StateFile | None,
        committed: Callable[[Event], None],
        history_limit: int = 10_000,
        first_version: int = 1,
    ) -> None:
        self.kinds = Kinds()
        self._committed = committed
        self._deleting_definitions: set[ObjectKey] = set()
        self._namespaces = built_in("Namespace")
        self._definitions = built_in("CustomResourceDefinition")
        self.store = Store(
            now=time.time,
            new_uid=lambda: str(uuid.uuid4()),
            new_suffix=lambda: "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(5)),
            version=state.version if state is not None else first_version,
            history_limit=history_limit,
            journal=state.append if state is not None else None,
            committed=self._after,
        )
        for kind in self.kinds:
            self.store.register(kind.resource, self._built_in_hooks(kind))
        if state is not None:
            self._restore(state)
        for name in _NAMESPACES:
            if self.store.find(self._namespaces.resource, ObjectKey("", name)) is None:
                self.store.create(self._namespaces.resource, {"metadata": {"name": name}})

    # Writes

    def create(self, kind: Kind, namespace: str, body: Json, options: WriteOptions) -> tuple[Stored, list[str]]:
        obj, warnings = self._decode(kind, body, options)
        if kind.resource.namespaced:
            self._admit(kind, namespace, obj)
        if "status" in kind.resource.subresources and kind.resource.kind != "Node":
            obj.pop("status", None)
        stored = self.store.create(kind.resource, obj, namespace=namespace, dry_run=options.dry_run)
        self._settle()
        return stored, warnings

    def replace(
        self, kind: Kind, key: ObjectKey, body: Json, subresource: str | None, options: WriteOptions
    ) -> tuple[Stored, list[str]]:
        current = self.store.get(kind.resource, key)
        if subresource == "scale":
            with readable("Scale"):
                body, subresource = scale.applied(kind, current.object, body), None
        obj, warnings = self._decode(kind, body, options)
        return self._update(kind, key, obj, subresource, options), warnings

    def patch(
        self, kind: Kind, key: ObjectKey, media_type: str, patch: Any, subresource: str | None, options: WriteOptions
    ) -> tuple[Stored, list[str]]:
        current = self.store.get(kind.resource, key)
        target = self.as_served(kind, current)
        target = scale.of(kind, target) if subresource == "scale" else target
        with readable(kind.resource.kind):
            patched = patches.apply(media_type, patch, target)
        uid = _metadata(patched).get("uid")
        if uid and uid != current.object["metadata"]["uid"]:
            problem = FieldProblem.invalid("metadata.uid", uid, "field is immutable")
            raise invalid(kind.resource.group, kind.resource.kind, key.name, [problem])
        if subresource == "scale":
            return self.replace(kind, key, patched, subresource, options)
        try:
            obj, warnings = self._decode(kind, patched, options)
        except BadRequestError as error:
            raise invalid("", "", "", [FieldProblem.invalid("patch", patched, error.message)]) from error
        return self._update(kind, key, obj, subresource, options), warnings

    def delete(self, kind: Kind, key: ObjectKey, options: DeleteOptions, *, dry_run: bool) -> Deletion:
        if kind.resource.kind == "Namespace" and key.name in ("default", "kube-public", "kube-system"):
            raise ForbiddenError(
                f'namespaces "{key.name}" is forbidden: this namespace may not be deleted',
                details={"name": key.name, "kind": "namespaces"},
            )
        deletion = self.store.delete(kind.resource, key, options, dry_run=dry_run)
        self._settle()
        return deletion

    def delete_collection(self, kind: Kind, options: DeleteOptions, *, dry_run: bool, **selection: Any) -> Listing:
        listing = self.store.delete_collection(kind.resource, options, dry_run=dry_run, **selection)
        self._settle()
        return listing

    def bind(self, kind: Kind, key: ObjectKey, binding: Json, options: WriteOptions) -> None:
        """Assigns a pod to a node; raises `ConflictError` if it has one."""
        with readable("Binding"):
            name, node = binding["metadata"]["name"], (binding.get("target") or {}).get("name")
        if name != key.name:
            raise BadRequestError("name in URL does not match name in Binding object")
        pod = self.store.get(kind.resource, key)
        if not node:
            raise invalid("", "Binding", key.name, [FieldProblem.required("target.name")])
        name = pod.object["spec"].get("nodeName")
        if name or "deletionTimestamp" in pod.object["metadata"]:
            text = (
                f"pod {key.name} is already assigned to node {name!r}" if name else f"pod {key.name} is being deleted"
            )
            raise conflict(kind.resource, key.name, text.replace("'", '"'), word="pods/binding")
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(time.time())}
        status = dict(pod.object.get("status") or {})
        others = [each for each in status.get("conditions") or [] if each["type"] != "PodScheduled"]
        status["conditions"] = [*others, condition]
        bound = {**pod.object, "spec": {**pod.object["spec"], "nodeName": node}, "status": status}
        self.store.update(kind.resource, key, bound, subresource="binding", dry_run=options.dry_run)

    def as_served(self, kind: Kind, stored: Stored) -> Json:
        """The object under the API version of `kind` (versions of a definition differ in nothing else)."""
        if stored.object["apiVersion"] == kind.api_version:
            return stored.object
        return {**stored.object, "apiVersion": kind.api_version}

    def _update(self, kind: Kind, key: ObjectKey, obj: Json, subresource: str | None, options: WriteOptions) -> Stored:
        stored = self.store.update(kind.resource, key, obj, subresource=subresource, dry_run=options.dry_run)
        self._settle()
        return stored

    # What a body must be

    def _decode(self, kind: Kind, body: Json, options: WriteOptions) -> tuple[Json, list[str]]:
        """The object in a body: of the right kind, without unknown fields; and warnings about those."""
        name = kind.resource.kind
        if kind.custom is not None and not body.get("kind"):
            raise BadRequestError(
                f"the object provided is unrecognized (must be of type {name}): Object 'Kind' is missing"
            )
        default = kind.api_version if kind.custom is None else ""
        found = (str(body.get("apiVersion") or default), str(body.get("kind") or name))
        if found != (kind.api_version, name):
            if kind.custom is not None and found[0] == kind.api_version:
                problem = FieldProblem.invalid("kind", found[1], f"must be {name}")
                raise invalid(kind.resource.group, found[1], str(_metadata(body).get("name", "")), [problem])
            version = found[0].rpartition("/")[2]
            if kind.custom is not None and found[1] == name:
                text = f"the API version in the data ({found[0]}) does not match the expected API version"
                raise BadRequestError(f"{text} ({kind.api_version})")
            text = f'{found[1]} in version "{version}" cannot be handled as a {name}: it is {found[0]}, {found[1]}'
            raise BadRequestError(text)
        obj = {**body, "apiVersion": kind.api_version, "kind": name}
        dropped: list[str] = []
        if kind.custom is None:
            validation.check_shape(name, obj)
            if b"null" in orjson.dumps(obj):  # far cheaper than the walk, and nulls are rare
                obj = defaults.without_nulls(obj)
        else:
            validation.check_metadata(name, obj)
            obj, dropped = kind.custom.schema.prune(obj)
        metadata = defaults.without_nulls(obj.get("metadata") or {})
        dropped += [f"metadata.{field}" for field in metadata if field not in _METADATA_FIELDS]
        obj["metadata"] = {
            field: value for field, value in metadata.items() if field in _METADATA_FIELDS and value not in ("", {}, [])
        }
        warnings = [f'unknown field "{path}"' for path in sorted(dropped)]
        if warnings and options.strict:
            text = f'{name} in version "{kind.version}" cannot be handled as a {name}: strict decoding error: '
            raise BadRequestError(text + ", ".join(warnings))
        return obj, [] if options.quiet else warnings

    def _admit(self, kind: Kind, namespace: str, obj: Json) -> None:
        """A namespace must exist and not be on its way out."""
        given = obj["metadata"].get("namespace")
        if given and given != namespace:
            return  # the store words that refusal
        found = self.store.get(self._namespaces.resource, ObjectKey("", namespace))
        if "deletionTimestamp" in found.object["metadata"]:
            name = obj["metadata"].get("name", "")
            text = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            details = {"name": name, "kind": kind.resource.plural, "causes": [cause]}
            details |= {"group": kind.resource.group} if kind.resource.group else {}
            raise ForbiddenError(f'{kind.resource.qualified} "{name}" is forbidden: {text}', details=details)

    # Hooks of the store

    def _built_in_hooks(self, kind: Kind) -> Hooks:
        name = kind.resource.kind

        def prepare(obj: Json, old: Json | None, subresource: str | None) -> Json:
            with readable(name):
                obj = complete(obj, old) if subresource is None else obj
                tables.cells(kind, obj, now=0.0)  # what could not be shown later is refused now
            return obj

        def complete(obj: Json, old: Json | None) -> Json:
            if name == "CustomResourceDefinition":
                obj = crd.prepare(obj, old, now=timestamp(time.time()))
                crd.kinds(obj)  # what could not be served later is refused now
                return obj
            if name == "Namespace" and old is not None:
                obj = {**obj, "spec": old["spec"]}
            obj = defaults.defaulted(name, obj)
            if name == "Service":
                obj = self._with_address(obj, old)
            problems = [*validation.metadata_problems(name, obj["metadata"]), *validation.spec_problems(name, obj, old)]
            if problems:
                raise invalid(kind.resource.group, name, obj["metadata"]["name"], problems)
            return obj

        if name == "Namespace":
            return Hooks(
                prepare,
                deleting=lambda obj: {**obj, "status": {**(obj.get("status") or {}), "phase": "Terminating"}},
                pending=lambda obj: bool((obj.get("spec") or {}).get("finalizers")),
            )
        return Hooks(prepare)

    def _custom_hooks(self, kinds: list[Kind]) -> Hooks:
        by_version = {kind.api_version: kind for kind in kinds}
        storage = kinds[0].resource

        def prepare(obj: Json, old: Json | None, subresource: str | None) -> Json:
            kind = by_version.get(obj["apiVersion"]) or kinds[0]
            assert kind.custom is not None
            obj = kind.custom.schema.default(obj)
            problems = list(validation.metadata_problems(storage.kind, obj["metadata"]))
            problems += kind.custom.schema.problems(obj)
            if problems:
                raise invalid(storage.group, storage.kind, obj["metadata"]["name"], problems)
            return {**obj, "apiVersion": storage.api_version}

        return Hooks(prepare)

    def _with_address(self, service: Json, old: Json | None) -> Json:
        spec = service["spec"]
        if spec["type"] == "ExternalName" or spec.get("clusterIP"):
            return service
        address = (old or {}).get("spec", {}).get("clusterIP")
        if not address:
            services = self.store.list(built_in("Service").resource).items
            address = defaults.free_address(each.object["spec"].get("clusterIP", "") for each in services)
        return {**service, "spec": {**spec, "clusterIP": address, "clusterIPs": [address]}}

    # Definitions

    def _after(self, event: Event) -> None:
        if event.resource.kind == self._definitions.resource.kind:
            if event.type == "DELETED":
                self._deleting_definitions.discard(event.stored.key)
                self._withdraw(event.stored.object)
            else:
                self._serve(event.stored.object, (event.previous.object if event.previous else {}).get("spec"))
                if "deletionTimestamp" in event.stored.object["metadata"]:
                    self._deleting_definitions.add(event.stored.key)
        self._committed(event)

    def _serve(self, definition: Json, before: Json | None = None) -> None:
        if definition["spec"] == before:
            return
        served = crd.kinds(definition)
        self.kinds.remove(definition["metadata"]["name"])
        for kind in served:
            self.kinds.add(kind)
        if served:
            resource = served[0].resource
            self.store.register(resource, self._custom_hooks(served))
            self.store.restore(resource, _reread(served, [each.object for each in self.store.list(resource).items]))

    def _withdraw(self, definition: Json) -> None:
        served = self.kinds.named(definition["metadata"]["name"])
        self.kinds.remove(definition["metadata"]["name"])
        if served:
            self.store.unregister(served[0].resource)

    def _settle(self) -> None:
        """Definitions that are being deleted take their objects with them, then go."""
        for key in list(self._deleting_definitions):
            definition = self.store.get(self._definitions.resource, key)
            served = self.kinds.named(key.name)
            if served:
                self.store.delete_collection(served[0].resource)
                if self.store.count(served[0].resource):
                    continue
            metadata = definition.object["metadata"]
            finalizers = [each for each in metadata.get("finalizers") or [] if each != crd.CLEANUP_FINALIZER]
            if finalizers != metadata.get("finalizers"):
                changed = {**definition.object, "metadata": {**metadata, "finalizers": finalizers}}
                self.store.update(self._definitions.resource, key, changed)

    def _restore(self, state: StateFile) -> None:
        found: dict[str, list[Json]] = {}
        for resource, obj in state.objects():
            found.setdefault(resource, []).append(obj)
        definitions = found.pop(self._definitions.resource.qualified, [])
        self.store.restore(self._definitions.resource, definitions)
        for definition in definitions:
            self._serve(definition)
            if "deletionTimestamp" in definition["metadata"]:
                self._deleting_definitions.add(ObjectKey("", definition["metadata"]["name"]))
        for resource, objects in found.items():
            served = self.kinds.named(resource)
            if not served:
                state.close()
                raise StateFileError(state.path, f"holds {resource}, which it does not define")
            self.store.restore(served[0].resource, _reread(served, objects))


def _reread(served: list[Kind], objects: Iterable[Json]) -> Iterator[Json]:
    """Stored custom objects as the present schema of their version shows them: pruned, with its defaults."""
    schemas = {kind.api_version: kind.custom.schema for kind in served if kind.custom is not None}
    for obj in objects:
        schema = schemas.get(obj["apiVersion"])
        yield schema.default(schema.prune(obj)[0]) if schema is not None else obj


@contextmanager
def readable(kind: str) -> Iterator[None]:
    """Turns the failure of reading a value of the wrong type, deep in an object, into the 400 of a typed decoder."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        text = f'{kind} in version "v1" cannot be handled as a {kind}: {type(error).__name__}: {error}'
        raise BadRequestError(text) from error


def _metadata(body: Json) -> Json:
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def read_json(body: bytes, kind: str) -> Json:
    """A request body as an object; raises 400."""
    try:
        decoded = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        text = f"the object provided is unrecognized (must be of type {kind}): json parse error: {error}"
        raise BadRequestError(text) from error
    if not isinstance(decoded, dict):
        raise BadRequestError(f"the object provided is unrecognized (must be of type {kind}): it is not an object")
    return decoded
