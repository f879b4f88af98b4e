"""Send one message: a POST to a checked address, with a time limit and no redirects, or an e-mail."""

import contextlib
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from smtplib import SMTPException
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage

from evalboard.calling.addresses import Address
from runs.webhooks import host_problem
from runs.webhooks.follows import NO_EMAIL

CONNECT_SECONDS = 5.0
ATTEMPT_SECONDS = 15.0  # connecting, TLS, sending and the answer's head together; the resolver gives up by itself
MAX_SUBJECT = 150  # characters of an e-mail's subject
PORTS = {"http": 80, "https": 443}


class NotTaken(Exception):
    """The message was not accepted; the text says why, in a sentence. `status`: of the answer, if any."""

    def __init__(self, why: str, *, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


def post(url: str, body: bytes, headers: Mapping[str, str], *, seconds: float = ATTEMPT_SECONDS) -> int:
    """Send the body and return the 2xx status that was answered. Raises NotTaken.

    The name is resolved once, all its addresses are checked, and the connection is made to one of those very
    addresses: a name server that answers otherwise a moment later changes nothing. Of the answer only its head is
    read, of which `http.client` takes no more than a hundred lines.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    deadline = time.monotonic() + seconds
    wire = _connect(host, _checked_addresses(host, port), port)
    with wire, _Watch(wire, deadline) as watch:
        try:
            connection = _connection(parts.scheme, host, port, wire)
            path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
            connection.request("POST", path, body, dict(headers))
            status = connection.getresponse().status
        except (OSError, HTTPException) as problem:
            raise NotTaken(_too_slow(seconds) if watch.has_cut else _words(problem)) from problem
    if watch.has_cut:  # in the middle of the head, before its end
        raise NotTaken(_too_slow(seconds))
    if 300 <= status < 400:
        raise NotTaken(f"It answered {status}; redirects are not followed, so give the final address.", status=status)
    if not 200 <= status < 300:
        raise NotTaken(f"It answered {status}.", status=status)
    return status


def mail(address: str, body: str) -> None:
    """Send a message of the outbox as an e-mail. Raises NotTaken."""
    if not settings.EMAIL_HOST:
        raise NotTaken(NO_EMAIL)
    message = json.loads(body)
    data, (subject, *_) = message["data"], message["text"].splitlines() or [""]
    following = data.get("following")
    why = f"\n\nYou follow {following['kind']} {following['name']}. Stop: {data['stop_url']}" if following else ""
    # One line without control characters: a name in it must not become a header.
    title = "".join(char for char in subject if char.isprintable())[:MAX_SUBJECT]
    letter = EmailMessage(f"Evalboard: {title}", f"{message['text']}{why}\n", to=[address])
    letter.extra_headers = {"Auto-Submitted": "auto-generated"}
    if following and data["stop_url"].startswith("http"):  # one press in a mail program, RFC 8058
        letter.extra_headers["List-Unsubscribe"] = f"<{data['stop_url']}>"
        letter.extra_headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    try:
        letter.send()
    except (SMTPException, OSError) as problem:
        raise NotTaken(f"The mail server did not take it: {problem}.") from problem


class _Watch:
    """Cuts a connection at a deadline, even if the receiver keeps sending single bytes."""

    def __init__(self, wire: socket.socket, deadline: float) -> None:
        self.has_cut = False
        self._wire = wire.dup()  # its own descriptor, which stays good when TLS takes the first one over
        self._timer = threading.Timer(max(deadline - time.monotonic(), 0), self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._timer.cancel()
        self._timer.join()
        self._wire.close()

    def _cut(self) -> None:
        self.has_cut = True
        with contextlib.suppress(OSError):  # the other side was faster
            self._wire.shutdown(socket.SHUT_RDWR)


def _checked_addresses(host: str, port: int) -> list[Address]:
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:
        raise NotTaken(f"The name {host} cannot be resolved: {problem}.") from problem
    addresses = [ipaddress.ip_address(str(place[0])) for *_, place in resolved]
    if refusal := host_problem(host, addresses):
        raise NotTaken(f"Nothing was sent: {refusal}")
    return addresses


def _connect(host: str, addresses: list[Address], port: int) -> socket.socket:
    """A connection to the first of the addresses that takes one."""
    last: OSError | None = None
    for address in addresses:
        try:
            return socket.create_connection((str(address), port), timeout=CONNECT_SECONDS)
        except OSError as problem:
            last = problem
    raise NotTaken(f"No connection to {host}: {last}.") from last


def _connection(scheme: str, host: str, port: int, wire: socket.socket) -> HTTPConnection:
    """Return HTTP over an open connection; with TLS the certificate must be the host's."""
    wire.settimeout(None)  # the watch sees to the time
    if scheme == "http":
        plain = HTTPConnection(host, port)
        plain.sock = wire
        return plain
    context = ssl.create_default_context()
    secured = HTTPSConnection(host, port, context=context)
    secured.sock = context.wrap_socket(wire, server_hostname=host)
    return secured


def _too_slow(seconds: float) -> str:
    return f"It did not answer within {seconds:g} seconds."


def _words(problem: Exception) -> str:
    return f"The connection ended without an answer: {str(problem) or type(problem).__name__}."
