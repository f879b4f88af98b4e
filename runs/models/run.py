"""Runs, their repeats, shards and history."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from runs.models.claimed import Claimed, claim_indexes
from runs.models.lane import Lane, Priority


class RunRecord(models.Model):
    """One request to evaluate one suite version on one endpoint under one profile, k repeats."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        FINISHED = "finished"
        INCOMPLETE = "incomplete"
        FAILED = "failed"
        CANCELLED = "cancelled"

    TERMINAL = (Status.FINISHED, Status.INCOMPLETE, Status.FAILED, Status.CANCELLED)

    suite_version = models.ForeignKey("runs.SuiteVersionRecord", on_delete=models.PROTECT, related_name="runs")
    endpoint = models.ForeignKey("runs.EndpointRecord", on_delete=models.PROTECT, related_name="runs")
    profile = models.ForeignKey("runs.ProfileRecord", on_delete=models.PROTECT, related_name="runs")
    model_override = models.JSONField(
        null=True,
        help_text='another checkpoint of the endpoint\'s line: {"path"} or {"repo", "revision"}; or {"adapter"}',
    )
    seed = models.BigIntegerField(
        null=True, help_text="what the seed of every call follows from; null: the profile's, for every call"
    )
    is_one_draw = models.BooleanField(
        default=False, help_text="sampled, and repeats of a case were sent the same seed: all of them are one draw"
    )
    is_shuffled = models.BooleanField(
        default=False, db_default=False, help_text="each repeat has its cases in an order of its own"
    )
    is_restarted = models.BooleanField(
        default=False, db_default=False, help_text="each repeat has an engine process of its own, not each half of them"
    )
    is_judged = models.BooleanField(
        default=False,
        db_default=False,
        help_text="a judge scores it, all of its answers at once",
    )
    is_judge = models.BooleanField(
        default=False, db_default=False, help_text="a judge scores the answers of another run in it; no list has it"
    )
    labels = models.JSONField(default=dict)
    priority = models.CharField(
        max_length=10, choices=Priority.choices, default=Priority.NORMAL, db_default=Priority.NORMAL
    )
    source = models.ForeignKey(
        "runs.ImportRecord",
        on_delete=models.PROTECT,
        null=True,
        related_name="runs",
        help_text="the log that it was read from",
    )
    price = models.JSONField(default=dict, help_text="its endpoint's when it was asked for; {}: not known then")
    is_reported = models.BooleanField(
        default=False,
        db_default=False,
        help_text="who served it is what a log or a server of others says; nothing of it is attested",
    )
    is_log = models.BooleanField(
        default=False, db_default=False, help_text="read from another tool's log, or from the export of such a run"
    )
    second_of = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="the run that this one is a second log of the same side of, by a person's word",
    )
    log_ids = models.JSONField(default=list, help_text="digests of what its eval is told by, in whatever form logged")
    log_digest = models.CharField(max_length=64, blank=True, help_text="of its log's answers and their scores")
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    is_cancel_wanted = models.BooleanField(default=False)
    bucket = models.ForeignKey(
        "runs.BucketRecord",
        on_delete=models.PROTECT,
        null=True,
        related_name="runs",
        help_text="the serving stack that the run keeps to, bound by the first shard started",
    )
    strays = models.JSONField(
        null=True, help_text="of each bucket that has strays, what work.strays counted; null: nobody has looked"
    )
    strays_so_far = models.JSONField(
        null=True, help_text="of buckets that have strays, what was read since of cases unread when the run ended"
    )
    unsteady = models.JSONField(
        null=True, help_text="buckets whose repeats should be the same to the bit and are not; null: nobody has looked"
    )
    settings_seen = models.JSONField(
        null=True,
        help_text="what its answers, its calls and the newest check of its endpoint showed of each setting "
        "(contract.facts.SettingsSeen); null: it has not ended",
    )
    failure = models.TextField(blank=True)
    traces_deleted_at = models.DateTimeField(null=True, help_text="by a rule of retention (runs.retention)")
    texts_deleted_at = models.DateTimeField(null=True, help_text="likewise; the traces went before")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(db_default=Now())
    ran_at = models.DateTimeField(
        db_default=Now(),
        help_text="where it stands in time: when it was asked for; of a log, when that says that it ran, if it does",
    )
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "runs_run"
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["status"], name="run_by_status"),
            models.Index(fields=["ran_at", "id"], name="run_by_time"),
            models.Index(fields=["finished_at", "id"], condition=models.Q(status="finished"), name="run_by_end"),
            models.Index(fields=["suite_version", "ran_at", "id"], name="run_of_suite"),
            models.Index(fields=["id"], condition=models.Q(strays_so_far__isnull=False), name="run_strays_unread"),
            models.Index(  # an earlier one of these is a run's twin
                fields=["suite_version", "endpoint", "profile", "bucket", "id"],
                condition=models.Q(status="finished"),
                name="run_twins",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def is_terminal(self) -> bool:
        return self.status in self.TERMINAL

    @property
    def is_of_elsewhere(self) -> bool:
        """Return whether a log, an export or an external server gave it: no engine here repeats it."""
        return self.source_id is not None or self.is_reported


class RepeatRecord(models.Model):
    """The n-th pass over the suite within a run, from 1.

    One with chosen `cases` is targeted: no score, range or noise of the run is made of it, and what it was not to
    decode is not missing. `cases=None` are the others.
    """

    Status = RunRecord.Status  # a repeat ends in the same ways as its run
    WITHOUT_SCORE = (Status.CANCELLED, Status.FAILED)  # ended, and left out of every judgement

    run = models.ForeignKey(RunRecord, on_delete=models.CASCADE, related_name="repeats")
    index = models.PositiveIntegerField()
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    finished_at = models.DateTimeField(null=True)
    cases = models.BinaryField(
        null=True, help_text="a bit a case, of those that it decodes (core.trace.pack_selection); null: all of them"
    )
    engine_processes = models.ManyToManyField(
        "runs.EngineProcess",
        through="runs.RepeatEngineProcess",
        related_name="repeats",
        help_text="those that decoded some of it; kept here so that no page asks the responses",
    )

    class Meta:
        db_table = "runs_repeat"
        ordering = ["run_id", "index"]
        constraints = [models.UniqueConstraint(fields=["run", "index"], name="one_repeat_per_index")]

    def __str__(self) -> str:
        return f"run {self.run_id} repeat {self.index}"


class RepeatEngineProcess(models.Model):
    """The link table of `RepeatRecord.engine_processes`, spelt out to preserve column names."""

    id = models.AutoField(primary_key=True)
    repeat = models.ForeignKey(RepeatRecord, on_delete=models.CASCADE, related_name="+")
    engineprocess = models.ForeignKey("runs.EngineProcess", on_delete=models.CASCADE, related_name="+")

    class Meta:
        db_table = "runs_repeat_engine_processes"
        unique_together = [("repeat", "engineprocess")]


class StrayQuerySet(models.QuerySet["Stray"]):
    def listed(self) -> Self:
        """Return those that `RunRecord.strays` counts, by bucket, case and repeat."""
        return self.filter(is_listed=True).order_by("id")


class Stray(models.Model):
    """A response from another build than the one that served the others of its case.

    Apart from `RunRecord.strays`, which only counts them, so that no page or list of runs grows with their number. Rows
    are stored bucket by bucket in the order of the cases.
    """

    run = models.ForeignKey(RunRecord, on_delete=models.CASCADE, related_name="stray_responses", db_index=False)
    bucket = models.ForeignKey("runs.BucketRecord", on_delete=models.PROTECT, related_name="+", db_index=False)
    case_index = models.PositiveIntegerField()
    repeat = models.PositiveIntegerField(help_text="its index")
    is_listed = models.BooleanField(
        default=True, help_text="false: of cases read since the run ended, until all of them are read"
    )

    objects = StrayQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["run", "is_listed", "id"], name="strays_of_run")]

    def __str__(self) -> str:
        return f"run {self.run_id} repeat {self.repeat} case {self.case_index}"


class ShardQuerySet(models.QuerySet["Shard"]):
    def cancelled_in_the_queue(self) -> Self:
        """Return queued shards of runs to cancel, which no worker will claim."""
        return self.filter(status=Shard.Status.QUEUED, repeat__run__is_cancel_wanted=True)

    def wanted(self) -> Self:
        """Shards of runs that go on: neither ended nor being cancelled."""
        return self.filter(
            repeat__run__is_cancel_wanted=False,
            repeat__run__status__in=(RunRecord.Status.QUEUED, RunRecord.Status.RUNNING),
        )

    def claimable(self) -> Self:
        """Queued shards that a worker of their pool may take now."""
        return self.wanted().filter(status=Shard.Status.QUEUED, next_at__lte=Now())

    def open(self) -> Self:
        return self.filter(status__in=(Shard.Status.QUEUED, Shard.Status.RUNNING))


class Shard(Claimed):
    """A slice of one repeat, cases `first` to `last` inclusive, that one worker claims at a time.

    In a targeted repeat, it covers only the `n_chosen` chosen cases among these.

    `attempt` is the fencing token: every write of a worker names its attempt. `n_crashes` counts attempts that ended
    without a report; after two, cases run one at a time and `in_flight` names the one being decoded.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        FINISHED = "finished"
        FAILED = "failed"
        CANCELLED = "cancelled"

    repeat = models.ForeignKey(RepeatRecord, on_delete=models.CASCADE, related_name="shards")
    # Without an index of its own: only a lane's queued shards are searched.
    lane = models.ForeignKey(
        Lane,
        on_delete=models.PROTECT,
        null=True,
        related_name="shards",
        db_index=False,
        help_text="where it waits; null: it never was in a lane, as those of logs",
    )
    first = models.PositiveIntegerField()
    last = models.PositiveIntegerField()
    n_chosen = models.PositiveIntegerField(null=True, help_text="of its cases, those to decode; null: all of them")
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    n_crashes = models.PositiveIntegerField(default=0)
    n_failed_starts = models.PositiveIntegerField(default=0)
    n_rests = models.PositiveIntegerField(
        default=0, db_default=0, help_text="of its endpoint, since a case of it was answered"
    )
    in_flight = models.PositiveIntegerField(null=True)
    n_done = models.PositiveIntegerField(default=0)

    objects = ShardQuerySet.as_manager()

    class Meta(Claimed.Meta):
        ordering = ["repeat_id", "first"]
        indexes = [
            *claim_indexes("shard"),
            models.Index("lane", models.F("id") + 0, condition=models.Q(status="queued"), name="shard_in_lane"),
        ]
        constraints = [models.UniqueConstraint(fields=["repeat", "first"], name="one_shard_per_slice")]

    def __str__(self) -> str:
        return f"shard {self.pk}"

    @property
    def n_cases(self) -> int:
        return self.last - self.first + 1 if self.n_chosen is None else self.n_chosen


class Event(models.Model):
    """One line of a run's history, append-only, shown on its page."""

    class Level(models.TextChoices):
        INFO = "info"
        WARNING = "warning"
        ERROR = "error"

    run = models.ForeignKey(RunRecord, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(db_default=Now())
    level = models.CharField(max_length=10, choices=Level.choices, default=Level.INFO)
    code = models.CharField(max_length=40)
    text = models.TextField()
    what = models.TextField(default="", db_default="", help_text="the text without the place that it begins with")

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.text
