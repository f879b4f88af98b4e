"""Limit password guessing without letting guesses block other people's sign-in.

django-axes keeps the counts in the database, where all processes of all servers see them; here stands what they mean.
Wrong passwords are counted for a name from one address, from an address, for a name from anywhere, and in all. The
last two never shut anybody out: once they are reached, each address has one try instead of several, so that whoever
knows somebody's name can slow guessing down, and not that person. One-time links and sign-in elsewhere have nothing to
guess, and work all the same.
"""

import ipaddress
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from axes.backends import AxesStandaloneBackend
from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Max, Q, QuerySet, Sum
from django.http import HttpRequest
from django.utils import timezone

from runs.store import counters

logger = logging.getLogger(__name__)

# Wrong passwords within AXES_COOLOFF_TIME. An office may have one address: after a recent sign-in
# from there, one script with wrong passwords must not lock out all others.
MAX_OF_ADDRESS = 20
MAX_OF_KNOWN_ADDRESS = 100
KNOWN_SECONDS = 24 * 3600
MAX_OF_NAME = 20
MAX_IN_ALL = 300
# What one process does at a time: a hash takes a core for up to a second. Whoever comes beyond both is told so at once,
# which leaves half of a process's eight threads to everybody else.
HASHED_AT_ONCE = 2
WAITING_AT_ONCE = 2

_inside = threading.BoundedSemaphore(HASHED_AT_ONCE + WAITING_AT_ONCE)
_hashing = threading.BoundedSemaphore(HASHED_AT_ONCE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no password is taken now: `name_here`, `address`, `name`, `all`; and until when."""

    code: str
    until: datetime


class PasswordGuard(AxesStandaloneBackend):  # type: ignore[misc]  # axes has no types
    """The first backend: refuses a password while its name is locked, and never signs a person in."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **others: Any
    ) -> None:
        if request is not None and password is not None:
            super().authenticate(request, username=username, password=password, **others)


class Counts(AxesDatabaseHandler):  # type: ignore[misc]
    """django-axes' counters with our limits, and a log line without the name: people type passwords there."""

    def is_locked(self, request: HttpRequest, credentials: Mapping[str, Any] | None = None) -> bool:
        return find_refusal(request, _name(credentials)) is not None

    def user_logged_in(self, sender: Any, request: HttpRequest, user: Any, **others: Any) -> None:
        super().user_logged_in(sender, request, user, **others)
        counters.remember(_signed_in(request), seconds=KNOWN_SECONDS)

    def user_login_failed(
        self, sender: Any, credentials: Mapping[str, Any], request: HttpRequest | None = None, **others: Any
    ) -> None:
        was_refused = getattr(request, "axes_locked_out", False)
        super().user_login_failed(sender, credentials, request, **others)
        if request is not None and _name(credentials) and not was_refused:
            logger.warning("sign_in_failed address=%s", client_address(request))
            request.is_wrong_password = True  # type: ignore[attr-defined]  # for the audit trail


def find_refusal(request: HttpRequest, name: str) -> Refusal | None:
    """Return why a password for this name is refused from the request's address, None if it is not."""
    lately = AccessAttempt.objects.filter(attempt_time__gt=timezone.now() - settings.AXES_COOLOFF_TIME)
    here, this_name = Q(ip_address=counted_address(request)), Q(username=name)
    n = lately.aggregate(
        here=_n_failed(here & this_name), address=_n_failed(here), name=_n_failed(this_name), all=_n_failed(Q())
    )
    n = {which: count or 0 for which, count in n.items()}
    if n["here"] >= settings.AXES_FAILURE_LIMIT:
        return _refusal("name_here", lately.filter(here & this_name))
    if n["address"] >= MAX_OF_ADDRESS and n["address"] >= _most_of_address(request):
        return _refusal("address", lately.filter(here))
    if n["name"] >= MAX_OF_NAME and n["here"]:
        return _refusal("name", lately.filter(here & this_name))
    if n["all"] >= MAX_IN_ALL and n["address"]:
        return _refusal("all", lately.filter(here))
    return None


@contextmanager
def turn_to_hash() -> Iterator[bool]:
    """Wait for one's turn to check a password; False at once where too many wait already."""
    if not _inside.acquire(blocking=False):
        yield False
        return
    try:
        with _hashing:
            yield True
    finally:
        _inside.release()


def log_refusal(request: HttpRequest, code: str) -> None:
    logger.warning("sign_in_refused address=%s because=%s", client_address(request), code)


def is_not_counted(request: HttpRequest, credentials: Mapping[str, Any] | None) -> bool:
    """Return whether the request is no attempt with a password."""
    return not _name(credentials)


def client_address(request: HttpRequest) -> str | None:
    """Return the client's address, skipping as many proxies as configured (EVALBOARD_PROXIES).

    Each proxy adds the address that spoke to it at the end of X-Forwarded-For; what stands before those was sent by
    the client, who may write there whatever they like.
    """
    sender: str | None = request.META.get("REMOTE_ADDR")
    passed_on = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    if settings.PROXIES == 0 or len(passed_on) < settings.PROXIES:
        return sender
    try:
        return str(ipaddress.ip_address(passed_on[-settings.PROXIES].strip()))
    except ValueError:
        return sender


def counted_address(request: HttpRequest) -> str | None:
    """Return the address to count by: for IPv6 its first 64 bits, since one connection has all of them."""
    address = client_address(request)
    try:
        known = ipaddress.ip_address(address or "")
    except ValueError:
        return address
    if known.version == 4:
        return str(known)
    return str(known.ipv4_mapped or ipaddress.IPv6Address(int(known) >> 64 << 64))


def _most_of_address(request: HttpRequest) -> int:
    return MAX_OF_KNOWN_ADDRESS if counters.is_remembered(_signed_in(request)) else MAX_OF_ADDRESS


def _signed_in(request: HttpRequest) -> str:
    return f"signed-in:{counted_address(request)}"


def _refusal(code: str, tries: QuerySet[AccessAttempt]) -> Refusal:
    last: datetime = tries.aggregate(last=Max("attempt_time"))["last"] or timezone.now()
    return Refusal(code, last + settings.AXES_COOLOFF_TIME)


def _n_failed(which: Q) -> Sum:
    return Sum("failures_since_start", filter=which)


def _name(credentials: Mapping[str, Any] | None) -> str:
    return str((credentials or {}).get("username") or "")
