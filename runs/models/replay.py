"""One case decoded again, to see whether its response comes out the same."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Replay(models.Model):
    """A request to decode one case of a run again, as it was or under variants, and what came of it.

    `variants` is a list such as `[{}]` (as it was), `[{"batch_size": 1}, {"batch_size": 2}]`, `[{"dtype": "float16"}]`
    or `[{"batch_size": 4, "neighbours": 1}]`; `results` has one entry for each variant done, in their order. A worker
    claims it as it claims a shard: `attempt` fences every write.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        FINISHED = "finished"
        FAILED = "failed"

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="replays")
    repeat = models.ForeignKey("runs.Repeat", on_delete=models.CASCADE, related_name="replays")
    case_index = models.PositiveIntegerField()
    variants = models.JSONField()
    results = models.JSONField(default=list)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    attempt = models.PositiveIntegerField(default=0)
    owner = models.ForeignKey("runs.Worker", on_delete=models.SET_NULL, null=True, related_name="replays")
    lease_until = models.DateTimeField(null=True)
    next_at = models.DateTimeField(db_default=Now(), help_text="not before; by the database's clock")
    error = models.TextField(blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["next_at", "id"], condition=models.Q(status="queued"), name="replay_claimable"),
            models.Index(fields=["lease_until"], condition=models.Q(status="running"), name="replay_leased"),
        ]

    def __str__(self) -> str:
        return f"replay {self.pk}"
