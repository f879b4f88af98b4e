"""Checks of an endpoint itself: does it honour seeds, does batching move its answers, who answers, has it changed."""

from django.db import models

from runs.models.claimed import Claimed


class Probe(Claimed):
    """One check of an endpoint under a profile, and what it found; docs/probes.md has the shapes.

    `parameters` are complete (`core.probe_parameters`). `answers` has one entry for each call (`core.probe_call`), of
    which the finding can be made again; `finding` is `{"state", "sentence", "numbers"}`, null until it ends.
    `waits_for` lists the ids of the workers that a routing probe still has to ask.
    """

    class Kind(models.TextChoices):
        SEED = "seed"
        BATCH = "batch"
        ROUTING = "routing"
        CANARY = "canary"

    endpoint = models.ForeignKey("runs.Endpoint", on_delete=models.PROTECT, related_name="probes")
    profile = models.ForeignKey("runs.Profile", on_delete=models.PROTECT, related_name="probes")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    parameters = models.JSONField()
    answers = models.JSONField(default=list)
    finding = models.JSONField(null=True)
    waits_for = models.JSONField(default=list)

    class Meta(Claimed.Meta):
        indexes = [
            *Claimed.Meta.indexes,
            models.Index(fields=["endpoint", "kind", "-id"], name="probe_of_an_endpoint"),
        ]

    def __str__(self) -> str:
        return f"probe {self.pk} ({self.kind})"
