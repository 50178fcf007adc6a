"""The Sedna kinds as Python types, and their CustomResourceDefinitions.

`crds()` gives the definitions to install; `FederatedLearningJob.from_dict` and its like read objects of the kinds.
"""

from __future__ import annotations

from pysedna.api.common import (
    API_VERSION,
    GROUP,
    VERSION,
    KeyValue,
    ObjectMeta,
    Reference,
    Resource,
)
from pysedna.api.crds import crds
from pysedna.api.dataset import Dataset, DatasetSpec, DatasetStatus
from pysedna.api.errors import InvalidResource, SednaApiError
from pysedna.api.federated_learning import (
    FederatedLearningJob,
    FederatedLearningJobSpec,
    FederatedLearningJobStatus,
    TrainingWorker,
)
from pysedna.api.joint_inference import (
    HorizontalPodAutoscaling,
    JointInferenceService,
    JointInferenceServiceSpec,
    JointInferenceServiceStatus,
)
from pysedna.api.model import Model, ModelSpec, ModelStatus
from pysedna.api.schema import structural_schema

__all__ = [
    "API_VERSION",
    "Dataset",
    "DatasetSpec",
    "DatasetStatus",
    "FederatedLearningJob",
    "FederatedLearningJobSpec",
    "FederatedLearningJobStatus",
    "GROUP",
    "HorizontalPodAutoscaling",
    "InvalidResource",
    "JointInferenceService",
    "JointInferenceServiceSpec",
    "JointInferenceServiceStatus",
    "KeyValue",
    "Model",
    "ModelSpec",
    "ModelStatus",
    "ObjectMeta",
    "Reference",
    "Resource",
    "SednaApiError",
    "TrainingWorker",
    "VERSION",
    "crds",
    "structural_schema",
]
