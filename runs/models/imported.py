"""Other tools' logs that runs were read from."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


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


class ImportReadingRecord(models.Model):
    """A log too large to read within its request: a process of its own reads it, and beats here meanwhile.

    The files are open in that process alone, so a reading that is lost cannot be continued. It stores all or nothing.
    """

    class Status(models.TextChoices):
        READING = "reading"
        STORED = "stored"
        FAILED = "failed"

    status = models.CharField(max_length=10, choices=Status.choices, default=Status.READING)
    options = models.JSONField(help_text="the arguments of `import_logs` that are not files")
    names = models.JSONField(help_text="of the files")
    n_bytes = models.BigIntegerField(help_text="of the files, as they were sent")
    problem = models.JSONField(null=True, help_text="contract.base.Problem; null: none")
    source = models.ForeignKey(ImportRecord, on_delete=models.SET_NULL, null=True, related_name="readings")
    is_new = models.BooleanField(null=True, help_text="false where that log was imported before")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    beat_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "runs_importreading"
        ordering = ["-id"]
        indexes = [models.Index(fields=["id"], condition=models.Q(status="reading"), name="readings_under_way")]

    def __str__(self) -> str:
        return f"reading {self.pk} of a log ({self.status})"
