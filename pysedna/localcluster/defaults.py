"""Defaults of the built-in kinds, as far as kubectl and controllers see them. Values already given are kept."""

import base64
from collections.abc import Callable, Iterable
from typing import Any

from informers.store import Json

_ROLLING = {"maxUnavailable": "25%", "maxSurge": "25%"}
_POD_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}


def defaulted(kind: str, obj: Json) -> Json:
    """A copy of the object with the defaults of its kind."""
    default = _DEFAULTS.get(kind)
    return obj if default is None else default(obj)


def _with(obj: Any, **members: Any) -> Json:
    return {**members, **(obj or {})}


def _pod(obj: Json) -> Json:
    spec = _with(
        pod_spec(obj.get("spec") or {}), enableServiceLinks=True, preemptionPolicy="PreemptLowerPriority", priority=0
    )
    return {**obj, "spec": spec, "status": _with(obj.get("status"), phase="Pending")}


def pod_spec(spec: Json) -> Json:
    """A pod spec, also that of a template, with its defaults."""
    spec = {**_POD_SPEC, **spec}
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [_container(each) for each in spec[field]]
    return spec


def _container(container: Json) -> Json:
    image = str(container.get("image") or "")
    tag = image.rpartition("/")[2].partition(":")[2]
    container = _with(
        container,
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy="Always" if tag in ("", "latest") and "@" not in image else "IfNotPresent",
    )
    if container.get("ports"):
        container["ports"] = [_with(port, protocol="TCP") for port in container["ports"]]
    return container


def _template(spec: Json) -> Json:
    template = spec.get("template") or {}
    return {**spec, "template": {**template, "spec": pod_spec(template.get("spec") or {})}}


def _deployment(obj: Json) -> Json:
    spec = _with(obj.get("spec"), replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = _with(spec.get("strategy"), type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {**_ROLLING, **(strategy.get("rollingUpdate") or {})}
    return {**obj, "spec": {**_template(spec), "strategy": strategy}, "status": obj.get("status") or {}}


def _replica_set(obj: Json) -> Json:
    spec = _template(_with(obj.get("spec"), replicas=1))
    return {**obj, "spec": spec, "status": _with(obj.get("status"), replicas=0)}


def _service(obj: Json) -> Json:
    spec = _with(obj.get("spec"), type="ClusterIP", sessionAffinity="None")
    ports = spec.get("ports")
    if isinstance(ports, list):
        spec["ports"] = [_with(port, protocol="TCP", targetPort=port.get("port")) for port in ports]
    if spec.get("clusterIP") == "None":
        spec["clusterIPs"] = ["None"]
    if spec["type"] != "ExternalName":
        spec = _with(spec, ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack", internalTrafficPolicy="Cluster")
    return {**obj, "spec": spec, "status": _with(obj.get("status"), loadBalancer={})}


def _secret(obj: Json) -> Json:
    obj = _with(obj, type="Opaque")
    plain = obj.pop("stringData", None)
    if plain:
        encoded = {name: base64.b64encode(str(value).encode()).decode() for name, value in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}
    return obj


def _namespace(obj: Json) -> Json:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    spec = _with(obj.get("spec"), finalizers=["kubernetes"])
    return {
        **obj,
        "metadata": {**metadata, "labels": labels},
        "spec": spec,
        "status": _with(obj.get("status"), phase="Active"),
    }


_DEFAULTS: dict[str, Callable[[Json], Json]] = {
    "Deployment": _deployment,
    "Namespace": _namespace,
    "Node": lambda obj: _with(obj, spec={}, status={}),
    "Pod": _pod,
    "ReplicaSet": _replica_set,
    "Secret": _secret,
    "Service": _service,
}


def without_nulls(value: Any) -> Any:
    """A built-in object as the server reads it: a null is an absent member."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def free_address(taken: Iterable[str]) -> str:
    """A cluster IP that no service has, or an empty text when all 65,000 are taken."""
    used = set(taken)
    addresses = (f"10.96.{third}.{last}" for third in range(256) for last in range(1, 255))
    return next((address for address in addresses if address not in used), "")
