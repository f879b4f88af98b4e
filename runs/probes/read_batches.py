"""Compare batch probes of one endpoint: idle and loaded, different profiles, before and after."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from evalboard.contract.probe import ProbesHeld
from evalboard.core.errors import Conflict
from evalboard.core.probes import compare_batch_probes, parse_call
from evalboard.wording.probe import describe_batch_comparison
from runs.models import ProbeRecord
from runs.store import require_row

OFFERED = 20


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A batch probe to compare with. load: how many other requests were decoded at a time."""

    id: int
    profile: str
    load: int
    state: str
    at: datetime


def comparable_batches(probe_id: int) -> tuple[BatchLine, ...]:
    """List finished batch probes of the same endpoint and prompts, newest first."""
    others = _like(_probe(probe_id)).exclude(pk=probe_id).defer("answers").select_related("profile")
    return tuple(
        BatchLine(each.pk, str(each.profile), each.parameters["load"], (each.finding or {})["state"], each.created_at)
        for each in others.order_by("-pk")[:OFFERED]
    )


def compare_batches(probe_id: int, other_id: int) -> ProbesHeld:
    """Compare two batch probes, the older one first. Raises NotFound, and Conflict if not comparable."""
    probe, other = _probe(probe_id), _probe(other_id)
    if probe_id == other_id or _like(probe).filter(pk__in=(probe_id, other_id)).count() != 2:
        raise Conflict(
            f"Probes {probe_id} and {other_id} must be two finished batch probes of one endpoint with the same prompts."
        )
    first, second = sorted((probe, other), key=lambda each: each.pk)
    calls = ([parse_call(stored) for stored in each.answers] for each in (first, second))
    finding = compare_batch_probes(*calls)
    return ProbesHeld(
        first=str(first.pk),
        second=str(second.pk),
        state=finding.state,
        sentence=describe_batch_comparison(finding.state, finding.numbers),
        numbers=dict(finding.numbers),
    )


def _like(probe: ProbeRecord) -> QuerySet[ProbeRecord]:
    return ProbeRecord.objects.filter(
        kind=ProbeRecord.Kind.BATCH,
        endpoint=probe.endpoint_id,
        parameters__prompts=probe.parameters.get("prompts"),
        status=ProbeRecord.Status.FINISHED,
    )


def _probe(probe_id: int) -> ProbeRecord:
    return require_row(ProbeRecord.objects.filter(pk=probe_id), f"There is no probe {probe_id}.")
