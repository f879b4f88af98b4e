"""Checks of an endpoint itself: does it honour seeds, does batching move its answers, who answers, has it changed."""

from django.db import models

from evalboard.core.probe_kinds import ProbeKind
from runs.models.claimed import Requested


class Probe(Requested):
    """One check of an endpoint under a profile, and what it found; docs/probes.md has the shapes.

    `parameters` are complete (`core.probes.parameters`). `answers` has one entry for each call (`core.probes.call`), of
    which the finding can be made again; `finding` is `{"state", "sentence", "numbers"}`, null until it ends.
    `waits_for` lists the ids of the workers that a routing probe still has to ask.
    """

    Kind = ProbeKind

    endpoint = models.ForeignKey("runs.Endpoint", on_delete=models.PROTECT, related_name="probes")
    profile = models.ForeignKey("runs.Profile", on_delete=models.PROTECT, related_name="probes")
    kind = models.CharField(max_length=20, choices=[(kind.value, kind.value.capitalize()) for kind in ProbeKind])
    parameters = models.JSONField()
    answers = models.JSONField(default=list)
    finding = models.JSONField(null=True)
    waits_for = models.JSONField(default=list)
    bypass_of = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        related_name="bypass_probes",
        help_text="the probe of the gateway that this one goes around",
    )

    class Meta(Requested.Meta):
        indexes = [
            *Requested.Meta.indexes,
            models.Index(fields=["endpoint", "kind", "-id"], name="probe_of_an_endpoint"),
        ]

    def __str__(self) -> str:
        return f"probe {self.pk} ({self.kind})"
