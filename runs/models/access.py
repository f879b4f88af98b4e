"""Tokens, by which a program says who it is, and the keys by which it says that it asks again."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


def token_label(secret_digest: str) -> str:
    """Return the public part of a token, by which it may be named."""
    return f"evb_{secret_digest[:8]}"


class Token(models.Model):
    """An API token, stored only as SHA-256; 256 random bits need no slow hash."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="evalboard_tokens")
    name = models.CharField(max_length=80)
    secret_digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(help_text='of "read", "run", "sign", "admin"')
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name

    @property
    def label(self) -> str:
        return token_label(self.secret_digest)


class TourEnd(models.Model):
    """A person has ended the tour: their pages no longer offer it."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="tour_end"
    )
    at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.user}'s tour"


class IdempotencyKey(models.Model):
    """The key of a request that makes something, so that sending it again makes nothing more.

    Stored for a day. REST's makes a run, or a pair: `run` is the baseline, and `candidate` the other. A form's has the
    address that it led to.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="idempotency_keys")
    key = models.CharField(max_length=255)
    body_digest = models.CharField(max_length=64)
    run = models.ForeignKey("runs.RunRecord", on_delete=models.CASCADE, null=True, related_name="idempotency_keys")
    candidate = models.ForeignKey("runs.RunRecord", on_delete=models.CASCADE, null=True, related_name="+")
    address = models.TextField(default="")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_request_per_key")]

    def __str__(self) -> str:
        return self.key
