"""Webhooks with what became of their last messages."""

from collections import defaultdict

from django.db.models import Count, F, Q, Window
from django.db.models.functions import RowNumber

from evalboard.contract import access as contract
from evalboard.core.errors import NotFound
from runs.models import OutboxMessage, WebhookRecord

LAST_SHOWN = 10


def webhook_rows(ids: list[int] | None = None) -> tuple[contract.Webhook, ...]:
    """Return all webhooks, or those named, newest first."""
    waiting = Count("messages", filter=Q(messages__status=OutboxMessage.Status.WAITING))
    webhooks = WebhookRecord.objects.select_related("created_by").annotate(n_waiting=waiting).order_by("-id")
    if ids is not None:
        webhooks = webhooks.filter(pk__in=ids)
    last = _last_messages([webhook.pk for webhook in webhooks])
    return tuple(_row(webhook, tuple(last[webhook.pk])) for webhook in webhooks)


def webhook_row(webhook_id: int) -> contract.Webhook:
    """Return a webhook. Raises NotFound."""
    rows = webhook_rows([webhook_id])
    if not rows:
        raise NotFound(f"There is no webhook {webhook_id}.")
    return rows[0]


def _last_messages(webhook_ids: list[int]) -> dict[int, list[contract.WebhookMessage]]:
    newest = Window(RowNumber(), partition_by="webhook_id", order_by=F("id").desc())
    messages = OutboxMessage.objects.filter(webhook__in=webhook_ids).annotate(place=newest)
    rows: dict[int, list[contract.WebhookMessage]] = defaultdict(list)
    for message in messages.filter(place__lte=LAST_SHOWN).order_by("-id"):
        rows[message.webhook_id].append(_message(message))
    return rows


def _message(message: OutboxMessage) -> contract.WebhookMessage:
    is_waiting = message.status == OutboxMessage.Status.WAITING
    return contract.WebhookMessage.from_record(
        message,
        id=message.message_id,
        next_attempt_at=message.next_at if is_waiting else None,
    )


def _row(webhook: WebhookRecord, messages: tuple[contract.WebhookMessage, ...]) -> contract.Webhook:
    return contract.Webhook.from_record(
        webhook,
        id=str(webhook.pk),
        events=tuple(webhook.events),
        created_by=webhook.created_by.get_username(),
        messages=messages,
    )
