"""Strategic merge patches of the built-in kinds.

A map is merged like a merge patch; a list of the table below is merged by its key instead of being replaced. The
directives `$patch` (merge, replace, delete), `$retainKeys`, `$deleteFromPrimitiveList/...` and
`$setElementOrder/...` do what they do in the API server.
"""

from typing import Any

from informers.errors import BadRequestError
from informers.store import Json

MERGE_KEYS = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "taints": "key",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Field -> the member that tells its items apart; `ports` has two, see `_merge_key`."""
_SETS = frozenset({"finalizers"})
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def merge(target: Json, patch: Json) -> Json:
    """`target` with `patch` applied; neither is changed. Raises `BadRequestError` on a bad directive."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {name: _plain(value) for name, value in patch.items() if name != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise BadRequestError(f"Unknown patch type {directive!r}: use merge, replace or delete")
    result = dict(target)
    if "$retainKeys" in patch:
        result = {name: value for name, value in result.items() if name in patch["$retainKeys"]}
    for name, value in patch.items():
        if name.startswith(_DELETE):
            field = name.removeprefix(_DELETE)
            result[field] = [item for item in result.get(field) or [] if item not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            current = result.get(name)
            result[name] = merge(current if isinstance(current, dict) else {}, value)
            if value.get("$patch") == "delete":
                del result[name]
        elif isinstance(value, list):
            result[name] = _merged_list(name, result.get(name) or [], value)
        else:
            result[name] = value
    for name, order in patch.items():
        field = name.removeprefix(_ORDER)
        if field != name and field in result:
            result[field] = _ordered(field, result[field], order, target.get(field) or [])
    return result


def _merged_list(field: str, current: list[Any], patch: list[Any]) -> list[Any]:
    if field in _SETS:
        return _ordered(field, [*current, *(item for item in patch if item not in current)], patch, current)
    key = _merge_key(field, [*current, *patch])
    if key is None or any(not isinstance(item, dict) for item in patch):
        return [_plain(item) for item in patch]
    if {"$patch": "replace"} in patch:
        return [_plain(item) for item in patch if item != {"$patch": "replace"}]
    result = list(current)
    for item in patch:
        if key not in item:
            raise BadRequestError(f"map: {item} does not contain declared merge key: {key}")
        matching = [index for index, each in enumerate(result) if each.get(key) == item[key]]
        if item.get("$patch") == "delete":
            result = [each for index, each in enumerate(result) if index not in matching]
        elif matching:
            result[matching[0]] = merge(result[matching[0]], item)
        else:
            result.append(_plain(item))
    return _ordered(field, result, patch, current)


def _merge_key(field: str, items: list[Any]) -> str | None:
    """A container's ports are told apart by containerPort, a service's by port."""
    if field == "ports":
        in_container = any(isinstance(item, dict) and "containerPort" in item for item in items)
        return "containerPort" if in_container else "port"
    return MERGE_KEYS.get(field)


def _ordered(field: str, items: list[Any], patch: list[Any], server: list[Any]) -> list[Any]:
    """The merged items as the API server orders them.

    What the patch names keeps the patch's order; another item comes in between only where the server had it before.
    """
    key = None if field in _SETS else _merge_key(field, [*items, *patch])

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted, had = [identity(item) for item in patch], [identity(item) for item in server]
    named = sorted((item for item in items if identity(item) in wanted), key=lambda item: wanted.index(identity(item)))
    others = [item for item in items if identity(item) not in wanted]
    result: list[Any] = []
    for item in named:
        name = identity(item)
        while others and name in had and had.index(identity(others[0])) < had.index(name):
            result.append(others.pop(0))
        result.append(item)
    return result + others


def _plain(value: Any) -> Any:
    """A patch's value as a value of its own: without directives and without members set to null."""
    if isinstance(value, dict):
        return merge({}, value)
    return [_plain(item) for item in value] if isinstance(value, list) else value
