"""Say what the rules came to on one suite, and write it as the JSON that is stored.

A number of a gate is a field of `GateVerdict`, filled in `make_verdict`; the document has every field by its name.
`evalboard.wording.release` makes the sentences: until then a line has `facts` in place of `text`, and there is no
`summary`.
Shape, version 1. Points everywhere, not rounded; null is "not known"; `gate` is a gate's position; spans are [low,
high].

    {"version", "rules", "verdict", "summary", "summary_bold": [start, end] or null, "headline_gate",
     "reasons", "warnings", "next": [{"code", "text", "gate", "sides" that run again, "block" that it undoes}],
     "gates": [{"tier", "suite", "verdict", "reasons", "warnings", "next": [{"code", "text"}],
                "n_cases", "n_cases_judged", "points_per_case",
                "difference", "low", "high", "level",
                "reach": {"low", "high", "level", "n_groups", "n_groups_changed", "design_effect", "is_concentrated",
                          "is_uneven", "resolution_points"} or null,
                "score_baseline", "score_candidate", "points_baseline", "points_candidate" (by repeat),
                "range_baseline", "range_candidate", "interval_baseline", "interval_candidate",
                "noise": {"baseline", "candidate": {"sd_points", "disagreement_rate", "n_unstable", "range5_points",
                                                    "is_overdispersed"}},
                "resolution_points", "resolution_elsewhere_points", "look", "k_baseline", "k_candidate", "alpha",
                "method", "repeats_needed", "expected": {"repeats", "low", "high"} or null, "leaning",
                "early_lean": {"low", "high", "level", "leaning"} or null,
                "targeted": {"repeats", "n_cases"} or null, "settling_chance",
                "targeted_settling": {"repeats", "n_cases", "chance"} or null,
                "cases_needed": {look as text: cases},
                "missing": {"n_baseline", "n_candidate", "share", "low", "high"},
                "changed": {"n_fixed", "n_broken", "n_unstable", "fixed", "broken",
                            "broken_by_chance", "fixed_by_chance": {"n_expected", "n_beyond"} or null,
                            "is_in_every_repeat"} or null,
                "tolerance_points", "guard_points", "metric", "p_no_ship", "is_worth_a_look"}]}
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain
from typing import Any

from evalboard.contract.base import Contract
from evalboard.contract.release import CasesChanged, Outlook, ReachInterval, TargetedRepeats
from evalboard.core.digest import canonical_json, digest_json
from evalboard.core.release import settle
from evalboard.core.release.evidence import Evidence
from evalboard.core.release.gate import (
    MeasuredSide,
    Missing,
    VerdictLine,
)

DOCUMENT_VERSION = 1
# Changed whenever the same inputs would give another verdict, another number, or other words.
VERDICT_RULES = f"verdict {DOCUMENT_VERSION}.25"
FIRST_VERDICT_RULES = "verdict 1.1"  # of documents that do not name theirs
Json = dict[str, Any]
UNSTORED = ("p_change", "logged", "is_judged", "later_looks")  # fields of a verdict that no document has
NO_OUTLOOK = Outlook.from_stored({})
SIDE_FIELDS = ("score", "points", "range", "interval")  # fields of a side that a document has by name and side
SIDES = ("baseline", "candidate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """The rules' result. outlook: set only if more repeats would decide, except its leaning."""

    verdict: str
    reasons: tuple[VerdictLine, ...]
    next: tuple[VerdictLine, ...]
    outlook: Outlook = NO_OUTLOOK


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVerdict(Ruling):
    """What the rules say of one suite. Everything in points; None where the data cannot say.

    difference: candidate minus baseline over the cases judged, in [low, high] at `level`. look: the repeats that
    decide; None before the first look. method: `flips`, `seeds` or `runs`, whichever noise the interval rests on;
    None where no repeat measured any. cases_needed: look → the fewest cases that could settle it. p_no_ship: the
    chance of so low a difference if the drop were exactly the tolerance; p_change: of one so far from 0 if nothing had
    changed.
    logged: which of baseline and candidate were read from a log. is_judged: a judge scored the candidate. metric: what
    the difference is one of.
    targeted: the repeats of the noisiest cases that entered beside those of the look. later_looks: that are left.
    """

    warnings: tuple[VerdictLine, ...]
    n_cases: int
    n_cases_judged: int
    baseline: MeasuredSide
    candidate: MeasuredSide
    tolerance_points: float
    guard_points: float
    metric: str
    k_baseline: int
    k_candidate: int
    missing: Missing
    cases_needed: Mapping[int, int]
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    reach: ReachInterval | None = None
    resolution_points: float | None = None
    resolution_elsewhere_points: float | None = None
    look: int | None = None
    alpha: float | None = None
    method: str | None = None
    targeted: TargetedRepeats | None = None
    changed: CasesChanged | None = None
    p_no_ship: float | None = None
    p_change: float | None = None
    logged: tuple[str, ...] = ()
    is_judged: bool = False
    later_looks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GateInput:
    """A gate of a release as `decide_from_gates` takes it: only `critical` ones decide.

    noted: warnings of how its runs were served, and of what was judged before on them.
    """

    tier: str
    suite_name: str
    verdict: GateVerdict
    noted: tuple[tuple[VerdictLine, ...], tuple[VerdictLine, ...]] = ((), ())


def make_verdict(
    evidence: Evidence, ruling: Ruling, warnings: tuple[VerdictLine, ...], logged: tuple[str, ...]
) -> GateVerdict:
    """Return a gate's verdict with the numbers behind it; without a change there are fewer."""
    change, policy = evidence.change, evidence.policy
    measured: Json = {}
    if change is not None:
        estimate = change.estimate
        as_good = estimate.below(0.0)
        measured = {
            "difference": estimate.difference,
            "low": change.low,
            "high": change.high,
            "level": change.level,
            "alpha": change.alpha,
            "method": estimate.method,
            "reach": change.reach,
            "resolution_points": change.resolution_points,
            "resolution_elsewhere_points": change.reach and change.reach.resolution_points,
            "changed": change.cases,
            "p_no_ship": estimate.below(-policy.tolerance_points),
            "p_change": 2 * min(as_good, 1 - as_good),
        }
    return GateVerdict(
        verdict=ruling.verdict,
        reasons=ruling.reasons,
        warnings=warnings,
        next=ruling.next,
        n_cases=evidence.n_cases,
        n_cases_judged=evidence.n_cases_judged,
        baseline=evidence.baseline,
        candidate=evidence.candidate,
        tolerance_points=policy.tolerance_points,
        guard_points=policy.guard_points,
        metric=policy.metric.name,
        k_baseline=evidence.k_baseline,
        k_candidate=evidence.k_candidate,
        missing=evidence.missing,
        cases_needed=settle.count_cases_needed(policy, share_seeds=evidence.share_seeds),
        look=evidence.look,
        outlook=ruling.outlook,
        targeted=evidence.targeted_repeats,
        logged=logged,
        later_looks=policy.later_looks(evidence.look or 0, is_targeted=evidence.is_targeted_look),
        **measured,
    )


def gate_document(gate: GateInput, *, is_worth_a_look: bool) -> Json:
    """Return a gate's part of the document: all fields, those of its sides by name and side."""
    verdict = gate.verdict
    document: Json = _plain(verdict)
    sides, outlook = {side: document.pop(side) for side in SIDES}, document.pop("outlook")
    for name in UNSTORED:
        del document[name]
    return {
        **document,
        **outlook,
        "warnings": _plain((*verdict.warnings, *chain(*gate.noted))),
        "tier": gate.tier,
        "suite": gate.suite_name,
        "points_per_case": 100 / verdict.n_cases if verdict.n_cases else None,
        **{f"{name}_{side}": own[name] for side, own in sides.items() for name in SIDE_FIELDS},
        "noise": {side: own["noise"] for side, own in sides.items()},
        "is_worth_a_look": is_worth_a_look,
    }


def _plain(value: Any) -> Any:
    """Convert to JSON types: objects for classes, lists for tuples, text for keys."""
    if isinstance(value, Contract):
        return value.to_stored()
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


# What was tried and signed meanwhile changes a verdict's warnings, and nothing else of it.
MOVES = "warnings"
# Two machines may add the same numbers in another order; a forged number differs by more.
CLOSE = 1e-9


def find_change(word: str, document: Mapping[str, Any], taken_again: Mapping[str, Any]) -> str:
    """Say in a sentence how a stored verdict differs from judging again; "" if equal."""
    given = json.loads(canonical_json(taken_again))
    if word != given["verdict"]:
        return f"it says {word}, and recomputed it is {given['verdict']}."
    if place := _first_difference({"rules": FIRST_VERDICT_RULES, **document}, given, ""):
        return f"its field {place} differs when it is recomputed."
    return ""


def digest_verdict(word: str, document: Mapping[str, Any], policy: Mapping[str, Any]) -> str:
    """Return the digest of a verdict and its policy, which a sign-off covers.

    policy: its slug, version and settings.
    """
    return digest_json({"word": word, "document": document, "policy": policy})


def _first_difference(stored: Any, given: Any, place: str) -> str:
    """Return the path of the first value that differs, warnings aside; "" where none does."""
    if isinstance(stored, dict) and isinstance(given, dict):
        names = sorted((stored.keys() | given.keys()) - {MOVES})
        inner = ((stored.get(name), given.get(name), f"{place}.{name}" if place else name) for name in names)
    elif isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        inner = ((*pair, f"{place}[{at}]") for at, pair in enumerate(zip(stored, given, strict=True)))
    else:
        return "" if _is_same(stored, given) else place
    return next(filter(None, (_first_difference(*each) for each in inner)), "")


def _is_same(stored: Any, given: Any) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (stored, given)]
    if all(numbers):
        return math.isclose(stored, given, rel_tol=CLOSE, abs_tol=CLOSE)
    return bool(stored == given)
