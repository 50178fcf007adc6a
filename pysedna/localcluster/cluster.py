"""`LocalCluster`: the embedded API server, a kubeconfig, a client and its controllers, as one thing to start."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from informers.client import Client
from informers.errors import AlreadyExistsError
from informers.key import ObjectKey
from pysedna.localcluster.errors import NotRunningError
from pysedna.localcluster.server import ApiServer
from pysedna.localcluster.validation import metadata_problems

if TYPE_CHECKING:
    from pysedna.localcluster.controllers import NodeOptions


class LocalCluster:
    """An API server in this process, on loopback, with the controllers that make pods run. A context manager.

    With `state`, every acknowledged write survives a kill; a damaged file raises `StateFileError` from `start`.
    `controllers=False` leaves the bare API: nothing binds pods, collects garbage or empties namespaces.
    `nodes` are simulated; ValueError if one cannot be the name of a node, or comes twice. Starting it again after
    `stop` is not possible: make a new one.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        state: str | Path | None = None,
        controllers: bool = True,
        nodes: Sequence[str] = ("node-1",),
        node_options: NodeOptions | None = None,
        history_limit: int = 10_000,
        bookmark_interval: float = 10.0,
        stall: float = 30.0,
    ) -> None:
        """`history_limit` is in events; `bookmark_interval` and `stall` (a watcher that does not read) in seconds."""
        self._options: dict[str, Any] = {
            "host": host,
            "port": port,
            "state": state,
            "history_limit": history_limit,
            "bookmark_interval": bookmark_interval,
            "stall": stall,
        }
        self._with_controllers = controllers
        self._nodes = _checked(nodes)
        self._node_options = node_options
        self._server: ApiServer | None = None
        self._client: Client | None = None
        self._kubeconfig: Path | None = None
        self._controllers: threading.Thread | None = None
        self._stop_controllers = threading.Event()

    def start(self) -> None:
        """Blocks until the API answers. Raises `StartError`, `StateFileError`."""
        self._server = ApiServer(**self._options, first_version=_first_version())
        self._server.start()
        descriptor, path = tempfile.mkstemp(prefix="pysedna-", suffix=".kubeconfig")
        self._kubeconfig = Path(path)
        with os.fdopen(descriptor, "w") as file:
            json.dump(kubeconfig(self.address), file, indent=2)
        self._client = Client.from_kubeconfig(path)
        if self._with_controllers:
            self._start_controllers(self._client)

    def _start_controllers(self, client: Client) -> None:
        from pysedna.controller import Manager
        from pysedna.localcluster.controllers import setup_controllers

        manager = Manager(client, name="localcluster", http=None)
        setup_controllers(manager, nodes=self._nodes, node_options=self._node_options)
        self._controllers = threading.Thread(
            target=manager.run, args=(self._stop_controllers,), name="localcluster-controllers", daemon=True
        )
        self._controllers.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Stops everything and removes the kubeconfig; False if something still ran after `timeout`."""
        stopped = True
        if self._controllers is not None:
            self._stop_controllers.set()
            self._controllers.join(timeout)
            stopped = not self._controllers.is_alive()
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._server is not None:
            stopped = self._server.stop(timeout) and stopped
        if self._kubeconfig is not None:
            self._kubeconfig.unlink(missing_ok=True)
            self._kubeconfig = None
        return stopped

    def __enter__(self) -> LocalCluster:
        self.start()
        return self

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return self._running().address

    @property
    def kubeconfig(self) -> str:
        """The path of a kubeconfig file for this cluster, which `stop` removes."""
        if self._kubeconfig is None:
            raise NotRunningError("the embedded cluster is not running")
        return str(self._kubeconfig)

    @property
    def client(self) -> Client:
        """A client of this cluster, closed by `stop`."""
        if self._client is None:
            raise NotRunningError("the embedded cluster is not running")
        return self._client

    def install_crds(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Creates CustomResourceDefinitions, or replaces those that are there. They are served when this returns."""
        resource = self.client.resource("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        for definition in definitions:
            try:
                resource.create(definition)
            except AlreadyExistsError:
                current = resource.get(ObjectKey("", definition["metadata"]["name"]))
                version = {"resourceVersion": current.resource_version}
                resource.replace({**definition, "metadata": {**definition["metadata"], **version}})

    def compact(self) -> None:
        """Forgets the history: watches from older versions, older lists and their continue tokens get 410 Expired."""
        server = self._running()
        server.call(server.backend.store.compact)

    def drop_watches(self) -> None:
        """Cuts the connection of every open watch."""
        self._running().drop_watches()

    def _running(self) -> ApiServer:
        if self._server is None:
            raise NotRunningError("the embedded cluster has not been started")
        return self._server


def kubeconfig(address: str) -> dict[str, Any]:
    """The content of a kubeconfig file for a cluster without authentication."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "pysedna",
        "clusters": [{"name": "pysedna", "cluster": {"server": address}}],
        "users": [{"name": "pysedna", "user": {}}],
        "contexts": [{"name": "pysedna", "context": {"cluster": "pysedna", "user": "pysedna", "namespace": "default"}}],
    }


def _checked(nodes: Sequence[str]) -> list[str]:
    if isinstance(nodes, str):
        raise ValueError(f"nodes is a sequence of names, not the text {nodes!r}")
    for name in nodes:
        # A simulated node carries its name as a label too, as a kubelet's does.
        if any(metadata_problems("Node", {"name": name, "labels": {"kubernetes.io/hostname": name}})):
            raise ValueError(f"{name!r} cannot be the name of a node: at most 63 of a-z, 0-9, '-' and '.'")
    twice = sorted(name for name, count in Counter(nodes).items() if count > 1)
    if twice:
        raise ValueError(f"two nodes cannot have one name: {', '.join(twice)}")
    return [*nodes]


def _first_version() -> int:
    """Versions begin at the milliseconds since 1970, so a cluster that takes the place of another (restarted without a
    state file, say, on the same port) is ahead of whatever clients remember of that one.

    Their watches are told that they are too old, and they list anew. If versions began at 1, they would wait in
    silence until the count had come to where they were.
    """
    return time.time_ns() // 1_000_000
