"""Policies: the thresholds that turn comparisons into a verdict."""

from django.conf import settings
from django.db import models


class PolicyRecord(models.Model):
    """Versioned thresholds. A change makes a new version; a verdict keeps the one it was taken under.

    `settings` has the shape that `core.suite.parse_policy` checks; see docs/verdict.md.
    """

    slug = models.SlugField(max_length=80)
    version = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=200)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    settings = models.JSONField()
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "runs_policy"
        ordering = ["slug", "-version"]
        verbose_name_plural = "policies"
        constraints = [models.UniqueConstraint(fields=["slug", "version"], name="one_policy_per_version")]

    def __str__(self) -> str:
        return self.slug if self.version == 1 else f"{self.slug} v{self.version}"
