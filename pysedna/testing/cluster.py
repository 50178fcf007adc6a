"""`Cluster`: what `LocalCluster` and `ControlPlane` have in common, so that one test runs on both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from informers.client import Client


class Cluster(Protocol):
    """An API server with controllers behind it: `pysedna.localcluster.LocalCluster`, `ControlPlane`."""

    @property
    def address(self) -> str:
        """The URL of the API server."""

    @property
    def kubeconfig(self) -> str:
        """The path of a kubeconfig file of an administrator."""

    @property
    def client(self) -> Client:
        """A client of that administrator. The cluster closes it."""

    def start(self) -> None:
        """Block until the API answers."""

    def stop(self, timeout: float | None = None) -> bool:
        """End everything; False if something still ran after `timeout` seconds."""

    def install_crds(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Create CustomResourceDefinitions, or replace those that are there. Served when this returns."""

    def compact(self) -> None:
        """Forget the history: whoever comes with a version, or a continue token, from before the last write gets 410.

        Whether the very last version is forgotten too, and whether open watches are ended, differs.
        """

    def drop_watches(self) -> None:
        """End every open watch, cleanly or by a reset, as a restart or a network does."""
