"""What is kept of a release's verdict, as JSON.

Shape, version 1. Points everywhere, not rounded; null is "not known"; `gate` is a gate's position; spans are [low,
high].

    {"version", "rules", "verdict", "summary", "headline_gate",
     "reasons", "warnings", "next": [{"code", "text", "gate"}],
     "gates": [{"tier", "suite", "verdict", "reasons", "warnings", "next": [{"code", "text"}],
                "n_cases", "n_cases_judged", "points_per_case",
                "difference", "low", "high", "level",
                "reach": {"low", "high", "level", "n_groups", "n_groups_changed", "design_effect", "is_concentrated",
                          "resolution_points"} or null,
                "score_baseline", "score_candidate", "points_baseline", "points_candidate" (by repeat),
                "range_baseline", "range_candidate", "interval_baseline", "interval_candidate",
                "noise": {"baseline", "candidate": {"sd_points", "disagreement_rate", "n_unstable", "range5_points",
                                                    "is_overdispersed"}},
                "resolution_points", "resolution_elsewhere_points", "look", "k_baseline", "k_candidate", "alpha",
                "method", "repeats_needed", "expected": {"repeats", "low", "high"} or null, "leaning",
                "cases_needed": {look as text: cases},
                "missing": {"n_baseline", "n_candidate", "share", "low", "high"},
                "changed": {"n_fixed", "n_broken", "n_unstable", "fixed", "broken"} or null,
                "tolerance_points", "guard_points", "p_no_ship", "is_worth_a_look"}]}
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evalboard.core.gate import GateInput, Line, Side, Span

VERSION = 1
# Changed whenever the same inputs would give another verdict, or other words.
RULES = f"verdict {VERSION}.6"
FIRST_RULES = "verdict 1.1"  # of documents that do not name theirs
Json = dict[str, Any]
KEPT_AS_THEY_ARE = (
    "verdict",
    "n_cases",
    "n_cases_judged",
    "difference",
    "low",
    "high",
    "level",
    "resolution_points",
    "resolution_elsewhere_points",
    "look",
    "k_baseline",
    "k_candidate",
    "alpha",
    "method",
    "repeats_needed",
    "leaning",
    "tolerance_points",
    "guard_points",
    "p_no_ship",
)


def gate_document(gate: GateInput, *, is_worth_a_look: bool) -> Json:
    found = gate.verdict
    return {
        "tier": gate.tier,
        "suite": gate.suite_name,
        **{name: getattr(found, name) for name in KEPT_AS_THEY_ARE},
        "reasons": _lines(found.reasons),
        "warnings": _lines(found.warnings),
        "next": _lines(found.next),
        "points_per_case": 100 / found.n_cases if found.n_cases else None,
        "reach": found.reach and asdict(found.reach),
        "score_baseline": found.baseline.score,
        "score_candidate": found.candidate.score,
        "points_baseline": list(found.baseline.points),
        "points_candidate": list(found.candidate.points),
        "range_baseline": _span(found.baseline.range),
        "range_candidate": _span(found.candidate.range),
        "interval_baseline": _span(found.baseline.interval),
        "interval_candidate": _span(found.candidate.interval),
        "noise": {"baseline": _noise(found.baseline), "candidate": _noise(found.candidate)},
        "expected": found.expected and asdict(found.expected),
        "cases_needed": {str(look): n for look, n in found.cases_needed.items()},
        "missing": asdict(found.missing),
        "changed": found.changed
        and {**asdict(found.changed), "fixed": [*found.changed.fixed], "broken": [*found.changed.broken]},
        "is_worth_a_look": is_worth_a_look,
    }


def _noise(side: Side) -> Json:
    return {
        "sd_points": side.sd_points,
        "disagreement_rate": side.disagreement_rate,
        "n_unstable": side.n_unstable,
        "range5_points": side.range5_points,
        "is_overdispersed": side.is_overdispersed,
    }


def _span(span: Span | None) -> list[float] | None:
    return None if span is None else list(span)


def _lines(lines: Sequence[Line]) -> list[Json]:
    return [asdict(line) for line in lines]
