"""A message's way out: claimed by one sender, tried until it is taken or a day old, then given up.

At least once: a sender that dies between sending and saying so leaves the message to the next, under the same id.
"""

import json
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from runs.access import READ, may
from runs.models import OutboxMessage, WebhookRecord
from runs.store import storable

# How long after each failed attempt the next one comes; after the last pause, and after a day, it is given up.
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 1800, 3600, 7200, 14400, 21600, 28800))
GIVEN_UP_AFTER = timedelta(hours=24)
# Longer than any attempt takes: until then no other process sends the message.
CLAIMED_FOR = timedelta(seconds=60)
# What else waits for a webhook that has just failed waits this long: a dead receiver must not hold up the others.
OTHERS_WAIT = timedelta(seconds=60)
OFF_AFTER = 5  # messages given up in a row
KEPT = timedelta(days=30)
GONE = 410  # the receiver says that it wants no more; https://www.standardwebhooks.com asks senders to heed it
LONGEST_ERROR = 500

CLAIM = """
UPDATE runs_outboxmessage
   SET n_attempts = n_attempts + 1, next_at = clock_timestamp() + make_interval(secs => %(claimed_for)s)
 WHERE id = (
       SELECT message.id
         FROM runs_outboxmessage message
         JOIN runs_webhook webhook ON webhook.id = message.webhook_id
        WHERE message.status = 'waiting' AND message.next_at <= clock_timestamp() AND webhook.is_active
        ORDER BY message.next_at, message.id
        LIMIT 1
          FOR UPDATE OF message SKIP LOCKED)
RETURNING id, n_attempts
"""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt at one message: where to, what, and the secret that signs it."""

    message: int
    attempt: int
    message_id: str
    url: str
    secret: str = field(repr=False)
    body: str


def claim_message() -> Delivery | None:
    """Claim the most overdue message for a minute; None if none is due."""
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, {"claimed_for": CLAIMED_FOR.total_seconds()})
        row = cursor.fetchone()
    if row is None:
        return None
    message = OutboxMessage.objects.select_related("webhook__owner").filter(pk=row[0]).first()
    if message is None:  # deleted with its webhook at this moment
        return None
    if message.webhook.owner is not None and not may(message.webhook.owner, READ):
        failed = {"status": OutboxMessage.Status.FAILED, "last_error": "This person has no access any more."}
        OutboxMessage.objects.filter(pk=message.pk).update(**failed)
        return claim_message()
    body = json.dumps(message.payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    webhook = message.webhook
    return Delivery(message.pk, row[1], message.message_id, webhook.url, webhook.secret, body)


@transaction.atomic
def record_delivery(*, message: int) -> None:
    """Mark a message as delivered, even if another attempt is in progress."""
    webhook = WebhookRecord.objects.select_for_update(no_key=True, of=("self",)).filter(messages=message).first()
    if webhook is None:
        return  # deleted meanwhile, with its messages
    sent = OutboxMessage.objects.filter(pk=message).exclude(status=OutboxMessage.Status.DELIVERED)
    sent.update(status=OutboxMessage.Status.DELIVERED, delivered_at=Now(), last_error="")
    webhook.n_failures, webhook.delivered_at, webhook.last_error = 0, Now(), ""
    webhook.save(update_fields=["n_failures", "delivered_at", "last_error"])


@transaction.atomic
def record_failure(*, message: int, attempt: int, error: str, status: int | None = None) -> None:
    """Record a failed attempt: schedule a retry, or abandon the message, and in the end the webhook.

    status: of the receiver's answer, if any. Does nothing if another attempt has begun since.
    """
    mine = OutboxMessage.objects.filter(pk=message, n_attempts=attempt, status=OutboxMessage.Status.WAITING)
    webhook = WebhookRecord.objects.select_for_update(no_key=True, of=("self",)).filter(messages__in=mine).first()
    if webhook is None:
        return
    text = storable(error)[:LONGEST_ERROR]
    webhook.last_error = text
    is_too_old = mine.filter(created_at__lt=Now() - GIVEN_UP_AFTER).exists()
    if attempt <= len(PAUSES) and not is_too_old and status != GONE:
        mine.update(next_at=Now() + PAUSES[attempt - 1], last_error=text)
        others = OutboxMessage.objects.filter(webhook=webhook, status=OutboxMessage.Status.WAITING)
        soon = Now() + OTHERS_WAIT
        others.exclude(pk=message).filter(next_at__lt=soon).update(next_at=soon)
    else:
        mine.update(status=OutboxMessage.Status.FAILED, last_error=text)
        webhook.n_failures = F("n_failures") + 1
    webhook.save(update_fields=["n_failures", "last_error"])
    webhook.refresh_from_db()
    if status == GONE or webhook.n_failures >= OFF_AFTER:
        _switch_off(webhook)


def forget_old_messages() -> None:
    """Delete messages older than a month that are not retried any more."""
    ended = OutboxMessage.objects.exclude(status=OutboxMessage.Status.WAITING)
    ended.filter(created_at__lt=Now() - KEPT).delete()


def _switch_off(webhook: WebhookRecord) -> None:
    WebhookRecord.objects.filter(pk=webhook.pk).update(is_active=False)
    waiting = OutboxMessage.objects.filter(webhook=webhook, status=OutboxMessage.Status.WAITING)
    waiting.update(status=OutboxMessage.Status.FAILED, last_error="The webhook was switched off.")
