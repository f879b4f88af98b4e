"""HTTP/1.1 to an external server: connections are reused, addresses checked, times limited.

httpcore, which httpx is built on, is used directly because callers must decide which address a name resolves to, and
end a call at any point, which httpx leaves to its transport. It follows no redirect and reads no proxy from the
environment.
"""

import contextlib
import ipaddress
import select
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import httpcore

from evalboard.calling.addresses import Address, endpoint_host_problem, plain_http_problem
from evalboard.calling.calls import EndpointRefused
from evalboard.wording.numbers import capital

CONNECT_SECONDS = 10.0
LONGEST_ANSWER_BYTES = 32 * 2**20  # unpacked
IDLE_SECONDS = 4.0  # uvicorn hangs up after 5 s; a call must not meet that
CLOCK_SECONDS = 0.02  # how much too early a socket's own clock may ring
# An answer out of a cache is no draw. Who has no cache passes over what a header says of it; Portkey has its own name.
NOT_FROM_A_CACHE = {"Cache-Control": "no-cache", "x-portkey-cache-force-refresh": "true"}
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An unpacked answer. Names of headers are in small letters; repeated ones are joined by a comma."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class TryFailed(Exception):
    """This try gave no answer, and another one may. `code` is one of core.trace.provenance.ERROR_CODES.

    seconds: how long the server wants to be left alone; None where it says nothing. is_limited: it answers, and takes
    no more calls for now. reply: what came, as far as it came.
    """

    reply: HttpReply | None = None

    def __init__(self, code: str, words: str, *, seconds: float | None = None, is_limited: bool = False) -> None:
        super().__init__(words)
        self.code, self.seconds, self.is_limited = code, seconds, is_limited


class CallFailed(Exception):
    """The call failed, and another try would be as slow or as large. code, reply: as in TryFailed."""

    reply: HttpReply | None = None

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


class Wire:
    """Connections to one server. `post` and `get` are thread-safe, `cut` is safe in signal handlers too."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str], *, n_connections: int, hosts: Collection[str]
    ) -> None:
        """Raise EndpointRefused where the address is none. hosts: as `endpoint_host_problem` takes them."""
        try:
            parts = urlsplit(base_url)
            port = parts.port or PORTS[parts.scheme]
            host = (parts.hostname or "").encode("ascii" if parts.hostname and parts.hostname.isascii() else "idna")
        except (ValueError, KeyError):
            raise EndpointRefused(
                "The endpoint's address must start with http:// or https:// and name a host."
            ) from None
        if not host:
            raise EndpointRefused("The endpoint's address names no host.")
        self._origin = (parts.scheme.encode(), host, port)
        self._prefix = parts.path.rstrip("/")
        shown = f"[{host.decode()}]" if b":" in host else host.decode()
        given = {name.lower() for name in headers}
        self._headers = [
            ("Host", shown if port == PORTS[parts.scheme] else f"{shown}:{port}"),
            ("Accept", "application/json"),
            ("Accept-Encoding", "gzip, deflate"),
            ("User-Agent", "Evalboard"),
            *((name, value) for name, value in NOT_FROM_A_CACHE.items() if name.lower() not in given),
            *headers.items(),
        ]
        self._backend = _Backend(hosts, is_plain=parts.scheme == "http")
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl.create_default_context() if parts.scheme == "https" else None,
            max_connections=n_connections,
            max_keepalive_connections=n_connections,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=self._backend,
        )

    def check(self) -> None:
        """Resolve the name and check its addresses. Raises EndpointRefused, but not for an unknown name."""
        _, host, port = self._origin
        with contextlib.suppress(httpcore.ConnectError):
            self._backend.check(host.decode(), port)

    def post(self, path: str, body: bytes, *, seconds: float, first_byte_seconds: float | None = None) -> HttpReply:
        """Send a JSON body and return the answer, whatever its status, within `seconds` in all.

        first_byte_seconds: within which the answer must begin. Raises TryFailed, CallFailed or EndpointRefused.
        """
        return self._send("POST", path, body, seconds, first_byte_seconds)

    def get(self, path: str, *, seconds: float) -> HttpReply:
        """Look at an address. Raises as `post` does."""
        return self._send("GET", path, None, seconds)

    def cut(self) -> None:
        """End every connection, so that waiting calls return at once; no call is made until `mend`."""
        self._backend.cut()

    def mend(self) -> None:
        """Allow calls again after `cut`."""
        self._backend.is_cut = False

    def close(self) -> None:
        """Close every connection. No call may be in progress."""
        self._pool.close()

    def _send(
        self, method: str, path: str, body: bytes | None, seconds: float, first_byte_seconds: float | None = None
    ) -> HttpReply:
        scheme, host, port = self._origin
        url = httpcore.URL(scheme=scheme, host=host, port=port, target=(self._prefix + path).encode())
        headers = self._headers
        if body is not None:
            headers = [*headers, ("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        first = seconds if first_byte_seconds is None else min(first_byte_seconds, seconds)
        began = time.monotonic()
        self._backend.set_deadline(began + first)
        limits = {"connect": CONNECT_SECONDS, "read": seconds, "write": seconds, "pool": seconds}
        begun: HttpReply | None = None
        try:
            with self._pool.stream(
                method, url, headers=headers, content=body, extensions={"timeout": limits}
            ) as response:
                read = _read_headers(response.headers)
                begun = HttpReply(response.status, read, b"")
                self._backend.set_deadline(began + seconds)
                return replace(begun, content=_read(response.iter_stream(), read))
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.RemoteProtocolError) as problem:
            waited = time.monotonic() - began + CLOCK_SECONDS
            failure: CallFailed | TryFailed
            if waited >= seconds:
                failure = CallFailed("timeout", f"No whole answer came within {seconds:g} seconds.")
            elif begun is None and waited >= first:
                failure = CallFailed("timeout", f"No answer began within {first:g} seconds.")
            elif begun is None:
                failure = TryFailed("call_failed", f"{capital(_words(problem))}.")
            else:
                failure = TryFailed("cut_short", f"The connection ended within the answer: {_words(problem)}.")
            failure.reply = begun
            raise failure from None
        except CallFailed as failure:
            failure.reply = begun
            raise
        except httpcore.LocalProtocolError:  # its words have the header's value
            raise EndpointRefused("One of the endpoint's headers cannot be sent.") from None


class _Backend(httpcore.NetworkBackend):
    """Resolves each name for each connection, checks every address, and connects to one of those.

    A name server that answers otherwise a moment later changes nothing.
    """

    def __init__(self, hosts: Collection[str], *, is_plain: bool) -> None:
        self._hosts = hosts
        self._is_plain = is_plain  # http, without TLS
        self._calls = threading.local()
        self.sockets: set[socket.socket] = set()
        self.is_cut = False

    def check(self, host: str, port: int) -> list[Address]:
        """Return the addresses of a host. Raises as `_checked_addresses` does.

        EndpointRefused too where the key would go in the clear to a host that nobody names any more.
        """
        addresses = _checked_addresses(host, port, self._hosts)
        if self._is_plain and (refusal := plain_http_problem(host, hosts=self._hosts, port=port)):
            raise EndpointRefused(refusal)
        return addresses

    def set_deadline(self, deadline: float) -> None:
        """Set by when this thread's call must go on, by the monotonic clock."""
        self._calls.deadline = deadline

    def left(self, timeout: float | None) -> float:
        """Return how long this thread may still wait, at most `timeout`. Raises ReadTimeout after its time.

        Each wait on a socket begins here, after the socket is in `sockets`: so `cut` ends it, or it does not begin.
        """
        if self.is_cut:
            raise httpcore.ReadError("it was called off")
        seconds = float(self._calls.deadline) - time.monotonic()
        if seconds <= 0:
            raise httpcore.ReadTimeout("the time is up")
        return seconds if timeout is None else min(seconds, timeout)

    def cut(self) -> None:
        self.is_cut = True
        for wire in list(self.sockets):
            with contextlib.suppress(OSError):  # it is closed already
                socket.socket.shutdown(wire, socket.SHUT_RDWR)  # of a TLS socket too, without touching its state

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        last: OSError | None = None
        until = time.monotonic() + (timeout or CONNECT_SECONDS)
        for address in self.check(host, port):
            wire = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
            self.sockets.add(wire)
            try:
                wire.settimeout(self.left(max(until - time.monotonic(), 0.001)))
                wire.connect((str(address), port))
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return _Stream(wire, self)
            except OSError as problem:
                last = problem
                self._drop(wire)
            except BaseException:
                self._drop(wire)
                raise
        raise httpcore.ConnectError((last and last.strerror) or f"no connection to {host}: {last}") from last

    def _drop(self, wire: socket.socket) -> None:
        self.sockets.discard(wire)
        wire.close()


class _Stream(httpcore.NetworkStream):
    """One connection; all its waits end at the call's deadline."""

    def __init__(self, wire: socket.socket, backend: _Backend) -> None:
        self._wire = wire
        self._backend = backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _as_httpcore(httpcore.ReadTimeout, httpcore.ReadError):
            self._wire.settimeout(self._backend.left(timeout))
            return self._wire.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _as_httpcore(httpcore.WriteTimeout, httpcore.WriteError):
            while buffer:
                self._wire.settimeout(self._backend.left(timeout))
                buffer = buffer[self._wire.send(buffer) :]

    def close(self) -> None:
        self._backend.sockets.discard(self._wire)
        self._wire.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            self._wire.settimeout(self._backend.left(timeout))
            self._backend.sockets.discard(self._wire)
            secured = ssl_context.wrap_socket(
                self._wire, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            self._wire = secured
            self._backend.sockets.add(secured)
            secured.do_handshake()
        except ssl.SSLCertVerificationError as problem:
            self.close()
            raise EndpointRefused(
                f"The certificate of {server_hostname} is not trusted: {problem.verify_message}."
            ) from None
        except OSError as problem:
            self.close()
            raise httpcore.ConnectError(f"TLS with {server_hostname} failed: {problem}") from None
        except BaseException:
            self.close()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # of an idle connection: the other side has hung up
            poll = select.poll()
            poll.register(self._wire, select.POLLIN)
            return bool(poll.poll(0))
        if info == "ssl_object":
            return self._wire if isinstance(self._wire, ssl.SSLSocket) else None
        return self._wire if info == "socket" else None


@contextlib.contextmanager
def _as_httpcore(too_slow: type[Exception], broken: type[Exception]) -> Iterator[None]:
    try:
        yield
    except TimeoutError as problem:
        raise too_slow(str(problem)) from None
    except (OSError, ValueError) as problem:  # ValueError: closed meanwhile
        raise broken(str(problem)) from None


def _checked_addresses(host: str, port: int, hosts: Collection[str]) -> list[Address]:
    """Return a host's addresses. Raises httpcore.ConnectError without any, or EndpointRefused."""
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:
        raise httpcore.ConnectError(f"the name {host} cannot be resolved: {problem}") from None
    addresses = list(dict.fromkeys(ipaddress.ip_address(str(place[0])) for *_, place in resolved))
    if refusal := endpoint_host_problem(host, addresses, hosts=hosts, port=port):
        raise EndpointRefused(refusal)
    return addresses


def _read_headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw in pairs:
        name, value = raw_name.decode("latin-1").lower(), raw.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _read(chunks: Iterable[bytes], headers: Mapping[str, str]) -> bytes:
    """Return the whole unpacked body. Raises CallFailed if that fails, or before it gets too long."""
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > LONGEST_ANSWER_BYTES:
        raise CallFailed("too_large", f"The answer has {int(length):,} bytes.")
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise CallFailed("not_json", f"The answer is packed by {coding[:40]!r}, which was not wanted.")
    unpacker = None if coding in ("identity", "") else zlib.decompressobj(wbits=47)  # 47: gzip or zlib, as it comes
    parts: list[bytes] = []
    room = LONGEST_ANSWER_BYTES
    for chunk in chunks:
        try:
            part = chunk if unpacker is None else unpacker.decompress(chunk, room + 1)
        except zlib.error:
            raise CallFailed("not_json", f"The answer cannot be unpacked, though it says {coding}.") from None
        room -= len(part)
        if room < 0:
            raise CallFailed("too_large", f"The answer is longer than {LONGEST_ANSWER_BYTES // 2**20} MiB.")
        parts.append(part)
    if unpacker is not None and not unpacker.eof and parts:
        raise CallFailed("cut_short", "The packed answer ends in its middle.")
    return b"".join(parts)


def _words(problem: Exception) -> str:
    """Return what went wrong, without the operating system's number of it."""
    cause = problem.__cause__
    words = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(problem)
    return words.rstrip(".") or type(problem).__name__
