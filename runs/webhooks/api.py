"""Webhooks, for admins; what a person follows, and the addresses where Evalboard notifies them."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.access import KINDS_FOLLOWED, Follow, NewWebhook, Webhook
from evalboard.contract.base import Page
from runs import webhooks
from runs.access import ADMIN, READ
from runs.api import pages, query, wire
from runs.api.access import resource
from runs.api.describe import describe
from runs.api.serializers import Nothing, Strict, Text, read_body
from runs.webhooks.follows import create_address, follow, follow_rows, unfollow
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


class FollowIn(Strict):
    kind = serializers.ChoiceField(list(KINDS_FOLLOWED))
    name = Text()


class AddressIn(Strict):
    url = Text()


@resource(GET=READ, POST=READ)
@describe("GET", "What you follow, newest first", name="follows", answer=Page[Follow])
@describe("POST", "Follow something", name="follow", body=FollowIn, status=201, answer=Follow, refuses=[404, 409])
def follow_list(request: Request) -> Response:
    if request.method == "POST":
        made = follow(**read_body(FollowIn, request), person=request.user)
        (row,) = follow_rows(request.user, kind=made.kind, name=made.name)
        return wire.answer(row, request, status=201)
    query.read(request)
    return pages.answer_with(request, follow_rows(request.user))


@resource(DELETE=READ)
@describe("DELETE", "Stop following it", name="unfollow", status=204)
def follow_detail(request: Request, follow_id: int) -> Response:
    query.read(request, is_paged=False)
    unfollow(follow_id=follow_id, person=request.user)
    return Response(status=204)


@resource(GET=READ, POST=READ)
@describe("GET", "The addresses where Evalboard notifies you", name="addresses", answer=Page[Webhook])
@describe(
    "POST",
    "Add an address of your own: https://… for a chat, or mailto:…",
    name="create_address",
    body=AddressIn,
    status=201,
    answer=NewWebhook,
    refuses=[409],
)
def address_list(request: Request) -> Response:
    if request.method == "POST":
        made, secret = create_address(**read_body(AddressIn, request), person=request.user)
        row = webhook_row(made.pk, owner=request.user)
        return wire.answer(NewWebhook(**dict(row), secret=secret), request, status=201)
    query.read(request)
    return pages.answer_with(request, webhook_rows(owner=request.user))


@resource(DELETE=READ)
@describe("DELETE", "Delete an address of your own, with what waits for it", name="delete_address", status=204)
def address_detail(request: Request, webhook_id: int) -> Response:
    query.read(request, is_paged=False)
    delete_webhook(webhook_id=webhook_id, owner=request.user)
    return Response(status=204)
