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
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def defaulted(kind: str, obj: Json) -> Json:
    """A copy of the object with the defaults of its kind."""
    default = _DEFAULTS.get(kind)
    return obj if default is None else default(obj)


def _with(obj: Any, **members: Any) -> Json:
    return {**members, **(obj or {})}


def _pod(obj: Json) -> Json:
    spec = pod_spec(obj.get("spec") or {})
    spec = _with(spec, enableServiceLinks=True, preemptionPolicy="PreemptLowerPriority", priority=0)
    status = _with(obj.get("status"), phase="Pending", qosClass=_quality(spec))
    return {**obj, "spec": spec, "status": status}


def pod_spec(spec: Json) -> Json:
    """A pod spec, also that of a template, with its defaults."""
    spec = {**_POD_SPEC, **spec}
    for field in ("containers", "initContainers"):
        if isinstance(spec.get(field), list):
            spec[field] = [_container(each) if isinstance(each, dict) else each for each in spec[field]]
    if isinstance(spec.get("volumes"), list):
        spec["volumes"] = [_volume(each) if isinstance(each, dict) else each for each in spec["volumes"]]
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
    if container.get("env"):
        container["env"] = [_variable(variable) for variable in container["env"]]
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe):
            container[probe] = {**_PROBE, **container[probe]}
    return container


def _variable(variable: Json) -> Json:
    reference = (variable.get("valueFrom") or {}).get("fieldRef")
    if not reference:
        return variable
    return {**variable, "valueFrom": {**variable["valueFrom"], "fieldRef": _with(reference, apiVersion="v1")}}


def _volume(volume: Json) -> Json:
    volume = dict(volume)
    for source in ("secret", "configMap", "projected", "downwardAPI"):
        if source in volume:
            volume[source] = _with(volume[source], defaultMode=420)
    if "hostPath" in volume:
        volume["hostPath"] = _with(volume["hostPath"], type="")
    return volume if len(volume) > 1 else {**volume, "emptyDir": {}}


def _quality(spec: Json) -> str:
    """The quality-of-service class: from requests and limits of cpu and memory of all containers."""
    resources = [container.get("resources") or {} for container in spec.get("containers") or []]
    if not any(each.get("requests") or each.get("limits") for each in resources):
        return "BestEffort"

    def guaranteed(each: Json) -> bool:
        limits, requests = each.get("limits") or {}, each.get("requests") or {}
        return all(name in limits and requests.get(name, limits[name]) == limits[name] for name in ("cpu", "memory"))

    return "Guaranteed" if all(map(guaranteed, resources)) else "Burstable"


def _template(spec: Json) -> Json:
    template = spec.get("template")
    if not isinstance(template, dict):
        return spec
    template = {**template, "spec": pod_spec(template.get("spec") or {})}
    return {**spec, "template": template}


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


def _node(obj: Json) -> Json:
    return {**obj, "spec": obj.get("spec") or {}, "status": obj.get("status") or {}}


_DEFAULTS: dict[str, Callable[[Json], Json]] = {
    "Deployment": _deployment,
    "Namespace": _namespace,
    "Node": _node,
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
