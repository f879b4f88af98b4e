"""Passwords cannot be guessed one after another: django-axes counts, and these say for whom and from where.

Counted is a name together with the address that it is tried from: whoever tries somebody's name elsewhere does not lock
that person out. One-time links and sign-in elsewhere have nothing to guess, and work all the same.
"""

import ipaddress
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from axes.backends import AxesStandaloneBackend
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Max
from django.http import HttpRequest


class PasswordGuard(AxesStandaloneBackend):  # type: ignore[misc]  # axes has no types
    """Stands first among the backends: refuses a password while its name is locked. Signs nobody in."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **others: Any
    ) -> None:
        if request is not None and password is not None:
            super().authenticate(request, username=username, password=password, **others)


def is_not_counted(request: HttpRequest, credentials: Mapping[str, Any] | None) -> bool:
    """Whether this is no try of a password."""
    return not (credentials or {}).get("username")


def client_address(request: HttpRequest) -> str | None:
    """Where a request comes from: as many steps before this server as there are proxies (EVALBOARD_PROXIES).

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


def locked_until(request: HttpRequest, name: str) -> datetime | None:
    """When this name may be tried again from where the request comes; None where it may be now."""
    tried = AccessAttempt.objects.filter(username=name, ip_address=client_address(request))
    last: datetime | None = tried.aggregate(last=Max("attempt_time"))["last"]
    return None if last is None else last + settings.AXES_COOLOFF_TIME
