"""Forced scoring: the answers of a run scored on another stack. Its traces are no responses' traces."""

from django.db import models

from runs.models.claimed import Requested, claim_indexes


class ForcedScoringRecord(Requested):
    """A request to score a run's answers on our stack, with its progress; or a trainer's logprobs.

    The latter was read from the run's own log: it has neither endpoint, profile nor bucket, for nobody says what the
    trainer ran on. What one engine gives for a token of an answer depends on nothing but what stands before it, so
    equal answers of a case are scored once. `cases` and `repeats` say whose answers. All of it is of one `bucket`,
    which the first answers that are stored bind it to. docs/forced.md has the rest.
    """

    run = models.ForeignKey("runs.RunRecord", on_delete=models.CASCADE, related_name="forced_scorings")
    endpoint = models.ForeignKey(
        "runs.EndpointRecord", on_delete=models.PROTECT, null=True, related_name="forced_scorings"
    )
    profile = models.ForeignKey(
        "runs.ProfileRecord", on_delete=models.PROTECT, null=True, related_name="forced_scorings"
    )
    model_override = models.JSONField(null=True, help_text="another checkpoint of the endpoint's line, as a run has it")
    cases = models.BinaryField(null=True, help_text="a bit a case (core.trace.pack_selection); null: all of them")
    repeats = models.JSONField(help_text="their indexes")
    bucket = models.ForeignKey("runs.BucketRecord", on_delete=models.PROTECT, null=True, related_name="forced_scorings")
    n_answers = models.PositiveIntegerField(help_text="different ones, to be scored")
    n_tokens = models.PositiveIntegerField(help_text="of these answers, as far as their run counted them")
    n_done = models.PositiveIntegerField(default=0)
    figures = models.JSONField(
        null=True, help_text="of all its answers (runs.forced.figures.store_figures), once it has ended"
    )
    figures_by_bucket = models.JSONField(
        default=list,
        db_default=[],
        help_text='where several buckets gave the answers: {"bucket", "figures"} of each',
    )

    class Meta(Requested.Meta):
        db_table = "runs_forcedscoring"
        indexes = [
            *claim_indexes("forcedscoring"),
            models.Index(fields=["run", "-id"], name="forced_scoring_of_a_run"),
        ]
        constraints = [
            models.CheckConstraint(
                name="a_stack_scores_or_a_trainer_did",
                condition=models.Q(endpoint__isnull=False, profile__isnull=False)
                | models.Q(endpoint__isnull=True, profile__isnull=True, bucket__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"forced scoring {self.pk}"

    @property
    def is_reported(self) -> bool:
        """Return whether the logprobs are a trainer's from a log, not of our own stack."""
        return self.endpoint_id is None


class ForcedAnswerRecord(models.Model):
    """One answer of a case, scored: a trace whose chosen tokens are the answer's, or why there is none.

    It stands for every response of the case with this trace digest, `repeat` being the first. One with an `error_code`
    (`core.trace.ERROR_CODES`) has no trace.
    """

    class Tokens(models.TextChoices):
        SAME = "same", "the ids of the response"
        BY_BYTES = "by_bytes", "the tokens of the response, found by their bytes"
        AS_GIVEN = "as_given", "the ids of the log, of which nobody knows the bytes"
        RETOKENISED = "retokenised", "the text of the response, in tokens of the target's tokenizer"

    # Without an index of its own: the one over all three serves.
    scoring = models.ForeignKey(ForcedScoringRecord, on_delete=models.CASCADE, related_name="answers", db_index=False)
    case_index = models.PositiveIntegerField()
    trace_digest = models.BinaryField(max_length=16, help_text="of the response's own trace")
    repeat = models.ForeignKey("runs.RepeatRecord", on_delete=models.CASCADE, related_name="+")
    engine_process = models.ForeignKey("runs.EngineProcess", on_delete=models.PROTECT, null=True, related_name="+")
    error_code = models.CharField(max_length=40, blank=True)
    error_detail = models.TextField(blank=True)
    trace_block = models.ForeignKey("runs.TraceBlock", on_delete=models.CASCADE, null=True, related_name="+")
    trace_slot = models.PositiveIntegerField(null=True)
    n_tokens = models.PositiveIntegerField(null=True)
    tokens = models.CharField(max_length=20, choices=Tokens.choices, blank=True)
    figures = models.JSONField(null=True, help_text="contract.forced.AnswerFigures; null without a trace")
    is_rendered = models.BooleanField(
        default=False, help_text="the prompt's tokens are those of the target's chat template"
    )

    class Meta:
        db_table = "runs_forcedanswer"
        constraints = [
            models.UniqueConstraint(fields=["scoring", "case_index", "trace_digest"], name="an_answer_is_scored_once"),
            models.CheckConstraint(
                name="a_scored_answer_has_a_trace",
                condition=models.Q(error_code="", trace_block__isnull=False, trace_slot__isnull=False)
                | (~models.Q(error_code="") & models.Q(trace_block__isnull=True)),
            ),
        ]

    def __str__(self) -> str:
        return f"forced answer {self.pk}"
