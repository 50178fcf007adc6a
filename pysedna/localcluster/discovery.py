"""Discovery: which groups, versions and resources there are, in the old and the aggregated form, and a small OpenAPI.

The OpenAPI documents say which requests take `fieldValidation` and nothing of schemas: enough for kubectl to leave
validation to the server; `kubectl explain` needs a real API server.
"""

from collections.abc import Iterable
from typing import Any

from informers.store import Json
from pysedna.localcluster.kinds import Kind, Kinds

VERSION = {
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
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SUBRESOURCE_VERBS = {"binding": ["create"], "finalize": ["update"]}
_READ_WRITE = ["get", "patch", "update"]


def document(kinds: Kinds, path: str, accept: str, address: str) -> tuple[Json, str] | None:
    """(document, content type) at a discovery path, or None."""
    parts = path.strip("/").split("/")
    groups = kinds.groups()
    content = "application/json"
    match parts:
        case ["version"]:
            return VERSION, content
        case ["api"] | ["apis"] if "as=APIGroupDiscoveryList" in accept and ";v=v2;" in accept.replace(" ", "") + ";":
            chosen = {group: versions for group, versions in groups.items() if bool(group) == (parts == ["apis"])}
            return _aggregated(kinds, chosen), _AGGREGATED
        case ["api"]:
            clients = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": clients}, content
        case ["apis"]:
            listed = [_group(group, versions) for group, versions in groups.items() if group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}, content
        case ["apis", group] if group in groups:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, groups[group])}, content
        case ["api", version] if version in groups[""]:
            return _resources(kinds, "", version), content
        case ["apis", group, version] if version in groups.get(group, ()):
            return _resources(kinds, group, version), content
        case ["openapi", "v3"]:
            return {
                "paths": {_prefix(*each): {"serverRelativeURL": _url(kinds, *each)} for each in _each(groups)}
            }, content
        case ["openapi", "v3", "api", version] if version in groups[""]:
            return _openapi(kinds, "", version), content
        case ["openapi", "v3", "apis", group, version] if version in groups.get(group, ()):
            return _openapi(kinds, group, version), content
    return None


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
        if name == "log":
            continue  # served with a refusal, so not announced
        response = {"kind": kind.resource.kind}
        if name == "scale":
            response = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        elif name == "binding":
            response = {"kind": "Binding"}
        yield name, response, _SUBRESOURCE_VERBS.get(name, _READ_WRITE)


def _aggregated(kinds: Kinds, groups: dict[str, list[str]]) -> Json:
    items: list[Json] = []
    for group, versions in groups.items():
        listed = [
            {
                "version": version,
                "resources": [_aggregated_resource(kind) for kind in _of(kinds, group, version)],
                "freshness": "Current",
            }
            for version in versions
        ]
        items.append({"metadata": {"name": group} if group else {}, "versions": listed})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_resource(kind: Kind) -> Json:
    def response(group: str, version: str, name: str) -> Json:
        return {"group": group, "version": version, "kind": name}

    resource = kind.resource
    entry: Json = {
        "resource": resource.plural,
        "responseKind": response(resource.group, kind.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    }
    optional: dict[str, Any] = {
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
        "subresources": [
            {
                "subresource": name,
                "responseKind": response(
                    said.get("group", resource.group), said.get("version", kind.version), said["kind"]
                ),
                "verbs": verbs,
            }
            for name, said, verbs in _subresources(kind)
        ],
    }
    return entry | {name: value for name, value in optional.items() if value}


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
