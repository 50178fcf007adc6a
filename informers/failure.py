"""What an error of a list or a watch means for the reflector (pure).

Servers of different ages spell the same thing differently: a version that is too old is 410 with reason Expired or
Gone, a version from the future is a cause, a reason or only a phrase in the message. `classify` is the one place
that knows the spellings.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from informers.errors import ApiError, ConnectionRefused, DnsError, ScopeError, TlsError, TransportError
from informers.foreign import described


class FailureKind(Enum):
    """Kinds of failure that are answered differently."""

    EXPIRED = "expired"  # the version (or continue token) is too old, or of no use
    TOO_LARGE = "too large"  # the version is newer than what this server has seen
    THROTTLED = "throttled"  # 429
    UNAVAILABLE = "unavailable"  # 503 and other answers of a server that is not ready
    UNSUPPORTED = "unsupported"  # the server does not take a parameter of the request
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not found"
    SCOPE = "scope"  # a kind without namespaces was asked for in one
    REFUSED = "refused"  # nobody listens at the address, or it cannot be found
    TLS = "tls"  # the handshake failed, most likely for as long as nobody replaces a certificate
    CONNECTION = "connection"  # the connection could not be made, or broke
    SHORT = "short"  # a stream ended at once
    SILENT = "silent"  # a stream showed no sign of life
    STALE = "stale"  # an answer was older than one seen before
    OTHER = "other"

    @property
    def is_permanent(self) -> bool:
        """Whether a person has to act before the request can succeed."""
        return self in (
            FailureKind.UNAUTHORIZED,
            FailureKind.FORBIDDEN,
            FailureKind.NOT_FOUND,
            FailureKind.SCOPE,
        )

    @property
    def is_passing(self) -> bool:
        """Whether the same request, asked again later, can be expected to succeed."""
        return self in (
            FailureKind.THROTTLED,
            FailureKind.UNAVAILABLE,
            FailureKind.REFUSED,
            FailureKind.TLS,
            FailureKind.CONNECTION,
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as the protocol sees it. It holds no exception: through its frames that would keep an answer alive."""

    kind: FailureKind
    message: str
    retry_after: float | None = None

    @property
    def log_level(self) -> int:
        """How loud to be: what happens to every watch now and then is no warning."""
        quiet = (FailureKind.EXPIRED, FailureKind.SHORT, FailureKind.SILENT, FailureKind.CONNECTION)
        return logging.INFO if self.kind in quiet else logging.WARNING


_TOO_LARGE_CAUSE = "ResourceVersionTooLarge"
_TOO_LARGE_PHRASE = "Too large resource version"


def classify(error: BaseException) -> Failure:
    """Say what `error` means. Unknown exceptions are OTHER."""
    if isinstance(error, ScopeError):
        return Failure(FailureKind.SCOPE, str(error))
    if not isinstance(error, ApiError | TransportError):
        return Failure(FailureKind.OTHER, described(error))
    message = str(error) or type(error).__name__
    if isinstance(error, ApiError):
        return Failure(_api_kind(error), message, error.retry_after)
    if isinstance(error, ConnectionRefused | DnsError):
        return Failure(FailureKind.REFUSED, message)
    if isinstance(error, TlsError):
        return Failure(FailureKind.TLS, message)
    return Failure(FailureKind.CONNECTION, message)


_BY_REASON = {
    "Expired": FailureKind.EXPIRED,
    "Gone": FailureKind.EXPIRED,
    "TooManyRequests": FailureKind.THROTTLED,
    "ServiceUnavailable": FailureKind.UNAVAILABLE,
    "Unauthorized": FailureKind.UNAUTHORIZED,
    "Forbidden": FailureKind.FORBIDDEN,
    "NotFound": FailureKind.NOT_FOUND,
    "BadRequest": FailureKind.UNSUPPORTED,
    "Invalid": FailureKind.UNSUPPORTED,
    "MethodNotAllowed": FailureKind.UNSUPPORTED,
    "NotAcceptable": FailureKind.UNSUPPORTED,
}
_BY_STATUS = {
    400: FailureKind.UNSUPPORTED,
    401: FailureKind.UNAUTHORIZED,
    403: FailureKind.FORBIDDEN,
    404: FailureKind.NOT_FOUND,
    405: FailureKind.UNSUPPORTED,
    406: FailureKind.UNSUPPORTED,
    410: FailureKind.EXPIRED,
    422: FailureKind.UNSUPPORTED,
    429: FailureKind.THROTTLED,
    502: FailureKind.UNAVAILABLE,
    503: FailureKind.UNAVAILABLE,
}


def _api_kind(error: ApiError) -> FailureKind:
    if _is_too_large(error):
        return FailureKind.TOO_LARGE
    return _BY_REASON.get(error.reason) or _BY_STATUS.get(error.status, FailureKind.OTHER)


def _is_too_large(error: ApiError) -> bool:
    if error.status not in (504, 500, 400) and error.reason != "Timeout":
        return False
    if _TOO_LARGE_PHRASE in error.message:
        return True
    return any(
        _TOO_LARGE_CAUSE in (cause.get("reason"), cause.get("type"))
        or _TOO_LARGE_PHRASE in str(cause.get("message", ""))
        for cause in _causes(error.details)
    )


def _causes(details: object) -> Iterable[Mapping[str, object]]:
    causes = details.get("causes") if isinstance(details, Mapping) else None
    return [cause for cause in causes or () if isinstance(cause, Mapping)]
