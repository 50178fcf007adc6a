"""Light validation of built-in objects: what a newcomer gets wrong, and fields that must not change.

It is far from complete on purpose; messages and field paths are those of a real API server where it does speak.
"""

import re
from collections.abc import Callable, Iterator

from informers.errors import BadRequestError
from informers.selectors import LabelSelector
from informers.store import FieldProblem, Json
from informers.store.failures import quoted

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_BAD_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_BAD_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_BAD_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_BAD_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_POD_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_METADATA_TYPES: dict[str, type] = {
    **dict.fromkeys(("name", "namespace", "generateName", "uid", "resourceVersion"), str),
    **dict.fromkeys(("labels", "annotations"), dict),
    **dict.fromkeys(("finalizers", "ownerReferences"), list),
}
_METADATA_MEMBERS: dict[str, type] = {"labels": str, "annotations": str, "finalizers": str, "ownerReferences": dict}
_INTEGERS = {
    **dict.fromkeys(("Deployment", "ReplicaSet"), ("replicas",)),
    "Lease": ("leaseDurationSeconds", "leaseTransitions"),
}
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_GO_NAMES = {str: "string", int: "number", float: "number", bool: "bool", list: "array", dict: "object"}
_ANNOTATIONS_SIZE = 1 << 18
_STANDARD_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")


def check_shape(kind: str, obj: Json) -> None:
    """Raises 400 where the typed API could not read a built-in object at all: wrong types at its top."""
    for field in ("spec", "status"):
        _check(kind, obj.get(field), dict, f"{kind}.{field}", "object")
    for field in _INTEGERS.get(kind, ()):
        _check(kind, (obj.get("spec") or {}).get(field), int, f"{kind}Spec.spec.{field}", "int32")
    for field in ("acquireTime", "renewTime") if kind == "Lease" else ():
        time = (obj.get("spec") or {}).get(field)
        if time is not None and not _MICRO_TIME.fullmatch(str(time)):
            text = f'parsing time {quoted(time)} as "2006-01-02T15:04:05.000000Z07:00"'
            raise BadRequestError(f'{kind} in version "v1" cannot be handled as a {kind}: {text}')
    for field in ("data", "stringData", "binaryData") if kind in ("ConfigMap", "Secret") else ():
        _check(kind, obj.get(field), dict, f"{kind}.{field}", "object")
        for value in (obj.get(field) or {}).values():
            _check(kind, value, str, f"{kind}.{field}", "string")
    check_metadata(kind, obj)


def check_metadata(kind: str, obj: Json) -> None:
    """Raises 400 for metadata of wrong types, in any object."""
    metadata = obj.get("metadata", {})
    _check(kind, metadata if metadata is not None else "null", dict, f"{kind}.metadata", "object")
    for field, wanted in _METADATA_TYPES.items():
        _check(kind, metadata.get(field), wanted, f"ObjectMeta.metadata.{field}", wanted.__name__)
    for field, inner in _METADATA_MEMBERS.items():
        members = metadata.get(field) or ()
        for value in members.values() if isinstance(members, dict) else members:
            _check(kind, inner() if value is None else value, inner, f"ObjectMeta.metadata.{field}", _GO_NAMES[inner])


def _check(kind: str, value: object, wanted: type, field: str, name: str) -> None:
    if value is None or (isinstance(value, wanted) and not (wanted is int and isinstance(value, bool))):
        return
    found = _GO_NAMES.get(type(value), "value")
    text = f"json: cannot unmarshal {found} into Go struct field {field} of type {name}"
    raise BadRequestError(f'{kind} in version "v1" cannot be handled as a {kind}: {text}')


def metadata_problems(kind: str, metadata: Json) -> Iterator[FieldProblem]:
    """Names, labels, finalizers and owner references; custom resources are held to it too."""
    name = metadata["name"]
    if kind == "Namespace" and "." in name:
        yield FieldProblem.invalid("metadata.name", name, "must not contain dots")
    elif kind in ("Namespace", "Service"):
        if not re.fullmatch(_LABEL, name):
            yield FieldProblem.invalid("metadata.name", name, _BAD_LABEL)
        elif len(name) > 63:
            yield FieldProblem.invalid("metadata.name", name, "must be no more than 63 characters")
    elif not re.fullmatch(_SUBDOMAIN, name):
        yield FieldProblem.invalid("metadata.name", name, _BAD_SUBDOMAIN)
    elif len(name) > 253:
        yield FieldProblem.invalid("metadata.name", name, "must be no more than 253 characters")
    prefix = metadata.get("generateName")
    if prefix and not re.fullmatch(_SUBDOMAIN, f"{prefix}a"):
        yield FieldProblem.invalid("metadata.generateName", prefix, _BAD_SUBDOMAIN)
    yield from label_problems(metadata.get("labels"), "metadata.labels")
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        if not _is_qualified(key.lower()):
            yield FieldProblem.invalid("metadata.annotations", key, _BAD_KEY)
    if sum(len(text.encode()) for entry in annotations.items() for text in entry) > _ANNOTATIONS_SIZE:
        text = f"Too long: may not be more than {_ANNOTATIONS_SIZE} bytes"
        yield FieldProblem("metadata.annotations", text, "FieldValueTooLong")
    for index, owner in enumerate(metadata.get("ownerReferences") or []):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield FieldProblem.required(f"metadata.ownerReferences[{index}].{field}", "must not be empty")
    if sum(bool(owner.get("controller")) for owner in metadata.get("ownerReferences") or []) > 1:
        text = "Only one reference can have Controller set to true"
        yield FieldProblem("metadata.ownerReferences", f"Invalid value: {text}")
    for index, finalizer in enumerate(metadata.get("finalizers") or []):
        if "/" not in finalizer and "." not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield FieldProblem.invalid(f"metadata.finalizers[{index}]", finalizer, text)


def label_problems(labels: Json | None, path: str) -> Iterator[FieldProblem]:
    for key, value in (labels or {}).items():
        if not _is_qualified(key):
            yield FieldProblem.invalid(path, key, _BAD_KEY)
        if value and not re.fullmatch(_QUALIFIED, value):
            yield FieldProblem.invalid(path, value, _BAD_VALUE)
        elif len(value) > 63:
            yield FieldProblem.invalid(path, value, "must be no more than 63 bytes")


def spec_problems(kind: str, obj: Json, old: Json | None) -> Iterator[FieldProblem]:
    """What is wrong with the rest of a built-in object."""
    check = _CHECKS.get(kind)
    return iter(()) if check is None else check(obj, old)


def _is_qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return (
        re.fullmatch(_QUALIFIED, name) is not None
        and len(name) <= 63
        and (not slash or re.fullmatch(_SUBDOMAIN, prefix) is not None)
    )


def _pod(obj: Json, old: Json | None) -> Iterator[FieldProblem]:
    yield from pod_spec_problems(obj["spec"], "spec")
    if old is None:
        return
    tolerations = obj["spec"].get("tolerations") or []
    added_only = all(each in tolerations for each in old["spec"].get("tolerations") or [])
    if not added_only or _fixed_part(old["spec"]) != _fixed_part(obj["spec"]):
        yield FieldProblem.forbidden("spec", _POD_IMMUTABLE)


def _fixed_part(spec: Json) -> Json:
    """A pod's spec without what may be changed."""
    fixed = {name: value for name, value in spec.items() if name not in ("activeDeadlineSeconds", "tolerations")}
    for field in ("containers", "initContainers"):
        fixed[field] = [{**container, "image": ""} for container in spec.get(field) or []]
    return fixed


def pod_spec_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    if not spec.get("containers"):
        yield FieldProblem.required(f"{path}.containers")
    names: list[str] = []
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            where = f"{path}.{field}[{index}]"
            name = container.get("name") or ""
            if not name:
                yield FieldProblem.required(f"{where}.name")
            elif not re.fullmatch(_LABEL, name):
                yield FieldProblem.invalid(f"{where}.name", name, _BAD_LABEL)
            elif name in names:
                yield FieldProblem(f"{where}.name", f'Duplicate value: "{name}"', "FieldValueDuplicate")
            names.append(name)
            if not container.get("image"):
                yield FieldProblem.required(f"{where}.image")
            yield from _port_problems(container.get("ports") or [], where, "containerPort")
    if spec.get("restartPolicy") not in ("Always", "OnFailure", "Never"):
        choices = ["Always", "OnFailure", "Never"]
        yield FieldProblem.unsupported(f"{path}.restartPolicy", spec.get("restartPolicy"), choices)


def _port_problems(ports: list[Json], path: str, field: str) -> Iterator[FieldProblem]:
    for index, port in enumerate(ports):
        number, where = port.get(field), f"{path}.ports[{index}].{field}"
        if number is None:
            yield FieldProblem.required(where)
        elif not isinstance(number, int) or not 0 < number < 65536:
            yield FieldProblem.invalid(where, number, "must be between 1 and 65535, inclusive")


def _workload(obj: Json, old: Json | None) -> Iterator[FieldProblem]:
    spec = obj["spec"]
    if spec["replicas"] < 0:
        yield FieldProblem.invalid("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    selector = spec.get("selector")
    if not selector:
        yield FieldProblem.required("spec.selector")
    elif not LabelSelector.from_dict(selector).matches(labels):
        text = "`selector` does not match template `labels`"
        yield FieldProblem("spec.template.metadata.labels", f"Invalid value: {quoted(labels or None)}: {text}")
    yield from label_problems(labels, "spec.template.metadata.labels")
    yield from pod_spec_problems(template.get("spec") or {"restartPolicy": "Always"}, "spec.template.spec")
    policy = (template.get("spec") or {}).get("restartPolicy", "Always")
    if policy in ("OnFailure", "Never"):
        yield FieldProblem.unsupported("spec.template.spec.restartPolicy", policy, ["Always"])
    if old is not None and old["spec"].get("selector") != selector:
        yield FieldProblem("spec.selector", f"Invalid value: {quoted(selector or None)}: field is immutable")


def _service(obj: Json, old: Json | None) -> Iterator[FieldProblem]:
    spec = obj["spec"]
    ports = spec.get("ports") or []
    if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        yield FieldProblem.required("spec.ports")
    for index, port in enumerate(ports):
        if len(ports) > 1 and not port.get("name"):
            yield FieldProblem.required(f"spec.ports[{index}].name")
    yield from _port_problems(ports, "spec", "port")
    before = ((old or {}).get("spec") or {}).get("clusterIP")
    if before and spec.get("clusterIP") != before:
        yield FieldProblem.invalid("spec.clusterIPs[0]", spec.get("clusterIP"), "may not change once set")


def _data(obj: Json, old: Json | None) -> Iterator[FieldProblem]:
    if old is not None and old.get("type") != obj.get("type"):
        yield FieldProblem.invalid("type", obj.get("type"), "field is immutable")
    if old is not None and old.get("immutable"):
        for field in ("data", "binaryData", "immutable"):
            if old.get(field) != obj.get(field):
                yield FieldProblem.forbidden(field, "field is immutable when `immutable` is set")


def _lease(obj: Json, old: Json | None) -> Iterator[FieldProblem]:
    spec = obj.get("spec") or {}
    if spec.get("leaseDurationSeconds", 1) <= 0:
        text = "must be greater than 0"
        yield FieldProblem.invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], text)
    if spec.get("leaseTransitions", 0) < 0:
        text = "must be greater than or equal to 0"
        yield FieldProblem.invalid("spec.leaseTransitions", spec["leaseTransitions"], text)


def _event(obj: Json, old: Json | None) -> Iterator[FieldProblem]:
    about, namespace = (obj.get("involvedObject") or {}).get("namespace", ""), obj["metadata"]["namespace"]
    if about != namespace and (about or namespace != "default"):
        yield FieldProblem.invalid("involvedObject.namespace", about, "does not match event.namespace")


_CHECKS: dict[str, Callable[[Json, Json | None], Iterator[FieldProblem]]] = {
    "ConfigMap": _data,
    "Deployment": _workload,
    "Event": _event,
    "Lease": _lease,
    "Pod": _pod,
    "ReplicaSet": _workload,
    "Secret": _data,
    "Service": _service,
}
