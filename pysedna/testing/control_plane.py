"""`ControlPlane`: a real etcd, kube-apiserver and kube-controller-manager for tests, what envtest is to Go."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from informers.client import Client
from pysedna.testing.binaries import find_binaries
from pysedna.testing.errors import NotOursError, NotRunningError
from pysedna.testing.installing import install_crds, install_webhooks
from pysedna.testing.servers import CONTROLLERS, Servers
from pysedna.testing.settings import PROGRAMS, Settings
from pysedna.testing.users import Rule, User, create_user, delete_user


class ControlPlane:
    """A control plane on free loopback ports, with its data in a temporary folder. A context manager.

    There is no scheduler and no kubelet: pods stay Pending until something binds them and writes their status, such as
    `pysedna.localcluster.controllers.setup_nodes`. The garbage collector learns of new kinds within half a minute.
    TLS is verified with the authority that the API server made. When the process that started it ends, in whatever
    way, the servers are killed and the temporary folder is removed.

    With ``USE_EXISTING_CLUSTER=true`` it stands for the cluster of the environment's kubeconfig instead: nothing is
    started, what would need it to be ours raises NotOursError, and `stop` removes the users that were added.
    Not thread-safe; `client` is.
    """

    def __init__(
        self,
        *,
        folder: str | Path | None = None,
        controllers: Sequence[str] = CONTROLLERS,
        api_server_args: Sequence[str] = (),
        settings: Settings | None = None,
    ) -> None:
        """No I/O but the environment, unless `settings` are given. Raises SettingError.

        `folder`: an empty or absent one for data and logs, which is kept. `controllers`: those of
        kube-controller-manager by name; with none of them that program is neither needed nor started.
        `api_server_args`: more flags for kube-apiserver.
        """
        self._settings = settings if settings is not None else Settings.from_environment()
        self._folder_wanted = None if folder is None else Path(folder)
        self._controllers = tuple(controllers)
        self._api_server_args = tuple(api_server_args)
        self._folder: Path | None = None
        self._servers: Servers | None = None
        self._client: Client | None = None
        self._users: list[User] = []

    def start(self) -> None:
        """Blocks until all servers are ready, some ten seconds. Raises BinariesMissingError, StartError.

        StartError carries the end of the log of the server that did not come up; nothing is left running then.
        """
        if self._folder is not None:
            raise RuntimeError("the control plane has been started already")
        settings = self._settings
        programs = {} if settings.use_existing_cluster else find_binaries(settings, self._programs())
        self._folder = self._make_folder()
        try:
            if not settings.use_existing_cluster:
                self._servers = Servers(
                    programs,
                    self._folder,
                    temporary=self._folder_wanted is None,
                    controllers=self._controllers,
                    api_server_args=self._api_server_args,
                    start_timeout=settings.start_timeout,
                    stop_timeout=settings.stop_timeout,
                )
                self._servers.start()
            self._client = Client.from_kubeconfig(self.kubeconfig)
        except BaseException:
            self.stop()
            raise

    def stop(self, timeout: float | None = None) -> bool:
        """Kill the servers, close the clients, remove the temporary folder; a second call does nothing. Gives True.

        Killing takes no time worth limiting, so `timeout` is there for the sake of `Cluster` only.
        """
        if self._client is not None:
            if self._settings.use_existing_cluster:
                for user in self._users:
                    delete_user(self._client, user)
            self._client.close()
            self._client = None
        for user in self._users:
            user.client.close()
        self._users.clear()
        if self._servers is not None:
            self._servers.stop()
            self._servers = None
        if self._folder is not None and self._folder_wanted is None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        return True

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """`https://127.0.0.1:PORT`; it stays the same over restarts of the API server."""
        return self.client.server

    @property
    def kubeconfig(self) -> str:
        """The path of an administrator's kubeconfig, which carries the certificate authority; `stop` removes it."""
        if self._servers is not None:
            return str(self._servers.kubeconfig)
        if self._settings.use_existing_cluster:
            return os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
        raise NotRunningError("the control plane is not running")

    @property
    def client(self) -> Client:
        """A client of the administrator, to whom RBAC does not apply. Closed by `stop`."""
        if self._client is None:
            raise NotRunningError("the control plane is not running")
        return self._client

    @property
    def folder(self) -> Path:
        """Where the logs are: ``etcd.log``, ``kube-apiserver.log``, ``kube-controller-manager.log``."""
        if self._folder is None:
            raise NotRunningError("the control plane is not running")
        return self._folder

    @property
    def certificate(self) -> Path:
        """PEM: what the API server serves with (for 127.0.0.1), followed by the authority that signed it.

        With `private_key` it also makes the TLS server of a webhook, which `install_webhooks` tells it to trust.
        """
        return self._own("give a certificate").certificate

    @property
    def private_key(self) -> Path:
        """PEM: the key of `certificate`."""
        return self._own("give a key").private_key

    def install_crds(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Create CustomResourceDefinitions, or replace those that are there. Served when this returns.

        Raises ApiError, and StartError when they are not served in time.
        """
        install_crds(self.client, definitions, timeout=self._settings.start_timeout)

    def install_webhooks(
        self, configurations: Iterable[Mapping[str, Any]], *, url: str, authority: str | Path | bytes | None = None
    ) -> None:
        """Create or replace Mutating- and ValidatingWebhookConfigurations that are served at `url`. Raises ApiError.

        A ``clientConfig.service`` is replaced by `url` followed by its path, as nothing routes to services here.
        `authority`: PEM or a file of it, to verify the webhook's server with; `certificate` if not given. The API
        server takes a configuration into account a moment after this returned.
        """
        pem = authority if isinstance(authority, bytes) else Path(authority or self.certificate).read_bytes()
        install_webhooks(self.client, configurations, url=url, authority=pem)

    def add_user(self, name: str, *, rules: Sequence[Rule], namespace: str | None = None) -> User:
        """Add somebody who may do what `rules` (RBAC's PolicyRules) say and nothing else; in force when this returns.

        In all of the cluster, or in `namespace` only. It is a service account of `namespace` (or ``default``) and
        keeps its token for a day. Raises AlreadyExistsError for a name that is taken there, StartError.
        """
        user = create_user(
            self.client,
            self.kubeconfig,
            self.folder,
            name,
            rules=rules,
            namespace=namespace,
            timeout=self._settings.start_timeout,
        )
        self._users.append(user)
        return user

    def restart_api_server(self) -> None:
        """End the API server (SIGTERM; its watches end) if it runs, start it on the same port, block until it is ready.

        Also thaws and starts one that was frozen or killed. The controllers are started anew with it, as they would
        wait for up to half a minute after several losses; nothing waits for them. Raises StartError.
        """
        self._own("restart the API server").restart_api_server()

    def kill_api_server(self) -> None:
        """SIGKILL the API server: connections break, new ones are refused until `restart_api_server`."""
        self._own("kill the API server").api_server.kill()

    def freeze(self) -> None:
        """SIGSTOP the API server: connections stay open, new ones are taken by the kernel, and nothing answers."""
        self._own("freeze the API server").api_server.freeze()

    def thaw(self) -> None:
        """SIGCONT: the API server goes on where it was."""
        self._own("thaw the API server").api_server.thaw()

    def compact(self) -> None:
        """Force 410: forget everything up to now in etcd and restart the API server, whose cache would remember.

        Every version and continue token seen before is expired, the newest too. Takes some five seconds.
        """
        self._own("compact").compact()

    def drop_watches(self) -> None:
        """End every open watch, by restarting the API server."""
        self.restart_api_server()

    def log(self, server: str = "kube-apiserver", *, lines: int = 50) -> str:
        """The last lines that ``etcd``, ``kube-apiserver`` or ``kube-controller-manager`` wrote since it started."""
        servers = self._own("read logs")
        return {one.name: one for one in (servers.etcd, servers.api_server, servers.controller_manager)}[
            server
        ].log_tail(lines)

    def _programs(self) -> Sequence[str]:
        return PROGRAMS if self._controllers else PROGRAMS[:2]

    def _make_folder(self) -> Path:
        if self._folder_wanted is None:
            return Path(tempfile.mkdtemp(prefix="pysedna-control-plane-"))
        self._folder_wanted.mkdir(parents=True, exist_ok=True)
        return self._folder_wanted.resolve()

    def _own(self, action: str) -> Servers:
        if self._servers is not None:
            return self._servers
        if self._settings.use_existing_cluster:
            raise NotOursError(action)
        raise NotRunningError("the control plane is not running")
