"""What is started again and again at set times, and each time that it was."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class ScheduleRecord(models.Model):
    """Runs or probes that one person wants started at set times, by a clock of a time zone.

    `order` holds what `create_run` or `create_probe` takes. `next_at` is the next time it is due, null while it pauses.
    `n_failures` counts starts in a row that were refused.
    """

    class Kind(models.TextChoices):
        RUN = "run"
        PROBE = "probe"

    slug = models.SlugField(max_length=80, unique=True)
    kind = models.CharField(max_length=20, choices=Kind.choices)
    order = models.JSONField()
    cron = models.CharField(max_length=100, help_text="minute, hour, day of the month, month, day of the week")
    time_zone = models.CharField(max_length=60)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="schedules")
    created_at = models.DateTimeField(db_default=Now())
    next_at = models.DateTimeField(null=True)
    n_failures = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "runs_schedule"
        ordering = ["slug"]
        indexes = [models.Index(fields=["next_at"], name="schedule_due")]

    def __str__(self) -> str:
        return self.slug


class ScheduledStart(models.Model):
    """The result of one due time: a run or a probe, or the `problem` that prevented it.

    `missed_since` is the first missed due time, if this start replaces several.
    """

    schedule = models.ForeignKey(ScheduleRecord, on_delete=models.CASCADE, related_name="starts")
    due_at = models.DateTimeField()
    missed_since = models.DateTimeField(null=True)
    started_at = models.DateTimeField(db_default=Now())
    run = models.ForeignKey("runs.RunRecord", on_delete=models.SET_NULL, null=True, related_name="+")
    probe = models.ForeignKey("runs.ProbeRecord", on_delete=models.SET_NULL, null=True, related_name="+")
    problem = models.TextField(blank=True)

    class Meta:
        ordering = ["-due_at"]
        constraints = [models.UniqueConstraint(fields=["schedule", "due_at"], name="one_start_for_each_due_time")]

    def __str__(self) -> str:
        return f"{self.schedule} of {self.due_at:%Y-%m-%d %H:%M}"
