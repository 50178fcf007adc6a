"""Errors of the informers package.

InformersError
├── ApiError                         the API server answered with a failure (a `Status`)
│   ├── BadRequestError              400
│   ├── UnauthorizedError            401
│   ├── ForbiddenError               403
│   ├── NotFoundError                404
│   │   └── KindNotFoundError        the server does not serve this kind (may change: a CRD may be installed later)
│   ├── MethodNotAllowedError        405
│   ├── NotAcceptableError           406
│   ├── ConflictError                409, another version is stored: read again, then retry
│   ├── AlreadyExistsError           409, the name is taken
│   ├── GoneError                    410
│   │   └── ExpiredError             410, that resourceVersion or continue token is too old
│   ├── UnsupportedMediaTypeError    415
│   ├── InvalidError                 422
│   ├── TooManyRequestsError         429
│   ├── InternalError                500
│   ├── ServiceUnavailableError      503
│   └── ServerTimeoutError           500 or 504 (reasons ServerTimeout and Timeout)
├── TransportError                   no whole answer came
│   ├── ConnectionRefused
│   ├── DnsError
│   ├── TlsError
│   ├── ConnectionReset
│   └── RequestTimeout               (also TimeoutError)
├── MalformedResponseError           an answer came that is not what the API promises
├── MalformedObjectError             (also ValueError) bytes or a mapping that are no Kubernetes object
├── ConfigError                      the kubeconfig or the in-cluster configuration cannot be used
├── SelectorError                    (also ValueError) a selector that does not parse
├── ScopeError                       (also ValueError) a cluster scoped kind was asked for by namespace
├── ClientClosed                     the client was closed
├── SyncError                        a cache did not fill; says why
│   └── SyncTimeout                  in the time given (also Timeout)
├── InformerStopped                  the informer was stopped before or during the call
├── UnknownIndex                     (also KeyError) there is no index of that name
├── FIFOClosed                       the queue is closed and empty
└── Timeout                          (also TimeoutError) a wait of this package ran out of time

`retriable` says whether the same call may succeed later without anything else being changed. `maybe_applied` says
whether a write may have taken effect although it failed; it is False for reads and for answers that exclude it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from informers.key import ObjectKey

__all__ = [
    "AlreadyExistsError",
    "ApiError",
    "BadRequestError",
    "ClientClosed",
    "ConfigError",
    "ConflictError",
    "ConnectionRefused",
    "ConnectionReset",
    "DnsError",
    "ExpiredError",
    "FIFOClosed",
    "ForbiddenError",
    "GoneError",
    "InformerStopped",
    "InformersError",
    "InternalError",
    "InvalidError",
    "KindNotFoundError",
    "MalformedObjectError",
    "MalformedResponseError",
    "MethodNotAllowedError",
    "NotAcceptableError",
    "NotFoundError",
    "RequestTimeout",
    "ScopeError",
    "SelectorError",
    "ServerTimeoutError",
    "ServiceUnavailableError",
    "SyncError",
    "SyncTimeout",
    "Timeout",
    "TlsError",
    "TooManyRequestsError",
    "TransportError",
    "UnauthorizedError",
    "UnknownIndex",
    "UnsupportedMediaTypeError",
]


class InformersError(Exception):
    """Base of everything that this package raises on its own account."""


class RequestError(InformersError):
    """What all failures of a request carry. Not raised itself."""

    def __init__(
        self,
        message: str,
        *,
        verb: str = "",
        resource: str = "",
        key: ObjectKey | None = None,
        maybe_applied: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.verb = verb
        self.resource = resource
        self.key = key
        self.maybe_applied = maybe_applied

    @property
    def retriable(self) -> bool:
        """Whether the same call may succeed later without anything else being changed."""
        return False

    def _where(self) -> str:
        words = [self.verb, self.resource, str(self.key) if self.key is not None else ""]
        return " ".join(word for word in words if word)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (type(self), self.args, self.__dict__.copy()))


def _restore(cls: type[RequestError], args: tuple[Any, ...], state: dict[str, Any]) -> RequestError:
    """Rebuild a pickled error without running its constructor (constructors differ, their state does not)."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ApiError(RequestError):
    """The API server answered and said no. Also raised for the ERROR events of a watch.

    `status` is the HTTP code, `reason` the machine-readable word of the `Status` body, `details` its details as plain
    data, `retry_after` the server's wish in seconds (from the body, else from the Retry-After header), or None.
    `continue_token` is a fresh token that came with the refusal of an old one (for the rest of an inconsistent list).
    """

    default_status: ClassVar[int] = 500
    default_reason: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        reason: str | None = None,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        verb: str = "",
        resource: str = "",
        key: ObjectKey | None = None,
        maybe_applied: bool = False,
    ) -> None:
        super().__init__(message, verb=verb, resource=resource, key=key, maybe_applied=maybe_applied)
        self.status = self.default_status if status is None else status
        self.reason = self.default_reason if reason is None else reason
        self.details: dict[str, Any] = dict(details or {})
        if retry_after is None:
            retry_after = _seconds(self.details.get("retryAfterSeconds"))
        self.retry_after = retry_after
        self.continue_token: str | None = None

    @property
    def retriable(self) -> bool:
        return self.status == 429 or self.status >= 500

    def __str__(self) -> str:
        said = f"{self.status} {self.reason}".rstrip()
        where = self._where()
        return f"{self.message} [{said}; {where}]" if where else f"{self.message} [{said}]"

    @classmethod
    def from_status(
        cls,
        status: Mapping[str, Any],
        *,
        http_status: int,
        verb: str = "",
        resource: str = "",
        key: ObjectKey | None = None,
        retry_after: float | None = None,
        maybe_applied: bool = False,
    ) -> ApiError:
        """Build the fitting child class from a `Status` body: by its reason, else by the code.

        Members that are missing or of the wrong type are ignored, so that any body will do.
        """
        code = status.get("code")
        code = code if isinstance(code, int) and code >= 400 else http_status
        reason = status.get("reason")
        reason = reason if isinstance(reason, str) else ""
        details = status.get("details")
        message = status.get("message")
        child = _BY_REASON.get(reason) or _BY_STATUS.get(code) or ApiError
        error = child(
            message if isinstance(message, str) and message else reason or f"the server answered {code}",
            status=code,
            reason=reason or child.default_reason,
            details=details if isinstance(details, Mapping) else None,
            retry_after=retry_after,
            verb=verb,
            resource=resource,
            key=key,
            maybe_applied=maybe_applied,
        )
        metadata = status.get("metadata")
        token = metadata.get("continue") if isinstance(metadata, Mapping) else None
        error.continue_token = token if isinstance(token, str) and token else None
        return error

    def to_status(self) -> dict[str, Any]:
        """Give the `Status` body that a server sends for this error. Fresh plain data."""
        details = dict(self.details)
        if self.retry_after is not None and "retryAfterSeconds" not in details:
            details["retryAfterSeconds"] = max(0, round(self.retry_after))
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": details,
            "code": self.status,
        }
        if not details:
            del body["details"]
        if not self.reason:
            del body["reason"]
        return body

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The causes of the details: mappings with `reason`, `message` and `field`."""
        causes = self.details.get("causes")
        return [dict(cause) for cause in causes if isinstance(cause, Mapping)] if isinstance(causes, list) else []

    def has_cause(self, reason: str) -> bool:
        """Whether the details name this cause, for example ``ResourceVersionTooLarge``."""
        return any(cause.get("reason") == reason for cause in self.causes)


class BadRequestError(ApiError):
    default_status, default_reason = 400, "BadRequest"


class UnauthorizedError(ApiError):
    default_status, default_reason = 401, "Unauthorized"


class ForbiddenError(ApiError):
    default_status, default_reason = 403, "Forbidden"


class NotFoundError(ApiError):
    default_status, default_reason = 404, "NotFound"


class KindNotFoundError(NotFoundError):
    """The server does not serve this kind, as far as its discovery says right now."""


class MethodNotAllowedError(ApiError):
    default_status, default_reason = 405, "MethodNotAllowed"


class NotAcceptableError(ApiError):
    default_status, default_reason = 406, "NotAcceptable"


class ConflictError(ApiError):
    """Another version is stored than the one the write was based on, or a precondition does not hold."""

    default_status, default_reason = 409, "Conflict"


class AlreadyExistsError(ApiError):
    default_status, default_reason = 409, "AlreadyExists"


class GoneError(ApiError):
    default_status, default_reason = 410, "Gone"


class ExpiredError(GoneError):
    """The resourceVersion or continue token is too old."""

    default_status, default_reason = 410, "Expired"


class UnsupportedMediaTypeError(ApiError):
    default_status, default_reason = 415, "UnsupportedMediaType"


class InvalidError(ApiError):
    default_status, default_reason = 422, "Invalid"


class TooManyRequestsError(ApiError):
    default_status, default_reason = 429, "TooManyRequests"


class InternalError(ApiError):
    default_status, default_reason = 500, "InternalError"


class ServiceUnavailableError(ApiError):
    default_status, default_reason = 503, "ServiceUnavailable"


class ServerTimeoutError(ApiError):
    """The server gave up on time: reason ServerTimeout (code 500) or Timeout (code 504)."""

    default_status, default_reason = 504, "Timeout"


_BY_REASON: Mapping[str, type[ApiError]] = {
    "BadRequest": BadRequestError,
    "Unauthorized": UnauthorizedError,
    "Forbidden": ForbiddenError,
    "NotFound": NotFoundError,
    "MethodNotAllowed": MethodNotAllowedError,
    "NotAcceptable": NotAcceptableError,
    "Conflict": ConflictError,
    "AlreadyExists": AlreadyExistsError,
    "Gone": GoneError,
    "Expired": ExpiredError,
    "UnsupportedMediaType": UnsupportedMediaTypeError,
    "Invalid": InvalidError,
    "TooManyRequests": TooManyRequestsError,
    "InternalError": InternalError,
    "ServiceUnavailable": ServiceUnavailableError,
    "ServerTimeout": ServerTimeoutError,
    "Timeout": ServerTimeoutError,
}

_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    406: NotAcceptableError,
    409: ConflictError,
    410: GoneError,
    415: UnsupportedMediaTypeError,
    422: InvalidError,
    429: TooManyRequestsError,
    500: InternalError,
    502: ServiceUnavailableError,
    503: ServiceUnavailableError,
    504: ServerTimeoutError,
}


def _seconds(value: object) -> float | None:
    """Read retryAfterSeconds; zero means that the server named no wait."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return None
    return float(value)


class TransportError(RequestError):
    """No whole answer came from the server. The message names the address and the reason.

    `address` is the server's (scheme, host, port); `maybe_applied` is True once a byte of a write was sent.
    """

    def __init__(
        self,
        message: str,
        *,
        address: str = "",
        verb: str = "",
        resource: str = "",
        key: ObjectKey | None = None,
        maybe_applied: bool = False,
    ) -> None:
        super().__init__(message, verb=verb, resource=resource, key=key, maybe_applied=maybe_applied)
        self.address = address

    @property
    def retriable(self) -> bool:
        return True

    def __str__(self) -> str:
        where = self._where()
        return f"{self.message} [{where}]" if where else self.message


class ConnectionRefused(TransportError):
    """Nothing listens at the address."""


class DnsError(TransportError):
    """The server's name cannot be resolved."""


class TlsError(TransportError):
    """The TLS handshake failed; most often the certificate is not the expected one."""

    @property
    def retriable(self) -> bool:
        return False


class ConnectionReset(TransportError):
    """The connection broke before the answer was whole."""


class RequestTimeout(TransportError, TimeoutError):
    """The request's total deadline passed."""


class MalformedResponseError(RequestError):
    """The server's answer is not what the API promises: no JSON, no list, a redirect, an answer cut short."""


class MalformedObjectError(InformersError, ValueError):
    """Bytes or a mapping that cannot be taken for a Kubernetes object."""


class ConfigError(InformersError):
    """The configuration (kubeconfig, in-cluster files, exec plugin) cannot be used; the message names the file."""


class SelectorError(InformersError, ValueError):
    """A label or field selector that does not parse; the message shows the part and what was expected."""


class ScopeError(InformersError, ValueError):
    """A kind without namespaces was asked for in one; the message names both."""


class ClientClosed(InformersError):
    """The client was closed before or during the call."""


class SyncError(InformersError):
    """A cache did not fill. The message names it and gives the reason; `reason` is that part alone, "" if unknown."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class FIFOClosed(InformersError):
    """The queue is closed and nothing is left in it."""


class Timeout(InformersError, TimeoutError):
    """A wait of this package ran out of time."""


class SyncTimeout(SyncError, Timeout):
    """A cache did not fill in the time given."""


class InformerStopped(InformersError):
    """The informer was stopped: it cannot be started again, and nothing can be waited for any more."""


class UnknownIndex(InformersError, KeyError):
    """There is no index of that name."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""
