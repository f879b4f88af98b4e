"""Tokens: how a program says who it is."""

from django.conf import settings
from django.db import models


class Token(models.Model):
    """A secret kept as its SHA-256 only; 256 random bits need no slow hash."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="evalboard_tokens")
    name = models.CharField(max_length=80)
    secret_digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(help_text='of "read", "run", "sign", "admin"')
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name
