"""The gates of a release: what its verdict's document says of each, beside the two runs that it was read from."""

from collections.abc import Mapping, Sequence
from typing import Any

from runs import expiry
from runs.models import Gate, Run
from runs.selectors.release import GateReport, GateSide, Line
from runs.selectors.release_list import span_of
from runs.selectors.run import RunRow
from runs.selectors.run_list import rows_of

Said = Mapping[str, Any]  # one gate of a verdict's document, as core.verdict wrote it


def gate_reports(release_id: int, document: Mapping[str, Any], *, tolerance: float) -> tuple[GateReport, ...]:
    """In the order asked for. Of a gate that no verdict speaks of yet: who stands in it, and the policy's tolerance."""
    related = ("suite", "candidate_run__suite_version", "baseline_run__profile", "baseline_run__bucket")
    gates = list(Gate.objects.filter(release=release_id).select_related(*related).order_by("position"))
    run_ids = {run_id for gate in gates for run_id in (gate.baseline_run_id, gate.candidate_run_id)}
    rows = {row.id: row for row in rows_of(Run.objects.filter(pk__in=run_ids))}
    expired = expiry.expired(gates)
    said: Sequence[Said] = document.get("gates", ())
    unsaid = {"tolerance_points": tolerance}
    return tuple(
        _report(gate, said[place] if place < len(said) else unsaid, rows, is_expired=gate.pk in expired)
        for place, gate in enumerate(gates)
    )


def lines(found: Sequence[Mapping[str, Any]]) -> tuple[Line, ...]:
    return tuple(Line(code=each["code"], text=each["text"], gate=each.get("gate")) for each in found)


def _report(gate: Gate, said: Said, rows: dict[int, RunRow], *, is_expired: bool) -> GateReport:
    version = gate.candidate_run.suite_version
    reach = said.get("reach") or {}
    expected = said.get("expected") or {}
    changed = said.get("changed") or {}
    return GateReport(
        position=gate.position,
        suite=gate.suite.slug,
        suite_version=version.number,
        suite_digest=version.digest,
        n_cases=said.get("n_cases") or version.n_cases,
        n_cases_judged=said.get("n_cases_judged") or 0,
        tier=gate.tier,
        verdict=said.get("verdict", ""),
        reasons=lines(said.get("reasons", ())),
        warnings=lines(said.get("warnings", ())),
        baseline=_side(rows[gate.baseline_run_id], "baseline", said, is_expired=is_expired),
        candidate=_side(rows[gate.candidate_run_id], "candidate", said, is_expired=False),
        difference=said.get("difference"),
        interval=span_of(said.get("low"), said.get("high")),
        level=said.get("level"),
        reach=span_of(reach.get("low"), reach.get("high")),
        reach_level=reach.get("level"),
        resolution_points=said.get("resolution_points"),
        resolution_elsewhere_points=said.get("resolution_elsewhere_points"),
        points_per_case=said.get("points_per_case") or 100 / version.n_cases,
        tolerance_points=said["tolerance_points"],
        guard_points=said.get("guard_points"),
        look=said.get("look"),
        repeats_needed=said.get("repeats_needed"),
        expected=span_of(expected.get("low"), expected.get("high")),
        expected_repeats=expected.get("repeats"),
        cases_needed={int(look): n for look, n in (said.get("cases_needed") or {}).items()},
        leaning=said.get("leaning"),
        n_fixed=changed.get("n_fixed", 0),
        n_broken=changed.get("n_broken", 0),
        n_unstable=changed.get("n_unstable", 0),
        fixed=tuple(changed.get("fixed", ())),
        broken=tuple(changed.get("broken", ())),
        is_worth_a_look=bool(said.get("is_worth_a_look")),
        method=said.get("method") or "",
        n_groups=reach.get("n_groups"),
        is_concentrated=bool(reach.get("is_concentrated")),
        missing_share=(said.get("missing") or {}).get("share"),
    )


def _side(row: RunRow, side: str, said: Said, *, is_expired: bool) -> GateSide:
    noise = (said.get("noise") or {}).get(side) or {}
    span, interval = said.get(f"range_{side}"), said.get(f"interval_{side}")
    return GateSide(
        run_id=row.id,
        model_name=row.model_name,
        endpoint=row.endpoint,
        profile=row.profile,
        profile_slug=row.profile_slug,
        profile_version=row.profile_version,
        status=row.status,
        n_repeats=row.n_repeats,
        points=tuple(said.get(f"points_{side}") or ()),
        score=said.get(f"score_{side}"),
        range=None if span is None else (span[0], span[1]),
        interval=None if interval is None else (interval[0], interval[1]),
        noise_points=noise.get("sd_points"),
        is_baseline_expired=is_expired,
        disagreement_rate=noise.get("disagreement_rate"),
        n_unstable=noise.get("n_unstable"),
        range5_points=noise.get("range5_points"),
        n_buckets=row.n_buckets,
        batch_class=row.batch_class,
        fingerprint_digest=row.fingerprint_digest,
        labels=row.labels,
        draws=row.draws,
    )
