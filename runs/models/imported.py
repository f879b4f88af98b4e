"""Other tools' logs that runs were read from."""

from django.conf import settings
from django.db import models


class ImportRecord(models.Model):
    """One import of a log. Files are not stored; `files` is a list of `{"name", "size", "sha256"}`.

    `digest` covers the files' content, the format and the requested suite, so that the same log is stored once.
    """

    format = models.CharField(max_length=40, help_text="a name of `evalboard.importers.FORMATS`")
    tool = models.CharField(max_length=100, help_text="the tool that wrote it, with its version where the log says it")
    digest = models.CharField(max_length=64, unique=True)
    files = models.JSONField()
    notes = models.JSONField(default=list, help_text="what the log does not say, or was not taken over")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "runs_import"
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"import {self.pk} ({self.format})"
