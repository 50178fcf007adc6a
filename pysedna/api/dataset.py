"""Dataset: where the data of a worker is, and on which node."""

from __future__ import annotations

from pysedna.api.common import Base, Count, Format, Name, Resource, Time, Url


class DatasetSpec(Base, frozen=True, kw_only=True):
    """Where the data is. `format` is free text for the workers; local controllers count samples of txt and csv only."""

    url: Url
    format: Format
    node_name: Name
    credential_name: str | None = None


class DatasetStatus(Base, frozen=True, kw_only=True):
    """What the node's local controller reports."""

    number_of_samples: Count
    update_time: Time | None = None


class Dataset(Resource, frozen=True, kw_only=True):
    """A dataset on a node or in a store."""

    kind: str = "Dataset"
    spec: DatasetSpec
    status: DatasetStatus | None = None
