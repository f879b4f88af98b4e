"""Baselines and releases as JSON; docs/api.md has the fields. Scores and differences are in points, null is unknown."""

from rest_framework.request import Request

from runs.api import release_answers
from runs.api.shapes import instant, page_url, pair, run_row
from runs.selectors import (
    BaselineRow,
    GateReport,
    GateSide,
    Line,
    ReleaseReport,
    ReleaseRow,
    RotationRow,
    SettlePlan,
    SignOffLine,
)


def baseline(row: BaselineRow, request: Request) -> release_answers.Baseline:
    """`expired` is null while it holds."""
    return {
        "id": str(row.id),
        "suite": row.suite,
        "line": row.line,
        "profile": row.profile,
        "run": run_row(row.run, request),
        "reason": row.reason,
        "set_by": row.set_by or None,
        "created_at": instant(row.created_at),
        "is_current": row.is_current,
        "expired": None if row.rotation is None else _rotation(row.rotation),
    }


def _rotation(row: RotationRow) -> release_answers.RotationSeen:
    return {
        "at": instant(row.at),
        "endpoint": row.endpoint,
        "profile": row.profile,
        "run": str(row.run_id),
        "before": {"id": str(row.before_id), "digest": row.before_digest, "label": row.before_label},
        "after": {"id": str(row.after_id), "digest": row.after_digest, "label": row.after_label},
    }


def release_row(row: ReleaseRow, request: Request) -> release_answers.ReleaseRow:
    """A release in a list; the numbers are those of its headline gate."""
    low, high = row.interval or (None, None)
    return {
        "id": str(row.id),
        "verdict": row.verdict or None,
        "outcome": row.outcome,
        "summary": row.summary,
        "suites": list(row.suites),
        "candidate": {"run": str(row.candidate_run), "model": row.candidate},
        "baseline": {"run": str(row.baseline_run), "model": row.baseline},
        "policy": row.policy,
        "treatment": row.treatment,
        "difference": row.difference,
        "low": low,
        "high": high,
        "tolerance_points": row.tolerance_points,
        "labels": row.labels,
        "created_by": row.created_by or None,
        "created_at": instant(row.created_at),
        "decided_at": instant(row.decided_at),
        "url": page_url(request, "release", row.id),
    }


def release(report: ReleaseReport, request: Request) -> release_answers.Release:
    settings = report.policy_settings
    row = release_row(report.row, request)
    return {
        "id": row["id"],
        "verdict": row["verdict"],
        "outcome": row["outcome"],
        "reasons": _lines(report.reasons),
        "summary": report.row.summary,
        "next": _lines(report.next_steps),
        "headline_gate": report.headline_gate,
        "gates": [_gate(gate) for gate in report.gates],
        "policy": {
            "name": report.policy_name,
            "version": report.policy_version,
            "title": report.policy_title,
            "rule": settings["rule"],
            "tolerance_points": settings["tolerance_points"],
            "guard": settings["guard_points"] if settings["rule"] == "strict" else None,
        },
        "treatment": report.row.treatment,
        "input_digest": report.input_digest or None,
        "candidates_tried": report.candidates_tried,
        "settle": None if report.settle is None else settle_plan(report.settle),
        "settling": report.settling or None,
        "signoffs": [sign_off(line) for line in report.sign_offs],
        "warnings": _lines(report.warnings),
        "labels": row["labels"],
        "created_by": row["created_by"],
        "created_at": row["created_at"],
        "decided_at": row["decided_at"],
        "url": row["url"],
    }


def sign_off(line: SignOffLine) -> release_answers.SignOff:
    return {
        "id": str(line.id),
        "person": line.person,
        "decision": line.decision,
        "note": line.note,
        "expires_at": instant(line.expires_at),
        "created_at": instant(line.created_at),
        "input_digest": line.input_digest,
        "made_with": line.made_with or None,
        "digest": line.digest,
        "void": line.void or None,
    }


def settle_plan(plan: SettlePlan) -> release_answers.SettlePlan:
    return {
        "look": plan.look,
        "n_responses": plan.n_responses,
        "runs": [{"run": str(run_id), "n_more": n_more} for run_id, n_more in plan.runs],
        "minutes": plan.minutes,
        "refused": plan.refused or None,
    }


def _lines(found: tuple[Line, ...]) -> list[release_answers.Finding]:
    return [{"code": line.code, "text": line.text, "gate": line.gate} for line in found]


def _gate(gate: GateReport) -> release_answers.Gate:
    low, high = gate.interval or (None, None)
    reach: release_answers.Reach | None = None
    if gate.reach is not None:
        reach = {
            "low": gate.reach[0],
            "high": gate.reach[1],
            "level": gate.reach_level,
            "n_groups": gate.n_groups,
            "is_concentrated": gate.is_concentrated,
        }
    expected: release_answers.Expected | None = None
    if gate.expected is not None:
        expected = {"repeats": gate.expected_repeats, "low": gate.expected[0], "high": gate.expected[1]}
    return {
        "suite": gate.suite,
        "suite_version": gate.suite_version,
        "tier": gate.tier,
        "verdict": gate.verdict or None,
        "reasons": [{"code": line.code, "text": line.text} for line in gate.reasons],
        "warnings": [{"code": line.code, "text": line.text} for line in gate.warnings],
        "difference": gate.difference,
        "low": low,
        "high": high,
        "level": gate.level,
        "reach": reach,
        "range_baseline": pair(gate.baseline.range),
        "range_candidate": pair(gate.candidate.range),
        "baseline": _side(gate.baseline),
        "candidate": _side(gate.candidate),
        "tolerance_points": gate.tolerance_points,
        "guard_points": gate.guard_points,
        "resolution_points": gate.resolution_points,
        "resolution_elsewhere_points": gate.resolution_elsewhere_points,
        "look": gate.look,
        "repeats_needed": gate.repeats_needed,
        "expected": expected,
        "cases_needed": {str(look): n for look, n in gate.cases_needed.items()},
        "leaning": gate.leaning,
        "n_cases": gate.n_cases,
        "n_cases_judged": gate.n_cases_judged,
        "changed": {
            "n_fixed": gate.n_fixed,
            "n_broken": gate.n_broken,
            "n_unstable": gate.n_unstable,
            "fixed": list(gate.fixed),
            "broken": list(gate.broken),
        },
        "is_worth_a_look": gate.is_worth_a_look,
    }


def _side(side: GateSide) -> release_answers.GateSide:
    return {
        "run": str(side.run_id),
        "model": side.model_name,
        "endpoint": side.endpoint,
        "profile": side.profile_slug,
        "profile_version": side.profile_version,
        "status": side.status,
        "n_repeats": side.n_repeats,
        "score": side.score,
        "repeats": list(side.points),
        "interval": pair(side.interval),
        "noise": {
            "disagreement_rate": side.disagreement_rate,
            "sd_points": side.noise_points,
            "n_unstable": side.n_unstable,
        },
        "is_baseline_expired": side.is_baseline_expired,
    }
