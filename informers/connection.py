"""HTTP connections whose every step obeys one deadline and which can be cut from any thread.

urllib3 bounds each single read, so a server that sends a byte now and then keeps a request alive for ever. Here the
connection classes of a pool are extended: an `Exchange` (one request and its answer) is in charge of the connection
while it is used, sets the time that is left before each wait on the socket, knows whether a byte of the request was
sent, and can shut the socket down.
"""

from __future__ import annotations

import errno
import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import urllib3
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util.connection import create_connection
from urllib3.util.ssl_ import create_urllib3_context, resolve_cert_reqs, resolve_ssl_version

from informers.chunks import Dechunker

__all__ = ["Exchange", "Exchanges", "track"]

_READ_BUFFER = 1 << 16
_PIECE = 1 << 18
_LONGEST_TRAILERS = 1 << 16


class Exchange:
    """One request and its answer. `deadline` is on time.monotonic and may be moved; None is no deadline.

    `connected`: the connection, TLS included, stands; `sent`: a byte of the request may have been sent; `answered`: the
    head of the answer was read. With a `pace` (bytes a second) each byte of the answer moves the deadline: what comes
    faster than that is never cut off.
    """

    def __init__(self, deadline: float | None) -> None:
        self.deadline = deadline
        self.pace: float | None = None
        self.connected = False
        self.sent = False
        self.answered = False
        self.aborted = False
        self.reader: io.BufferedReader[Any] | None = None
        self._socket: socket.socket | None = None
        self._owned = False
        self._lock = threading.Lock()

    def remaining(self) -> float | None:
        """Seconds until the deadline. Raises TimeoutError once it passed."""
        if self.deadline is None:
            return None
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline passed")
        return left

    def received(self, count: int) -> None:
        """So many bytes came."""
        if self.pace is not None and self.deadline is not None:
            self.deadline += count / self.pace

    def attach(self, sock: Any, *, owned: bool = False) -> None:
        """Take charge of a connected socket; an owned one is closed when another takes its place."""
        with self._lock:
            before, self._socket = self._socket if self._owned else None, getattr(sock, "socket", sock)
            self._owned = owned
            aborted = self.aborted
        if before is not None:
            before.close()
        if aborted:
            self.abort()

    def abort(self) -> None:
        """Shut the socket down, which ends whatever waits on it. May be called from any thread, more than once."""
        with self._lock:
            self.aborted = True
            if self._socket is not None:
                with suppress(OSError):  # not connected any more
                    # the plain method: the one of TLS sockets would take the session away from under a reader
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def detach(self) -> None:
        """Give the connection back: `abort` does nothing to it any more."""
        with self._lock:
            before, self._socket = self._socket if self._owned else None, None
            self._owned = False
        if before is not None:
            before.close()


class Exchanges(threading.local):
    """The exchange that each thread is conducting; how the connection classes of one pool find it."""

    current: Exchange | None = None

    @contextmanager
    def conducted(self, exchange: Exchange) -> Iterator[None]:
        """Make `exchange` the current one of this thread."""
        self.current = exchange
        try:
            yield
        finally:
            self.current = None


def track(pool: urllib3.PoolManager) -> Exchanges:
    """Extend the connection classes of a pool manager that has no connections yet."""
    exchanges = Exchanges()
    classes: dict[str, Any] = dict(pool.pool_classes_by_scheme)
    for scheme, pools in classes.items():
        connections = type("TrackedConnection", (_Tracked, pools.ConnectionCls), {"exchanges": exchanges})
        classes[scheme] = type(pools.__name__, (pools,), {"ConnectionCls": connections})
    pool.pool_classes_by_scheme = classes
    return exchanges


class _Tracked:
    """Mixin for the connection classes of urllib3, SOCKS ones included."""

    exchanges: Exchanges
    response_class: Callable[..., http.client.HTTPResponse]
    ssl_context: ssl.SSLContext | None
    sock: Any
    timeout: Any
    host: str
    port: int
    _connecting = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.response_class = self._response

    def _new_conn(self) -> socket.socket:
        exchange = self.exchanges.current
        if exchange is None:
            return super()._new_conn()  # type: ignore[misc,no-any-return]
        self.timeout = exchange.remaining()
        sock: socket.socket
        if hasattr(self, "_socks_options"):
            sock = super()._new_conn()  # type: ignore[misc]
        else:
            sock = self._dial(exchange)
        # TLS takes the descriptor away from this socket object; a duplicate can still be shut down meanwhile
        exchange.attach(sock.dup(), owned=True)
        return sock

    def _dial(self, exchange: Exchange) -> socket.socket:
        """Try the addresses in turn, all within the one deadline."""
        host = self.host.strip("[]").rstrip(".") or self.host
        connection: Any = self
        try:
            found = socket.getaddrinfo(host, self.port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError) as error:
            reason = error if isinstance(error, socket.gaierror) else socket.gaierror(str(error))
            raise NameResolutionError(self.host, connection, reason) from error
        failure: OSError = OSError("the name has no address")
        for *_, address in found:
            try:
                return create_connection(
                    (str(address[0]), self.port),
                    exchange.remaining(),
                    source_address=connection.source_address,
                    socket_options=connection.socket_options,
                )
            except TimeoutError as error:
                raise ConnectTimeoutError(connection, f"connecting to {self.host} timed out") from error
            except OSError as error:
                failure = error
        raise NewConnectionError(connection, str(failure)) from failure

    def connect(self) -> None:
        self._connecting = True
        if getattr(self, "ssl_context", self) is None:
            self.ssl_context = self._tls_context()
        try:
            super().connect()  # type: ignore[misc]
        finally:
            self._connecting = False
        if (exchange := self.exchanges.current) is not None:
            exchange.attach(self.sock)

    def _tls_context(self) -> ssl.SSLContext:
        """What urllib3 would make itself, but for the class of its sockets."""
        connection: Any = self
        context = create_urllib3_context(
            ssl_version=resolve_ssl_version(connection.ssl_version),
            ssl_minimum_version=connection.ssl_minimum_version,
            ssl_maximum_version=connection.ssl_maximum_version,
            cert_reqs=resolve_cert_reqs(connection.cert_reqs),
        )
        if not (connection.ca_certs or connection.ca_cert_dir or connection.ca_cert_data):
            context.load_default_certs()
        context.sslsocket_class = _TlsSocket
        return context

    def send(self, data: Any) -> None:
        exchange = self.exchanges.current
        if exchange is not None and not self._connecting:
            if self.sock is None:
                self.connect()
            exchange.attach(self.sock)
            exchange.connected = True
            self.sock.settimeout(exchange.remaining())
            exchange.sent = True
        super().send(data)  # type: ignore[misc]

    def _response(self, sock: Any, *args: Any, **kwargs: Any) -> http.client.HTTPResponse:
        exchange = self.exchanges.current
        readable: Any = sock if exchange is None else _Readable(sock, exchange)
        return _Response(readable, *args, **kwargs)


class _TlsSocket(ssl.SSLSocket):
    """Closes itself when the peer has reset the connection before the handshake; the plain one is then left open."""

    def getpeername(self) -> Any:
        try:
            return super().getpeername()
        except OSError as error:
            if error.errno != errno.ENOTCONN or self._sslobj is not None:  # type: ignore[attr-defined]
                raise
            self.close()
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer") from error


class _Response(http.client.HTTPResponse):
    """Reads the whole of a chunked body at once; `HTTPResponse` takes several calls and copies for each chunk."""

    def read(self, amt: int | None = None) -> bytes:
        if amt is not None or not self.chunked or self.fp is None:
            return super().read(amt)
        chunks = Dechunker(views=True)
        parts: list[memoryview] = []
        while not chunks.finished:
            data = self.fp.read1(_PIECE)
            try:
                parts += chunks.feed(data)
            except ValueError:
                data = b""
            if not data:
                self.close()
                raise http.client.IncompleteRead(b"".join(parts))
        self._skip_trailers(chunks.rest)
        self.close()  # gives the connection back, like any body that was read to its end
        return b"".join(parts)

    def _skip_trailers(self, read: bytes) -> None:
        """Leave the connection where the next answer begins, if what was `read` so far is not the end."""
        while not (read.startswith((b"\r\n", b"\n")) or b"\n\r\n" in read or b"\n\n" in read):
            line = self.fp.readline(_LONGEST_TRAILERS)
            if not line:
                return
            read += line
            if len(read) > _LONGEST_TRAILERS:
                raise http.client.LineTooLong("trailers")


class _Readable:
    """Stands for a socket where http.client makes the file that it reads an answer from."""

    def __init__(self, sock: Any, exchange: Exchange) -> None:
        self._sock = sock
        self._exchange = exchange

    def makefile(self, mode: str) -> io.BufferedReader[Any]:
        raw = _TimedRaw(self._sock, self._exchange)
        reader: io.BufferedReader[Any] = io.BufferedReader(raw, _READ_BUFFER)
        self._exchange.reader = reader
        return reader


class _TimedRaw(io.RawIOBase):
    """Reads from a socket, each time for at most what is left until the deadline."""

    def __init__(self, sock: Any, exchange: Exchange) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._exchange = exchange
        self._limit: float | None = -1.0  # what the socket was told last

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left, limit = self._exchange.remaining(), self._limit
        # Telling the socket is a system call. Without it a wait may be too long by a hundredth, and 0.1 s at most.
        if left is None or limit is None or not left <= limit <= left + min(0.1, left / 100):
            self._sock.settimeout(left)
            self._limit = left
        count: int | None = self._raw.readinto(buffer)
        self._exchange.received(count or 0)
        return count

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()
