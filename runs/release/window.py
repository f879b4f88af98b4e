"""When both sides of a gate ran: interleaved or not, within how many hours, and canaries meanwhile.

If the stack is unknown, this is the only evidence that it did not change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from evalboard.core.stats import is_in_turn, order_by_end
from runs.models import EndpointRecord, GateRecord, ProbeRecord, RepeatRecord, RunRecord

Canaries = tuple[dict[str, str], ...]  # {"endpoint", "state"}, by endpoint


@dataclass(frozen=True, slots=True)
class Window:
    """The time of both sides' runs.

    is_in_turn: the repeats of both sides ended interleaved. are_apart: they were certainly not interleaved. hours: from
    first start to last end; None if unknown.
    """

    is_in_turn: bool
    are_apart: bool
    hours: float | None


def read_window(gate: GateRecord, baseline_ids: Sequence[int], candidate_ids: Sequence[int]) -> Window:
    """Return when the repeats of these ids ran; of a log at most the run's own times are known."""
    runs = (gate.baseline_run, gate.candidate_run)
    if any(run.is_log for run in runs):
        return Window(is_in_turn=False, are_apart=ran_apart(runs), hours=None)
    sides = {"baseline": set(baseline_ids), "candidate": set(candidate_ids)}
    ends: dict[str, list[datetime]] = {name: [] for name in sides}
    rows = RepeatRecord.objects.filter(pk__in=set().union(*sides.values()), finished_at__isnull=False)
    for repeat_id, end in rows.values_list("pk", "finished_at"):
        for name, ids in sides.items():
            if repeat_id in ids and end is not None:
                ends[name].append(end)
    span = _span(runs)
    hours = None if span is None else (span[1] - span[0]).total_seconds() / 3600
    took_turns = is_in_turn(order_by_end(ends))
    return Window(is_in_turn=took_turns, are_apart=all(ends.values()) and not took_turns, hours=hours)


def ran_apart(runs: Sequence[RunRecord]) -> bool:
    """Tell whether one run is known to have ended before the other began."""
    spans = sorted(span for run in runs if (span := _span([run])) is not None)
    return len(spans) == len(runs) == 2 and spans[0][1] < spans[1][0]


def find_canaries(gates: Sequence[GateRecord]) -> dict[int, Canaries]:
    """Return gate id → newest canary finding per external endpoint while both sides ran.

    One query, and none if no gate has a run on an external server.
    """
    spans = {gate.pk: (gate, span) for gate in gates if _is_remote(gate) and (span := _span(_runs(gate))) is not None}
    if not spans:
        return {}
    wanted = Q()
    for gate, (begin, end) in spans.values():
        wanted |= Q(endpoint__in=_endpoints(gate), finished_at__range=(begin, end))
    done = ProbeRecord.objects.filter(wanted, kind=ProbeRecord.Kind.CANARY, status=ProbeRecord.Status.FINISHED)
    seen = list(done.order_by("finished_at", "pk").values_list("endpoint", "endpoint__slug", "finished_at", "finding"))
    canaries: dict[int, Canaries] = {}
    for gate, (begin, end) in spans.values():
        newest = {
            slug: finding["state"]
            for endpoint, slug, at, finding in seen
            if endpoint in _endpoints(gate) and at is not None and begin <= at <= end and finding is not None
        }
        canaries[gate.pk] = tuple({"endpoint": slug, "state": state} for slug, state in sorted(newest.items()))
    return canaries


def _runs(gate: GateRecord) -> tuple[RunRecord, RunRecord]:
    return gate.baseline_run, gate.candidate_run


def _endpoints(gate: GateRecord) -> set[int]:
    return {run.endpoint_id for run in _runs(gate)}


def _is_remote(gate: GateRecord) -> bool:
    return any(run.endpoint.engine == EndpointRecord.Engine.OPENAI for run in _runs(gate))


def _span(runs: Sequence[RunRecord]) -> tuple[datetime, datetime] | None:
    """Return from the first start to the last end; None where some run has no such time yet."""
    begins = [run.started_at for run in runs if run.started_at is not None]
    ends = [run.finished_at for run in runs if run.finished_at is not None]
    return (min(begins), max(ends)) if len(begins) == len(ends) == len(runs) else None
