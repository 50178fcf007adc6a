"""The built-in kinds of Kubernetes, as far as the store has to know them."""

from __future__ import annotations

from collections.abc import Mapping

from informers.store.types import ResourceType

__all__ = ["builtin_kinds", "plural_of", "split_api_version"]

_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.nominatedNodeName",
    "status.phase",
    "status.podIP",
)
_EVENT_FIELDS = (
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.resourceVersion",
    "involvedObject.uid",
    "reason",
    "reportingComponent",
    "type",
)

# group/version: kinds; "-" marks a cluster scoped kind, "*" one with a status subresource, "#" one whose server counts
# generations.
_TABLE: Mapping[str, str] = {
    "v1": "ConfigMap Endpoints Event LimitRange Namespace-* Node-* PersistentVolume-* PersistentVolumeClaim* Pod*# "
    "PodTemplate ReplicationController*# ResourceQuota* Secret Service* ServiceAccount",
    "admissionregistration.k8s.io/v1": "MutatingWebhookConfiguration-# ValidatingAdmissionPolicy-*# "
    "ValidatingAdmissionPolicyBinding-# ValidatingWebhookConfiguration-#",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition-*#",
    "apiregistration.k8s.io/v1": "APIService-*",
    "apps/v1": "ControllerRevision DaemonSet*# Deployment*# ReplicaSet*# StatefulSet*#",
    "autoscaling/v2": "HorizontalPodAutoscaler*",
    "batch/v1": "CronJob*# Job*#",
    "certificates.k8s.io/v1": "CertificateSigningRequest-*",
    "coordination.k8s.io/v1": "Lease",
    "discovery.k8s.io/v1": "EndpointSlice#",
    "events.k8s.io/v1": "Event",
    "networking.k8s.io/v1": "Ingress*# IngressClass-# NetworkPolicy#",
    "node.k8s.io/v1": "RuntimeClass-",
    "policy/v1": "PodDisruptionBudget*#",
    "rbac.authorization.k8s.io/v1": "ClusterRole- ClusterRoleBinding- Role RoleBinding",
    "scheduling.k8s.io/v1": "PriorityClass-#",
    "storage.k8s.io/v1": "CSIDriver- CSINode- StorageClass- VolumeAttachment-*",
}
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "Pod": _POD_FIELDS,
    "Event": _EVENT_FIELDS,
    "Namespace": ("status.phase",),
    "Node": ("spec.unschedulable",),
    "ReplicaSet": ("status.replicas",),
    "Job": ("status.successful",),
    "Secret": ("type",),
    "Service": ("spec.clusterIP", "spec.type"),
}


def builtin_kinds() -> list[ResourceType]:
    """The built-in kinds, fresh."""
    return [_builtin(api_version, word) for api_version, words in _TABLE.items() for word in words.split()]


def _builtin(api_version: str, word: str) -> ResourceType:
    kind = word.rstrip("-*#")
    group, version = split_api_version(api_version)
    return ResourceType(
        group,
        version,
        kind,
        plural_of(kind),
        namespaced="-" not in word,
        subresources=frozenset({"status"} if "*" in word else ()),
        generation="#" in word,
        annotations_generation=kind == "Deployment",
        status_metadata=kind != "CustomResourceDefinition",
        graceful=kind == "Pod",
        unconditional_update=kind not in ("Lease", "CustomResourceDefinition"),
        fields=_FIELDS.get(kind, ()),
    )


def plural_of(kind: str) -> str:
    """The regular English plural in lower case, which is what resources are called by."""
    name = kind.lower()
    if name == "endpoints":
        return name
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"


def split_api_version(api_version: str) -> tuple[str, str]:
    """The group (empty for the core group) and the version."""
    group, _, version = api_version.rpartition("/")
    return group, version
