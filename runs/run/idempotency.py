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
from runs.run.in_turn import create_pair
from runs.run.runs import create_run

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


def create_run_once(*, key: str, body: Any, user: Any, **order: Any) -> tuple[RunRecord, bool]:
    """Return the run that this person's key stands for, made if it stands for none, and whether it was made before.

    `body` is the request as JSON, by which the same request is known again; `order` goes to `create_run`, whose
    errors are raised too, and then no key is kept. Raises InvalidInput for a key that is none, KeyInUse while another
    request with it is at work (nobody waits), and KeyReused where it came with another body.
    """
    [run], was_made_before = _make_once(key, body, user, lambda: (create_run(**order, user=user),))
    return run, was_made_before


def create_pair_once(*, key: str, body: Any, user: Any, **sides: Any) -> tuple[tuple[RunRecord, RunRecord], bool]:
    """Return the two runs that this person's key stands for, as `create_run_once` does; `sides` go to `create_pair`."""
    [baseline, candidate], was_made_before = _make_once(key, body, user, lambda: create_pair(**sides, user=user))
    return (baseline, candidate), was_made_before


def forget_old_keys(**of: Any) -> None:
    """Forget keys of a day ago, all of them or those of a filter: what comes with them now is a new request."""
    IdempotencyKey.objects.filter(**of, created_at__lt=Now() - KEPT).delete()


def _make_once(
    key: str, body: Any, user: Any, make: Callable[[], tuple[RunRecord, ...]]
) -> tuple[tuple[RunRecord, ...], bool]:
    """Return the runs that the key stands for, one or the two of a pair, and whether they were made before."""
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
