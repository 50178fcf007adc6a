"""Model: where a model is, and what was measured of it."""

from __future__ import annotations

import msgspec

from pysedna.api.common import Base, Format, KeyValue, Resource, Time, Url


class ModelSpec(Base, frozen=True, kw_only=True):
    """Where the model is. `credential_name` names a Secret with the keys to its store."""

    url: Url
    format: Format
    device_soc_versions: list[str] | None = msgspec.field(default=None, name="device_soc_versions")
    credential_name: str | None = None


class ModelStatus(Base, frozen=True, kw_only=True):
    """What training and evaluation reported."""

    update_time: Time | None = None
    metrics: list[KeyValue] | None = None


class Model(Resource, frozen=True, kw_only=True):
    """A model file or directory."""

    kind: str = "Model"
    spec: ModelSpec
    status: ModelStatus | None = None
