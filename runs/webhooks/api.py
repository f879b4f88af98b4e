"""Webhooks, for admins; what a person follows, and the addresses where Evalboard notifies them."""

from typing import Any, Final

from rest_framework import serializers

from evalboard.contract.access import KINDS_FOLLOWED, Follow, NewWebhook, Webhook
from runs import webhooks
from runs.access import ADMIN, READ
from runs.api.resource import Resource, serve
from runs.api.serializers import Strict, Text
from runs.models import WebhookRecord
from runs.webhooks.follows import NOT_FOLLOWED, create_address, follow, follow_row, follow_rows, unfollow
from runs.webhooks.read import webhook_row, webhook_rows
from runs.webhooks.webhooks import EVENTS, create_webhook, delete_webhook


class AddressIn(Strict):
    url = Text()


class WebhookIn(AddressIn):
    events = serializers.ListField(child=serializers.ChoiceField(list(EVENTS)))


class FollowIn(Strict):
    kind = serializers.ChoiceField(list(KINDS_FOLLOWED), error_messages={"invalid_choice": NOT_FOLLOWED})
    name = Text()


def _show(made: tuple[WebhookRecord, str]) -> NewWebhook:
    webhook, secret = made
    return NewWebhook(**dict(webhook_row(webhook.pk, owner=webhook.owner)), secret=secret)


# How either is made: the secret is in this answer alone.
SECRET: Final[Any] = {"show": _show, "answer": NewWebhook, "is_located": False, "refuses": [409]}
WEBHOOK = Resource("webhook", Webhook, webhook_row, reads=ADMIN, changes=ADMIN)
ADDRESS = Resource("address", Webhook, webhook_row, changes=READ, owner="owner")
FOLLOW = Resource("follow", Follow, follow_row, changes=READ, owner="person", takes_record=True)

webhook_list = serve(
    WEBHOOK.listed("webhooks", "Webhooks, each with its last messages", Webhook, webhook_rows),
    WEBHOOK.made(
        "Send events to an address; the signing secret is shown only once", WebhookIn, create_webhook, **SECRET
    ),
)
webhook_detail = serve(
    WEBHOOK.one("A webhook with its last messages"),
    WEBHOOK.deleted("Delete a webhook, with the messages that wait for it", delete_webhook),
)
switch_on = serve(WEBHOOK.acted("switch_webhook_on", "Switch a webhook on again after failures", webhooks.switch_on))
send_test = serve(
    WEBHOOK.acted("send_webhook_test", "Send a test message", webhooks.send_test, status=202, refuses=[409])
)
address_list = serve(
    ADDRESS.listed("addresses", "The addresses where Evalboard notifies you", Webhook, webhook_rows),
    ADDRESS.made(
        "Add an address of your own: https://… for a chat, or mailto:…",
        AddressIn,
        create_address,
        by="person",
        **SECRET,
    ),
)
address_detail = serve(ADDRESS.deleted("Delete an address of your own, with what waits for it", delete_webhook))
follow_list = serve(
    FOLLOW.listed("follows", "What you follow, newest first", Follow, follow_rows),
    FOLLOW.made("Follow something", FollowIn, follow, name="follow", is_located=False, refuses=[404, 409]),
)
follow_detail = serve(FOLLOW.deleted("Stop following it", unfollow, name="unfollow"))
