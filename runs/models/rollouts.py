"""Rollouts of training runs, step by step: figures that a trainer measured and sent."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class RolloutSeriesRecord(models.Model):
    """The steps of one training run."""

    name = models.CharField(max_length=80, unique=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "runs_rolloutseries"

    def __str__(self) -> str:
        return self.name


class RolloutStepRecord(models.Model):
    """A step as it was logged last. figures: `contract.rollouts.RolloutFigures`."""

    series = models.ForeignKey(RolloutSeriesRecord, on_delete=models.CASCADE, related_name="steps", db_index=False)
    step = models.PositiveBigIntegerField()
    figures = models.JSONField()
    kl_k3 = models.FloatField(null=True)
    clip_share = models.FloatField(null=True)
    max_kl = models.FloatField(null=True)
    max_clip_share = models.FloatField(null=True)
    is_over = models.BooleanField()
    n_logged = models.PositiveIntegerField(default=1)
    logged_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "runs_rolloutstep"
        constraints = [models.UniqueConstraint(fields=["series", "step"], name="a_step_is_logged_once")]

    def __str__(self) -> str:
        return f"step {self.step}"
