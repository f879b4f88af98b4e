"""Suites, their immutable versions and cases, and scorers."""

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now

from runs.models.claimed import Requested, claim_indexes


class Suite(models.Model):
    """A named set of cases. `policy` is the one that its document carries, for releases that name none.

    `reference_of`: this suite holds the reference set of that version, and nothing else. `judged_suite`: each of its
    versions holds what a judge was asked about one run of that suite; no list shows it.
    """

    slug = models.SlugField(max_length=80, unique=True)
    policy = models.ForeignKey("runs.PolicyRecord", on_delete=models.SET_NULL, null=True, related_name="suites")
    reference_of = models.ForeignKey(
        "runs.SuiteVersionRecord", on_delete=models.SET_NULL, null=True, related_name="reference_suites"
    )
    judged_suite = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="judge_suites")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug


class Scorer(models.Model):
    """How responses of a suite version are scored.

    `spec` is `{"default": {"kind", …} | null, "cases": {case id: {"kind", …}}}`; `digest` covers the
    spec and the version of each kind's code (`core.scoring.plan_digest`).
    """

    digest = models.CharField(max_length=64, unique=True)
    spec = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.digest[:8]


class ScoringRecord(Requested):
    """A repeat to be scored by a scorer that only a worker can run. The scores become a `RepeatScore`.

    `needs` are the digests of the scorers that a worker must have; `n_done` counts responses.
    """

    repeat = models.ForeignKey("runs.RepeatRecord", on_delete=models.CASCADE, related_name="scorings")
    scorer = models.ForeignKey(Scorer, on_delete=models.PROTECT, related_name="+")
    needs = models.JSONField()
    n_done = models.PositiveIntegerField(default=0)

    class Meta(Requested.Meta):
        db_table = "runs_scoring"
        constraints = [models.UniqueConstraint(fields=["repeat", "scorer"], name="one_scoring_per_scorer")]
        indexes = claim_indexes("scoring")

    def __str__(self) -> str:
        return f"scoring {self.pk}"


class SuiteVersionRecord(models.Model):
    """One content of a suite, never changed once stored. Numbers count from 1 in order of arrival."""

    suite = models.ForeignKey(Suite, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    title = models.CharField(max_length=200)
    max_tokens = models.PositiveIntegerField()
    stop = models.JSONField(default=list)
    scorer = models.ForeignKey(Scorer, on_delete=models.PROTECT, related_name="suite_versions")
    n_cases = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "runs_suiteversion"
        ordering = ["suite_id", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["suite", "number"], name="one_number_per_suite"),
            models.UniqueConstraint(fields=["suite", "digest"], name="one_version_per_content"),
        ]

    def __str__(self) -> str:
        return f"{self.suite.slug} v{self.number}"


class Case(models.Model):
    """One item of a suite version. `index` counts from 0; responses are keyed by it.

    `content` holds `messages`, `target`, and where given `tools`; see docs/suites.md.
    """

    suite_version = models.ForeignKey(SuiteVersionRecord, on_delete=models.CASCADE, related_name="cases")
    index = models.PositiveIntegerField()
    case_id = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    content = models.JSONField()
    tags = models.JSONField(default=list)
    group = models.CharField(max_length=200, blank=True)
    is_reference = models.BooleanField(default=False)

    class Meta:
        ordering = ["suite_version_id", "index"]
        constraints = [
            models.UniqueConstraint(fields=["suite_version", "index"], name="one_case_per_index"),
            models.UniqueConstraint(fields=["suite_version", "case_id"], name="one_case_per_id"),
        ]
        indexes = [
            models.Index(fields=["suite_version"], condition=models.Q(is_reference=True), name="case_reference"),
            models.Index(fields=["suite_version"], condition=~models.Q(group=""), name="case_grouped"),
            models.Index(fields=["case_id"], opclasses=["varchar_pattern_ops"], name="case_by_id"),
            models.Index(fields=["digest"], opclasses=["varchar_pattern_ops"], name="case_by_digest"),
            GinIndex(models.Func(models.F("case_id"), models.F("content"), function="case_words"), name="case_by_word"),
        ]

    def __str__(self) -> str:
        return self.case_id


class ImageRecord(models.Model):
    """An image that cases have in their messages, by the SHA-256 of its bytes.

    is_in_suite: false for those of a trial, or of an upload that has not ended, which are deleted after some days.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    media_type = models.CharField(max_length=20)
    data = models.BinaryField()
    is_in_suite = models.BooleanField(default=False, db_default=False)
    kept_at = models.DateTimeField(db_default=Now(), help_text="when it was sent or named last")

    class Meta:
        db_table = "runs_image"

    def __str__(self) -> str:
        return f"image {self.digest[:8]}"


class SuiteNoise(models.Model):
    """The cached noise of one bucket on a suite version (`contract.figures.BucketNoise`).

    `digest` identifies the scores that `noise` was measured from; null if they were not enough.
    """

    suite_version = models.ForeignKey(SuiteVersionRecord, on_delete=models.CASCADE, related_name="noises")
    bucket = models.ForeignKey("runs.BucketRecord", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    noise = models.JSONField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["suite_version", "bucket"], name="one_noise_per_bucket")]

    def __str__(self) -> str:
        return f"noise of {self.suite_version} in bucket {self.bucket_id}"


class TrialRecord(Requested):
    """A case that a person sends once to see its answer and score; kept for a week.

    `case` has what is sent and how it is scored; `answer` what came back with its score, null where nothing did.
    """

    endpoint = models.ForeignKey("runs.EndpointRecord", on_delete=models.CASCADE, related_name="+")
    profile = models.ForeignKey("runs.ProfileRecord", on_delete=models.CASCADE, related_name="+")
    case = models.JSONField(help_text="id, messages, tools, target, scorer, max_tokens, stop")
    answer = models.JSONField(null=True)

    class Meta(Requested.Meta):
        db_table = "runs_trial"
        indexes = claim_indexes("trial")

    def __str__(self) -> str:
        return f"trial {self.pk}"
