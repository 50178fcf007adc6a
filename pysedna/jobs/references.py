"""What a job refers to by name: Models, Datasets and the Secrets that open their stores.

Lookups give the object or a problem; a job that lacks something waits, and goes on when it appears. For that, jobs are
indexed by what they refer to, and Models and Datasets by their Secret, so that an event finds the jobs that it concerns
without reading all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from informers import Object
from pysedna.api import Dataset, Model
from pysedna.api.errors import InvalidResource
from pysedna.jobs import problems
from pysedna.jobs.problems import Problem
from pysedna.jobs.storage import Credential, Source, Storage, credential, needs_credential, storage

Annotations = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class References:
    """Names (within the job's namespace) of what a spec refers to; Secrets only where the spec itself names them."""

    models: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What is there of the things that a job refers to, by name. A Secret is known by its annotations only."""

    models: Mapping[str, Model | Problem] = field(default_factory=dict)
    datasets: Mapping[str, Dataset | Problem] = field(default_factory=dict)
    secrets: Mapping[str, Annotations] = field(default_factory=dict)


def read_model(obj: Object) -> Model | Problem:
    """A stored Model, or why it cannot be used."""
    try:
        return Model.from_dict(obj.to_dict())
    except InvalidResource as error:
        return Problem(problems.MODEL_INVALID, f"Model {obj.name} cannot be read: {error}")


def read_dataset(obj: Object) -> Dataset | Problem:
    """A stored Dataset, or why it cannot be used."""
    try:
        return Dataset.from_dict(obj.to_dict())
    except InvalidResource as error:
        return Problem(problems.DATASET_INVALID, f"Dataset {obj.name} cannot be read: {error}")


def gather(
    needed: References,
    *,
    model: Callable[[str], Object | None],
    dataset: Callable[[str], Object | None],
    secret: Callable[[str], Object | None],
) -> Found:
    """Look up what is needed, and the Secrets that the Models and Datasets found name."""
    models = {name: read_model(obj) for name in needed.models if (obj := model(name)) is not None}
    datasets = {name: read_dataset(obj) for name in needed.datasets if (obj := dataset(name)) is not None}
    wanted = dict.fromkeys(needed.secrets)
    for found in (*models.values(), *datasets.values()):
        if not isinstance(found, Problem) and found.spec.credential_name:
            wanted[found.spec.credential_name] = None
    secrets = {name: obj.annotations for name in wanted if (obj := secret(name)) is not None}
    return Found(models, datasets, secrets)


def model_source(variable: str, name: str, found: Found, *, download: bool) -> Source | Problem:
    """A worker's source for a Model."""
    model = found.models.get(name)
    if model is None:
        return Problem(problems.MODEL_NOT_FOUND, f"Model {name} does not exist in this namespace: create it")
    if isinstance(model, Problem):
        return model
    return source(variable, model.spec.url, model.spec.credential_name, found, download=download)


def dataset_source(variable: str, name: str, found: Found) -> Source | Problem:
    """A worker's source for a Dataset; the worker opens it itself."""
    dataset = found.datasets.get(name)
    if dataset is None:
        return Problem(problems.DATASET_NOT_FOUND, f"Dataset {name} does not exist in this namespace: create it")
    if isinstance(dataset, Problem):
        return dataset
    return source(variable, dataset.spec.url, dataset.spec.credential_name, found, download=False)


def source(variable: str, url: str, secret: str | None, found: Found, *, download: bool) -> Source | Problem:
    """A source with its credential. A Secret is asked for only where keys are of use."""
    opened: Credential | None = None
    if secret and needs_credential(url):
        annotations = found.secrets.get(secret)
        if annotations is None:
            return Problem(
                problems.SECRET_NOT_FOUND, f"Secret {secret} with the keys for {url} does not exist in this namespace"
            )
        known = credential(secret, annotations)
        if isinstance(known, Problem):
            return known
        opened = known
    return Source(variable, url, download=download, credential=opened)


def storage_of(sources: Sequence[Source | Problem]) -> Storage | Problem:
    """What a worker with these sources needs; all problems at once if something is wrong with some of them."""
    wrong = [source for source in sources if isinstance(source, Problem)]
    return problems.combined(wrong) or storage([source for source in sources if not isinstance(source, Problem)])


def index_values(namespace: str, needed: References) -> Iterable[str]:
    """The values under which a job is indexed: one for each thing that its spec names."""
    for kind, names in (("Model", needed.models), ("Dataset", needed.datasets), ("Secret", needed.secrets)):
        for name in dict.fromkeys(names):
            yield index_value(kind, namespace, name)


def index_value(kind: str, namespace: str, name: str) -> str:
    """How one referred thing is written in that index."""
    return f"{kind}/{namespace}/{name}"


def secret_of(obj: Object) -> list[str]:
    """The index value of the Secret that a Model or Dataset names, if it names one."""
    name = (obj.get("spec") or {}).get("credentialName")
    return [index_value("Secret", obj.namespace, name)] if name else []
