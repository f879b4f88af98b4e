"""Webhooks: for admins, since what an address is told of is everybody's."""

from rest_framework.request import Request
from rest_framework.response import Response

from runs import services
from runs.access import ADMIN
from runs.api import pages, query
from runs.api.access import resource
from runs.api.access_answers import Webhook, WebhookMessage
from runs.api.answers import Page
from runs.api.describe import describe
from runs.api.serializers import Nothing, WebhookIn
from runs.api.shapes import instant
from runs.selectors.webhook import MessageRow, WebhookRow, webhook_row, webhook_rows


@resource(GET=ADMIN, POST=ADMIN)
@describe("GET", "Webhooks, each with its last messages", name="webhooks", answer=Page[Webhook], is_paged=True)
@describe(
    "POST",
    "Tell an address of events; the secret that signs is shown this once",
    name="create_webhook",
    body=WebhookIn,
    status=201,
    answer=Webhook,
    refuses=[409],
)
def webhook_list(request: Request) -> Response:
    if request.method == "POST":
        return _create(request)
    query.read(request)
    return pages.answer_with(request, webhook_rows(), show=_shape)


def _create(request: Request) -> Response:
    query.read(request, is_paged=False)
    body = WebhookIn(data=request.data)
    body.is_valid(raise_exception=True)
    webhook, secret = services.create_webhook(**body.validated_data, user=request.user)
    return Response({**_shape(webhook_row(webhook.pk)), "secret": secret}, status=201)


@resource(GET=ADMIN, DELETE=ADMIN)
@describe("GET", "A webhook with its last messages", name="webhook", answer=Webhook)
@describe("DELETE", "Delete a webhook, with the messages that wait for it", name="delete_webhook", status=204)
def webhook_detail(request: Request, webhook_id: int) -> Response:
    query.read(request, is_paged=False)
    if request.method == "DELETE":
        services.delete_webhook(webhook_id=webhook_id)
        return Response(status=204)
    return Response(_shape(webhook_row(webhook_id)))


@resource(POST=ADMIN)
@describe(
    "POST",
    "Switch a webhook on again after failures",
    name="switch_webhook_on",
    body=Nothing,
    is_body_required=False,
    answer=Webhook,
)
def switch_on(request: Request, webhook_id: int) -> Response:
    query.read(request, is_paged=False)
    Nothing(data=request.data).is_valid(raise_exception=True)
    services.switch_on(webhook_id=webhook_id)
    return Response(_shape(webhook_row(webhook_id)))


@resource(POST=ADMIN)
@describe(
    "POST",
    "Send a message that tells of nothing, to see whether it arrives",
    name="send_webhook_test",
    body=Nothing,
    is_body_required=False,
    status=202,
    answer=Webhook,
    refuses=[409],
)
def send_test(request: Request, webhook_id: int) -> Response:
    query.read(request, is_paged=False)
    Nothing(data=request.data).is_valid(raise_exception=True)
    services.send_test(webhook_id=webhook_id)
    return Response(_shape(webhook_row(webhook_id)), status=202)


def _shape(row: WebhookRow) -> Webhook:
    return {
        "id": str(row.id),
        "url": row.url,
        "events": list(row.events),
        "created_by": row.created_by,
        "created_at": instant(row.created_at),
        "is_active": row.is_active,
        "n_failures": row.n_failures,
        "n_waiting": row.n_waiting,
        "delivered_at": instant(row.delivered_at),
        "last_error": row.last_error,
        "messages": [_message(message) for message in row.messages],
    }


def _message(row: MessageRow) -> WebhookMessage:
    return {
        "id": row.message_id,
        "event": row.event,
        "status": row.status,
        "n_attempts": row.n_attempts,
        "last_error": row.last_error,
        "created_at": instant(row.created_at),
        "delivered_at": instant(row.delivered_at),
        "next_attempt_at": instant(row.next_at),
    }
