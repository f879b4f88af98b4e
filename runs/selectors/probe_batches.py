"""Batch probes of one endpoint held against each other: idle and loaded, one profile and another, before and after."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from evalboard.core import batch_comparison, probe_call
from evalboard.core.errors import Conflict, NotFound
from evalboard.core.probe_call import Finding
from runs.models import Probe

OFFERED = 20


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A batch probe that another one can be held against. `load`: how many requests were decoded beside."""

    id: int
    profile: str
    load: int
    state: str
    at: datetime


@dataclass(frozen=True, slots=True)
class HeldAgainst:
    """What parts two batch probes, the older one first."""

    first: int
    second: int
    finding: Finding


def comparable_batches(probe_id: int) -> tuple[BatchLine, ...]:
    """The newest other batch probes of the same endpoint and prompts that found something; none of another kind."""
    found = _like(_probe(probe_id)).exclude(pk=probe_id).defer("answers").select_related("profile")
    return tuple(
        BatchLine(each.pk, str(each.profile), each.parameters["load"], (each.finding or {})["state"], each.created_at)
        for each in found.order_by("-pk")[:OFFERED]
    )


def held_against(probe_id: int, other_id: int) -> HeldAgainst:
    """Raises NotFound, and Conflict for probes of which nothing can be held against each other."""
    probe, other = _probe(probe_id), _probe(other_id)
    if probe_id == other_id or _like(probe).filter(pk__in=(probe_id, other_id)).count() != 2:
        raise Conflict(
            f"Probes {probe_id} and {other_id} must be two finished batch probes of one endpoint with the same prompts."
        )
    first, second = sorted((probe, other), key=lambda each: each.pk)
    calls = ([probe_call.from_json(stored) for stored in each.answers] for each in (first, second))
    return HeldAgainst(first.pk, second.pk, batch_comparison.compare(*calls))


def _like(probe: Probe) -> QuerySet[Probe]:
    return Probe.objects.filter(
        kind=Probe.Kind.BATCH,
        endpoint=probe.endpoint_id,
        parameters__prompts=probe.parameters.get("prompts"),
        status=Probe.Status.FINISHED,
    )


def _probe(probe_id: int) -> Probe:
    probe = Probe.objects.filter(pk=probe_id).first()
    if probe is None:
        raise NotFound(f"There is no probe {probe_id}.")
    return probe
