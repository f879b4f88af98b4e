"""Comparisons of a baseline and a candidate: the results, and only those pairs that differ."""

from django.contrib.postgres.indexes import GinIndex
from django.db import models

from evalboard.contract.treatments import BY_INPUT, MODEL_TREATMENT, Terms


class ComparisonRecord(models.Model):
    """Two runs, or one repeat of each, and everything computed from them.

    Kept by the digest of what it was computed from: the same inputs are never compared twice, and new ones (a further
    repeat, other scores) make a new comparison. `summary` has the shape that `core.compare.comparison` writes; it holds
    counts by digest from the start, and the rest once `n_done` has reached `n_pairs`. `outcomes` is read by itself.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        FINISHED = "finished"
        FAILED = "failed"

    baseline = models.ForeignKey("runs.RunRecord", on_delete=models.CASCADE, related_name="comparisons_as_baseline")
    candidate = models.ForeignKey("runs.RunRecord", on_delete=models.CASCADE, related_name="comparisons_as_candidate")
    baseline_repeat = models.PositiveIntegerField(null=True, help_text="one repeat only; null: all that have ended")
    candidate_repeat = models.PositiveIntegerField(null=True)
    treatment = models.CharField(max_length=20, default=MODEL_TREATMENT, help_text="what is judged")
    pair_by = models.CharField(max_length=20, default=BY_INPUT, help_text="of cases, where the prompt is judged")
    judged_before = models.DateTimeField(null=True, help_text="judgings until then count; null: all")
    input_digest = models.CharField(max_length=64, unique=True)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    n_pairs = models.PositiveIntegerField(default=0, help_text="distinct pairs of traces that must be read")
    n_done = models.PositiveIntegerField(default=0)
    summary = models.JSONField(default=dict)
    outcomes = models.JSONField(
        default=dict, help_text="the cases with each outcome by look, as compare.outcomes keeps them"
    )
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "runs_comparison"
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["baseline", "candidate", "-id"], name="comparison_of_two_runs"),
            models.Index(fields=["id"], condition=models.Q(status="queued"), name="comparison_waiting"),
            GinIndex(
                models.Func(
                    models.F("summary"),
                    models.Value("$.clusters[*].tokens[*][*]"),
                    function="jsonb_path_query_array",
                    output_field=models.JSONField(),
                ),
                name="comparison_by_token",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.candidate_id} against run {self.baseline_id}"

    @property
    def terms(self) -> Terms:
        return Terms(self.treatment, self.pair_by)


class DivergenceRecord(models.Model):
    """How one pair of responses diverged; `evidence` supports its cause."""

    # The constraint below begins with it, and serves as its index.
    comparison = models.ForeignKey(
        ComparisonRecord, on_delete=models.CASCADE, related_name="divergences", db_index=False
    )
    case_index = models.PositiveIntegerField()
    repeat_baseline = models.PositiveIntegerField()
    repeat_candidate = models.PositiveIntegerField()
    cause = models.CharField(max_length=20)
    numeric = models.CharField(max_length=20, blank=True)
    consequence = models.PositiveSmallIntegerField(help_text="0 is the gravest; the order of the case list")
    score_baseline = models.FloatField(null=True)
    score_candidate = models.FloatField(null=True)
    drift_onset = models.PositiveIntegerField(null=True)
    flip_position = models.PositiveIntegerField(null=True)
    margin_baseline = models.FloatField(null=True)
    margin_candidate = models.FloatField(null=True)
    gap_at_onset = models.FloatField(null=True)
    token_baseline = models.IntegerField(null=True, help_text="chosen at the flip")
    token_candidate = models.IntegerField(null=True)
    evidence = models.JSONField(default=dict)

    class Meta:
        db_table = "runs_divergence"
        ordering = ["comparison_id", "consequence", "case_index", "repeat_baseline", "repeat_candidate"]
        constraints = [
            models.UniqueConstraint(
                fields=["comparison", "case_index", "repeat_baseline", "repeat_candidate"],
                name="one_divergence_per_pair",
            ),
        ]
        indexes = [
            models.Index(
                fields=["comparison", "consequence", "case_index", "repeat_baseline", "repeat_candidate"],
                name="divergence_by_consequence",
            ),
        ]

    def __str__(self) -> str:
        return f"case {self.case_index}: {self.cause}"


class ListedFrame(models.Model):
    """A range of a comparison's cases in list order, from place `first` (`compare.case_lists`)."""

    comparison = models.ForeignKey(
        ComparisonRecord, on_delete=models.CASCADE, related_name="listed_frames", db_index=False
    )
    first = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["comparison", "first"], name="one_listed_frame_per_place")]

    def __str__(self) -> str:
        return f"cases of comparison {self.comparison_id} from {self.first}"
