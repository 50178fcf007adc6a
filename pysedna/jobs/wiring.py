"""Puts a reconciler under a manager: caches, indexes, watches, recorder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TypeVar

from informers import SharedInformer
from pysedna.api.common import API_VERSION, Base
from pysedna.controller import Controller, Manager, Watch, rfc3339
from pysedna.edge import EdgeSink, NullSink
from pysedna.jobs import indexes, references
from pysedna.jobs.actions import POD, Kind
from pysedna.jobs.behaviour import Behaviour
from pysedna.jobs.options import JobOptions
from pysedna.jobs.reconciler import JobReconciler
from pysedna.jobs.seams import Listers

S = TypeVar("S", bound=Base)

MODEL: Kind = (API_VERSION, "Model")
DATASET: Kind = (API_VERSION, "Dataset")
SECRET: Kind = ("v1", "Secret")
WORKERS = 2


def add_job_controller(
    manager: Manager, behaviour: Behaviour[S], *, options: JobOptions | None, sink: EdgeSink | None
) -> Controller:
    """Add the controller of one kind of job to a manager. `sink` None: nobody at the edge is told."""
    kind = behaviour.kind
    jobs = manager.informers.informer(API_VERSION, kind)
    jobs.indexer.add_index(indexes.reference_index(kind), indexes.by_reference(behaviour.spec, behaviour.needed))
    jobs.indexer.add_index(indexes.name_index(kind), indexes.by_child_name(behaviour.spec, behaviour.child_names))
    children = {child: manager.informers.informer(*child) for child in behaviour.watched}
    for informer in children.values():
        informer.indexer.add_index(indexes.owner_index(kind), indexes.by_owner(kind))
    watches = [Watch(child, indexes.to_jobs_in_the_way(kind, child, jobs.lister)) for child in behaviour.watched]
    if POD not in children:
        children[POD] = manager.informers.informer(*POD)
        children[POD].indexer.add_index(indexes.label_index(kind), indexes.by_label(kind))
        watches.append(Watch(POD, indexes.to_job_of_label(kind)))
    holders = _reference_holders(manager, kind, [MODEL, DATASET])
    secrets = manager.informers.informer(*SECRET, metadata_only=True)
    watches += [Watch(held, indexes.to_referring_jobs(kind, jobs.lister)) for held in holders]
    by_kind = {held[1]: informer.lister for held, informer in holders.items()}
    watches.append(Watch(SECRET, indexes.to_jobs_of_secret(kind, jobs.lister, by_kind), metadata_only=True))
    listers = Listers(
        jobs=jobs.lister,
        models=holders[MODEL].lister,
        datasets=holders[DATASET].lister,
        secrets=secrets.lister,
        children={child: informer.lister for child, informer in children.items()},
    )
    reconciler = JobReconciler(
        behaviour,
        listers,
        manager.recorder(f"{kind.lower()}-controller"),
        sink if sink is not None else NullSink(),
        options=options if options is not None else JobOptions(),
        now=_now,
    )
    owns: Sequence[Kind] = behaviour.watched
    return manager.controller(
        kind.lower(), (API_VERSION, kind), reconciler, owns=owns, watches=watches, workers=WORKERS
    )


def _reference_holders(manager: Manager, kind: str, kinds: Sequence[Kind]) -> dict[Kind, SharedInformer]:
    holders: dict[Kind, SharedInformer] = {}
    for held in kinds:
        holders[held] = manager.informers.informer(*held)
        holders[held].indexer.add_index(indexes.reference_index(kind), references.secret_of)
    return holders


def _now() -> str:
    return rfc3339(time.time())
