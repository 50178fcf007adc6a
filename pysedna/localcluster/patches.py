"""The patch types: JSON patch (jsonpatch does it), JSON merge patch, strategic merge patch."""

from typing import Any

import jsonpatch
import jsonpointer

from informers.errors import BadRequestError, InvalidError, UnsupportedMediaTypeError
from informers.store import Json
from pysedna.localcluster import strategic

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")
_MAX_OPERATIONS = 10_000


def check(media_type: str, *, custom: bool) -> None:
    """Raises 415 for unknown types, server-side apply, and strategic patches of custom resources."""
    if media_type in APPLY:
        raise UnsupportedMediaTypeError(
            "server-side apply is not done by the embedded cluster: use a real API server, or client-side apply"
        )
    accepted = [JSON, MERGE] if custom else [JSON, MERGE, STRATEGIC]
    if media_type not in accepted:
        raise UnsupportedMediaTypeError(
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
        )


def apply(media_type: str, patch: Any, target: Json) -> Json:
    """The patched object; `target` is left alone. Raises 400 for a patch of the wrong shape, 422 if it does not fit."""
    if media_type == JSON:
        return _json_patched(patch, target)
    if not isinstance(patch, dict):
        raise BadRequestError(f"error decoding patch: json: cannot unmarshal {type(patch).__name__} into an object")
    result: Json = strategic.merge(target, patch) if media_type == STRATEGIC else merged(target, patch)
    return result


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def _json_patched(patch: Any, target: Json) -> Json:
    if not isinstance(patch, list) or any(not isinstance(operation, dict) for operation in patch):
        raise BadRequestError("error decoding patch: json: cannot unmarshal, a list of operations is needed")
    if len(patch) > _MAX_OPERATIONS:
        raise BadRequestError(f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(patch)}")
    try:
        result = jsonpatch.apply_patch(target, patch)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, KeyError, TypeError) as error:
        text = f"the server rejected our request due to an error in our request: {error}"
        raise InvalidError(text) from error
    if not isinstance(result, dict):
        raise BadRequestError("error decoding patch: the result is not an object")
    return result
