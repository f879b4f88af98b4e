"""Suites on their way: too large for one request, sent in parts and read by a worker."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class UploadRecord(models.Model):
    """The cases of a suite version that is sent in parts. `n_read` is the parser's progress.

    `fields` are the problems by line, as in a refused request. Rows untouched for a day are deleted.
    """

    class Status(models.TextChoices):
        OPEN = "open", "takes parts"
        READING = "reading", "whole; a worker reads it, or will"
        FINISHED = "finished"
        FAILED = "failed"

    slug = models.CharField(max_length=80)
    title = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.OPEN)
    n_bytes = models.BigIntegerField(null=True, help_text="of all lines; null while it takes parts")
    n_read = models.BigIntegerField(default=0, help_text="bytes whose cases are checked and kept")
    n_lines = models.PositiveIntegerField(default=0, help_text="of what was read")
    n_cases = models.PositiveIntegerField(default=0, help_text="of what was read")
    header = models.JSONField(default=dict, help_text="what the first line says of the suite")
    fields = models.JSONField(default=dict)
    version = models.ForeignKey("runs.SuiteVersionRecord", on_delete=models.SET_NULL, null=True, related_name="uploads")
    is_new = models.BooleanField(null=True, help_text="false where that content was stored before")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    touched_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "runs_upload"
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"upload {self.pk}"


class UploadPartRecord(models.Model):
    """Whole lines of JSONL in one zstd frame, until parsed. offset, n_bytes: of the lines."""

    upload = models.ForeignKey(UploadRecord, on_delete=models.CASCADE, related_name="parts")
    offset = models.BigIntegerField()
    n_bytes = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64, help_text="of the lines")
    data = models.BinaryField()

    class Meta:
        db_table = "runs_uploadpart"
        ordering = ["upload_id", "offset"]
        constraints = [models.UniqueConstraint(fields=["upload", "offset"], name="one_part_per_offset")]

    def __str__(self) -> str:
        return f"part {self.pk}"


class UploadedCase(models.Model):
    """A parsed case of an upload, with its scorer. Deleted once the version is stored."""

    # Without an index of its own: the one over (upload, index) serves.
    upload = models.ForeignKey(UploadRecord, on_delete=models.CASCADE, related_name="cases", db_index=False)
    index = models.PositiveIntegerField()
    case_id = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    content = models.JSONField()
    tags = models.JSONField()
    group = models.CharField(max_length=200)
    is_reference = models.BooleanField()
    scorer = models.JSONField(null=True)

    class Meta:
        ordering = ["upload_id", "index"]
        constraints = [
            models.UniqueConstraint(fields=["upload", "index"], name="one_uploaded_case_per_index"),
            models.UniqueConstraint(fields=["upload", "case_id"], name="one_uploaded_case_per_id"),
        ]

    def __str__(self) -> str:
        return self.case_id
