"""The three servers of a control plane: their command lines, the order in which they start, when they are ready.

`ControlPlane` is the face of this; nothing here knows Kubernetes objects.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path

from pysedna.testing import etcd
from pysedna.testing.credentials import admin_token_file, kubeconfig, signing_key, write_private
from pysedna.testing.errors import NotRunningError, StartError
from pysedna.testing.http import fetch
from pysedna.testing.ports import free_ports
from pysedna.testing.server import Server

CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "deployment-controller",
    "replicaset-controller",
    "job-controller",
    "serviceaccount-controller",
)
"""The controllers of kube-controller-manager that run unless others are asked for."""

_START_TRIES = 5
_PORT_TAKEN = "address already in use"
_REQUEST_SECONDS = 5.0

logger = logging.getLogger(__name__)


class Servers:
    """etcd, kube-apiserver and, with `controllers`, kube-controller-manager in one folder. Not thread-safe."""

    def __init__(
        self,
        programs: Mapping[str, Path],
        folder: Path,
        *,
        temporary: bool,
        controllers: Sequence[str],
        api_server_args: Sequence[str],
        start_timeout: float,
        stop_timeout: float,
    ) -> None:
        self._programs = programs
        self._folder = folder
        self._controllers = tuple(controllers)
        self._api_server_args = tuple(api_server_args)
        self._start_timeout = start_timeout
        self._stop_timeout = stop_timeout
        self._token = secrets.token_urlsafe(32)
        self._ports: Sequence[int] = ()
        self.etcd, self.api_server, self.controller_manager = (
            Server(name, folder=folder, temporary=temporary)
            for name in ("etcd", "kube-apiserver", "kube-controller-manager")
        )

    @property
    def address(self) -> str:
        """`https://127.0.0.1:PORT`."""
        return f"https://127.0.0.1:{self._ports[2]}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self._folder / "kubeconfig"

    @property
    def certificate(self) -> Path:
        """What the API server serves with, followed by the authority that it made for that."""
        return self._folder / "certificates" / "apiserver.crt"

    @property
    def private_key(self) -> Path:
        """The key of `certificate`."""
        return self._folder / "certificates" / "apiserver.key"

    def start(self) -> None:
        """Start everything, on other ports when one was taken meanwhile. Blocks until ready. Raises StartError."""
        deadline = time.monotonic() + self._start_timeout
        write_private(self._folder / "signing.key", signing_key())
        write_private(self._folder / "tokens.csv", admin_token_file(self._token))
        for attempt in range(1, _START_TRIES + 1):
            self._ports = free_ports(3)
            try:
                self._start_once(deadline)
                return
            except StartError as error:
                self.stop()
                if _PORT_TAKEN not in error.log or attempt == _START_TRIES:
                    raise
                logger.warning("one of the ports %s was taken meanwhile: starting again on others", self._ports)

    def _start_once(self, deadline: float) -> None:
        name = f"etcd-{secrets.token_hex(8)}"
        shutil.rmtree(self._folder / "etcd", ignore_errors=True)
        self.etcd.start(self._etcd_command(name))
        self.etcd.wait_until(_answers(lambda: etcd.is_member(self._etcd_url, name)), deadline=deadline)
        self.api_server.start(self._api_server_command())
        self.api_server.wait_until(_answers(self._api_is_ready), deadline=deadline)
        self._write_kubeconfig()
        if self._controllers:
            self.controller_manager.start(self._controller_manager_command())
            self.controller_manager.wait_until(_answers(self._controllers_act), deadline=deadline)

    def stop(self) -> bool:
        """Kill everything: the data goes anyway, so nothing is gained by waiting. Gives whether all are gone."""
        servers = (self.controller_manager, self.api_server, self.etcd)
        for server in servers:
            server.kill()
        return not any(server.running for server in servers)

    def restart_api_server(self) -> None:
        """Stop the API server if it runs, frozen or not, and start it on its port; then the controllers.

        Raises StartError.
        """
        if not self.etcd.running:
            raise NotRunningError("the control plane is not running")
        deadline = time.monotonic() + self._stop_timeout + self._start_timeout
        self.api_server.stop(self._stop_timeout)
        while True:
            self.api_server.start(self._api_server_command())
            try:
                self.api_server.wait_until(_answers(self._api_is_ready), deadline=deadline)
                break
            except StartError as error:
                self.api_server.kill()
                if _PORT_TAKEN not in error.log or time.monotonic() >= deadline:
                    raise
        if self._controllers:  # anew: one that has lost its server several times waits up to half a minute
            self.controller_manager.kill()
            self.controller_manager.start(self._controller_manager_command())

    def compact(self) -> None:
        """Forget the history in etcd, and in the API server's cache by starting that again."""
        etcd.compact(self._etcd_url)
        self.restart_api_server()

    @property
    def _etcd_url(self) -> str:
        return f"http://127.0.0.1:{self._ports[0]}"

    def _etcd_command(self, name: str) -> Sequence[str | Path]:
        peer = f"http://127.0.0.1:{self._ports[1]}"
        return (
            self._programs["etcd"],
            f"--name={name}",
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster={name}={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )

    def _api_server_command(self) -> Sequence[str | Path]:
        key = self._folder / "signing.key"
        return (
            self._programs["kube-apiserver"],
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",  # else it looks for a network, and fails without one
            f"--secure-port={self._ports[2]}",
            f"--cert-dir={self.certificate.parent}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none",  # the others refuse to advertise a loopback address
            "--shutdown-watch-termination-grace-period=1s",  # else it waits a minute for watches to end
            *self._api_server_args,
        )

    def _controller_manager_command(self) -> Sequence[str | Path]:
        return (
            self._programs["kube-controller-manager"],
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            f"--controllers={','.join(self._controllers)}",
            f"--service-account-private-key-file={self._folder / 'signing.key'}",
            "--secure-port=0",
        )

    def _write_kubeconfig(self) -> None:
        authority = self.certificate.read_bytes()
        write_private(
            self.kubeconfig, kubeconfig(server=self.address, certificate_authority=authority, token=self._token)
        )

    def _api_is_ready(self) -> bool:
        """Ready, and with the namespace that every user takes for granted, which it makes a little later."""
        return self._get("/readyz") == b"ok" and bool(self._get("/api/v1/namespaces/default"))

    def _controllers_act(self) -> bool:
        if "serviceaccount-controller" not in self._controllers:
            return True
        return bool(self._get("/api/v1/namespaces/default/serviceaccounts/default"))

    def _get(self, path: str) -> bytes:
        context = ssl.create_default_context(cafile=str(self.certificate))
        headers = {"Authorization": f"Bearer {self._token}"}
        return fetch(self.address + path, headers=headers, context=context, timeout=_REQUEST_SECONDS)


def _answers(ask: Callable[[], bool]) -> Callable[[], bool]:
    """The same question, with no for an answer while nobody is there to give one."""

    def ready() -> bool:
        try:
            return ask()
        except (OSError, HTTPException):  # no such file, connection refused, not yet authorised, ...
            return False

    return ready
