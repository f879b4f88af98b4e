"""People of the installation as listed on their page and by the API."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.models import Count, Max, Q
from django.utils import timezone

from evalboard.contract.access import Person
from evalboard.core.errors import NotFound
from runs.access.roles import ROLES
from runs.access.sessions import session_rows

PEOPLE_ORDERS = {name: name for name in ("name", "role", "created_at", "seen_at")}


def people_rows(name: str = "") -> tuple[Person, ...]:
    """Return all people by name, those who may sign in first; or one of this name."""
    is_valid = Q(evalboard_tokens__revoked_at=None, evalboard_tokens__expires_at__gt=timezone.now())
    people = get_user_model().objects.prefetch_related("groups")
    people = people.annotate(
        n_tokens=Count("evalboard_tokens", filter=is_valid), used_at=Max("evalboard_tokens__last_used_at")
    )
    sessions = session_rows()
    n_sessions = Counter(row.person for row in sessions)
    seen = {row.person: row.seen_at for row in reversed(sessions)}
    by_sso = _signed_in_by_sso()
    chosen = people.filter(username=name) if name else people
    return tuple(
        Person(
            name=person.username,
            role=_role(person),
            is_active=person.is_active,
            sign_in="sso" if person.pk in by_sso else "password" if person.has_usable_password() else "link",
            created_at=person.date_joined,
            seen_at=_newest((person.last_login, person.used_at, seen.get(person.username))),
            n_tokens=person.n_tokens if person.is_active else 0,
            n_sessions=n_sessions[person.username],
        )
        for person in chosen.order_by("-is_active", "username")
    )


def person_row(name: str) -> Person:
    """Return one person. Raises NotFound."""
    for row in people_rows(name):
        return row
    raise NotFound(f"There is no person named {name}.")


def _role(person: Any) -> str:
    if person.is_superuser:
        return "admin"
    names = {group.name for group in person.groups.all()}
    return next((role for role in reversed(ROLES) if role in names), "")


def _signed_in_by_sso() -> frozenset[int]:
    if not apps.is_installed("allauth.socialaccount"):
        return frozenset()
    accounts: Any = apps.all_models["socialaccount"]["socialaccount"]
    return frozenset(accounts.objects.values_list("user_id", flat=True))


def _newest(times: Iterable[datetime | None]) -> datetime | None:
    return max((at for at in times if at is not None), default=None)
