"""A request that is sent again makes nothing twice: the client or the form gives it a key."""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from evalboard.core.digest import digest_json
from evalboard.core.errors import Conflict, EvalboardError, InvalidInput
from runs.models import IdempotencyKey, RunRecord

HEADER = "Idempotency-Key"
KEPT = timedelta(hours=24)
VISIBLE_ASCII = re.compile(r"[\x21-\x7e]{1,255}")


class KeyInUse(Conflict):
    code = "request_in_flight"
    title = "The first request with this key is still at work"


class KeyReused(EvalboardError):
    code = "idempotency_key_reused"
    title = "The key belongs to another request"
    status = 422


def forget_old_keys(**of: Any) -> None:
    """Delete keys older than a day, all or filtered; requests with them are new again."""
    IdempotencyKey.objects.filter(**of, created_at__lt=Now() - KEPT).delete()


def make_once(
    key: str | None, body: Any, user: Any, make: Callable[[], tuple[RunRecord, ...]]
) -> tuple[tuple[RunRecord, ...], bool]:
    """Return the runs of a person's key, one or a pair, and whether they were made before.

    They are made if needed. key: None without one. `body` is the request as JSON, which identifies equal requests. What
    `make` raises is raised too, and then the key is not stored. Raises InvalidInput for an invalid key, KeyInUse while
    another request with it is in progress (without waiting), and KeyReused if it came with another body.
    """
    if key is None:
        return make(), False
    if not VISIBLE_ASCII.fullmatch(key):
        raise InvalidInput("The key is not valid.", fields={HEADER: "Must be 1 to 255 visible ASCII characters."})
    with claim_key(key, body, user, waits=False) as known:
        was_made_before = known.pk is not None
        if not was_made_before:
            known.run, known.candidate = (*make(), None)[:2]
    return tuple(run for run in (known.run, known.candidate) if run is not None), was_made_before


@contextmanager
def claim_key(key: str, body: Any, user: Any, *, waits: bool) -> Iterator[IdempotencyKey]:
    """Yield a person's key, locked: as it was stored before, or new and stored at the end.

    A new one is stored if the block gives it what was made: `run` or `address`.
    What the block raises is raised, and then the key is not stored. waits: for another request with the key, where
    else KeyInUse is raised. Raises KeyReused if it came with another body.
    """
    body_digest = digest_json(body)
    with transaction.atomic():
        if not _lock(user.pk, key, waits=waits):
            raise KeyInUse(f"A request with the {HEADER} {key} is at work; send yours again in a moment.")
        forget_old_keys(user=user, key=key)
        stored = IdempotencyKey.objects.select_related("run", "candidate").filter(user=user, key=key).first()
        known = stored or IdempotencyKey(user=user, key=key, body_digest=body_digest)
        if known.body_digest != body_digest:
            made = f"run {known.run_id}" + (f" and run {known.candidate_id}" if known.candidate_id else "")
            raise KeyReused(f"The {HEADER} {key} came with another body before and made {made}; take a new key.")
        yield known
        if stored is None and (known.run is not None or known.address):
            known.save()


def _lock(user_id: int, key: str, *, waits: bool) -> bool:
    """Take the key until the transaction ends; False if another has it and this does not wait."""
    digest = hashlib.sha256(f"idempotency {user_id} {key}".encode()).digest()
    call = "pg_advisory_xact_lock(%s) IS NOT NULL" if waits else "pg_try_advisory_xact_lock(%s)"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {call}", [int.from_bytes(digest[:8], signed=True)])
        return bool(cursor.fetchone()[0])
