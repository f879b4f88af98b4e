"""What people write about a run, a release or a case."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class CommentRecord(models.Model):
    """A comment on one run, one release, or one case of a suite. Withdrawn, it stays without its text."""

    run = models.ForeignKey("runs.RunRecord", on_delete=models.CASCADE, null=True, related_name="comments")
    release = models.ForeignKey("runs.ReleaseRecord", on_delete=models.CASCADE, null=True, related_name="comments")
    suite = models.ForeignKey("runs.Suite", on_delete=models.CASCADE, null=True, related_name="comments")
    case = models.CharField(max_length=200, blank=True, help_text="the case's id within the suite")
    text = models.TextField(blank=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "runs_comment"
        constraints = [
            models.CheckConstraint(
                condition=Q(run__isnull=False, release=None, suite=None, case="")
                | Q(run=None, release__isnull=False, suite=None, case="")
                | Q(run=None, release=None, suite__isnull=False) & ~Q(case=""),
                name="a_comment_has_one_subject",
            )
        ]

    def __str__(self) -> str:
        return f"comment {self.pk}"
