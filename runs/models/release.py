"""Releases: a candidate judged on one or more suites, what was decided, and who signed it."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from evalboard.contract.treatments import (
    BY_INPUT,
    MODEL_TREATMENT,
    PROMPT_TREATMENT,
    SERVICE_TREATMENT,
    STACK_TREATMENT,
    Terms,
)


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


class ReleaseRecord(models.Model):
    """A release. `verdict` is the one on the present inputs; earlier ones stay stored too."""

    class Treatment(models.TextChoices):
        MODEL = MODEL_TREATMENT, "the model: both sides must be served alike"
        STACK = STACK_TREATMENT, "the serving stack: an engine upgrade or a quantisation of one model"
        SERVICE = SERVICE_TREATMENT, "the service: model and stack together, as a hosted model is bought"
        PROMPT = PROMPT_TREATMENT, "the prompt: one model, served alike, and cases with equal inputs"

    policy = models.ForeignKey("runs.PolicyRecord", on_delete=models.PROTECT, related_name="releases")
    treatment = models.CharField(max_length=20, choices=Treatment.choices, default=Treatment.MODEL)
    pair_by = models.CharField(max_length=20, default=BY_INPUT, help_text="of cases, where the prompt is judged")
    nothing_caches = models.BooleanField(
        default=False, db_default=False, help_text="a person's word: equal repeats were each computed"
    )
    labels = models.JSONField(default=dict)
    verdict = models.ForeignKey("runs.Verdict", on_delete=models.SET_NULL, null=True, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        db_table = "runs_release"
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"release {self.pk}"

    @property
    def terms(self) -> Terms:
        """Return the terms for comparing its runs: those of a prompt, else the defaults."""
        return Terms(self.treatment, self.pair_by) if self.treatment == PROMPT_TREATMENT else Terms()


class GateRecord(models.Model):
    """One suite of a release: two runs to be compared. An advisory one never changes the verdict."""

    class Tier(models.TextChoices):
        CRITICAL = "critical"
        ADVISORY = "advisory"

    release = models.ForeignKey(ReleaseRecord, on_delete=models.CASCADE, related_name="gates")
    position = models.PositiveIntegerField(help_text="0-based, as asked for")
    suite = models.ForeignKey("runs.Suite", on_delete=models.PROTECT, related_name="gates")
    tier = models.CharField(max_length=20, choices=Tier.choices, default=Tier.CRITICAL)
    baseline_run = models.ForeignKey("runs.RunRecord", on_delete=models.PROTECT, related_name="gates_as_baseline")
    candidate_run = models.ForeignKey("runs.RunRecord", on_delete=models.PROTECT, related_name="gates_as_candidate")
    baseline = models.ForeignKey(
        "runs.BaselineRecord",
        on_delete=models.SET_NULL,
        null=True,
        related_name="gates",
        help_text='asked for as "current"',
    )

    class Meta:
        db_table = "runs_gate"
        ordering = ["release_id", "position"]
        constraints = [models.UniqueConstraint(fields=["release", "position"], name="one_gate_per_position")]

    def __str__(self) -> str:
        return f"{self.release}: {self.suite}"


class Verdict(models.Model):
    """The verdict on one state of a release's inputs; never changed. document: as core.release makes it."""

    class Word(models.TextChoices):
        SHIP = "ship"
        NO_SHIP = "no_ship"
        INCONCLUSIVE = "inconclusive"
        NOT_COMPARABLE = "not_comparable"

    release = models.ForeignKey(ReleaseRecord, on_delete=models.CASCADE, related_name="verdicts")
    word = models.CharField(max_length=20, choices=Word.choices)
    policy = models.ForeignKey("runs.PolicyRecord", on_delete=models.PROTECT, related_name="verdicts")
    document = models.JSONField()
    input_digest = models.CharField(max_length=64)
    document_digest = models.CharField(max_length=64, default="", db_default="", help_text='"" without a seal')
    seal = models.CharField(
        max_length=64, default="", db_default="", help_text='of all but the time: runs.sign_off_chain; "" without a key'
    )
    seal_key = models.CharField(max_length=16, default="", db_default="", help_text="the id of the seal's key")
    decided_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["release_id", "id"]
        constraints = [models.UniqueConstraint(fields=["release", "input_digest"], name="one_verdict_per_inputs")]

    def __str__(self) -> str:
        return self.word


class SignOffRecord(models.Model):
    """A person's decision on a verdict. Append-only: database triggers refuse any change.

    `digest` covers the row and the digest of the row before it, so that an export shows a change made past the trigger.
    """

    class Decision(models.TextChoices):
        APPROVE = "approve"
        REJECT = "reject"
        WAIVE = "waive"

    release = models.ForeignKey(ReleaseRecord, on_delete=models.PROTECT, related_name="sign_offs")
    verdict = models.ForeignKey(Verdict, on_delete=models.PROTECT, related_name="sign_offs")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="sign_offs")
    person_name = models.CharField(max_length=150, help_text="as it was then")
    decision = models.CharField(max_length=20, choices=Decision.choices)
    note = models.TextField(blank=True)
    expires_at = models.DateTimeField(null=True, help_text="of a waiver")
    input_digest = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    made_with = models.CharField(
        max_length=200,
        default="",
        db_default="",
        help_text='"token evb_… (its name)" or "session …"; "" before version 2',
    )
    version = models.PositiveSmallIntegerField(
        default=1, db_default=1, help_text="of what `digest` covers: runs.sign_off_chain"
    )
    verdict_digest = models.CharField(max_length=64, default="", db_default="", help_text='"" before version 2')
    evidence_digest = models.CharField(
        max_length=64, default="", db_default="", help_text='"" before version 3, and where it was not judged again'
    )
    previous_digest = models.CharField(max_length=64, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    seal = models.CharField(max_length=64, default="", db_default="", help_text='of `digest`; "" without a key')
    seal_key = models.CharField(max_length=16, default="", db_default="", help_text="the id of the seal's key")

    class Meta:
        db_table = "runs_signoff"
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.person_name}: {self.decision}"


class Settling(models.Model):
    """Further repeats on both sides up to a checkpoint, requested from a release with a confirmed budget.

    `plan`: a list of {"run", "n_before", "n_more"}, each run once.
    """

    release = models.ForeignKey(ReleaseRecord, on_delete=models.CASCADE, related_name="settlings")
    look = models.PositiveIntegerField()
    plan = models.JSONField()
    estimated_minutes = models.FloatField(null=True)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.release} to {self.look} repeats"
