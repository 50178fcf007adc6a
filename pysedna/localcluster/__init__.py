"""An API server for demos, tests and a first look: real HTTP, no Kubernetes needed. See docs/localcluster.md."""

from pysedna.localcluster.cluster import LocalCluster, kubeconfig
from pysedna.localcluster.errors import LocalClusterError, NotRunningError, StartError, StateFileError

__all__ = ["LocalCluster", "LocalClusterError", "NotRunningError", "StartError", "StateFileError", "kubeconfig"]
