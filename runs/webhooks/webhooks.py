"""Webhooks and their events. Messages are written in the event's transaction and sent by `outbox`."""

import base64
import contextlib
import ipaddress
import json
import secrets
import socket
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from evalboard.calling.addresses import Address
from evalboard.contract.access import TEST
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from runs import acts
from runs.models import OutboxMessage, WebhookRecord
from runs.store import counters, require_row
from runs.webhooks.web_address import host_problem

# What each event tells of, for people; docs/operations.md has the payloads.
EVENTS = {
    "release.decided": "a release's verdict was reached, or changed",
    "run.finished": "a run ended with every response",
    "run.incomplete": "a run ended, and responses are missing",
    "run.failed": "a run ended without one response that counts",
    "rotation.noticed": "an endpoint answers with another serving stack than before",
    "audit.incident": "workers gave unlike answers to the same input",
}
SECRET_PREFIX = "whsec_"  # noqa: S105  the prefix of secrets, by which log filters and scanners know one
# Who is told of an event. The rows are kept from being deleted until the messages are written, and from nothing else:
# whoever sends to them at this moment is not waited for.
SUBSCRIBERS = "SELECT id FROM runs_webhook WHERE is_active AND events @> %s::jsonb ORDER BY id FOR KEY SHARE"
LONGEST_URL = 500
MAX_TESTS = 10  # in a minute of one person: every reader may name the address of another person
MAX_WEBHOOKS = 50  # each event writes a row for each of them


def notify(*, event: str, payload: Mapping[str, Any], text: str = "") -> None:
    """Write a message to each webhook that subscribed to `event`, in the caller's transaction.

    `payload` is JSON and becomes the message's `data`; `text` is a sentence for people, by default the payload's
    `summary`, with its `url` after it. Raises KeyError for an event that is none.
    """
    EVENTS[event]
    webhooks = WebhookRecord.objects.raw(SUBSCRIBERS, [json.dumps([event])])
    OutboxMessage.objects.bulk_create([make_message(webhook, event, payload, text) for webhook in webhooks])


def page_url(path: str) -> str:
    """Return a page's full address below EVALBOARD_PUBLIC_ADDRESS, or its path if that is not set."""
    return settings.PUBLIC_ADDRESS + path


@transaction.atomic
def create_webhook(*, url: str, events: Iterable[str], user: Any) -> tuple[WebhookRecord, str]:
    """Tell an address of events; the signing secret is returned here and never again.

    Names are resolved where messages are sent, which is not here: an address that turns out to be private then
    fails its messages. Raises InvalidInput with fields.
    """
    wanted = sorted(set(events))
    fields: dict[str, str] = {}
    if problem := url_problem(url):
        fields["url"] = problem
    if not wanted or not set(wanted) <= set(EVENTS):
        fields["events"] = f"One or more of: {', '.join(EVENTS)}."
    if fields:
        raise InvalidInput("The webhook is not valid.", fields=fields)
    if WebhookRecord.objects.filter(owner=None).count() >= MAX_WEBHOOKS:
        raise Conflict(f"There are {MAX_WEBHOOKS} webhooks already; delete one that is not needed.")
    secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    return WebhookRecord.objects.create(url=url, secret=secret, events=wanted, created_by=user), secret


def delete_webhook(*, webhook_id: int, owner: Any = None) -> None:
    """Delete a webhook or a person's own address with all its messages. Raises NotFound."""
    if WebhookRecord.objects.filter(pk=webhook_id, owner=owner).delete()[0] == 0:
        raise NotFound(f"There is no webhook {webhook_id}.")


@transaction.atomic
def switch_on(*, webhook_id: int, owner: Any = None) -> WebhookRecord:
    """Enable a webhook that was disabled after failures; missed events are not sent. Raises NotFound."""
    webhook = require_row(
        WebhookRecord.objects.select_for_update().filter(pk=webhook_id, owner=owner),
        f"There is no webhook {webhook_id}.",
    )
    webhook.is_active, webhook.n_failures, webhook.last_error = True, 0, ""
    webhook.save(update_fields=["is_active", "n_failures", "last_error"])
    return webhook


def send_test(*, webhook_id: int, owner: Any = None) -> OutboxMessage:
    """Write a test message. Raises NotFound, or Conflict if the webhook is disabled or too many were sent."""
    webhook = require_row(
        WebhookRecord.objects.filter(pk=webhook_id, owner=owner), f"There is no webhook {webhook_id}."
    )
    acts.require("test", webhook)
    of = "webhooks" if owner is None else owner.pk
    if (counters.count(f"test-messages:{of}", seconds=60) or 0) > MAX_TESTS:
        raise Conflict(f"{MAX_TESTS} test messages were sent within a minute. Send the next one a minute later.")
    page = "/settings/webhooks/" if owner is None else "/settings/notifications/"
    message = make_message(webhook, TEST, {"url": page_url(page)}, "This address works.")
    message.save()
    return message


def make_message(webhook: WebhookRecord, event: str, payload: Mapping[str, Any], text: str) -> OutboxMessage:
    """Return a message. `text` is at the top level because chat services show it."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    words = f"{text or payload.get('summary') or event} {payload.get('url', '')}".strip()
    return OutboxMessage(
        webhook=webhook,
        message_id=f"msg_{secrets.token_hex(16)}",
        event=event,
        payload={"type": event, "timestamp": at, "text": words, "data": dict(payload)},
    )


def url_problem(url: str) -> str | None:
    """Return the problem of a webhook's address, as far as known without network access."""
    if len(url) > LONGEST_URL:
        return f"At most {LONGEST_URL} characters."
    if not url.isascii() or not url.isprintable() or " " in url:
        return "Use visible ASCII characters; percent-encode others."
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "This is not an address."
    if parts.scheme not in ("https", "http") or not parts.hostname:
        return "Must start with https:// or http:// and name a host."
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "Leave out user names, passwords and what follows a #: the signature says who sends."
    address = _plain_address(parts.hostname)
    return None if address is None else host_problem(parts.hostname, [address])


def _plain_address(host: str) -> Address | None:
    """Return the address that a host is without a look-up: of digits, as in `0x7f.1`, or this machine."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host)
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return ipaddress.IPv4Address("127.0.0.1")
    with contextlib.suppress(OSError):
        return ipaddress.IPv4Address(socket.inet_aton(name))  # as the resolver reads it
    return None
