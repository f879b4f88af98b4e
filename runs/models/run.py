"""Runs, their repeats, shards and history."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone


class Run(models.Model):
    """One request to evaluate one suite version on one endpoint under one profile, k repeats."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        FINISHED = "finished"
        INCOMPLETE = "incomplete"
        FAILED = "failed"
        CANCELLED = "cancelled"

    TERMINAL = (Status.FINISHED, Status.INCOMPLETE, Status.FAILED, Status.CANCELLED)

    suite_version = models.ForeignKey("runs.SuiteVersion", on_delete=models.PROTECT, related_name="runs")
    endpoint = models.ForeignKey("runs.Endpoint", on_delete=models.PROTECT, related_name="runs")
    profile = models.ForeignKey("runs.Profile", on_delete=models.PROTECT, related_name="runs")
    model_override = models.JSONField(
        null=True, help_text='another checkpoint of the endpoint\'s line: {"path"} or {"repo", "revision"}'
    )
    seed = models.BigIntegerField(
        null=True, help_text="what the seed of every call follows from; null: the profile's, for every call"
    )
    is_one_draw = models.BooleanField(
        default=False, help_text="sampled, and repeats of a case were sent the same seed: all of them are one draw"
    )
    labels = models.JSONField(default=dict)
    source = models.ForeignKey(
        "runs.Import",
        on_delete=models.PROTECT,
        null=True,
        related_name="runs",
        help_text="the log that it was read from",
    )
    log_ids = models.JSONField(default=list, help_text="digests of what its eval is told by, in whatever form logged")
    log_digest = models.CharField(max_length=64, blank=True, help_text="of its log's answers and their scores")
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    is_cancel_wanted = models.BooleanField(default=False)
    bucket = models.ForeignKey(
        "runs.Bucket",
        on_delete=models.PROTECT,
        null=True,
        related_name="runs",
        help_text="the serving stack that the run keeps to, bound by the first shard started",
    )
    failure = models.TextField(blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ran_at = models.DateTimeField(
        default=timezone.now,
        db_default=Now(),
        help_text="where it stands in time: when it was asked for; of a log, when that says that it ran, if it does",
    )
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["status"], name="run_by_status"),
            models.Index(fields=["ran_at", "id"], name="run_by_time"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def is_terminal(self) -> bool:
        return self.status in self.TERMINAL


class Repeat(models.Model):
    """The n-th pass over the suite within a run, from 1."""

    Status = Run.Status  # a repeat ends in the same ways as its run

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="repeats")
    index = models.PositiveIntegerField()
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    finished_at = models.DateTimeField(null=True)
    engine_processes = models.ManyToManyField(
        "runs.EngineProcess",
        related_name="repeats",
        help_text="those that decoded some of it; kept here so that no page asks the responses",
    )

    class Meta:
        ordering = ["run_id", "index"]
        constraints = [models.UniqueConstraint(fields=["run", "index"], name="one_repeat_per_index")]

    def __str__(self) -> str:
        return f"run {self.run_id} repeat {self.index}"


class ShardQuerySet(models.QuerySet["Shard"]):
    def expired(self) -> Self:
        """Running shards whose lease has ended by the database's clock."""
        return self.filter(status=Shard.Status.RUNNING, lease_until__lt=Now())

    def cancelled_in_the_queue(self) -> Self:
        """Queued shards of runs that are to be cancelled: nobody will claim them."""
        return self.filter(status=Shard.Status.QUEUED, repeat__run__is_cancel_wanted=True)

    def claimable(self) -> Self:
        """Queued shards that a worker of their pool may take now."""
        return self.filter(
            status=Shard.Status.QUEUED,
            next_at__lte=Now(),
            repeat__run__is_cancel_wanted=False,
            repeat__run__status__in=(Run.Status.QUEUED, Run.Status.RUNNING),
        )

    def open(self) -> Self:
        return self.filter(status__in=(Shard.Status.QUEUED, Shard.Status.RUNNING))


class Shard(models.Model):
    """A slice of one repeat, cases `first` to `last` inclusive, that one worker claims at a time.

    `attempt` is the fencing token: every write of a worker names the attempt it holds.
    `n_crashes` counts attempts that ended without a word; after two, cases run one at a time and
    `in_flight` names the one being decoded.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        FINISHED = "finished"
        FAILED = "failed"
        CANCELLED = "cancelled"

    repeat = models.ForeignKey(Repeat, on_delete=models.CASCADE, related_name="shards")
    first = models.PositiveIntegerField()
    last = models.PositiveIntegerField()
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    attempt = models.PositiveIntegerField(default=0)
    n_crashes = models.PositiveIntegerField(default=0)
    n_failed_starts = models.PositiveIntegerField(default=0)
    in_flight = models.PositiveIntegerField(null=True)
    owner = models.ForeignKey("runs.Worker", on_delete=models.SET_NULL, null=True, related_name="shards")
    lease_until = models.DateTimeField(null=True)
    next_at = models.DateTimeField(db_default=Now(), help_text="not before; by the database's clock")
    n_done = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)

    objects = ShardQuerySet.as_manager()

    class Meta:
        ordering = ["repeat_id", "first"]
        constraints = [models.UniqueConstraint(fields=["repeat", "first"], name="one_shard_per_slice")]
        indexes = [
            models.Index(fields=["next_at", "id"], condition=models.Q(status="queued"), name="shard_claimable"),
            models.Index(fields=["lease_until"], condition=models.Q(status="running"), name="shard_leased"),
        ]

    def __str__(self) -> str:
        return f"shard {self.pk}"

    @property
    def n_cases(self) -> int:
        return self.last - self.first + 1


class Event(models.Model):
    """One line of a run's history, append-only, shown on its page."""

    class Level(models.TextChoices):
        INFO = "info"
        WARNING = "warning"
        ERROR = "error"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(db_default=Now())
    level = models.CharField(max_length=10, choices=Level.choices, default=Level.INFO)
    code = models.CharField(max_length=40)
    text = models.TextField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.text
