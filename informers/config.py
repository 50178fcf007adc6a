"""Where the API server is and how to speak to it: kubeconfig files, in-cluster files, a plain URL.

The official client reads the configuration and builds the connection pool, so contexts, tokens, client certificates,
auth providers, proxies and TLS settings work as its users know them. It is imported when it is needed: it takes longer
and more memory than everything else here. A `Source` can be loaded again, which is how rotated credentials are picked
up; `credentials.py` decides when.
"""

from __future__ import annotations

import base64
import copy
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import urllib3

from informers.connection import Exchanges, track
from informers.errors import ConfigError
from informers.exec_plugin import ExecCredential, run_exec_plugin

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

__all__ = ["ApiClientSource", "Endpoint", "InClusterSource", "KubeconfigSource", "Source", "UrlSource"]

EXEC_PLUGIN_SECONDS = 60.0
"""The longest that a credential plugin may take."""
_ROTATED_SECONDS = 60.0
"""How long tokens and client certificates from files are used: they are rotated in place. client-go reads such token
files again each minute too; a certificate that expired is refused in the handshake, where no 401 tells of it."""
_POOLED_CONNECTIONS = 32
_SOCKET_OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPIDLE", 0), 15),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPINTVL", 0), 5),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPCNT", 0), 3),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_USER_TIMEOUT", 0), 30_000),  # milliseconds
]


@dataclass(frozen=True)
class Endpoint:
    """A server with its connection pool and the headers that authorise requests. Made by a `Source`."""

    server: str
    pool: urllib3.PoolManager = field(repr=False)
    exchanges: Exchanges = field(repr=False)
    headers: Callable[[], Mapping[str, str]] = field(repr=False)
    expires: float | None = None
    """When the credentials should be loaded again, on time.monotonic; None: when the server refuses them."""
    fingerprint: tuple[object, ...] = field(default=(), repr=False)


class Source(Protocol):
    """Gives an `Endpoint`, again and again."""

    renewable: bool

    def load(self, previous: Endpoint | None = None) -> Endpoint:
        """Read the configuration. May block (files, a plugin for at most 60 s). Raises ConfigError.

        The connection pool of `previous` goes on to be used if nothing that concerns connections has changed.
        """


class KubeconfigSource:
    """One context of a kubeconfig: a file, or several joined by ``:``; without a path $KUBECONFIG or ~/.kube/config."""

    renewable = True

    def __init__(self, path: str | os.PathLike[str] | None = None, context: str | None = None) -> None:
        self._path = os.fspath(path) if path is not None else os.environ.get("KUBECONFIG") or "~/.kube/config"
        self._context = context

    def load(self, previous: Endpoint | None = None) -> Endpoint:
        """See `Source.load`."""
        files = [Path(part).expanduser() for part in self._path.split(os.pathsep) if part]
        if not any(file.is_file() for file in files):
            raise ConfigError(f"kubeconfig {self._path}: no such file")
        from kubernetes.config import ConfigException, kube_config

        official: Any = kube_config  # it has no annotations
        try:
            return self._load(previous)
        except ConfigError as error:
            raise ConfigError(f"kubeconfig {self._path}: {error}") from error
        except (UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
            # What the official loader stumbles over when the file holds something else than it expects.
            raise ConfigError(f"kubeconfig {self._path}: it has not the form of a kubeconfig ({error})") from error
        except (ConfigException, official.yaml.YAMLError, OSError, ValueError) as error:
            raise ConfigError(f"kubeconfig {self._path}: {error}") from error

    def _load(self, previous: Endpoint | None) -> Endpoint:
        from kubernetes.config import kube_config

        official: Any = kube_config  # it has no annotations
        merger = official.KubeConfigMerger(self._path)
        if merger.config is None:
            raise ConfigError("it is empty")
        names = self._names(merger.config)
        cluster = merger.config["clusters"].get_with_name(names["cluster"])["cluster"]
        user = merger.config["users"].get_with_name(names["user"], safe=True) if names.get("user") else None
        details = user["user"] if user is not None and user["user"] else None
        credential = None if details is None else self._run_plugin(details.value, cluster)
        loader = official.KubeConfigLoader(
            merger.config,
            active_context=self._context,
            config_base_path=None,
            # what a plugin gave was put into the loaded configuration and must not be written to the file
            config_persister=merger.save_changes if credential is None else None,
        )
        configuration = _new_configuration()
        loader.load_and_set(configuration)
        if "proxy-url" not in cluster.value and _is_loopback(configuration.host):
            configuration.proxy = None
        expiry = getattr(loader, "expiry", None)
        expires = credential.expires if credential is not None else expiry.timestamp() if expiry else None
        rotated = credential is None and details is not None and _is_rotated(details.value)
        return _endpoint(configuration, previous, _renewal_time(expires, rotated))

    def _names(self, config: Any) -> Mapping[str, Any]:
        context = self._context or config.safe_get("current-context")
        if not context:
            raise ConfigError("it has no current-context, and no context was named")
        names: Mapping[str, Any] = config["contexts"].get_with_name(context)["context"].value
        return names

    def _run_plugin(self, user: dict[str, Any], cluster: Any) -> ExecCredential | None:
        """Replace the user's plugin by what it gives, so that the official loader finds plain credentials."""
        if "exec" not in user or any(name in user for name in ("token", "tokenFile", "auth-provider")):
            return None
        folder = os.path.dirname(os.path.abspath(cluster.path)) if cluster.path else None
        credential = run_exec_plugin(user.pop("exec"), cluster.value, folder=folder, timeout=EXEC_PLUGIN_SECONDS)
        if credential.token:
            user["token"] = credential.token
        if credential.certificate and credential.key:
            user["client-certificate-data"] = base64.b64encode(credential.certificate.encode()).decode()
            user["client-key-data"] = base64.b64encode(credential.key.encode()).decode()
        return credential


class InClusterSource:
    """The service account files and environment variables that a pod finds."""

    renewable = True

    def load(self, previous: Endpoint | None = None) -> Endpoint:
        """See `Source.load`."""
        from kubernetes.config import ConfigException, incluster_config

        official: Any = incluster_config  # it has no annotations
        configuration = _new_configuration()
        try:
            official.load_incluster_config(client_configuration=configuration)
        except (ConfigException, OSError) as error:
            raise ConfigError(f"in-cluster configuration: {error}") from error
        return _endpoint(configuration, previous, time.monotonic() + _ROTATED_SECONDS)


class UrlSource:
    """A server that needs no credentials, at a URL; for servers on the loopback interface."""

    renewable = False

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is not the URL of a server (http://host:port)")
        self._url = url.rstrip("/")

    def load(self, previous: Endpoint | None = None) -> Endpoint:
        """See `Source.load`."""
        if previous is not None:
            return previous
        if _is_loopback(self._url):  # never through a proxy, so there is nothing that the official client could add
            pool = urllib3.PoolManager(
                cert_reqs="CERT_REQUIRED", socket_options=_SOCKET_OPTIONS, maxsize=_POOLED_CONNECTIONS
            )
            return Endpoint(self._url, pool, track(pool), dict)
        configuration = _new_configuration()
        configuration.host = self._url
        return _endpoint(configuration, previous, None)


class ApiClientSource:
    """The configuration of an official `ApiClient`, with a connection pool of its own.

    Where it came from is unknown, so it cannot be loaded again; its own hook that refreshes a token is used.
    """

    renewable = False

    def __init__(self, api_client: ApiClient) -> None:
        self._headers = dict(api_client.default_headers)
        self._configuration = copy.deepcopy(api_client.configuration)
        self._lock = threading.Lock()

    def load(self, previous: Endpoint | None = None) -> Endpoint:
        """See `Source.load`."""
        configuration = self._configuration
        if configuration.socket_options is None:
            configuration.socket_options = _SOCKET_OPTIONS
        pool = _pool(configuration)
        return Endpoint(configuration.host.rstrip("/"), pool, track(pool), self._authorization)

    def _authorization(self) -> Mapping[str, str]:
        with self._lock:  # the hook changes the configuration in place
            settings: Any = self._configuration.auth_settings()
        found = {one["key"]: one["value"] for one in settings.values() if one["in"] == "header" and one["value"]}
        return {**self._headers, **found}


def _new_configuration() -> Any:
    """A configuration with built-in defaults, whatever the process has set as the official client's default."""
    from kubernetes.client import Configuration

    configuration = type.__call__(Configuration)
    configuration.socket_options = _SOCKET_OPTIONS
    configuration.connection_pool_maxsize = _POOLED_CONNECTIONS
    return configuration


def _pool(configuration: Any) -> urllib3.PoolManager:
    from kubernetes.client.rest import RESTClientObject

    pool: urllib3.PoolManager = RESTClientObject(configuration).pool_manager
    return pool


def _endpoint(configuration: Any, previous: Endpoint | None, expires: float | None) -> Endpoint:
    # "authorization" is what releases of the official client before 37 call it
    keys = configuration.api_key
    token = keys.get("BearerToken") or keys.get("authorization")
    headers = {"Authorization": token} if token else {}
    fingerprint = _fingerprint(configuration)
    server = configuration.host.rstrip("/")
    if previous is not None and previous.fingerprint == fingerprint:
        return Endpoint(server, previous.pool, previous.exchanges, lambda: headers, expires, fingerprint)
    pool = _pool(configuration)
    return Endpoint(server, pool, track(pool), lambda: headers, expires, fingerprint)


def _fingerprint(configuration: Any) -> tuple[object, ...]:
    """Whatever a connection depends on. Files are compared by content: they are rotated in place."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    contents = tuple(Path(file).read_bytes() if file else b"" for file in files)
    settings = (configuration.host, configuration.verify_ssl, configuration.proxy, configuration.tls_server_name)
    return (*settings, *map(hash, contents))


def _is_rotated(user: Mapping[str, Any]) -> bool:
    """Whether somebody else is likely to replace the credentials of this user in time."""
    token_file = "tokenFile" in user and "token" not in user
    return token_file or "client-certificate" in user or "client-certificate-data" in user


def _renewal_time(expires: float | None, rotated: bool) -> float | None:
    """Turn epoch seconds into a moment shortly before them on the monotonic clock."""
    if expires is None:
        return time.monotonic() + _ROTATED_SECONDS if rotated else None
    left = expires - time.time()
    return time.monotonic() + left - min(60.0, left / 5)


def _is_loopback(url: str) -> bool:
    """Whether a proxy from the environment must not be used: as in Go, never for this machine itself."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
