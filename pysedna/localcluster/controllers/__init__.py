"""The controllers of the embedded cluster: garbage collection, namespaces, Deployments and ReplicaSets, simulated
nodes.

Ordinary controllers, written like anyone's on `informers`, `workqueue` and `pysedna.controller`, speaking HTTP.
The simulated nodes work against any API server.
"""

from __future__ import annotations

from collections.abc import Sequence

from pysedna.controller import Manager
from pysedna.localcluster.controllers.deployments import setup_deployments
from pysedna.localcluster.controllers.garbage_collector import setup_garbage_collector
from pysedna.localcluster.controllers.namespaces import setup_namespaces
from pysedna.localcluster.controllers.node_options import NodeOptions
from pysedna.localcluster.controllers.nodes import setup_nodes
from pysedna.localcluster.controllers.replicasets import setup_replica_sets

__all__ = [
    "NodeOptions",
    "setup_controllers",
    "setup_deployments",
    "setup_garbage_collector",
    "setup_namespaces",
    "setup_nodes",
    "setup_replica_sets",
]


def setup_controllers(manager: Manager, *, nodes: Sequence[str], node_options: NodeOptions | None = None) -> None:
    """Add all controllers of the embedded cluster to a manager, with simulated nodes of these names."""
    setup_garbage_collector(manager)
    setup_namespaces(manager)
    setup_replica_sets(manager)
    setup_deployments(manager)
    setup_nodes(manager, nodes, node_options)
