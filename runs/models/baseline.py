"""Baselines, which people set, and rotations, which make them expire."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Rotation(models.Model):
    """The first run or probe (the other is null) that a new stack behind an endpoint answered.

    profile_slug: the profile under which it did; "" for an external server, which does not know our profiles.
    """

    endpoint = models.ForeignKey("runs.EndpointRecord", on_delete=models.CASCADE, related_name="rotations")
    profile_slug = models.SlugField(max_length=80, blank=True)
    before = models.ForeignKey("runs.FingerprintRecord", on_delete=models.PROTECT, related_name="rotations_away")
    after = models.ForeignKey("runs.FingerprintRecord", on_delete=models.PROTECT, related_name="rotations_here")
    run = models.OneToOneField("runs.RunRecord", on_delete=models.CASCADE, null=True, related_name="rotation")
    probe = models.OneToOneField("runs.ProbeRecord", on_delete=models.CASCADE, null=True, related_name="rotation")
    at = models.DateTimeField(db_default=Now())
    attended_at = models.DateTimeField(
        null=True, help_text="when the reference sets of its baselines were started; null: not yet, or not wanted"
    )
    reference_runs = models.ManyToManyField(
        "runs.RunRecord", through="runs.RotationRun", related_name="+", help_text="started by themselves after it"
    )
    problem = models.TextField(
        blank=True, db_default="", help_text="why reference sets could not be started, a line each"
    )

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="a_run_or_a_probe_shows_a_rotation",
                condition=models.Q(run=None) ^ models.Q(probe=None),
            )
        ]
        indexes = [models.Index(fields=["endpoint", "profile_slug", "-id"], name="rotation_of_an_endpoint")]

    def __str__(self) -> str:
        return f"{self.endpoint.slug}, {self.profile_slug or 'every profile'}: {self.before} → {self.after}"


class RotationRun(models.Model):
    """A run of `Rotation.reference_runs`. Spelt out, so that its columns keep their names."""

    id = models.AutoField(primary_key=True)
    rotation = models.ForeignKey(Rotation, on_delete=models.CASCADE, related_name="+")
    run = models.ForeignKey("runs.RunRecord", on_delete=models.CASCADE, related_name="+")

    class Meta:
        db_table = "runs_rotation_reference_runs"
        unique_together = [("rotation", "run")]


class BaselineRecord(models.Model):
    """The run with which candidates of a model line are compared, per suite and profile; append-only.

    The newest row of (suite, line, profile) is the current one. `rotation` is the one that made it expire.
    """

    suite = models.ForeignKey("runs.Suite", on_delete=models.CASCADE, related_name="baselines")
    line = models.CharField(max_length=80)
    profile_slug = models.SlugField(max_length=80)
    run = models.ForeignKey("runs.RunRecord", on_delete=models.PROTECT, related_name="baselines")
    reason = models.TextField()
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    rotation = models.ForeignKey(Rotation, on_delete=models.SET_NULL, null=True, related_name="expired_baselines")

    class Meta:
        db_table = "runs_baseline"
        ordering = ["-id"]
        indexes = [models.Index(fields=["suite", "line", "profile_slug", "-id"], name="baseline_by_key")]

    def __str__(self) -> str:
        return f"{self.suite}, {self.line}, {self.profile_slug}: run {self.run_id}"
