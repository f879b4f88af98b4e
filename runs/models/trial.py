"""One case tried on an endpoint, of a suite that need not be stored."""

from django.db import models

from runs.models.claimed import Requested, claim_indexes


class TrialRecord(Requested):
    """A case that a person sends once to see its answer and score; kept for a week.

    `case` has what is sent and how it is scored; `answer` what came back with its score, null where nothing did.
    """

    endpoint = models.ForeignKey("runs.EndpointRecord", on_delete=models.CASCADE, related_name="+")
    profile = models.ForeignKey("runs.ProfileRecord", on_delete=models.CASCADE, related_name="+")
    case = models.JSONField(help_text="id, messages, tools, target, scorer, max_tokens, stop")
    answer = models.JSONField(null=True)

    class Meta(Requested.Meta):
        db_table = "runs_trial"
        indexes = claim_indexes("trial")

    def __str__(self) -> str:
        return f"trial {self.pk}"
