"""Translation of what sockets, TLS, http.client and urllib3 raise into the errors of this package.

The messages name the address and the reason in words; the original exception stays as the cause.
"""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
from collections.abc import Iterator

from urllib3 import exceptions as u3

from informers.connection import Exchange
from informers.errors import (
    ConnectionRefused,
    ConnectionReset,
    DnsError,
    MalformedResponseError,
    RequestError,
    RequestTimeout,
    TlsError,
    TransportError,
)
from informers.key import ObjectKey

__all__ = ["translate", "unexpected_answer"]

_CUT = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""How TLS tells of a peer that went away; that it went during the handshake says nothing about certificates."""


def translate(
    raised: BaseException,
    exchange: Exchange,
    address: str,
    verb: str,
    resource: str,
    key: ObjectKey | None,
    *,
    is_write: bool,
) -> RequestError:
    """Give the error that stands for `raised`, which ended `exchange`."""
    maybe_applied = is_write and exchange.sent
    chain = list(_chain(raised))
    if not isinstance(raised, TransportError) and _is_garbage(chain):
        return MalformedResponseError(
            f"{address}: what answers is no HTTP server: {_text(chain[-1])}",
            verb=verb,
            resource=resource,
            key=key,
            maybe_applied=maybe_applied,
        )
    child, text = _classify(chain, exchange)
    proxy = "the proxy before it: " if any(isinstance(one, u3.ProxyError) for one in chain) else ""
    return child(
        f"{address}: {proxy}{text}",
        address=address,
        verb=verb,
        resource=resource,
        key=key,
        maybe_applied=maybe_applied,
    )


def unexpected_answer(status: int, location: str, address: str) -> MalformedResponseError:
    """Give the error for an answer that is neither a success nor a failure."""
    what = f"redirects to {location}, which is not followed" if location else "is no answer of an API server"
    return MalformedResponseError(f"{address}: status {status} {what}")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and those inside it: causes, contexts, and what urllib3 puts into arguments."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop(0)
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [arg for arg in one.args if isinstance(arg, BaseException)]
        waiting += [getattr(one, "original_error", None), one.__cause__, one.__context__]


def _is_garbage(chain: list[BaseException]) -> bool:
    """Whether the answer was not HTTP. A connection closed before it is a bad status line too, to http.client."""
    kinds = (http.client.BadStatusLine, http.client.LineTooLong, http.client.UnknownProtocol, u3.HeaderParsingError)
    return any(isinstance(one, kinds) and not isinstance(one, http.client.RemoteDisconnected) for one in chain)


def _classify(chain: list[BaseException], exchange: Exchange) -> tuple[type[TransportError], str]:
    for one in chain:
        if isinstance(one, u3.NameResolutionError | socket.gaierror):
            return DnsError, f"its name cannot be resolved: {_text(_last(chain, socket.gaierror))}"
        if isinstance(one, ConnectionRefusedError):
            return ConnectionRefused, "connection refused: nothing listens there"
    if any(_is_timeout(one) for one in chain):
        return RequestTimeout, f"no answer within the time given, {_stage(exchange)}"
    if not exchange.connected:
        refused = [one for one in chain if isinstance(one, ssl.SSLError) and not isinstance(one, _CUT)]
        if refused:
            return TlsError, f"the TLS handshake failed: {_text(refused[-1])}"
        cut = [one for one in chain if isinstance(one, (ConnectionError, *_CUT))]
        if cut:
            return ConnectionReset, f"the connection broke {_stage(exchange)}: {_text(cut[-1])}"
        if any(isinstance(one, u3.SSLError) for one in chain):
            return TlsError, f"the TLS handshake failed: {_text(_last(chain, u3.SSLError))}"
        if any(isinstance(one, OSError) for one in chain):
            return TransportError, f"no connection: {_text(_last(chain, OSError))}"
    resets = (OSError, u3.ProtocolError, http.client.HTTPException, u3.IncompleteRead, ssl.SSLError)
    if any(isinstance(one, resets) for one in chain):
        return ConnectionReset, f"the connection broke {_stage(exchange)}: {_text(chain[-1])}"
    return TransportError, f"{type(chain[0]).__name__}: {chain[0]}"


def _is_timeout(error: BaseException) -> bool:
    # to urllib3 every connection that cannot be made is one of its time-outs, an unreachable host too
    return isinstance(error, TimeoutError | u3.TimeoutError) and not isinstance(error, u3.NewConnectionError)


def _stage(exchange: Exchange) -> str:
    if not exchange.sent:
        return "while connecting"
    return "before the answer was whole" if exchange.answered else "before the answer began"


def _last(chain: list[BaseException], kind: type[BaseException]) -> BaseException:
    return next((one for one in reversed(chain) if isinstance(one, kind)), chain[-1])


def _text(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        name = (
            errno.errorcode.get(error.errno or 0, "") if not isinstance(error, ssl.SSLError | socket.gaierror) else ""
        )
        return f"{error.strerror} ({name})" if name else error.strerror
    return str(error) or type(error).__name__
