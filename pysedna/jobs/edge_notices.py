"""Tells the edge about jobs: an insert to each node concerned when a job comes or its spec changes, a delete when it
goes.

What each node was told is remembered here, by job, for as long as the job exists. So a node is told again after a
restart or a change of leader (an insert says the same once more), and a node that a changed spec leaves behind is
told to forget the job. The delete goes out when the job is gone from the cache, which a finalizer could make certain
but only at the price that jobs cannot be deleted while no manager runs. A job that goes while nobody watches is
therefore not announced: whoever connects an edge must compare what it holds with what there is, which it must do
anyway for nodes that were away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from informers import Object, ObjectKey
from pysedna.edge import EdgeSink


@dataclass(slots=True)
class _Told:
    """What nodes know of one job: `nodes` have heard of this uid and generation, `stale` of an older one."""

    obj: Object
    nodes: set[str] = field(default_factory=set)
    stale: set[str] = field(default_factory=set)


class EdgeNotices:
    """The memory of one controller. Safe for several threads as long as no two are at one job at once."""

    def __init__(self, sink: EdgeSink) -> None:
        self._sink = sink
        self._told: dict[ObjectKey, _Told] = {}

    def present(self, obj: Object, nodes: Iterable[str]) -> None:
        """The job exists and concerns these nodes. Raises what the sink raises; then call it again."""
        told = self._told.get(obj.key)
        if told is None:
            told = self._told[obj.key] = _Told(obj)
        elif (told.obj.uid, told.obj.generation) != (obj.uid, obj.generation):
            told.stale |= told.nodes
            told.nodes = set()
        last, told.obj = told.obj, obj
        for node in dict.fromkeys(nodes):
            if node not in told.nodes:
                self._sink.send(node, "insert", obj)
                told.nodes.add(node)
                told.stale.discard(node)
        for node in sorted(told.stale):
            self._sink.send(node, "delete", last)
            told.stale.discard(node)

    def gone(self, key: ObjectKey) -> None:
        """The job does not exist any more. Raises what the sink raises; then call it again."""
        told = self._told.get(key)
        if told is None:
            return
        for node in sorted(told.nodes | told.stale):
            self._sink.send(node, "delete", told.obj)
            told.nodes.discard(node)
            told.stale.discard(node)
        del self._told[key]

    def __len__(self) -> int:
        return len(self._told)
