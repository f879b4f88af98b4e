"""Webhooks with what became of their last messages."""

from collections import defaultdict
from typing import Any
from urllib.parse import urlsplit

from django.db.models import Count, F, Q, Window
from django.db.models.functions import RowNumber

from evalboard.contract import access as contract
from evalboard.core.errors import NotFound
from runs.models import OutboxMessage, WebhookRecord

LAST_SHOWN = 10
WEBHOOK_ORDERS = {name: name for name in ("created_at", "url", "delivered_at")}
MAILTO = "mailto:"


def webhook_rows(ids: list[int] | None = None, *, owner: Any = None) -> tuple[contract.Webhook, ...]:
    """Return all webhooks, or those with the ids, newest first.

    owner: the person whose own addresses are returned instead.
    """
    waiting = Count("messages", filter=Q(messages__status=OutboxMessage.Status.WAITING))
    webhooks = WebhookRecord.objects.filter(owner=owner).select_related("created_by").annotate(n_waiting=waiting)
    webhooks = webhooks.order_by("-id")
    if ids is not None:
        webhooks = webhooks.filter(pk__in=ids)
    last = _last_messages([webhook.pk for webhook in webhooks])
    return tuple(_row(webhook, tuple(last[webhook.pk])) for webhook in webhooks)


def webhook_row(webhook_id: int, *, owner: Any = None) -> contract.Webhook:
    """Return a webhook. Raises NotFound. owner: as in `webhook_rows`."""
    rows = webhook_rows([webhook_id], owner=owner)
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
        url=webhook.url if webhook.owner_id is None else masked(webhook.url),
        events=tuple(webhook.events),
        created_by=webhook.created_by.get_username(),
        messages=messages,
    )


def masked(url: str) -> str:
    """Return a person's address without its secret: of a webhook only the host, as its path is secret."""
    return url if url.startswith(MAILTO) else f"https://{urlsplit(url).hostname}/***{url[-4:]}"
