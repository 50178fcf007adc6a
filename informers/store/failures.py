"""The failures of the store, worded as the API server words them, with its reasons, details and causes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from informers.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    InvalidError,
    NotFoundError,
    ServerTimeoutError,
)
from informers.store.types import ResourceType


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One fault of one field; `reason` is the cause's type (FieldValueInvalid, FieldValueRequired, ...)."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    @classmethod
    def invalid(cls, field: str, value: object, text: str) -> "FieldProblem":
        return cls(field, f"Invalid value: {quoted(value)}: {text}")

    @classmethod
    def required(cls, field: str, text: str = "") -> "FieldProblem":
        return cls(field, f"Required value: {text}" if text else "Required value", "FieldValueRequired")

    @classmethod
    def forbidden(cls, field: str, text: str) -> "FieldProblem":
        return cls(field, f"Forbidden: {text}", "FieldValueForbidden")

    @classmethod
    def unsupported(cls, field: str, value: object, supported: Iterable[object]) -> "FieldProblem":
        choices = ", ".join(quoted(each) for each in supported)
        message = f"Unsupported value: {quoted(value)}: supported values: {choices}"
        return cls(field, message, "FieldValueNotSupported")


def quoted(value: object) -> str:
    """A value as Go's field errors show it."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _details(resource: ResourceType, name: str, kind: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    return details | {"kind": kind}


def not_found(resource: ResourceType, name: str) -> NotFoundError:
    message = f'{resource.qualified} "{name}" not found'
    return NotFoundError(message, details=_details(resource, name, resource.plural))


def already_exists(resource: ResourceType, name: str, *, deleting: bool = False) -> AlreadyExistsError:
    message = f'{"object is being deleted: " if deleting else ""}{resource.qualified} "{name}" already exists'
    return AlreadyExistsError(message, details=_details(resource, name, resource.plural))


def conflict(resource: ResourceType, name: str, text: str, *, word: str = "") -> ConflictError:
    """`word` stands for the plural where the API server names something else (the kind, `pods/binding`)."""
    word = word or resource.plural
    qualified = f"{word}.{resource.group}" if resource.group else word
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {text}'
    return ConflictError(message, details=_details(resource, name, word))


def modified(resource: ResourceType, name: str) -> ConflictError:
    text = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, text)


def invalid(group: str, kind: str, name: str, problems: Sequence[FieldProblem]) -> InvalidError:
    """422 for an object of `kind`; the message joins the problems as the API server does."""
    texts = [f"{problem.field}: {problem.message}" for problem in problems]
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    qualified = f"{kind}.{group}" if group else kind
    causes = [{"reason": problem.reason, "message": problem.message, "field": problem.field} for problem in problems]
    details: dict[str, Any] = {"name": name} if name else {}
    details |= {"group": group} if group else {}
    return InvalidError(
        f'{qualified} "{name}" is invalid: {joined}', details=details | {"kind": kind, "causes": causes}
    )


def invalid_options(field: str, text: str) -> InvalidError:
    """422 for list options that contradict each other."""
    return invalid("meta.k8s.io", "ListOptions", "", [FieldProblem.forbidden(field, text)])


def too_old(version: int, compacted: int) -> ExpiredError:
    return ExpiredError(f"too old resource version: {version} ({compacted})")


def list_too_old() -> ExpiredError:
    return ExpiredError("The resourceVersion for the provided list is too old.")


def continue_too_old(token: str) -> ExpiredError:
    error = ExpiredError(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    error.continue_token = token
    return error


def too_large(version: int, current: int) -> ServerTimeoutError:
    """504 for a version that the store has not reached."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ServerTimeoutError(
        f"Timeout: Too large resource version: {version}, current: {current}",
        status=504,
        reason="Timeout",
        details={"causes": [cause], "retryAfterSeconds": 1},
        retry_after=1,
    )


def parse_version(text: str | None) -> int | None:
    """A resourceVersion parameter as a number; None when unset."""
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        problem = f"{quoted(text)}: strconv.ParseUint: parsing {quoted(text)}: invalid syntax"
        raise BadRequestError(f"invalid resource version: resourceVersion: Invalid value: {problem}")
    return int(text)


def no_such_resource() -> NotFoundError:
    """404 for a path that nothing is served at."""
    return NotFoundError("the server could not find the requested resource", details={})
