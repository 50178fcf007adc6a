"""Users that may do exactly what is written down: service accounts with a token, a role and a binding.

A service account needs no restart of the server, unlike a line in its token file, and works on any cluster.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from informers.client import Client
from informers.errors import NotFoundError
from informers.key import ObjectKey
from pysedna.testing.credentials import for_user, write_private
from pysedna.testing.installing import wait_until

_TOKEN_SECONDS = 86_400
_RBAC = "rbac.authorization.k8s.io"

Rule = Mapping[str, Any]
"""A PolicyRule: verbs, apiGroups, resources, resourceNames, nonResourceURLs."""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with a kubeconfig and a client of their own, both good until the control plane stops."""

    name: str
    """As the API server and RBAC know it: ``system:serviceaccount:NAMESPACE:NAME``."""
    kubeconfig: str
    client: Client = field(repr=False)


def create_user(
    admin: Client,
    kubeconfig: str,
    folder: Path,
    name: str,
    *,
    rules: Sequence[Rule],
    namespace: str | None,
    timeout: float,
) -> User:
    """Create the account and its rules and wait until they are in force. Raises AlreadyExistsError, StartError."""
    home = namespace or "default"
    account = {"name": name, "namespace": home}
    admin.resource("v1", "ServiceAccount").create({"metadata": account})
    for kind, body in _grants(name, home, rules, namespaced=namespace is not None).items():
        admin.resource(f"{_RBAC}/v1", kind).create(body)
    full_name = f"system:serviceaccount:{home}:{name}"
    file = folder / f"{home}-{name}.kubeconfig"
    write_private(file, for_user(kubeconfig, user=full_name, token=_token(admin, home, name)))
    client = Client.from_kubeconfig(file)
    deadline = time.monotonic() + timeout
    for rule in rules:
        wait_until(partial(_may, client, _attributes(rule, namespace)), f"the rules of user {name}", deadline)
    return User(full_name, str(file), client)


def delete_user(admin: Client, user: User) -> None:
    """Remove what `create_user` made. What is gone already is fine."""
    home, name = user.name.split(":")[-2:]
    cluster_wide = _cluster_wide_name(name, home)
    for kind in ("RoleBinding", "Role"):
        with suppress(NotFoundError):
            admin.resource(f"{_RBAC}/v1", kind).delete(ObjectKey(home, name))
        with suppress(NotFoundError):
            admin.resource(f"{_RBAC}/v1", f"Cluster{kind}").delete(ObjectKey("", cluster_wide))
    with suppress(NotFoundError):
        admin.resource("v1", "ServiceAccount").delete(ObjectKey(home, name))


def _cluster_wide_name(name: str, home: str) -> str:
    return f"pysedna-testing:{home}:{name}"


def _grants(name: str, home: str, rules: Sequence[Rule], *, namespaced: bool) -> dict[str, dict[str, Any]]:
    prefix = "" if namespaced else "Cluster"
    metadata = {"name": name, "namespace": home} if namespaced else {"name": _cluster_wide_name(name, home)}
    role = {"apiGroup": _RBAC, "kind": f"{prefix}Role", "name": metadata["name"]}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": home}
    return {
        f"{prefix}Role": {"metadata": metadata, "rules": [dict(rule) for rule in rules]},
        f"{prefix}RoleBinding": {"metadata": metadata, "roleRef": role, "subjects": [subject]},
    }


def _token(admin: Client, home: str, name: str) -> str:
    path = f"/api/v1/namespaces/{home}/serviceaccounts/{name}/token"
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    headers = {"Content-Type": "application/json"}
    answer = json.loads(admin.raw("POST", path, body=json.dumps(request).encode(), headers=headers))
    token: str = answer["status"]["token"]
    return token


def _attributes(rule: Rule, namespace: str | None) -> dict[str, Any]:
    """One request that the rule allows."""
    verb = rule["verbs"][0]
    if "nonResourceURLs" in rule:
        return {"nonResourceAttributes": {"verb": verb, "path": rule["nonResourceURLs"][0]}}
    resource, _, subresource = rule["resources"][0].partition("/")
    asked = {"verb": verb, "group": rule["apiGroups"][0], "resource": resource, "subresource": subresource}
    names = rule.get("resourceNames") or [""]
    return {"resourceAttributes": {**asked, "name": names[0], "namespace": namespace or ""}}


def _may(client: Client, attributes: Mapping[str, Any]) -> bool:
    """What the API server itself says of this user: its caches of roles and accounts follow writes a little later."""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": attributes}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    headers = {"Content-Type": "application/json"}
    answer = json.loads(client.raw("POST", path, body=json.dumps(review).encode(), headers=headers))
    return bool(answer["status"]["allowed"])
