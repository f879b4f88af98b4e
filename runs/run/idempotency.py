"""A request for runs that is sent again makes no second ones: the client gives it a key, and keeps it."""

import hashlib
import re
from collections.abc import Callable
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
    body_digest = digest_json(body)
    with transaction.atomic():
        if not _try_lock(user.pk, key):
            raise KeyInUse(f"A request with the {HEADER} {key} is at work; send yours again in a moment.")
        forget_old_keys(user=user, key=key)
        known = IdempotencyKey.objects.select_related("run", "candidate").filter(user=user, key=key).first()
        if known is None:
            runs = make()
            sides = dict(zip(("run", "candidate"), runs, strict=False))
            IdempotencyKey.objects.create(user=user, key=key, body_digest=body_digest, **sides)
            return runs, False
    if known.body_digest != body_digest:
        made = f"run {known.run_id}" + (f" and run {known.candidate_id}" if known.candidate_id else "")
        raise KeyReused(f"The {HEADER} {key} came with another body before and made {made}; take a new key.")
    return (known.run,) if known.candidate is None else (known.run, known.candidate), True


def _try_lock(user_id: int, key: str) -> bool:
    """Take the key until the transaction ends; False while another transaction has it."""
    digest = hashlib.sha256(f"idempotency {user_id} {key}".encode()).digest()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [int.from_bytes(digest[:8], signed=True)])
        return bool(cursor.fetchone()[0])
