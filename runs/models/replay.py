"""One case decoded again, to see whether its response comes out the same."""

from django.db import models

from runs.models.claimed import Requested


class Replay(Requested):
    """A request to decode one case of a run again, as it was or under variants, and what came of it.

    `variants` is a list such as `[{}]` (as it was), `[{"batch_size": 1}, {"batch_size": 2}]`, `[{"dtype": "float16"}]`
    or `[{"batch_size": 4, "neighbours": 1}]`; `results` has one entry for each variant done, in their order.
    """

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="replays")
    repeat = models.ForeignKey("runs.Repeat", on_delete=models.CASCADE, related_name="replays")
    case_index = models.PositiveIntegerField()
    variants = models.JSONField()
    results = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"replay {self.pk}"
