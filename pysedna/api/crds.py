"""The CustomResourceDefinitions of the Sedna kinds, made from the types in this package.

Group, names, short names and fields are upstream's, so existing manifests and clients work. Beyond upstream: the fields
of a pod template's metadata are kept, values have ranges and enums, `kubectl get` shows how a job is doing, and all
kinds are in the category `sedna` (`kubectl get sedna`). Pod templates are not expanded, so each definition is a few
kilobytes and fits the annotation that `kubectl apply` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pysedna.api.common import GROUP, VERSION, Resource
from pysedna.api.dataset import Dataset
from pysedna.api.federated_learning import FederatedLearningJob
from pysedna.api.joint_inference import JointInferenceService
from pysedna.api.model import Model
from pysedna.api.schema import structural_schema

CATEGORY = "sedna"
_ROOT = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. `wide`: shown with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As the CRD writes it."""
        column: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.wide:
            column["priority"] = 1
        return column


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_WAITING = Column("Waiting-For", '.status.conditions[?(@.type=="Pending")].reason', wide=True)


def crds() -> list[dict[str, Any]]:
    """The definitions of Dataset, Model, JointInferenceService and FederatedLearningJob, as fresh plain dicts."""
    return [
        _definition(
            Dataset,
            plural="datasets",
            columns=[
                Column("Node", ".spec.nodeName"),
                Column("Format", ".spec.format"),
                Column("Samples", ".status.numberOfSamples", "integer"),
                Column("URL", ".spec.url", wide=True),
            ],
        ),
        _definition(
            Model,
            plural="models",
            columns=[Column("Format", ".spec.format"), Column("URL", ".spec.url", wide=True)],
        ),
        _definition(
            JointInferenceService,
            plural="jointinferenceservices",
            short="ji",
            columns=[
                Column("Running", '.status.conditions[?(@.type=="Running")].status'),
                Column("Active", ".status.active", "integer"),
                Column("Failed", ".status.failed", "integer"),
                Column("Reason", '.status.conditions[?(@.type=="Failed")].reason', wide=True),
                _WAITING,
            ],
        ),
        _definition(
            FederatedLearningJob,
            plural="federatedlearningjobs",
            short="fl",
            columns=[
                Column("Phase", ".status.phase"),
                Column("Active", ".status.active", "integer"),
                Column("Succeeded", ".status.succeeded", "integer"),
                Column("Failed", ".status.failed", "integer"),
                Column("Training", '.status.conditions[?(@.type=="Training")].message', wide=True),
                _WAITING,
            ],
        ),
    ]


def _definition(
    kind: type[Resource], *, plural: str, columns: Sequence[Column], short: str | None = None
) -> dict[str, Any]:
    name = kind.__name__
    names: dict[str, Any] = {
        "kind": name,
        "listKind": f"{name}List",
        "plural": plural,
        "singular": name.lower(),
        "categories": [CATEGORY],
    }
    if short is not None:
        names["shortNames"] = [short]
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [column.to_dict() for column in (*columns, _AGE)],
        "schema": {"openAPIV3Schema": _schema(kind)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _schema(kind: type[Resource]) -> dict[str, Any]:
    schema = structural_schema(kind)
    # The API server validates the metadata of an object itself and lets a CRD say nothing about it.
    schema["properties"] = {**schema["properties"], **_ROOT}
    return schema
