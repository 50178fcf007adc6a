"""JointInferenceService: a small model at the edge that asks a big one in the cloud about its hard examples."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pysedna.api.common import (
    Base,
    ConditionStatus,
    Count,
    Int64,
    KeyValue,
    OpenObject,
    Reference,
    Resource,
    Time,
    Worker,
)

_Replicas = Annotated[int, Meta(ge=1, extra_json_schema={"format": "int32"})]


class HorizontalPodAutoscaling(Base, frozen=True, kw_only=True):
    """Limits for the number of pods of a worker; metrics and behavior are those of autoscaling/v2."""

    max_replicas: _Replicas
    min_replicas: _Replicas | None = None
    metrics: list[OpenObject] | None = None
    behavior: OpenObject | None = None


class HardExampleMining(Base, frozen=True, kw_only=True):
    """Which examples the edge takes for hard ones: an algorithm of the worker's library, and its parameters."""

    name: Annotated[str, Meta(min_length=1)]
    parameters: list[KeyValue] | None = None


class EdgeWorker(Worker, frozen=True, kw_only=True):
    """The worker at the edge."""

    model: Reference
    hard_example_mining: HardExampleMining
    hpa: HorizontalPodAutoscaling | None = None


class CloudWorker(Worker, frozen=True, kw_only=True):
    """The worker in the cloud."""

    model: Reference
    hpa: HorizontalPodAutoscaling | None = None


class JointInferenceServiceSpec(Base, frozen=True, kw_only=True):
    """Both workers."""

    edge_worker: EdgeWorker
    cloud_worker: CloudWorker


class JointInferenceCondition(Base, frozen=True, kw_only=True):
    """One aspect of the service. Types: Pending, Running, Failed; none of them is final."""

    type: str
    status: ConditionStatus
    last_heartbeat_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None
    observed_generation: Int64 | None = None


class JointInferenceServiceStatus(Base, frozen=True, kw_only=True):
    """What was seen of the workers: `active` of them are available, `failed` of them cannot run as things are."""

    conditions: list[JointInferenceCondition] | None = None
    start_time: Time | None = None
    active: Count | None = None
    failed: Count | None = None
    metrics: list[KeyValue] | None = None
    observed_generation: Int64 | None = None


class JointInferenceService(Resource, frozen=True, kw_only=True):
    """A service of an edge worker and a cloud worker."""

    kind: str = "JointInferenceService"
    spec: JointInferenceServiceSpec
    status: JointInferenceServiceStatus | None = None
