"""An API server for demos, tests and a first look: real HTTP, no Kubernetes needed. See docs/localcluster.md."""

from pysedna.localcluster.errors import LocalClusterError, NotRunningError, StartError, StateFileError

try:
    from pysedna.localcluster.cluster import LocalCluster, kubeconfig
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("aiohttp", "jsonpatch", "jsonschema"):
        raise
    message = f"pysedna.localcluster needs {error.name}, which is not installed: pip install 'pysedna[localcluster]'"
    raise ModuleNotFoundError(message, name=error.name, path=error.path) from None

__all__ = ["LocalCluster", "LocalClusterError", "NotRunningError", "StartError", "StateFileError", "kubeconfig"]
