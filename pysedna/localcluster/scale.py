"""The scale subresource: a view of an object's replica count, and the way back."""

from typing import Any

from informers.selectors import LabelSelector
from informers.store import FieldProblem, Json, invalid
from pysedna.localcluster.crd import Scale
from pysedna.localcluster.kinds import Kind

_BUILT_IN = Scale("spec.replicas", "status.replicas", "")
_COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def of(kind: Kind, obj: Json) -> Json:
    """The `autoscaling/v1` Scale of an object."""
    paths = _paths(kind)
    status: Json = {"replicas": _value(obj, paths.status) or 0}
    selector = _value(obj, paths.selector)
    if kind.custom is None:
        selector = str(LabelSelector.from_dict(obj["spec"].get("selector")))
    if selector:
        status["selector"] = selector
    metadata = {name: obj["metadata"][name] for name in _COPIED if name in obj["metadata"]}
    replicas = _value(obj, paths.spec)
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def applied(kind: Kind, obj: Json, scale: Json) -> Json:
    """The object with the replicas of a Scale, and the Scale's resourceVersion as precondition; raises 422."""
    name = obj["metadata"]["name"]
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
        problem = FieldProblem.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("autoscaling", "Scale", name, [problem])
    given = scale.get("metadata") or {}
    version = given.get("resourceVersion") or obj["metadata"]["resourceVersion"]
    metadata = {**obj["metadata"], "resourceVersion": version, "name": given.get("name")}
    changed = _replaced(obj, _paths(kind).spec.split("."), replicas)
    return {**changed, "apiVersion": kind.api_version, "metadata": metadata}


def _paths(kind: Kind) -> Scale:
    custom = kind.custom
    return custom.scale if custom is not None and custom.scale is not None else _BUILT_IN


def _value(obj: Any, path: str) -> Any:
    for step in path.split(".") if path else ():
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj if path else None


def _replaced(obj: Json, path: list[str], value: object) -> Json:
    first, *rest = path
    return {**obj, first: _replaced(obj.get(first) or {}, rest, value) if rest else value}
