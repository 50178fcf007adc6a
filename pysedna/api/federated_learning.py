"""FederatedLearningJob: trainers that keep their data, and an aggregator that combines what they learned."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from pysedna.api.common import Base, ConditionStatus, Count, Int64, Reference, Resource, Time, Worker

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]


class AggregationWorker(Worker, frozen=True, kw_only=True):
    """The worker that combines the trainers' weights into the model."""

    model: Reference


class TrainingWorker(Worker, frozen=True, kw_only=True):
    """One worker that trains on its own dataset."""

    dataset: Reference


class S3Transmitter(Base, frozen=True, kw_only=True):
    """Weights travel through an S3 store."""

    agg_data_path: Annotated[str, Meta(min_length=1)]
    credential_name: str | None = None


class WebSocketTransmitter(Base, frozen=True, kw_only=True):
    """Weights travel over WebSocket, straight to the aggregator."""


class Transmitter(Base, frozen=True, kw_only=True):
    """How weights travel: `s3` if it is given, else WebSocket."""

    s3: S3Transmitter | None = None
    ws: WebSocketTransmitter | None = None


class FederatedLearningJobSpec(Base, frozen=True, kw_only=True):
    """One aggregator and the trainers."""

    aggregation_worker: AggregationWorker
    training_workers: list[TrainingWorker]
    pretrained_model: Reference | None = None
    transmitter: Transmitter | None = None


class FederatedLearningCondition(Base, frozen=True, kw_only=True):
    """One aspect of the job. Types: Pending, Training, Complete, Failed, SpecChanged."""

    type: str
    status: ConditionStatus
    last_probe_time: Time | None = None
    last_heartbeat_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None
    observed_generation: Int64 | None = None


class FederatedLearningJobStatus(Base, frozen=True, kw_only=True):
    """What was seen of the workers: how many run, succeeded and failed."""

    conditions: list[FederatedLearningCondition] | None = None
    start_time: Time | None = None
    completion_time: Time | None = None
    active: Count | None = None
    succeeded: Count | None = None
    failed: Count | None = None
    phase: Phase | None = None
    observed_generation: Int64 | None = None


class FederatedLearningJob(Resource, frozen=True, kw_only=True):
    """A job that trains one model on data that stays where it is."""

    kind: str = "FederatedLearningJob"
    spec: FederatedLearningJobSpec
    status: FederatedLearningJobStatus | None = None
