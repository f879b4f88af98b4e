"""Rules that delete old answers, and what was deleted."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class RetentionRuleRecord(models.Model):
    """Delete something of runs that ended more than `days` ago, of one suite or label, or of any."""

    class What(models.TextChoices):
        """In the order in which rules delete: a run without texts has no traces either."""

        TRACES = "traces"
        TEXTS = "texts"
        RUNS = "runs"

    what = models.CharField(max_length=10, choices=What.choices)
    days = models.PositiveIntegerField()
    suite = models.ForeignKey("runs.Suite", on_delete=models.CASCADE, null=True, related_name="+")
    label = models.CharField(max_length=242, blank=True, help_text="key=value; empty: any run")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "runs_retentionrule"
        ordering = ["id"]

    def __str__(self) -> str:
        return f"retention rule {self.pk}"


class DeletionRecord(models.Model):
    """The tombstone of something that was deleted; append-only. The run that it names may be gone too."""

    class What(models.TextChoices):
        TRACES = "traces"
        TEXTS = "texts"
        RUNS = "runs"
        CASE = "case"

    what = models.CharField(max_length=10, choices=What.choices)
    run = models.BigIntegerField(null=True, help_text="its id; null: a case of a suite version")
    suite_version = models.ForeignKey(
        "runs.SuiteVersionRecord", on_delete=models.SET_NULL, null=True, related_name="deletions"
    )
    case_id = models.CharField(max_length=200, blank=True)
    why = models.TextField(help_text="the rule in words, or a person's reason")
    n_responses = models.PositiveIntegerField()
    n_bytes = models.BigIntegerField(help_text="as they were stored")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+", help_text="null: a rule"
    )
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "runs_deletion"
        ordering = ["-id"]
        indexes = [models.Index(fields=["run"], name="deletions_of_run")]

    def __str__(self) -> str:
        return f"deletion {self.pk} of {self.what}"
