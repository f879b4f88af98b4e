"""What all work has in common: a row in the queue, which one worker at a time claims."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


def claim_indexes(table: str) -> list[models.Index]:
    """Return a table's indexes by which workers find waiting and running rows."""
    return [
        models.Index(fields=["next_at", "id"], condition=models.Q(status="queued"), name=f"{table}_claimable"),
        models.Index(fields=["lease_until"], condition=models.Q(status="running"), name=f"{table}_leased"),
    ]


class Claimed(models.Model):
    """A row that workers claim under a lease (`runs.work.claims`): `attempt` fences every write."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        FINISHED = "finished"
        FAILED = "failed"

    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    attempt = models.PositiveIntegerField(default=0)
    owner = models.ForeignKey("runs.WorkerRecord", on_delete=models.SET_NULL, null=True, related_name="+")
    lease_until = models.DateTimeField(null=True)
    next_at = models.DateTimeField(db_default=Now(), help_text="not before; by the database's clock")
    error = models.TextField(blank=True)

    class Meta:
        abstract = True


class Requested(Claimed):
    """Work requested separately, such as replays and probes; it ends once (`runs.work.requests`).

    `n_crashes` counts failed attempts; a returned one, such as during an endpoint's pause, is not counted.
    """

    n_crashes = models.PositiveIntegerField(default=0, db_default=0)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta(Claimed.Meta):
        abstract = True
        ordering = ["-id"]
