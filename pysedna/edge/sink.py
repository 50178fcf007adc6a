"""The seam between the jobs and the edge: what a local controller must hear goes through an `EdgeSink`.

The jobs decide which node hears what; how it gets there (connections, order, resending) is the sink's matter.
`NullSink` is for clusters without local controllers: workers run as well without, only reports from the edge are
missing.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from informers import Object

Operation: TypeAlias = Literal["insert", "delete"]
"""`insert` for a new or a changed object (a local controller knows no other word for a change), `delete` for a gone
one."""


class EdgeSink(Protocol):
    """Takes messages for the nodes at the edge."""

    def send(self, node: str, op: Operation, obj: Object) -> None:
        """Hand over one message: `node` shall hear `op` about `obj` (a deleted object: as it was last seen).

        Must not block on the network. Called from reconciles, so from several threads, and never at once for one
        object; messages about one object come in order. The same message may come again: it means the same once more.
        Raises `SinkUnavailable` when the message could not be taken.
        """


class NullSink:
    """Drops every message."""

    def send(self, node: str, op: Operation, obj: Object) -> None:
        """Do nothing."""
