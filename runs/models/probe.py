"""Probes of an endpoint: its seeds, batching, backends, changes, honoured parameters, weights."""

from django.db import models

from evalboard.contract.probe_kinds import ProbeKind
from runs.models.claimed import Requested, claim_indexes


class ProbeRecord(Requested):
    """One probe of an endpoint under a profile, and its finding; docs/probes.md has the shapes.

    `parameters` are complete (`core.probes.parameters`). `answers` has one entry for each call (`core.probes.call`), of
    which the finding can be made again; `finding` is `{"state", "sentence", "numbers"}`, null until it ends.
    `waits_for` lists the ids of the workers that a routing probe still has to ask.
    """

    Kind = ProbeKind

    endpoint = models.ForeignKey("runs.EndpointRecord", on_delete=models.PROTECT, related_name="probes")
    profile = models.ForeignKey("runs.ProfileRecord", on_delete=models.PROTECT, related_name="probes")
    kind = models.CharField(max_length=20, choices=[(kind.value, kind.value.capitalize()) for kind in ProbeKind])
    parameters = models.JSONField()
    answers = models.JSONField(default=list)
    finding = models.JSONField(null=True)
    waits_for = models.JSONField(default=list)
    price = models.JSONField(default=dict, help_text="its endpoint's when it was asked for; {}: not known then")
    n_rests = models.PositiveIntegerField(
        default=0, db_default=0, help_text="of its endpoint, since calls of it were answered"
    )
    bucket = models.ForeignKey(
        "runs.BucketRecord",
        on_delete=models.PROTECT,
        null=True,
        related_name="probes",
        help_text="gave most of its answers; null: none has ended it, or nobody knows who did",
    )
    buckets = models.ManyToManyField(
        "runs.BucketRecord",
        through="runs.ProbeBucket",
        related_name="+",
        help_text="each that gave one of its answers, as far as anything names it",
    )
    bypass_of = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        related_name="bypass_probes",
        help_text="the probe of the gateway that this one goes around",
    )

    class Meta(Requested.Meta):
        db_table = "runs_probe"
        indexes = [
            *claim_indexes("probe"),
            models.Index(fields=["endpoint", "kind", "-id"], name="probe_of_an_endpoint"),
        ]

    def __str__(self) -> str:
        return f"probe {self.pk} ({self.kind})"


class ProbeBucket(models.Model):
    """A bucket of `ProbeRecord.buckets`. Spelt out, so that its columns keep their names."""

    id = models.AutoField(primary_key=True)
    probe = models.ForeignKey(ProbeRecord, on_delete=models.CASCADE, related_name="+")
    bucket = models.ForeignKey("runs.BucketRecord", on_delete=models.CASCADE, related_name="+")

    class Meta:
        db_table = "runs_probe_buckets"
        unique_together = [("probe", "bucket")]


class AnswerSet(models.Model):
    """A set of answers in a probe of kind `verify`: the endpoint's, or one of known origin.

    `run` gave them, and `scoring` scores them on the reference; null before it is requested, or after deletion.
    """

    class Role(models.TextChoices):
        ENDPOINT = "endpoint"
        CONTROL = "control"
        NUMERICS = "numerics"
        PLANTED = "planted"

    probe = models.ForeignKey(ProbeRecord, on_delete=models.CASCADE, related_name="sets", db_index=False)
    role = models.CharField(max_length=20, choices=Role.choices)
    run = models.ForeignKey("runs.RunRecord", on_delete=models.SET_NULL, null=True, related_name="+")
    scoring = models.ForeignKey("runs.ForcedScoringRecord", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["probe", "role"], name="a_probe_has_a_role_once")]

    def __str__(self) -> str:
        return f"{self.role} of probe {self.probe_id}"
