"""What the canaries of an endpoint found one after the other."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runs.models import Probe

CANARIES_SHOWN = 40


@dataclass(frozen=True, slots=True)
class CanaryLine:
    """One canary, and when it was asked for. moved, noise: in nats, None where there were too few runs for them."""

    id: int
    at: datetime
    state: str
    moved: float | None
    noise: float | None


def canaries(probe_id: int) -> tuple[CanaryLine, ...]:
    """The last canaries up to this one that were asked the same in every way, oldest first."""
    one = Probe.objects.only("endpoint", "profile", "parameters").get(pk=probe_id)
    same = Probe.objects.filter(
        endpoint=one.endpoint_id,
        profile=one.profile_id,
        kind=Probe.Kind.CANARY,
        parameters=one.parameters,
        status=Probe.Status.FINISHED,
        pk__lte=probe_id,
    )
    return tuple(_line(each) for each in reversed(same.defer("answers").order_by("-pk")[:CANARIES_SHOWN]))


def _line(canary: Probe) -> CanaryLine:
    finding: dict[str, Any] = canary.finding or {}
    numbers = finding["numbers"]
    return CanaryLine(canary.pk, canary.created_at, finding["state"], numbers.get("statistic"), numbers.get("noise"))
