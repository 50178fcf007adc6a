"""Tables, which `kubectl get` prints: of built-in kinds as a real API server makes them, of others by their columns."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from informers.selectors import LabelSelector
from informers.store import Json
from informers.store.types import epoch
from pysedna.localcluster.kinds import Kind

Cells = list[Any]


class Heading(NamedTuple):
    """A column's definition."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


_NAME = Heading("Name", format="name", description="Name of the object, unique among its kind and namespace.")


def headings(kind: Kind) -> list[Json]:
    """The column definitions of a kind's tables."""
    if kind.custom is not None:
        custom = [
            Heading(each.name, each.type, each.format, each.priority, each.description) for each in kind.custom.columns
        ]
        return [heading._asdict() for heading in (_NAME, *custom)]
    columns = _TABLES.get(kind.resource.kind, _PLAIN)[0]
    return [_heading(column)._asdict() for column in columns.split("|")]


def cells(kind: Kind, obj: Json, *, now: float) -> Cells:
    """One object's row."""
    name = obj["metadata"]["name"]
    if kind.custom is not None:
        return [name, *(_column_value(each.type, each.path.find(obj), now) for each in kind.custom.columns)]
    columns, row = _TABLES.get(kind.resource.kind, _PLAIN)
    rest = iter(row(obj, now))
    common = {"Name": name, "+Name": name, "Age": age(obj, now)}
    return [common[column] if column in common else next(rest) for column in columns.split("|")]


def _heading(text: str) -> Heading:
    """`Name`, `+Wide` (shown by -o wide only), `Count:integer`."""
    name, _, type = text.lstrip("+").partition(":")
    if name == "Name":
        return _NAME._replace(priority=int(text.startswith("+")))
    return Heading(name, type or "string", priority=int(text.startswith("+")))


def _column_value(type: str, found: Sequence[Any], now: float) -> Any:
    if not found or found[0] is None:
        return None
    value = found[0]
    if type == "date":
        return _since(value, now)
    if type == "string" and not isinstance(value, str):
        return ",".join(map(str, value)) if isinstance(value, list) else _go(value)
    return value


def _go(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def age(obj: Json, now: float) -> str:
    return _since(obj["metadata"].get("creationTimestamp"), now)


def _since(stamp: object, now: float) -> str:
    if not isinstance(stamp, str) or not stamp:
        return "<unknown>"
    try:
        return human_duration(now - epoch(stamp))
    except ValueError:
        return "<invalid>"


def human_duration(seconds: float) -> str:
    """A duration in at most two units, as kubectl shows ages."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{max(whole, 0)}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 2920 else f"{days // 365}y"


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"


def _pod(pod: Json, now: float) -> Cells:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    ready = sum(bool(each.get("ready")) for each in containers)
    restarts = sum(each.get("restartCount", 0) for each in containers)
    last = [
        finished
        for each in containers
        if (finished := ((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt"))
    ]
    restarted = f"{restarts} ({_since(max(last), now)} ago)" if restarts and last else str(restarts)
    ratio = f"{ready}/{len(spec['containers'])}"
    wide = [status.get("podIP") or "<none>", spec.get("nodeName") or "<none>", "<none>", "<none>"]
    return [ratio, _pod_status(metadata, status), restarted, *wide]


def _pod_status(metadata: Json, status: Json) -> str:
    reason = status.get("reason") or status.get("phase") or "Unknown"
    running = False
    for container in reversed(status.get("containerStatuses") or []):
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            code = (
                f"Signal:{terminated['signal']}"
                if terminated.get("signal")
                else f"ExitCode:{terminated.get('exitCode', 0)}"
            )
            reason = terminated.get("reason") or code
        elif container.get("ready") and "running" in state:
            running = True
    if reason == "Completed" and running:
        reason = "Running"
    if "deletionTimestamp" in metadata and status.get("phase") not in ("Failed", "Succeeded"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _template(spec: Json) -> Cells:
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or []
    selector = str(LabelSelector.from_dict(spec.get("selector") or {})) or "<none>"
    names, images = (",".join(str(each.get(field, "")) for each in containers) for field in ("name", "image"))
    return [names, images, selector]


def _deployment(obj: Json, now: float) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    counts = [f"{status.get('readyReplicas', 0)}/{spec['replicas']}"]
    counts += [str(status.get(field, 0)) for field in ("updatedReplicas", "availableReplicas")]
    return [*counts, *_template(spec)]


def _replica_set(obj: Json, now: float) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    counts = [spec["replicas"], status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [*counts, *_template(spec)]


def _service(obj: Json, now: float) -> Cells:
    spec = obj["spec"]
    ports = [
        f"{port['port']}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in spec.get("ports") or []
    ]
    external = spec.get("externalName") or ",".join(spec.get("externalIPs") or []) or "<none>"
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    address = spec.get("clusterIP") or "<none>"
    listed = ",".join(ports) or "<none>"
    return [spec["type"], address, external, listed, selector or "<none>"]


def _node(obj: Json, now: float) -> Cells:
    status, labels = obj.get("status") or {}, obj["metadata"].get("labels") or {}
    ready = next((each["status"] for each in status.get("conditions") or [] if each["type"] == "Ready"), None)
    state = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    if (obj.get("spec") or {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = sorted(label.removeprefix(prefix) for label in labels if label.startswith(prefix))
    info = status.get("nodeInfo") or {}
    addresses = {each["type"]: each["address"] for each in status.get("addresses") or []}
    internal, external = (addresses.get(type, "<none>") for type in ("InternalIP", "ExternalIP"))
    fields = ("osImage", "kernelVersion", "containerRuntimeVersion")
    wide = [internal, external, *(info.get(field) or "<unknown>" for field in fields)]
    version = info.get("kubeletVersion", "")
    return [state, ",".join(roles) or "<none>", version, *wide]


def _event(obj: Json, now: float) -> Cells:
    about, source = obj.get("involvedObject") or {}, obj.get("source") or {}
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    series = obj.get("series") or {}
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or first
    kind = (about.get("kind") or "").lower()
    component = source.get("component") or obj.get("reportingComponent") or ""
    count = series.get("count") or obj.get("count") or 1
    return [
        _since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        ", ".join(each for each in (component, source.get("host")) if each),
        (obj.get("message") or "").strip(),
        _since(first, now),
        str(count),
    ]


def _data(obj: Json, now: float) -> Cells:
    count = len(obj.get("data") or {}) + len(obj.get("binaryData") or {})
    kind = [obj["type"]] if obj["kind"] == "Secret" else []
    return [*kind, count]


def _definition(obj: Json, now: float) -> Cells:
    spec = obj["spec"]
    served = ",".join(version["name"] for version in spec["versions"] if version.get("served"))
    names = spec["names"]
    short = ",".join(names.get("shortNames") or [])
    return [spec["scope"], served, obj["metadata"]["creationTimestamp"], spec["group"], names["kind"], short, True]


_WIDE = "+Containers|+Images|+Selector"
_Row = Callable[[Json, float], Cells]
_PLAIN: tuple[str, _Row] = ("Name|Age", lambda obj, now: [])
_TABLES: dict[str, tuple[str, _Row]] = {
    "ConfigMap": ("Name|Data:integer|Age", _data),
    "CustomResourceDefinition": (
        "Name|Scope|Versions|Created At:date|+Group|+Kind|+ShortNames|+Established:boolean",
        _definition,
    ),
    "Deployment": (f"Name|Ready|Up-to-date|Available|Age|{_WIDE}", _deployment),
    "Event": ("Last Seen|Type|Reason|Object|+Subobject|+Source|Message|+First Seen|+Count|+Name", _event),
    "Lease": ("Name|Holder|Age", lambda obj, now: [(obj.get("spec") or {}).get("holderIdentity") or ""]),
    "Namespace": ("Name|Status|Age", lambda obj, now: [obj["status"]["phase"]]),
    "Node": (
        "Name|Status|Roles|Age|Version|+Internal-IP|+External-IP|+OS-Image|+Kernel-Version|+Container-Runtime",
        _node,
    ),
    "Pod": ("Name|Ready|Status|Restarts|Age|+IP|+Node|+Nominated Node|+Readiness Gates", _pod),
    "ReplicaSet": (f"Name|Desired:integer|Current:integer|Ready:integer|Age|{_WIDE}", _replica_set),
    "Secret": ("Name|Type|Data:integer|Age", _data),
    "Service": ("Name|Type|Cluster-IP|External-IP|Port(s)|Age|+Selector", _service),
}


def table(kind: Kind, objects: Sequence[Json], metadata: Json, *, rows_hold: str, with_headings: bool = True) -> Json:
    """A Table; `rows_hold` says what each row's object is: Metadata, Object or None."""
    now = time.time()
    rows = []
    for obj in objects:
        row: Json = {"cells": cells(kind, obj, now=now)}
        if rows_hold != "None":
            row["object"] = obj if rows_hold == "Object" else partial(obj)
        rows.append(row)
    columns = headings(kind) if with_headings else None
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    }


def partial(obj: Json) -> Json:
    """An object's metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
