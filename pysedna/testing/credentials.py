"""The files that say who may speak to a control plane: a signing key, tokens, kubeconfigs."""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from informers.errors import ConfigError

# SEC 1, C.4: version, private key, [0] the curve; the public key is optional and Go computes it
_P256 = bytes.fromhex("a00a06082a8648ce3d030107")
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def write_private(path: Path, text: str) -> Path:
    """Write a file that only we may read, all at once: whoever reads meanwhile sees the old content or the new."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    with open(unfinished, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)
    unfinished.replace(path)
    return path


def signing_key() -> str:
    """A new P-256 key as PEM, with which the API server signs the tokens of service accounts."""
    scalar = (secrets.randbelow(_P256_ORDER - 1) + 1).to_bytes(32, "big")
    body = b"\x02\x01\x01\x04\x20" + scalar + _P256
    encoded = base64.b64encode(b"\x30" + bytes([len(body)]) + body).decode()
    lines = [encoded[start : start + 64] for start in range(0, len(encoded), 64)]
    return "\n".join(["-----BEGIN EC PRIVATE KEY-----", *lines, "-----END EC PRIVATE KEY-----", ""])


def admin_token_file(token: str) -> str:
    """The content of kube-apiserver's --token-auth-file for one administrator, to whom RBAC does not apply."""
    return f'{token},admin,admin,"system:masters"\n'


def kubeconfig(*, server: str, certificate_authority: bytes, token: str) -> str:
    """A kubeconfig of one administrator, with the certificate in it: the file works wherever it is copied to."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(certificate_authority).decode()}
    return _render(cluster, "admin", token)


def for_user(path: str, *, user: str, token: str) -> str:
    """A kubeconfig for somebody else in the cluster that a kubeconfig (or several, joined by ``:``) points to.

    Raises informers.errors.ConfigError when it does not say which cluster that is.
    """
    yaml = YAML(typ="safe")
    files = [Path(part).expanduser() for part in path.split(os.pathsep) if part]
    configs = [(file, yaml.load(file) or {}) for file in files if file.is_file()]
    current = next((config["current-context"] for _, config in configs if config.get("current-context")), "")
    _, context = _named(configs, "contexts", current, "context")
    file, cluster = _named(configs, "clusters", context.get("cluster", ""), "cluster")
    authority = cluster.pop("certificate-authority", None)
    if authority is not None:  # a path beside that file; the new file may lie elsewhere
        cluster["certificate-authority-data"] = base64.b64encode((file.parent / authority).read_bytes()).decode()
    return _render(cluster, user, token)


def _named(
    configs: Sequence[tuple[Path, dict[str, Any]]], section: str, name: str, member: str
) -> tuple[Path, dict[str, Any]]:
    """The first entry of that name, as kubectl merges files, and the file that it stands in."""
    for file, config in configs:
        for entry in config.get(section) or ():
            if entry["name"] == name:
                return file, dict(entry[member])
    raise ConfigError(f"no {member} {name!r} in {', '.join(str(file) for file, _ in configs) or 'any kubeconfig'}")


def _render(cluster: Mapping[str, Any], user: str, token: str) -> str:
    context = {"cluster": "control-plane", "user": user, "namespace": "default"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "control-plane",
        "clusters": [{"name": "control-plane", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "control-plane", "context": context}],
    }
    return json.dumps(config, indent=2)
