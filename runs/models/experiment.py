"""Experiments of the lab: sources varied one at a time, in ordinary runs."""

from django.conf import settings
from django.db import models


class ExperimentRecord(models.Model):
    """A plan that a person confirms, and its progress. A sweep runs its conditions one after another.

    `left_out` lists what is not measured, `{"source", "code", "facts"}` (`core.lab.UnmeasuredSource`). `problem` says
    why it is stopped, or ended early. A bisect has two runs, and its `plan`: fields, chosen cases, and control cases
    (`lab.bisect_plan`); its endpoint, profile and suite version are the baseline's.
    """

    class Kind(models.TextChoices):
        VARIANCE = "variance"
        BISECT = "bisect"

    class Status(models.TextChoices):
        PLANNED = "planned"
        RUNNING = "running"
        FINISHED = "finished"
        STOPPED = "stopped", "stopped by its budget"
        CANCELLED = "cancelled"
        FAILED = "failed"

    kind = models.CharField(max_length=20, choices=Kind.choices)
    suite_version = models.ForeignKey("runs.SuiteVersionRecord", on_delete=models.PROTECT, related_name="experiments")
    endpoint = models.ForeignKey("runs.EndpointRecord", on_delete=models.PROTECT, related_name="experiments")
    profile = models.ForeignKey(
        "runs.ProfileRecord",
        on_delete=models.PROTECT,
        related_name="experiments",
        help_text="what all else is pinned by",
    )
    n_runs = models.PositiveIntegerField(help_text="passes over the suite in an arm")
    left_out = models.JSONField(default=list)
    baseline = models.ForeignKey("runs.RunRecord", on_delete=models.SET_NULL, null=True, related_name="+")
    candidate = models.ForeignKey("runs.RunRecord", on_delete=models.SET_NULL, null=True, related_name="+")
    plan = models.JSONField(default=dict, db_default={})
    budget_minutes = models.FloatField(help_text="of engines; nothing is begun once it is spent")
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.PLANNED)
    problem = models.TextField(blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "runs_experiment"
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["id"], condition=models.Q(status="running"), name="experiment_running"),
        ]

    def __str__(self) -> str:
        return f"experiment {self.pk}"


class ExperimentArm(models.Model):
    """One condition: an ordinary run, or a computation on the control's texts, which has none.

    `settings` are those of the run's profile, null: the experiment's own. `cost` is what was confirmed
    (`core.lab.Cost`), `figures` what came of it (`core.lab.ArmFigures`, `core.lab.StepFigures`), null until it has
    ended. A step of a bisect says which fields are `turned` to the candidate's values, and what its endpoint is to be
    like (`serving`); the endpoint is the baseline's until the step begins.
    """

    class Status(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        FINISHED = "finished"
        CUT = "cut", "cut short"
        FAILED = "failed"
        MISSING = "missing"

    experiment = models.ForeignKey(ExperimentRecord, on_delete=models.CASCADE, related_name="arms")
    position = models.PositiveIntegerField()
    source = models.CharField(max_length=20)
    name = models.CharField(max_length=80, blank=True, help_text="what tells it from other arms of its source")
    endpoint = models.ForeignKey("runs.EndpointRecord", on_delete=models.PROTECT, related_name="+")
    settings = models.JSONField(null=True)
    turned = models.JSONField(null=True)
    serving = models.JSONField(null=True)
    suite_version = models.ForeignKey(
        "runs.SuiteVersionRecord",
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="null: the experiment's",
    )
    n_runs = models.PositiveIntegerField()
    is_shuffled = models.BooleanField(default=False)
    is_restarted = models.BooleanField(default=False)
    cost = models.JSONField()
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.WAITING)
    run = models.ForeignKey("runs.RunRecord", on_delete=models.SET_NULL, null=True, related_name="experiment_arms")
    problem = models.TextField(blank=True)
    figures = models.JSONField(null=True)
    spent_minutes = models.FloatField(default=0.0)

    class Meta:
        ordering = ["experiment_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "position"], name="one_arm_per_position"),
        ]

    def __str__(self) -> str:
        return f"{self.experiment}, {self.source}"
