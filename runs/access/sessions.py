"""Sessions of people's browsers: listed, and ended."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.sessions.models import Session
from django.utils import timezone

from evalboard.contract.access import BrowserSession
from evalboard.core.errors import NotFound

BEGAN, SEEN, ADDRESS = "began_at", "seen_at", "address"  # in a session; times in seconds since 1970


def session_id(key: str) -> str:
    """Return how a session is named without its key, which would sign in."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def session_rows(user: Any = None) -> tuple[BrowserSession, ...]:
    """Return the sessions of one person, or of all, last used first."""
    names = dict(get_user_model().objects.filter(is_active=True).values_list("pk", "username"))
    rows = [
        BrowserSession(
            id=session_id(stored.pk),
            person=names[person_id],
            address=values.get(ADDRESS) or "",
            began_at=_instant(values.get(BEGAN)),
            seen_at=_instant(values.get(SEEN)),
            expires_at=stored.expire_date,
        )
        for stored, person_id, values in _open_sessions()
        if person_id in names and (user is None or person_id == user.pk)
    ]
    return tuple(sorted(rows, key=lambda row: row.seen_at or row.expires_at, reverse=True))


def end_sessions(*, person: Any) -> int:
    """Sign a person out everywhere; return how many sessions there were. Their tokens go on."""
    keys = [stored.pk for stored, person_id, _ in _open_sessions() if person_id == person.pk]
    Session.objects.filter(pk__in=keys).delete()
    return len(keys)


def end_session(*, session_id: str, user: Any, may_all: bool = False) -> None:
    """End a session of one's own, or with `may_all` anybody's. Raises NotFound."""
    for stored, person_id, _ in _open_sessions():
        if _names(stored, session_id) and (may_all or person_id == user.pk):
            stored.delete()
            return
    raise NotFound(f"There is no session {session_id}.")


def _names(stored: Session, name: str) -> bool:
    return session_id(stored.pk) == name


def _open_sessions() -> Iterator[tuple[Session, int, dict[str, Any]]]:
    """Yield open sessions, with the id of their person and their values."""
    for stored in Session.objects.filter(expire_date__gt=timezone.now()).iterator(chunk_size=500):
        values = stored.get_decoded()
        if str(values.get(SESSION_KEY, "")).isdigit():
            yield stored, int(values[SESSION_KEY]), values


def _instant(seconds: Any) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int | float) else None
