"""Who waits for the workers of a pool, and at which priority."""

from django.conf import settings
from django.db import models


class Priority(models.TextChoices):
    """Priorities in the order in which workers take them; `runs.work.queue` guarantees lower ones a share."""

    RELEASE = "release"
    NORMAL = "normal"
    BULK = "bulk"


class Lane(models.Model):
    """One person's queue in one pool at one priority. Lanes of equal priority take turns by shard.

    `turn` is the number of its last claim among all claims of the pool: the lane with the lowest waits longest.
    """

    pool = models.CharField(max_length=40)
    priority = models.CharField(max_length=10, choices=Priority.choices)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="lanes",
        help_text="null: what no person asked for",
    )
    turn = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pool", "priority", "person"], name="one_lane_per_person_and_priority"),
        ]

    def __str__(self) -> str:
        return f"lane {self.pk}"
