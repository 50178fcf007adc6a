"""Credential plugins of a kubeconfig (``user.exec``), run with a bound on their time.

The official client runs them without a limit and goes on without credentials when they fail; here a plugin that hangs
is killed and a failure is an error that says what the plugin said.
Reference: client.authentication.k8s.io, ExecCredential.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from informers.errors import ConfigError

__all__ = ["ExecCredential", "run_exec_plugin"]

_CLUSTER_MEMBERS = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
    "disable-compression",
)


@dataclass(frozen=True, slots=True, repr=False)
class ExecCredential:
    """What a plugin gave: a token, or a client certificate with its key (PEM); and until when, in epoch seconds."""

    token: str | None
    certificate: str | None
    key: str | None
    expires: float | None


def run_exec_plugin(
    plugin: Mapping[str, Any], cluster: Mapping[str, Any], *, folder: str | None, timeout: float
) -> ExecCredential:
    """Run the plugin and read its answer; blocks for at most `timeout` seconds. Raises ConfigError.

    `plugin` is the ``exec`` part of the user, `cluster` the cluster of the context (told to the plugin if it asks for
    it); a relative command is looked up in `folder`, that of the kubeconfig file.
    """
    command, version = plugin.get("command"), plugin.get("apiVersion")
    if not isinstance(command, str) or not command or not isinstance(version, str):
        raise ConfigError("the exec plugin of the kubeconfig needs command and apiVersion")
    interactive = plugin.get("interactiveMode") != "Never" and sys.stdin is not None and sys.stdin.isatty()
    try:
        process = subprocess.run(
            [command, *(plugin.get("args") or ())],
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if interactive else subprocess.PIPE,
            cwd=folder or None,
            env=_environment(plugin, version, _cluster_info(plugin, cluster), interactive),
            timeout=timeout,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"exec plugin {command}: no answer within {timeout:g} s; it was ended") from None
    except OSError as error:
        hint = f" ({plugin['installHint']})" if isinstance(plugin.get("installHint"), str) else ""
        raise ConfigError(f"exec plugin {command}: {error.strerror or error}{hint}") from error
    if process.returncode:
        said = (process.stderr or "").strip()[-500:]
        raise ConfigError(f"exec plugin {command}: exit code {process.returncode}{': ' + said if said else ''}")
    return _read(process.stdout, command, version)


def _cluster_info(plugin: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any] | None:
    if not plugin.get("provideClusterInfo"):
        return None
    info = {name: cluster[name] for name in _CLUSTER_MEMBERS if name in cluster}
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info


def _environment(
    plugin: Mapping[str, Any], version: str, cluster: Mapping[str, Any] | None, interactive: bool
) -> dict[str, str]:
    spec: dict[str, Any] = {"interactive": interactive}
    if cluster is not None:
        spec["cluster"] = cluster
    environment = dict(os.environ)
    environment.update({item["name"]: item["value"] for item in plugin.get("env") or ()})
    environment["KUBERNETES_EXEC_INFO"] = json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": spec})
    return environment


def _read(text: str, command: str, version: str) -> ExecCredential:
    try:
        answer = json.loads(text)
        status = answer["status"]
        answered = answer["apiVersion"]
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"exec plugin {command}: its answer is no ExecCredential") from None
    if answered != version:
        raise ConfigError(f"exec plugin {command}: it answers in {answered}, not in {version}")
    token, certificate, key = (status.get(name) for name in ("token", "clientCertificateData", "clientKeyData"))
    if not token and not (certificate and key):
        raise ConfigError(f"exec plugin {command}: its answer has neither a token nor a certificate with its key")
    expires = status.get("expirationTimestamp")
    try:
        until = datetime.fromisoformat(expires).timestamp() if expires else None
    except ValueError:
        raise ConfigError(f"exec plugin {command}: expirationTimestamp {expires!r} is no time") from None
    return ExecCredential(token, certificate, key, until)
