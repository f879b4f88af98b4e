"""Judgings: answers scored by a judge, the anchors that show whether it moved, and labels by people."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class AnchorSetRecord(models.Model):
    """Fixed answers that a judge scores with every run of a suite; the newest set of a suite counts.

    `anchors` are `[{"case", "messages", "target", "tags", "text"}]`; `digest` covers them.
    """

    suite = models.ForeignKey("runs.Suite", on_delete=models.CASCADE, related_name="anchor_sets")
    digest = models.CharField(max_length=64)
    anchors = models.JSONField()
    made_from = models.ForeignKey("runs.RunRecord", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "runs_anchorset"
        constraints = [models.UniqueConstraint(fields=["suite", "digest"], name="one_anchor_set_per_content")]

    def __str__(self) -> str:
        return f"anchors {self.digest[:8]}"


class JudgingRecord(models.Model):
    """The answers of a run as a judge scored them, in a run of its own (`judge_run`).

    `anchor_scores` are float[n_anchors][draws], null where unscored; `noise` is what answers judged more than once
    show (`contract.judge.JudgeNoise`). `served` are the ids of the buckets that judged.
    """

    class Status(models.TextChoices):
        RUNNING = "running"
        FINISHED = "finished"
        FAILED = "failed"

    run = models.ForeignKey("runs.RunRecord", on_delete=models.CASCADE, related_name="judgings")
    scorer = models.ForeignKey("runs.Scorer", on_delete=models.PROTECT, related_name="+")
    judge_run = models.OneToOneField("runs.RunRecord", on_delete=models.SET_NULL, null=True, related_name="judging_of")
    anchors = models.ForeignKey(AnchorSetRecord, on_delete=models.PROTECT, null=True, related_name="+")
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.RUNNING)
    anchor_scores = models.JSONField(null=True)
    noise = models.JSONField(null=True)
    served = models.JSONField(default=list)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "runs_judging"
        constraints = [models.UniqueConstraint(fields=["run", "scorer"], name="one_judging_per_scorer")]

    def __str__(self) -> str:
        return f"judging of run {self.run_id}"


class LabelRecord(models.Model):
    """A person's label of one answer to a case: right (1) or wrong (0), wherever that answer is given."""

    suite = models.ForeignKey("runs.Suite", on_delete=models.CASCADE, related_name="labels")
    case_digest = models.CharField(max_length=64)
    text_digest = models.BinaryField()
    value = models.FloatField()
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "runs_label"
        constraints = [
            models.UniqueConstraint(
                fields=["suite", "case_digest", "text_digest", "person"], name="one_label_per_person_and_answer"
            )
        ]

    def __str__(self) -> str:
        return f"label {self.pk}"
