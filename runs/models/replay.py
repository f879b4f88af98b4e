"""One case, or one request of production, decoded again, to see what comes out."""

from django.db import models

from runs.models.claimed import Requested, claim_indexes


class ReplayRecord(Requested):
    """A request to decode a case of a run, or a chat completion body, again; and its results.

    `variants` is a list such as `[{}]` (as it was), `[{"batch_size": 1}, {"batch_size": 2}]`, `[{"dtype": "float16"}]`
    or `[{"batch_size": 4, "neighbours": 1}]`; `results` has one entry for each variant done, in their order.
    `endpoint` and `profile` say what decodes it: the run's own, or another profile for the settings of production.
    """

    endpoint = models.ForeignKey("runs.EndpointRecord", on_delete=models.PROTECT, related_name="replays")
    profile = models.ForeignKey("runs.ProfileRecord", on_delete=models.PROTECT, related_name="replays")
    run = models.ForeignKey("runs.RunRecord", on_delete=models.CASCADE, null=True, related_name="replays")
    repeat = models.ForeignKey("runs.RepeatRecord", on_delete=models.CASCADE, null=True, related_name="replays")
    case_index = models.PositiveIntegerField(null=True)
    body = models.JSONField(null=True, help_text="of a chat completion, as it came; null: a case of the run")
    variants = models.JSONField()
    results = models.JSONField(default=list)

    class Meta(Requested.Meta):
        db_table = "runs_replay"
        indexes = claim_indexes("replay")
        constraints = [
            models.CheckConstraint(
                name="a_replay_has_a_case_or_a_body",
                condition=models.Q(run__isnull=False, repeat__isnull=False, case_index__isnull=False, body__isnull=True)
                | models.Q(run__isnull=True, repeat__isnull=True, case_index__isnull=True, body__isnull=False),
            ),
        ]

    @property
    def is_production(self) -> bool:
        """Return whether it used production's settings instead of a run's; reads the run."""
        return self.run is None or self.run.profile_id != self.profile_id

    def __str__(self) -> str:
        return f"replay {self.pk}"
