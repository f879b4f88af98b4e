"""Read a release's gates from its verdict's document and the runs of both sides."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from evalboard.contract import release as contract
from evalboard.contract.compare import Computation
from evalboard.contract.treatments import Terms
from evalboard.core.stats import is_in_turn, order_by_end
from evalboard.wording.release_warnings import weigh
from runs.models import GateRecord, RepeatRecord, RunRecord
from runs.pairs import draws_of
from runs.release.window import ran_apart
from runs.run import model_name, read_costs
from runs.run.estimates import RunCosts

Document = Mapping[str, Any]  # of one gate, as core.release.gate_verdict writes it
# What stands of a gate where no verdict says it: the document has null, or is still to be written.
UNKNOWN: Document = {
    "reasons": (),
    "cases_needed": {},
    "n_cases_judged": 0,
    "changed": {"n_fixed": 0, "n_broken": 0, "n_unstable": 0, "fixed": (), "broken": ()},
    "is_worth_a_look": False,
}


@dataclass(slots=True)
class _GateRepeats:
    """A run's number of repeats, their buckets, and when the judgeable ones ended."""

    n: int = 0
    bucket_ids: set[int] = field(default_factory=set)
    ends: list[datetime] = field(default_factory=list)


def read_gates(
    gates: Sequence[GateRecord],
    expired: Container[int],
    documents: Sequence[Document],
    computations: Mapping[tuple[int, int], Computation],
    *,
    tolerance: float,
    word: str | None,
    terms: Terms,
) -> tuple[contract.Gate, ...]:
    """Return the gates in the order asked for.

    expired: the ids of those whose baseline has. documents: of the verdict, by position; of a gate that it has none of
    there is who stands in it, and the policy's tolerance. computations: by the ids of both runs, where known. word: the
    release's verdict; terms: on which its runs are compared.
    """
    repeats = _count_repeats(gates)
    costs = read_costs([run for gate in gates for run in (gate.baseline_run, gate.candidate_run)])
    return tuple(
        _gate(
            gate,
            {"tolerance_points": tolerance, **(_known(documents[place]) if place < len(documents) else {})},
            repeats,
            costs,
            computations.get((gate.baseline_run_id, gate.candidate_run_id)),
            is_expired=gate.pk in expired,
            word=word,
            terms=terms,
        )
        for place, gate in enumerate(gates)
    )


def _known(document: Document) -> Document:
    return {name: value for name, value in document.items() if value is not None}


def _count_repeats(gates: Sequence[GateRecord]) -> Mapping[int, _GateRepeats]:
    """Return by run how many repeats it has, and the buckets that they are bound to."""
    counts = {run.pk: _GateRepeats() for gate in gates for run in (gate.baseline_run, gate.candidate_run)}
    rows = RepeatRecord.objects.filter(run__in=counts, cases=None).values_list(
        "run", "columns__bucket_ids", "status", "finished_at"
    )
    for run_id, bucket_ids, status, finished_at in rows:
        counts[run_id].n += 1
        counts[run_id].bucket_ids.update(bucket_ids or ())
        if finished_at is not None and status not in RepeatRecord.WITHOUT_SCORE:
            counts[run_id].ends.append(finished_at)
    return counts


def _find_order(gate: GateRecord, repeats: Mapping[int, _GateRepeats]) -> tuple[str, ...]:
    """Return the sides in order of their repeats' ends; empty for logs, which have only import times."""
    if gate.baseline_run.is_log or gate.candidate_run.is_log:
        return ()
    sides = {"baseline": gate.baseline_run_id, "candidate": gate.candidate_run_id}
    return order_by_end({side: repeats[run_id].ends for side, run_id in sides.items()})


def _gate(
    gate: GateRecord,
    document: Document,
    repeats: Mapping[int, _GateRepeats],
    costs: Mapping[int, RunCosts],
    computation: Computation | None,
    *,
    is_expired: bool,
    word: str | None,
    terms: Terms,
) -> contract.Gate:
    version, order = gate.candidate_run.suite_version, _find_order(gate, repeats)
    runs = (gate.baseline_run, gate.candidate_run)
    made = contract.Gate.from_stored(
        {**UNKNOWN, "n_cases": version.n_cases, **document},
        suite=gate.suite.slug,
        suite_version=version.number,
        suite_digest=version.digest,
        tier=gate.tier,
        position=gate.position,
        treatment=terms.treatment,
        pair_by=terms.pair_by,
        order=order,
        is_in_turn=is_in_turn(order) if order else False if ran_apart(runs) else None,
        computation=computation,
        baseline=_side(gate.baseline_run, repeats, costs, "baseline", document, is_expired=is_expired),
        candidate=_side(gate.candidate_run, repeats, costs, "candidate", document, is_expired=False),
        warnings=(),
    )
    warnings = tuple(
        contract.GateWarning.from_stored(line, **weigh(line["code"], made, word))
        for line in document.get("warnings", ())
    )
    return made.model_copy(update={"warnings": warnings})


def _side(
    run: RunRecord,
    all_repeats: Mapping[int, _GateRepeats],
    costs: Mapping[int, RunCosts],
    side: str,
    document: Document,
    *,
    is_expired: bool,
) -> contract.GateSide:
    repeats = all_repeats[run.pk]
    noise = document.get("noise", {}).get(side) or {}
    bound = set() if run.bucket_id is None else {run.bucket_id}
    return contract.GateSide.from_stored(
        {name: document.get(f"{name}_{side}") for name in ("score", "interval")},
        run=str(run.pk),
        model=model_name(run),
        endpoint=run.endpoint.slug,
        profile=run.profile.slug,
        profile_version=run.profile.version,
        status=run.status,
        n_repeats=repeats.n,
        repeats=document.get(f"points_{side}", ()),
        noise=contract.NoiseOfSide.from_stored(noise),
        is_baseline_expired=is_expired,
        cost=costs[run.pk].whole if run.pk in costs else None,
        n_buckets=len(repeats.bucket_ids | bound),
        draws=draws_of(run),
        is_log=run.source_id is not None,
    )
