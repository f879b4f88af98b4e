"""Webhooks, the outbox that their messages wait in, and what people follow."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class WebhookRecord(models.Model):
    """An address that receives events. Its secret signs messages, so it is stored as it is.

    With an `owner` it is that person's own, https://… or mailto:…, and receives what they follow.
    """

    url = models.URLField(max_length=500)
    secret = models.CharField(max_length=100)
    events = models.JSONField(help_text="the kinds it is told of; see docs/operations.md")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="addresses")
    created_at = models.DateTimeField(auto_now_add=True)
    is_active = models.BooleanField(default=True, help_text="false after too many failures in a row")
    n_failures = models.PositiveIntegerField(default=0, help_text="messages given up on, in a row")
    delivered_at = models.DateTimeField(null=True, help_text="the last message that was taken")
    last_error = models.CharField(max_length=500, blank=True)

    class Meta:
        db_table = "runs_webhook"
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.url


class FollowRecord(models.Model):
    """What a person follows: a kind of record, and its id. `name` is its slug or id, as people call it."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="follows")
    kind = models.CharField(max_length=20)
    subject = models.BigIntegerField()
    name = models.CharField(max_length=300, help_text="of a case: its suite, a slash and its id")
    created_at = models.DateTimeField(auto_now_add=True)
    states = models.JSONField(
        default=dict, db_default={}, help_text="of a case, by endpoint: [passed, run, repeats] that its person knows of"
    )

    class Meta:
        db_table = "runs_follow"
        constraints = [models.UniqueConstraint(fields=["kind", "subject", "person"], name="one_follow_each")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class OutboxMessage(models.Model):
    """One message to one webhook, written in the event's transaction and retried until accepted."""

    class Status(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        FAILED = "failed"

    webhook = models.ForeignKey(WebhookRecord, on_delete=models.CASCADE, related_name="messages")
    message_id = models.CharField(max_length=64, unique=True)
    event = models.CharField(max_length=40)
    payload = models.JSONField()
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.WAITING)
    n_attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(db_default=Now())
    last_error = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["next_at", "id"], condition=models.Q(status="waiting"), name="outbox_waiting")]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook}"
