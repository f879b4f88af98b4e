"""Checks of an endpoint itself: does it honour seeds, does batching move its answers, who answers, has it changed."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Probe(models.Model):
    """One check of an endpoint under a profile, and what it found; docs/probes.md has the shapes.

    `parameters` are complete (`core.probe_parameters`). `answers` has one entry for each call (`core.probe_call`), of
    which the finding can be made again; `finding` is `{"state", "sentence", "numbers"}`, null until it ends. A worker
    claims it as it claims a shard: `attempt` fences every write. `waits_for` lists the ids of the workers that a
    routing probe still has to ask.
    """

    class Kind(models.TextChoices):
        SEED = "seed"
        BATCH = "batch"
        ROUTING = "routing"
        CANARY = "canary"

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        FINISHED = "finished"
        FAILED = "failed"

    endpoint = models.ForeignKey("runs.Endpoint", on_delete=models.PROTECT, related_name="probes")
    profile = models.ForeignKey("runs.Profile", on_delete=models.PROTECT, related_name="probes")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    parameters = models.JSONField()
    answers = models.JSONField(default=list)
    finding = models.JSONField(null=True)
    waits_for = models.JSONField(default=list)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    attempt = models.PositiveIntegerField(default=0)
    owner = models.ForeignKey("runs.Worker", on_delete=models.SET_NULL, null=True, related_name="probes")
    lease_until = models.DateTimeField(null=True)
    next_at = models.DateTimeField(db_default=Now(), help_text="not before; by the database's clock")
    error = models.TextField(blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["next_at", "id"], condition=models.Q(status="queued"), name="probe_claimable"),
            models.Index(fields=["lease_until"], condition=models.Q(status="running"), name="probe_leased"),
            models.Index(fields=["endpoint", "kind", "-id"], name="probe_of_an_endpoint"),
        ]

    def __str__(self) -> str:
        return f"probe {self.pk} ({self.kind})"
