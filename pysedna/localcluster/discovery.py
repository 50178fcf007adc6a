"""Discovery: which groups, versions and resources there are, and a small OpenAPI.

The OpenAPI documents say which requests take `fieldValidation` and nothing of schemas: enough for kubectl to leave
validation to the server; `kubectl explain` needs a real API server.
"""

from collections.abc import Iterable

from informers.store import Json
from pysedna.localcluster.kinds import Kind, Kinds

VERSION: Json = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.0-pysedna",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "cpython",
    "platform": "linux/amd64",
}
_SUBRESOURCE_VERBS = {"binding": ["create"], "finalize": ["update"]}
_READ_WRITE = ["get", "patch", "update"]


def document(kinds: Kinds, path: str, address: str) -> Json | None:
    """The document at a discovery path, or None."""
    parts = path.strip("/").split("/")
    groups = kinds.groups()
    match parts:
        case ["version"]:
            return VERSION
        case ["api"]:
            clients = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": clients}
        case ["apis"]:
            listed = [_group(group, versions) for group, versions in groups.items() if group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", group] if group in groups:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, groups[group])}
        case ["api", version] if version in groups[""]:
            return _resources(kinds, "", version)
        case ["apis", group, version] if version in groups.get(group, ()):
            return _resources(kinds, group, version)
        case ["openapi", "v3"]:
            return {"paths": {_prefix(*each): {"serverRelativeURL": _url(kinds, *each)} for each in _each(groups)}}
        case ["openapi", "v3", "api", version] if version in groups[""]:
            return _openapi(kinds, "", version)
        case ["openapi", "v3", "apis", group, version] if version in groups.get(group, ()):
            return _openapi(kinds, group, version)
    return None


def openapi_v2(accept: str) -> tuple[bytes, str]:
    """(document, content type): an empty one. kubectl reads it (in protobuf only) before it calls a kind unknown."""
    if "proto-openapi.spec.v2" in accept:
        content = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        return b"\x0a\x032.0", content  # field 1, swagger: "2.0"
    return (
        b'{"swagger":"2.0","info":{"title":"pysedna embedded cluster","version":"v1"},"paths":{}}',
        "application/json",
    )


def _each(groups: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(group, version) for group, versions in groups.items() for version in versions]


def _prefix(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _url(kinds: Kinds, group: str, version: str) -> str:
    return f"/openapi/v3/{_prefix(group, version)}?hash={kinds.generation}"


def _group(name: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _of(kinds: Kinds, group: str, version: str) -> list[Kind]:
    found = [kind for kind in kinds if (kind.resource.group, kind.version) == (group, version)]
    return sorted(found, key=lambda kind: kind.resource.plural)


def _resources(kinds: Kinds, group: str, version: str) -> Json:
    listed: list[Json] = []
    for kind in _of(kinds, group, version):
        plural, namespaced = kind.resource.plural, kind.resource.namespaced
        entry: Json = {
            "name": plural,
            "singularName": kind.singular,
            "namespaced": namespaced,
            "kind": kind.resource.kind,
            "verbs": kind.verbs,
        }
        if kind.short_names:
            entry["shortNames"] = list(kind.short_names)
        if kind.categories:
            entry["categories"] = list(kind.categories)
        listed.append(entry)
        for name, response, verbs in _subresources(kind):
            listed.append(
                {"name": f"{plural}/{name}", "singularName": "", "namespaced": namespaced, **response, "verbs": verbs}
            )
    api_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}


def _subresources(kind: Kind) -> Iterable[tuple[str, Json, list[str]]]:
    """(name, the kind it speaks, verbs) of each subresource."""
    for name in kind.subresources:
        response = {"kind": kind.resource.kind}
        if name == "scale":
            response = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        elif name == "binding":
            response = {"kind": "Binding"}
        yield name, response, _SUBRESOURCE_VERBS.get(name, _READ_WRITE)


def _openapi(kinds: Kinds, group: str, version: str) -> Json:
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    paths: Json = {}
    for kind in _of(kinds, group, version):
        resource = kind.resource
        scope = "namespaces/{namespace}/" if resource.namespaced else ""
        identity = {"group": group, "version": version, "kind": resource.kind}
        operation = {"parameters": parameters, "x-kubernetes-group-version-kind": identity, "responses": {}}
        path = f"/{_prefix(group, version)}/{scope}{resource.plural}"
        paths[path] = {"post": {**operation, "x-kubernetes-action": "post"}}
        paths[path + "/{name}"] = {
            "patch": {**operation, "x-kubernetes-action": "patch"},
            "put": {**operation, "x-kubernetes-action": "put"},
        }
    info = {"title": "pysedna embedded cluster", "version": VERSION["gitVersion"]}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": {}}}
