"""HTTP: one request with one total deadline, and nothing hidden.

urllib3's own retries and redirects are off. Repeated are only what the server asks to be repeated (429, and 503 with
Retry-After; both say that nothing was done), within the deadline, and once a request refused with 401, after the
credentials were loaded again. Each attempt is reported to `on_request`. Whatever goes wrong below HTTP becomes a
`TransportError` that names the address and says whether a write may have been applied (`transport_failures.py`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
import urllib3

from informers.cancellation import Cancellation
from informers.config import Endpoint, Source
from informers.connection import Exchange
from informers.credentials import Credentials
from informers.errors import (
    ApiError,
    ClientClosed,
    ConfigError,
    ConnectionReset,
    InformersError,
    RequestError,
    RequestTimeout,
)
from informers.key import ObjectKey
from informers.ratelimit import TokenBucket
from informers.transport_failures import translate, unexpected_answer
from workqueue.clock import Clock, MonotonicClock

__all__ = ["Call", "HttpStream", "RequestTrace", "Transport"]

_log = logging.getLogger(__name__)
_MAX_ATTEMPTS = 10
_MIN_RETRY_WAIT = 0.1
_LONGEST_RETRY_WAIT = 86_400.0  # a day: no wait is infinite, whatever a header says
_CANCELLATION_POLL = 0.25


@dataclass(frozen=True, slots=True)
class Call:
    """A request in terms of HTTP; verb, resource and key are for messages."""

    method: str
    path: str
    verb: str
    resource: str = ""
    key: ObjectKey | None = None
    query: Mapping[str, str] | None = None
    body: bytes | None = None
    headers: Mapping[str, str] | None = None

    @property
    def is_write(self) -> bool:
        """Whether the request can change something."""
        return self.method not in ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """One attempt of a request, for `on_request`. Never holds headers, bodies or credentials.

    `seconds` runs from before connecting until the answer was read (for a watch: until its first line may come).
    `status` is None where no answer came; `error` says why. `attempt` counts from 1 within one call.
    """

    method: str
    url: str
    verb: str
    resource: str
    key: ObjectKey | None
    attempt: int
    seconds: float
    status: int | None
    error: str = ""
    sent_bytes: int = 0
    received_bytes: int = 0


@dataclass(slots=True)
class HttpStream:
    """An answer whose body is read by the caller, from `exchange.reader`. `transport.forget` must follow."""

    exchange: Exchange
    response: Any
    headers: Mapping[str, str]


class Transport:
    """Sends requests for one client. Thread-safe. The constructor loads the configuration: raises ConfigError."""

    def __init__(
        self,
        source: Source,
        *,
        qps: float | None = None,
        burst: int | None = None,
        headers: Mapping[str, str] | None = None,
        groups: Sequence[str] = (),
        on_request: Callable[[RequestTrace], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._credentials = Credentials(source)
        self._bucket = None if qps is None else TokenBucket(qps, burst if burst is not None else max(1, int(qps * 2)))
        self._headers = dict(headers or {})
        self._groups = tuple(groups)
        self._on_request = on_request
        self._clock = clock or MonotonicClock()
        self._condition = threading.Condition()
        self._in_flight: set[Exchange] = set()
        self._closed = False
        self._here = threading.local()  # `cancellation`: the switch that this thread's requests are under

    @property
    def server(self) -> str:
        """The server's address without anything secret."""
        return _without_userinfo(self._credentials.endpoint.server)

    def call(self, call: Call, timeout: float | None) -> bytes:
        """Send a request and read the answer, all within `timeout` seconds. Raises ApiError, TransportError,
        MalformedResponseError, ClientClosed.
        """
        answer = self._perform(call, timeout, stream=False)
        assert isinstance(answer, bytes)
        return answer

    def open(self, call: Call, timeout: float | None) -> HttpStream:
        """Send a request and read the head of the answer within `timeout` seconds; from then on there is no deadline
        but the one that the caller sets.
        """
        answer = self._perform(call, timeout, stream=True)
        assert isinstance(answer, HttpStream)
        return answer

    def forget(self, stream: HttpStream) -> None:
        """The stream is at its end: close its connection."""
        with self._condition:
            self._in_flight.discard(stream.exchange)
        stream.exchange.detach()
        stream.response.close()

    @contextmanager
    def under(self, cancellation: Cancellation) -> Iterator[None]:
        """Put the requests that this thread makes inside the block under a switch that another thread can turn."""
        self._here.cancellation = cancellation
        try:
            yield
        finally:
            self._here.cancellation = None

    def _cancellation(self) -> Cancellation | None:
        found: Cancellation | None = getattr(self._here, "cancellation", None)
        return found

    def failure(self, raised: Exception, exchange: Exchange, call: Call) -> InformersError:
        """Give the error that stands for what ended an exchange."""
        if self._closed:
            return ClientClosed(f"the client of {self.server} was closed during {call.method} {call.path}")
        return translate(raised, exchange, self.server, call.verb, call.resource, call.key, is_write=call.is_write)

    def close(self) -> None:
        """End all requests in flight (they raise ClientClosed) and close the connections. Idempotent."""
        with self._condition:
            self._closed = True
            in_flight = list(self._in_flight)
            self._condition.notify_all()
        for exchange in in_flight:
            exchange.abort()
        self._credentials.close()

    # --- one call: attempts

    def _perform(self, call: Call, timeout: float | None, *, stream: bool) -> bytes | HttpStream:
        deadline = None if timeout is None else time.monotonic() + timeout
        renewed = False
        attempt = 0
        while True:
            self._throttle(call, deadline)
            endpoint = self._credentials.current(_left(deadline))
            attempt += 1
            try:
                return self._attempt(endpoint, call, deadline, attempt, stream=stream)
            except ApiError as error:
                if error.status == 401 and not renewed and self._credentials.renewable:
                    renewed = True
                    self._renew(endpoint, deadline, error)
                    continue
                wait = _asked_wait(error, attempt, deadline)
                if wait is None:
                    raise
                _log.info("%s %s: repeated in %g s, as the server asks: %s", call.method, call.path, wait, error)
                self._pause(wait)

    def _renew(self, endpoint: Endpoint, deadline: float | None, refusal: ApiError) -> None:
        try:
            self._credentials.renew(endpoint, _left(deadline))
        except (ConfigError, TimeoutError) as error:
            _log.warning("%s refused the credentials, and loading them again failed: %s", self.server, error)
            raise refusal from error

    def _throttle(self, call: Call, deadline: float | None) -> None:
        if self._bucket is None:
            return
        with self._condition:
            wait = self._bucket.reserve(self._clock.now(), _left(deadline))
        if wait is None:
            raise RequestTimeout(
                f"{self.server}: the client's own rate limit leaves no time for the request",
                address=self.server,
                verb=call.verb,
                resource=call.resource,
                key=call.key,
            )
        if wait > 0:
            self._pause(wait)

    def _pause(self, seconds: float) -> None:
        """Wait, unless the client is closed or the request cancelled meanwhile."""
        cancellation = self._cancellation()
        with self._condition:
            until = self._clock.now() + seconds
            while not self._closed and (left := until - self._clock.now()) > 0:
                if cancellation is None:
                    self._clock.wait(self._condition, left)
                elif cancellation.cancelled.is_set():
                    raise ConnectionReset(f"the request to {self.server} was cancelled", address=self.server)
                else:  # the switch does not know this condition: look at it now and then
                    self._clock.wait(self._condition, min(left, _CANCELLATION_POLL))
            self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed(f"the client of {self.server} is closed")

    # --- one attempt

    def _attempt(
        self, endpoint: Endpoint, call: Call, deadline: float | None, attempt: int, *, stream: bool
    ) -> bytes | HttpStream:
        exchange = Exchange(deadline)
        with self._condition:
            self._check_open()
            self._in_flight.add(exchange)
        cancellation = self._cancellation()
        if cancellation is not None:
            cancellation.add(exchange)
        url = endpoint.server + call.path + (f"?{urlencode(call.query)}" if call.query else "")
        started = time.monotonic()
        status: int | None = None
        received = 0
        error: Exception | None = None
        kept = False
        try:
            response = self._send(endpoint, exchange, call, url)
            exchange.answered = True
            status = response.status
            if stream and status == 200:
                kept = True
                exchange.deadline = None
                return HttpStream(exchange, response, response.headers)
            body = self._read(exchange, response)
            received = len(body)
            if 200 <= status < 300 and not stream:
                return body
            raise _refusal(call, response, body, self.server)
        except InformersError as raised:
            error = raised
            raise
        except Exception as raised:  # every other failure is translated, the unknown ones too
            error = self.failure(raised, exchange, call)
            raise error from raised
        finally:
            if cancellation is not None:
                cancellation.discard(exchange)
            if not kept:
                exchange.detach()
                with self._condition:
                    self._in_flight.discard(exchange)
            self._trace(call, url, attempt, time.monotonic() - started, status, error, received)

    def _send(self, endpoint: Endpoint, exchange: Exchange, call: Call, url: str) -> Any:
        headers: Any = {**self._headers, **endpoint.headers(), "Accept-Encoding": "identity", **(call.headers or {})}
        if self._groups:
            headers = urllib3.HTTPHeaderDict(headers)
            for group in self._groups:  # one header each, which a dict cannot hold
                headers.add("Impersonate-Group", group)
        left = exchange.remaining()
        with endpoint.exchanges.conducted(exchange):
            return endpoint.pool.urlopen(
                call.method,
                url,
                body=call.body,
                headers=headers,
                retries=False,
                redirect=False,
                timeout=urllib3.Timeout(connect=left, read=left),
                preload_content=False,
                decode_content=True,
            )

    def _read(self, exchange: Exchange, response: Any) -> bytes:
        try:
            body: bytes = response.read()
        except BaseException:
            exchange.detach()
            response.close()
            raise
        exchange.detach()  # before the connection goes back to the pool, where it is somebody else's
        response.release_conn()
        return body

    def _trace(
        self,
        call: Call,
        url: str,
        attempt: int,
        seconds: float,
        status: int | None,
        error: Exception | None,
        received: int,
    ) -> None:
        if self._on_request is None:
            return
        trace = RequestTrace(
            call.method,
            _without_userinfo(url),
            call.verb,
            call.resource,
            call.key,
            attempt,
            seconds,
            status,
            "" if error is None else str(error),
            len(call.body or b""),
            received,
        )
        try:
            self._on_request(trace)
        except Exception:  # noqa: BLE001 - a tracing hook must not change what happens to the request
            _log.exception("on_request raised for %s %s", call.method, call.path)


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _asked_wait(error: ApiError, attempt: int, deadline: float | None) -> float | None:
    """How long the server wants us to wait before we ask again; None if it does not, or the deadline is before that."""
    if error.status not in (429, 503) or error.retry_after is None or attempt >= _MAX_ATTEMPTS:
        return None
    wait = max(error.retry_after, _MIN_RETRY_WAIT)
    left = _left(deadline)
    return wait if left is None or wait < left else None


def _refusal(call: Call, response: Any, body: bytes, server: str) -> RequestError:
    """Turn an answer that is no success into an error."""
    status: int = response.status
    if status < 400:
        error = unexpected_answer(status, response.headers.get("Location", ""), server)
        error.verb, error.resource, error.key, error.maybe_applied = call.verb, call.resource, call.key, call.is_write
        return error
    retry_after = _retry_after(response.headers.get("Retry-After", ""), time.time())
    refused = status < 500 or (status == 503 and retry_after is not None)
    return ApiError.from_status(
        _status_body(body, status, response.reason),
        http_status=status,
        retry_after=retry_after,
        maybe_applied=call.is_write and not refused,
        verb=call.verb,
        resource=call.resource,
        key=call.key,
    )


def _retry_after(header: str, now: float) -> float | None:
    """Read a Retry-After header: seconds, or an HTTP date (RFC 9110, 10.2.3; `now` in epoch seconds). None: no wish."""
    if header.isdecimal() and header.isascii():
        return min(float(header), _LONGEST_RETRY_WAIT)
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    # A date is in GMT, though it may say so with "-0000", which Python reads as a time without a zone.
    until = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    return min(max(0.0, until - now), _LONGEST_RETRY_WAIT)


def _status_body(body: bytes, status: int, phrase: str | None) -> Mapping[str, Any]:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        decoded = None
    if isinstance(decoded, dict) and decoded.get("kind") == "Status":
        return {**decoded, "code": status}
    text = " ".join(body[:300].decode(errors="replace").split())
    return {"message": text or phrase or f"the server answered {status}", "code": status}


def _without_userinfo(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else url
