"""From a worker's template to its pod: the user's template, with what Sedna's contract adds.

Everything in the template is kept, labels and annotations too. Added are our labels, the environment, storage, and
defaults where the template is silent. Nothing here is random and nothing depends on the order of a mapping, so the
same job always gives the same pod.
"""

from __future__ import annotations

import copy
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from pysedna.jobs import labels
from pysedna.jobs.environment import Variable, merged
from pysedna.jobs.job import Job
from pysedna.jobs.storage import Storage


def with_defaults(
    template: Mapping[str, Any], *, restart_policy: str | None = None, host_network: bool = False
) -> dict[str, Any]:
    """A copy of a template with our defaults in its pod spec.

    `restart_policy` is used when the template has none. `host_network` forces the host network. A pod on the host
    network keeps resolving the names of Services (unless the template chooses a DNS policy).
    """
    result: dict[str, Any] = copy.deepcopy(dict(template))
    spec = result.setdefault("spec", {})
    if restart_policy is not None and not spec.get("restartPolicy"):
        spec["restartPolicy"] = restart_policy
    if host_network:
        spec["hostNetwork"] = True
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    return result


def pod_template(
    template: Mapping[str, Any], *, own_labels: Mapping[str, str], environment: Sequence[Variable], storage: Storage
) -> dict[str, Any]:
    """The template of a worker's pods: `template` (see `with_defaults`) with labels, environment and storage added."""
    result: dict[str, Any] = copy.deepcopy(dict(template))
    metadata = dict(result.get("metadata") or {})
    kept = {name: metadata[name] for name in ("annotations", "finalizers") if metadata.get(name)}
    result["metadata"] = {"labels": {**(metadata.get("labels") or {}), **own_labels}, **kept}
    spec = result["spec"]
    spec["containers"] = [_container(container, environment, storage) for container in spec["containers"]]
    if storage.volumes:
        spec["volumes"] = [*(spec.get("volumes") or ()), *storage.volumes]
    if storage.init_containers:
        spec["initContainers"] = [*(spec.get("initContainers") or ()), *storage.init_containers]
    return result


def bare_pod(job: Job[Any], name: str, template: Mapping[str, Any]) -> dict[str, Any]:
    """A pod of this job made from a finished pod template."""
    metadata = dict(template["metadata"])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": name,
            "namespace": job.namespace,
            "annotations": {**metadata.get("annotations", {}), **labels.stamp(job)},
            "ownerReferences": [job.owner_reference()],
        },
        "spec": template["spec"],
    }


def _container(container: Mapping[str, Any], environment: Sequence[Variable], storage: Storage) -> dict[str, Any]:
    result = {**container, "env": merged(container.get("env") or (), [*environment, *storage.environment])}
    mounts = [*(container.get("volumeMounts") or ())]
    taken = {_path(mount) for mount in mounts}
    # Where the user mounts something at the same path, the pod would be refused; the user's mount stands.
    mounts += [mount for mount in storage.mounts if _path(mount) not in taken]
    if mounts:
        result["volumeMounts"] = mounts
    return result


def _path(mount: Mapping[str, Any]) -> str:
    return posixpath.normpath(str(mount.get("mountPath", "")))
