"""The verdict: ship, no-ship, inconclusive or not comparable, and what would settle it. docs/verdict.md has the rules.

Same inputs, same verdict, to the bit; the order of cases, and of the repeats that enter, changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalboard.core import comparability, next_steps, settle
from evalboard.core import verdict_words as words
from evalboard.core.comparability import WARNINGS, Block
from evalboard.core.evidence import Change, Evidence, find_evidence
from evalboard.core.gate import (
    INCONCLUSIVE,
    NO_SHIP,
    NOT_COMPARABLE,
    SHIP,
    Expected,
    GateInput,
    GateVerdict,
    Line,
    Question,
)
from evalboard.core.gate_document import RULES, VERSION, Json, gate_document
from evalboard.core.policy import PolicySettings
from evalboard.core.several_gates import benjamini_hochberg, holm

__all__ = ["RULES", "VERSION", "GateInput", "GateVerdict", "Question", "decide", "is_enough", "judge"]

MOST_MISSING_PERCENT = 1  # of the cases; beyond it nothing is decided
FEW_CASES = 200  # below it one case is worth more than half a point
WIDE_REACH = 2.0  # times the tolerance, as a drop that other cases might show
GRAVEST_FIRST = (NO_SHIP, NOT_COMPARABLE, INCONCLUSIVE, SHIP)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ruling:
    """What the rules say; repeats_needed and expected only where more repeats would settle it."""

    verdict: str
    reasons: tuple[Line, ...]
    next: tuple[Line, ...]
    leaning: str | None = None
    repeats_needed: int | None = None
    expected: Expected | None = None


def judge(question: Question, policy: PolicySettings) -> GateVerdict:
    """Judge a candidate against a baseline on one suite, under one policy."""
    treatment = question.treatment
    blocks = comparability.find_blocks(question.asked_baseline, question.asked_candidate, treatment)
    # A rotation is what a release that judges the stack is about.
    expired = question.is_baseline_expired if treatment == comparability.MODEL else ""
    is_comparable = comparability.is_comparable(blocks) and not expired
    evidence = find_evidence(question, policy, is_comparable=is_comparable)
    ruling = _rule(evidence) if is_comparable else _not_comparable(blocks, expired)
    sides = (("baseline", question.asked_baseline), ("candidate", question.asked_candidate))
    logged = tuple(name for name, asked in sides if asked.is_logged)
    wanted = None if ruling.repeats_needed is None else evidence.k + ruling.repeats_needed
    ruling = replace(ruling, next=next_steps.with_logs(ruling.next, logged, wanted))
    warnings = [Line(block.code, block.text) for block in blocks if block.code in WARNINGS]
    if question.is_baseline_expired and not expired:
        warnings.append(Line("baseline_expired", question.is_baseline_expired))
    return replace(_gate(evidence, ruling, (*warnings, *_warnings(evidence, ruling))), logged=logged)


def is_enough(n_cases_missing: int, n_cases: int) -> bool:
    """Whether a verdict can be taken where so many of a suite's cases have no score."""
    return 100 * n_cases_missing <= MOST_MISSING_PERCENT * n_cases


def decide(gates: Sequence[GateInput]) -> Json:
    """Decide a release from its gates: the document that is stored with it, its shape in gate_document.

    Raises ValueError where no gate is critical: nothing then decides.
    """
    critical = [index for index, gate in enumerate(gates) if gate.tier == "critical"]
    if not critical:
        raise ValueError("a release needs a critical gate")
    gates = _held_by_several(gates, critical)
    verdict = min((gates[index].verdict.verdict for index in critical), key=GRAVEST_FIRST.index)
    deciding = [index for index in critical if gates[index].verdict.verdict == verdict]
    to_look_at = _worth_a_look(gates)
    return {
        "version": VERSION,
        "rules": RULES,
        "verdict": verdict,
        "summary": _summary(gates, critical, deciding[0]),
        "headline_gate": deciding[0],
        "reasons": _lines(gates, {index: gates[index].verdict.reasons for index in deciding}),
        "warnings": _lines(
            gates, {index: _all_warnings(gate, index in to_look_at) for index, gate in enumerate(gates)}
        ),
        "next": _lines(gates, {index: gates[index].verdict.next for index in deciding}),
        "gates": [gate_document(gate, is_worth_a_look=index in to_look_at) for index, gate in enumerate(gates)],
    }


def _not_comparable(blocks: Sequence[Block], expired: str) -> _Ruling:
    found = [Line(block.code, block.text) for block in blocks if block.code not in WARNINGS]
    if expired:
        graver = comparability.GRAVEST_FIRST[: comparability.GRAVEST_FIRST.index("rebaseline")]
        place = sum(line.code in graver for line in found)
        found.insert(place, Line("rebaseline", expired))
    steps = {step.code: step for step in reversed([next_steps.of_block(line.code) for line in found])}
    in_order = {next_steps.of_block(line.code).code: None for line in found}
    return _Ruling(verdict=NOT_COMPARABLE, reasons=tuple(found), next=tuple(steps[code] for code in in_order))


def _rule(evidence: Evidence) -> _Ruling:
    """Rows 6 to 12 of docs/verdict.md; the first that holds decides."""
    change, tolerance = evidence.change, evidence.policy.tolerance_points
    if evidence.one_draw:
        return _one_draw(evidence)
    if _lacks_draws(evidence):
        return _too_few_draws(evidence)
    if change is None or not is_enough(evidence.n_cases_missing, evidence.n_cases):
        return _incomplete(evidence)
    if evidence.look is None:
        return _too_few_repeats(evidence, change)
    if evidence.policy.is_guarded and evidence.noisy:
        reason = Line("noisy", words.noisy(evidence))
        return _open(evidence, change, reason, next_steps.of_noise(evidence))
    verdict = _word(change.low, change.high, tolerance)
    if _hangs_on_the_missing(evidence, verdict):
        return _incomplete(evidence)
    if verdict == SHIP:
        return _ship(evidence, change)
    if verdict == NO_SHIP:
        reason = Line("regression", words.regression(evidence, change))
        return _Ruling(verdict=NO_SHIP, reasons=(reason,), next=next_steps.of_no_ship(change.cases.n_broken))
    return _not_settled(evidence, change, evidence.look)


def _word(low: float, high: float, tolerance: float) -> str:
    if low > -tolerance:
        return SHIP
    return NO_SHIP if high < -tolerance else INCONCLUSIVE


def _hangs_on_the_missing(evidence: Evidence, verdict: str) -> bool:
    """Whether it would be another verdict if all missing responses went the other way."""
    low, high, tolerance = evidence.missing.low, evidence.missing.high, evidence.policy.tolerance_points
    if verdict == SHIP:
        return low is not None and low <= -tolerance
    return verdict == NO_SHIP and high is not None and high >= -tolerance


def _ship(evidence: Evidence, change: Change) -> _Ruling:
    if change.low > 0:
        reason = Line("better", words.better(evidence, change))
    elif change.high < 0:
        reason = Line("small_real_drop", words.small_real_drop(evidence, change))
    else:
        reason = Line("within_tolerance", words.within_tolerance(evidence, change))
    return _Ruling(verdict=SHIP, reasons=(reason,), next=next_steps.of_ship())


def _lacks_draws(evidence: Evidence) -> bool:
    """Whether a look is out of reach, or over 1 % of the cases are, for the answers that are no draws."""
    left_out = evidence.left_out
    return left_out.is_look_lost or 100 * left_out.n_cases > MOST_MISSING_PERCENT * evidence.n_cases


def _too_few_draws(evidence: Evidence) -> _Ruling:
    code = evidence.left_out.code
    return _Ruling(
        verdict=INCONCLUSIVE,
        reasons=(Line(code, words.too_few_draws(evidence)),),
        next=next_steps.of_too_few_draws(code),
        leaning=_lean(evidence),
    )


def _incomplete(evidence: Evidence) -> _Ruling:
    reason = Line("incomplete", words.incomplete(evidence))
    return _Ruling(
        verdict=INCONCLUSIVE, reasons=(reason,), next=next_steps.of_missing(evidence), leaning=_lean(evidence)
    )


def _lean(evidence: Evidence) -> str | None:
    change = evidence.change
    return settle.leaning(change.found.difference, evidence.policy.tolerance_points) if change else None


def _one_draw(evidence: Evidence) -> _Ruling:
    change, tolerance = evidence.change, evidence.policy.tolerance_points
    lean = None if change is None else settle.leaning_of(change.found, change.alpha, tolerance)
    reason = Line("one_draw", words.one_draw(evidence))
    return _Ruling(verdict=INCONCLUSIVE, reasons=(reason,), next=next_steps.of_one_draw(), leaning=lean)


def _too_few_repeats(evidence: Evidence, change: Change) -> _Ruling:
    policy = evidence.policy
    look = policy.looks[0]
    return _Ruling(
        verdict=INCONCLUSIVE,
        reasons=(Line("too_few_repeats", words.too_few_repeats(evidence)),),
        next=next_steps.of_few_repeats(evidence, look - evidence.k),
        leaning=settle.leaning_of(change.found, change.alpha, policy.tolerance_points),
        repeats_needed=look - evidence.k,
        expected=settle.expected(change.found.difference, change.measured, look, policy),
    )


def _not_settled(evidence: Evidence, change: Change, look: int) -> _Ruling:
    policy, found = evidence.policy, change.found
    n_cases = evidence.n_cases_judged
    shared = evidence.share_seeds
    settling = settle.find_settling(found.difference, change.measured, look, policy)
    if settle.is_too_small(n_cases, look, policy, share_seeds=shared):
        needed = settle.cases_needed(policy, share_seeds=shared)
        half = settle.least_half_width(n_cases, look, policy, share_seeds=shared)
        reason = Line("suite_too_small", words.suite_too_small(evidence, change, half, needed, settling))
    else:
        needed = None
        reason = Line("not_settled", words.not_settled(evidence, change, settling))
    expected = None
    if settling.look is not None:
        expected = settle.expected(found.difference, change.measured, settling.look, policy)
    return _open(evidence, change, reason, next_steps.of_open(evidence, settling, expected, needed), expected)


def _open(
    evidence: Evidence, change: Change, reason: Line, steps: tuple[Line, ...], expected: Expected | None = None
) -> _Ruling:
    return _Ruling(
        verdict=INCONCLUSIVE,
        reasons=(reason,),
        next=steps,
        leaning=settle.leaning(change.found.difference, evidence.policy.tolerance_points),
        repeats_needed=None if expected is None else expected.repeats - evidence.k,
        expected=expected,
    )


def _warnings(evidence: Evidence, ruling: _Ruling) -> list[Line]:
    """What stays on the page beside any verdict."""
    change = evidence.change
    if change is None:
        return []
    found = []
    codes = {reason.code for reason in ruling.reasons}
    if evidence.is_sampled and not evidence.one_draw:
        found.append(Line("sampled", words.sampled(evidence)))
    if evidence.missing.low is not None and "incomplete" not in codes:
        found.append(Line("missing", words.held_without(evidence, is_decided=ruling.verdict in (SHIP, NO_SHIP))))
    if evidence.left_out.n and evidence.left_out.code not in codes:
        found.append(Line(evidence.left_out.code, words.left_out(evidence)))
    if evidence.noisy and "noisy" not in codes:
        found.append(Line("noisy_bucket", words.noisy_bucket(evidence)))
    sides = (("baseline", evidence.baseline), ("candidate", evidence.candidate))
    if moved := [name for name, side in sides if side.is_overdispersed]:
        found.append(Line("overdispersed", words.overdispersed(moved)))
    if evidence.look is not None and max(evidence.k_baseline, evidence.k_candidate) > evidence.look:
        found.append(Line("repeats_kept", words.repeats_kept(evidence)))
    return [*found, *_warnings_of_size(evidence, change, codes)]


def _warnings_of_size(evidence: Evidence, change: Change, codes: set[str]) -> list[Line]:
    """What so many cases, and groups of them, cannot say."""
    found = []
    tolerance, other = evidence.policy.tolerance_points, change.reach
    if other is not None and other.low < -WIDE_REACH * tolerance:
        found.append(Line("reach_wide", words.reach_wide(other.low)))
    if other is not None and other.is_concentrated:
        found.append(Line("concentrated", words.concentrated(other.n_groups_changed)))
    if evidence.n_cases_judged < FEW_CASES:
        found.append(Line("few_cases", words.one_case(evidence)))
    if evidence.look is not None and change.resolution_points > tolerance and "suite_too_small" not in codes:
        found.append(Line("coarse", words.coarse(evidence, change)))
    return found


def _gate(evidence: Evidence, ruling: _Ruling, warnings: tuple[Line, ...]) -> GateVerdict:
    change, policy = evidence.change, evidence.policy
    known: dict[str, Any] = {}
    if change is not None:
        found = change.found
        as_good = found.below(0.0)
        known = {
            "difference": found.difference,
            "low": change.low,
            "high": change.high,
            "level": change.level,
            "alpha": change.alpha,
            "method": found.method,
            "reach": change.reach,
            "resolution_points": change.resolution_points,
            "resolution_elsewhere_points": change.reach and change.reach.resolution_points,
            "changed": change.cases,
            "p_no_ship": found.below(-policy.tolerance_points),
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
        k_baseline=evidence.k_baseline,
        k_candidate=evidence.k_candidate,
        missing=evidence.missing,
        cases_needed=settle.cases_needed(policy, share_seeds=evidence.share_seeds),
        look=evidence.look,
        leaning=ruling.leaning,
        repeats_needed=ruling.repeats_needed,
        expected=ruling.expected,
        **known,
    )


def _held_by_several(gates: Sequence[GateInput], critical: Sequence[int]) -> list[GateInput]:
    """The gates, with those left open whose drop does not stand once it is known how many were looked for."""
    found = list(gates)
    claims = [index for index in critical if gates[index].verdict.verdict == NO_SHIP]
    if len(critical) == 1:
        return found
    ratios = [(gates[index].verdict.p_no_ship or 0.0) / (gates[index].verdict.alpha or 1.0) for index in claims]
    for index, stands in zip(claims, holm(ratios, len(critical)), strict=True):
        if not stands:
            found[index] = replace(gates[index], verdict=_left_open(gates[index].verdict, len(critical)))
    return found


def _left_open(gate: GateVerdict, n_gates: int) -> GateVerdict:
    reason = Line("not_settled", words.one_of_several(gate.reasons[0].text, n_gates))
    later = min((look for look in gate.cases_needed if look > (gate.look or 0)), default=None)
    return replace(
        gate,
        verdict=INCONCLUSIVE,
        reasons=(reason,),
        next=next_steps.with_logs(next_steps.of_one_of_several(later), gate.logged, later),
        leaning="no_ship",
        repeats_needed=None if later is None else later - min(gate.k_baseline, gate.k_candidate),
    )


def _worth_a_look(gates: Sequence[GateInput]) -> set[int]:
    """The advisory gates whose change is more than their noise explains; they never change the verdict."""
    known = {index: gate.verdict.p_change for index, gate in enumerate(gates) if gate.tier != "critical"}
    p_values = {index: p_value for index, p_value in known.items() if p_value is not None}
    found = benjamini_hochberg(list(p_values.values()))
    return {index for index, is_found in zip(p_values, found, strict=True) if is_found}


def _all_warnings(gate: GateInput, is_worth_a_look: bool) -> tuple[Line, ...]:
    if not is_worth_a_look:
        return gate.verdict.warnings
    return (Line("worth_a_look", words.worth_a_look(gate.verdict.difference or 0.0)), *gate.verdict.warnings)


def _summary(gates: Sequence[GateInput], critical: Sequence[int], first: int) -> str:
    gate = gates[first]
    verdict, reason = gate.verdict, gate.verdict.reasons[0].text
    if verdict.verdict == NOT_COMPARABLE:
        said = f"The two runs of {gate.suite_name} cannot be compared. {reason}"
    else:
        said = f"{words.scores(gate.suite_name, verdict.candidate, verdict.baseline)} {reason}"
    if len(critical) == 1:
        return said
    return f"{said} {words.headline([(gates[index].suite_name, gates[index].verdict.verdict) for index in critical])}"


def _lines(gates: Sequence[GateInput], of_gates: dict[int, tuple[Line, ...]]) -> list[Json]:
    """Lines with the gate that they are of; its suite is named where there are several."""
    return [
        {
            "code": line.code,
            "text": f"{gates[index].suite_name}: {line.text}" if len(gates) > 1 else line.text,
            "gate": index,
        }
        for index, lines in of_gates.items()
        for line in lines
    ]
