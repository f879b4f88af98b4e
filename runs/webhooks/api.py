"""Webhooks: for admins, since what an address is told of is everybody's."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.access import NewWebhook, Webhook
from evalboard.contract.base import Page
from runs import webhooks
from runs.access import ADMIN
from runs.api import pages, query, wire
from runs.api.access import resource
from runs.api.describe import describe
from runs.api.serializers import Nothing, Strict, Text, read_body
from runs.webhooks.read import webhook_row, webhook_rows
from runs.webhooks.webhooks import EVENTS, create_webhook, delete_webhook


class WebhookIn(Strict):
    url = Text()
    events = serializers.ListField(child=serializers.ChoiceField(list(EVENTS)))


@resource(GET=ADMIN, POST=ADMIN)
@describe("GET", "Webhooks, each with its last messages", name="webhooks", answer=Page[Webhook])
@describe(
    "POST",
    "Send events to an address; the signing secret is shown only once",
    name="create_webhook",
    body=WebhookIn,
    status=201,
    answer=NewWebhook,
    refuses=[409],
)
def webhook_list(request: Request) -> Response:
    if request.method == "POST":
        webhook, secret = create_webhook(**read_body(WebhookIn, request), user=request.user)
        return wire.answer(NewWebhook(**dict(webhook_row(webhook.pk)), secret=secret), request, status=201)
    query.read(request)
    return pages.answer_with(request, webhook_rows())


@resource(GET=ADMIN, DELETE=ADMIN)
@describe("GET", "A webhook with its last messages", name="webhook", answer=Webhook)
@describe("DELETE", "Delete a webhook, with the messages that wait for it", name="delete_webhook", status=204)
def webhook_detail(request: Request, webhook_id: int) -> Response:
    query.read(request, is_paged=False)
    if request.method == "DELETE":
        delete_webhook(webhook_id=webhook_id)
        return Response(status=204)
    return wire.answer(webhook_row(webhook_id), request)


@resource(POST=ADMIN)
@describe("POST", "Switch a webhook on again after failures", name="switch_webhook_on", body=Nothing, answer=Webhook)
def switch_on(request: Request, webhook_id: int) -> Response:
    read_body(Nothing, request)
    webhooks.switch_on(webhook_id=webhook_id)
    return wire.answer(webhook_row(webhook_id), request)


@resource(POST=ADMIN)
@describe(
    "POST",
    "Send a test message",
    name="send_webhook_test",
    body=Nothing,
    status=202,
    answer=Webhook,
    refuses=[409],
)
def send_test(request: Request, webhook_id: int) -> Response:
    read_body(Nothing, request)
    webhooks.send_test(webhook_id=webhook_id)
    return wire.answer(webhook_row(webhook_id), request, status=202)
