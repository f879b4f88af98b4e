"""Responses, their packed traces, and the packed per-case columns of a repeat."""

from django.db import models
from django.db.models.functions import Now

from evalboard.core.trace import NOTABLE

# Our own engine calls a request by its case and eight digits ("17-0a41b7e2"): it is found by its case, and needs no
# index of a million rows.
OWN_REQUEST = "^[0-9]+(-[0-9a-f]{8})?$"
IS_REQUEST_OF_OTHERS = ~models.Q(request_id="") & ~models.Q(request_id__regex=OWN_REQUEST)


class TraceBlock(models.Model):
    """A few dozen packed traces (docs/formats.md describes every byte)."""

    run = models.ForeignKey("runs.RunRecord", on_delete=models.CASCADE, related_name="trace_blocks")
    data = models.BinaryField()
    n_traces = models.PositiveIntegerField()
    is_packed = models.BooleanField(default=False, help_text="final; until then the shard that wrote it may repack it")

    def __str__(self) -> str:
        return f"trace block {self.pk}"


class ResponseRecord(models.Model):
    """The response to (repeat, case index), with its provenance.

    A response with an `error_code` is missing: it has no text, no trace and no score, and the
    code (`core.trace.provenance.ERROR_CODES`) says why. `trace_block` and `trace_slot` point at the
    trace, which an equal one of an earlier repeat may share. Tokens that do not spell the answer are no trace:
    `unmeasured_trace` has them, for the response's page and nothing else. What is constant for the engine
    process (headers, settings, pins) stands there once.

    `text` is the answer, which is scored. What the model thought before it stands in `reasoning`, where a profile or a
    log tells the two apart; then `n_reasoning_tokens` of the trace, tags included, are thinking, where that is known.
    """

    # Without an index of its own: the one over (repeat, case index) serves.
    repeat = models.ForeignKey("runs.RepeatRecord", on_delete=models.CASCADE, related_name="responses", db_index=False)
    case_index = models.PositiveIntegerField()
    engine_process = models.ForeignKey(
        "runs.EngineProcess", on_delete=models.PROTECT, null=True, related_name="responses"
    )
    attempt = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    reasoning = models.TextField(null=True, help_text="what the model thought; null where nothing is apart")
    n_reasoning_tokens = models.PositiveIntegerField(null=True)
    is_truncated = models.BooleanField(null=True, help_text="cut while it thought; null where nothing is apart")
    finish_reason = models.CharField(max_length=40, blank=True)
    ending = models.CharField(max_length=12, blank=True, help_text="core.trace.Ending; empty where nothing says it")
    error_code = models.CharField(max_length=40, blank=True)
    error_detail = models.TextField(blank=True)
    trace_block = models.ForeignKey(TraceBlock, on_delete=models.CASCADE, null=True, related_name="responses")
    trace_slot = models.PositiveIntegerField(null=True)
    trace_reason = models.CharField(
        max_length=20, blank=True, help_text="why the tokens are not measured (importers.spelling); blank: they are"
    )
    unmeasured_trace = models.BinaryField(null=True, help_text="a block of that one trace, which is shown and no more")
    text_digest = models.BinaryField(max_length=16, null=True)
    trace_digest = models.BinaryField(max_length=16, null=True)
    prompt_digest = models.BinaryField(max_length=16, null=True)
    n_tokens = models.PositiveIntegerField(null=True)
    n_prompt_tokens = models.PositiveIntegerField(null=True)
    n_cached_tokens = models.PositiveIntegerField(null=True)
    n_preemptions = models.PositiveIntegerField(null=True)
    batch_min = models.PositiveIntegerField(null=True)
    batch_max = models.PositiveIntegerField(null=True)
    seed_sent = models.BigIntegerField(null=True)
    request_id = models.CharField(max_length=100, blank=True)
    queued_seconds = models.FloatField(null=True)
    prefill_seconds = models.FloatField(null=True)
    decode_seconds = models.FloatField(null=True)
    marks = models.PositiveSmallIntegerField(
        default=0, help_text="bits of core.live_answers.MARKS: what a log says of an answer that may be no draw"
    )
    is_vouched = models.BooleanField(
        default=True, help_text="false where the engine's self-check no longer gave the same bits"
    )
    call = models.JSONField(
        null=True, help_text="how the call to a server of others went (contract.call.CallFacts); null: none was made"
    )
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "runs_response"
        constraints = [
            models.UniqueConstraint(fields=["repeat", "case_index"], name="one_response_per_case_and_repeat"),
            models.CheckConstraint(
                name="a_missing_response_has_no_text_and_no_trace",
                condition=models.Q(error_code="", trace_digest__isnull=False)
                | (~models.Q(error_code="") & models.Q(text="", trace_digest__isnull=True)),
            ),
        ]
        indexes = [
            models.Index(fields=["repeat"], condition=~models.Q(error_code=""), name="response_missing"),
            models.Index(fields=["repeat"], condition=models.Q(is_vouched=False), name="response_unvouched"),
            models.Index(fields=["repeat"], condition=models.Q(is_truncated=True), name="response_truncated"),
            models.Index(fields=["repeat"], condition=models.Q(ending__in=NOTABLE), name="response_by_ending"),
            models.Index(
                fields=["request_id"],
                opclasses=["varchar_pattern_ops"],
                condition=IS_REQUEST_OF_OTHERS,
                name="response_by_request",
            ),
        ]

    def __str__(self) -> str:
        return f"response {self.pk}"


class CaseColumns(models.Model):
    """A repeat's data for comparisons, packed by case index, so that no response is read.

    `text_digests` and `trace_digests` are 16 bytes a case, zero where the response is missing;
    `buckets` is a little-endian uint16 a case into `bucket_ids`, 65535 where missing. `marks` is a
    byte a case, as `core.stats.live_answers` has marks.
    """

    repeat = models.OneToOneField("runs.RepeatRecord", on_delete=models.CASCADE, related_name="columns")
    text_digests = models.BinaryField()
    trace_digests = models.BinaryField()
    buckets = models.BinaryField()
    bucket_ids = models.JSONField()
    digest = models.CharField(max_length=64, blank=True, help_text="of the columns above and the bucket ids")
    marks = models.BinaryField(null=True, help_text="null where no response carries one")
    n_left_out = models.PositiveIntegerField(default=0, help_text="responses that are no draws")
    batch_sizes = models.JSONField(default=dict, help_text="the largest batch of each response: size → responses")
    calls_in_flight = models.JSONField(
        null=True,
        help_text="the most of our calls at once during each response: calls → responses; null where not counted",
    )
    flip_chances = models.BinaryField(
        null=True, help_text="a little-endian float32 a case, NaN where unknown; see core.fragility"
    )
    usage = models.JSONField(null=True, help_text="token counts of its answers, summed (core.cost.Usage)")

    class Meta:
        verbose_name_plural = "case columns"


class RepeatScore(models.Model):
    """The scores of one repeat by one scorer.

    `scores` is a little-endian float64 in [0, 1] a case, NaN where missing; `reasons` is
    one sentence (or null) a case, as `core.trace.reasons` packs them; `answers` is a little-endian uint64 a case,
    the same where two responses gave one answer.
    """

    repeat = models.ForeignKey("runs.RepeatRecord", on_delete=models.CASCADE, related_name="scores")
    scorer = models.ForeignKey("runs.Scorer", on_delete=models.PROTECT, related_name="repeat_scores")
    scores = models.BinaryField()
    reasons = models.BinaryField()
    answers = models.BinaryField(
        null=True, help_text="zeros where none was read; null where the scorer reads none, or read them before this"
    )
    n_scored = models.PositiveIntegerField()
    n_missing = models.PositiveIntegerField()
    points = models.FloatField(
        null=True, help_text="percent of the suite; null unless every case is scored and one bucket served them all"
    )
    digest = models.CharField(max_length=64, blank=True, help_text="of scores and reasons")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repeat", "scorer"], name="one_score_per_scorer")]

    def __str__(self) -> str:
        return f"score of {self.repeat}"


class RunFiguresRecord(models.Model):
    """Figures of a run's columns, cached so that readers of the run need not read the columns.

    `digest` identifies the inputs of `figures` (`contract.figures.RunFigures`) and `cases`, `twin_digest` those of
    `twin`: if today's digest differs, they are computed again. `cases` is zstd over two bytes per case, its bits as in
    `run.case_table`.
    """

    run = models.OneToOneField("runs.RunRecord", on_delete=models.CASCADE, related_name="figures")
    digest = models.CharField(max_length=64)
    figures = models.JSONField()
    cases = models.BinaryField()
    twin = models.JSONField(null=True)
    twin_digest = models.CharField(max_length=64, blank=True)

    class Meta:
        db_table = "runs_runfigures"
        verbose_name_plural = "run figures"

    def __str__(self) -> str:
        return f"figures of run {self.run_id}"


class CaseFrame(models.Model):
    """The list data of a range of cases starting at `first`, as bytes (`run.case_table`).

    It belongs to the figures with its digest, and is ignored for others.
    """

    run = models.ForeignKey("runs.RunRecord", on_delete=models.CASCADE, related_name="case_frames", db_index=False)
    digest = models.CharField(max_length=64)
    first = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "first", "digest"], name="one_frame_per_place")]

    def __str__(self) -> str:
        return f"cases of run {self.run_id} from {self.first}"
