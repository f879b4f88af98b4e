"""Judge a release: ship, no-ship, inconclusive or not comparable, and how to decide (docs/verdict.md).

Same inputs, same verdict, to the bit; the order of cases, and of the repeats that enter, changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from evalboard.contract.release import Outlook
from evalboard.contract.treatments import MODEL_TREATMENT, PROMPT_TREATMENT, SERVICE_TREATMENT, STACK_TREATMENT
from evalboard.core.compare import (
    BLOCK_ORDER,
    BLOCK_WARNINGS,
    Block,
    allows_comparing,
    find_blocks,
    is_steady_batch,
)
from evalboard.core.profile import OBSERVED
from evalboard.core.release import next_steps, settle
from evalboard.core.release.evidence import Change, Evidence, find_evidence
from evalboard.core.release.gate import (
    INCONCLUSIVE,
    NO_SHIP,
    NOT_COMPARABLE,
    SHIP,
    GateQuestion,
    VerdictLine,
)
from evalboard.core.release.gate_facts import gate_facts
from evalboard.core.release.gate_verdict import (
    DOCUMENT_VERSION,
    VERDICT_RULES,
    GateInput,
    GateVerdict,
    Json,
    Ruling,
    gate_document,
    make_verdict,
)
from evalboard.core.release.serving import DecodedSide, list_serving_warnings
from evalboard.core.stats import benjamini_hochberg, expected_range_points, holm
from evalboard.core.suite import PolicySettings

MAX_MISSING_PERCENT = 1  # of the cases; beyond it nothing is decided
FEW_CASES = 200  # below it one case is worth more than half a point
WIDE_REACH = 2.0  # times the tolerance, as a drop that other cases might show
VERDICT_ORDER = (NO_SHIP, NOT_COMPARABLE, INCONCLUSIVE, SHIP)


@dataclass(frozen=True, eq=False, kw_only=True)
class GateEvidence:
    """The evidence of one gate. tier: `critical`, or `advisory`, which never changes the verdict.

    history: warnings of what was judged before on the same runs.
    """

    tier: str
    suite_name: str
    question: GateQuestion
    baseline: DecodedSide
    candidate: DecodedSide
    history: tuple[VerdictLine, ...] = ()


def judge_release(gates: Iterable[GateEvidence], policy: PolicySettings) -> Json:
    """Judge a release by its evidence, with one gate in memory at a time.

    Return the document of gate_document, whose sentences `wording.release` writes. Raises ValueError if no gate is
    critical: nothing decides then.
    """
    return decide_from_gates([_judge(gate, policy) for gate in gates])


def _judge(gate: GateEvidence, policy: PolicySettings) -> GateInput:
    verdict = judge_gate(gate.question, policy)
    reasons = {line.code for line in verdict.reasons}  # what is a reason is no warning as well
    served, history = (
        tuple(line for line in lines if line.code not in reasons)
        for lines in (list_serving_warnings(gate.baseline, gate.candidate), gate.history)
    )
    return GateInput(gate.tier, gate.suite_name, verdict, (served, history))


def judge_gate(question: GateQuestion, policy: PolicySettings) -> GateVerdict:
    """Judge a candidate against a baseline on one suite, under one policy."""
    treatment = question.treatment
    blocks = find_blocks(
        question.setup_baseline,
        question.setup_candidate,
        treatment,
        window=_find_window(question, policy),
        prompts=question.prompts,
    )
    apart = _find_apart(question)
    if apart is not None and apart.facts["is_certain"] and allows_comparing(blocks):
        blocks = tuple(sorted((*blocks, Block(apart.code, apart.facts)), key=lambda each: BLOCK_ORDER.index(each.code)))
    # A rotation is what a release that judges the stack is about.
    expired = question.expired if treatment in (MODEL_TREATMENT, PROMPT_TREATMENT) else None
    is_comparable = allows_comparing(blocks) and expired is None
    evidence = find_evidence(question, policy, is_comparable=is_comparable)
    ruling = _rule(evidence) if is_comparable else _not_comparable(blocks, expired)
    sides = (("baseline", question.setup_baseline), ("candidate", question.setup_candidate))
    logged = tuple(name for name, setup in sides if setup.is_logged)
    needed = ruling.outlook.repeats_needed
    wanted = None if needed is None else evidence.k + needed
    are_called = any(served.batch_class == OBSERVED for _, setup in sides for served in setup.served) and not logged
    is_judged = question.setup_candidate.judge is not None
    is_noisy = is_judged and _is_judge_noisy(question, evidence)
    steps = next_steps.with_load(ruling.next, evidence)
    steps = next_steps.with_judge(steps, is_judged=is_judged, is_noisy=is_noisy)
    steps = next_steps.with_others(steps, are_called=are_called)
    ruling = replace(ruling, next=next_steps.with_logs(steps, logged, wanted))
    warnings = [VerdictLine(block.code, block.facts) for block in blocks if block.code in BLOCK_WARNINGS]
    if apart is not None and not apart.facts["is_certain"]:
        warnings.append(apart)
    if question.expired is not None and expired is None:
        warnings.append(VerdictLine("baseline_expired", question.expired))
    made = make_verdict(evidence, ruling, (*warnings, *_warnings(evidence, ruling)), logged)
    return replace(made, is_judged=is_judged)


def _is_judge_noisy(question: GateQuestion, evidence: Evidence) -> bool:
    """Tell whether more of a side's variance comes from its judge than from its answers."""
    sides = ((question.setup_baseline, evidence.baseline), (question.setup_candidate, evidence.candidate))
    return any(
        setup.judge is not None
        and setup.judge.sd_points is not None
        and side.noise.sd_points is not None
        and 2 * setup.judge.sd_points**2 > side.noise.sd_points**2
        for setup, side in sides
    )


def has_enough_cases(n_cases_missing: int, n_cases: int) -> bool:
    """Tell whether a verdict can be taken where so many of a suite's cases have no score."""
    return 100 * n_cases_missing <= MAX_MISSING_PERCENT * n_cases


def decide_from_gates(gates: Sequence[GateInput]) -> Json:
    """Do the same where the gates have been judged."""
    critical = [index for index, gate in enumerate(gates) if gate.tier == "critical"]
    if not critical:
        raise ValueError("a release needs a critical gate")
    gates = _apply_holm(gates, critical)
    verdict = min((gates[index].verdict.verdict for index in critical), key=VERDICT_ORDER.index)
    deciding = [index for index in critical if gates[index].verdict.verdict == verdict]
    to_look_at = _worth_a_look(gates)
    own = [_all_warnings(gate, index in to_look_at) for index, gate in enumerate(gates)]
    warnings = (own, *zip(*(gate.noted for gate in gates), strict=True))  # kind by kind, each gate by gate
    return {
        "version": DOCUMENT_VERSION,
        "rules": VERDICT_RULES,
        "verdict": verdict,
        "headline_gate": deciding[0],
        "reasons": _lines({index: gates[index].verdict.reasons for index in deciding}),
        "warnings": [line for kind in warnings for line in _lines(dict(enumerate(kind)))],
        "next": _lines({index: gates[index].verdict.next for index in deciding}),
        "gates": [gate_document(gate, is_worth_a_look=index in to_look_at) for index, gate in enumerate(gates)],
    }


def _find_window(question: GateQuestion, policy: PolicySettings) -> dict[str, Any] | None:
    """Return the facts of the interleaved time, if the policy accepts it instead of an identity."""
    hours = question.span_hours
    if policy.is_guarded or not question.is_in_turn or hours is None or hours > policy.window_hours:
        return None
    return {"hours": hours, "canaries": list(question.canaries)}


def _find_apart(question: GateQuestion) -> VerdictLine | None:
    """Find whether one bucket answered both sides of a model's release, and they are two computations.

    Where load moves bits, sides that did not take turns lie apart by that alone: it is not certain.
    """
    if question.computation is None or question.treatment != MODEL_TREATMENT:
        return None
    are_equal = not (question.draws_baseline.may_sample or question.draws_candidate.may_sample)
    served = (*question.setup_baseline.served, *question.setup_candidate.served)
    is_steady = all(is_steady_batch(each.batch_class, are_batches_equal=are_equal) for each in served)
    measured = {name: question.computation[name] for name in ("is_steady", "n_cases", "n_apart", "shift")}
    judge = STACK_TREATMENT if is_steady else SERVICE_TREATMENT
    return VerdictLine(
        "computation_apart", {**measured, "judge": judge, "is_certain": is_steady or question.is_in_turn}
    )


def _not_comparable(blocks: Sequence[Block], expired: Mapping[str, Any] | None) -> Ruling:
    reasons = [VerdictLine(block.code, block.facts) for block in blocks if block.code not in BLOCK_WARNINGS]
    if expired is not None:
        graver = BLOCK_ORDER[: BLOCK_ORDER.index("rebaseline")]
        place = sum(line.code in graver for line in reasons)
        reasons.insert(place, VerdictLine("rebaseline", expired))
    steps: dict[str, VerdictLine] = {}
    for step in (step for line in reasons for step in next_steps.list_block_steps(line)):
        first = steps.setdefault(step.code, step)
        if first.facts.get("block") == step.facts.get("block"):  # of both sides
            sides = dict.fromkeys((*first.facts.get("sides", ()), *step.facts.get("sides", ())))
            steps[step.code] = replace(first, facts={**first.facts, "sides": list(sides)})
    return Ruling(verdict=NOT_COMPARABLE, reasons=tuple(reasons), next=tuple(steps.values()))


def _rule(evidence: Evidence) -> Ruling:
    """Apply rows 6 to 16 of docs/verdict.md; the first that applies decides."""
    change, tolerance = evidence.change, evidence.policy.tolerance_points
    if evidence.one_draw:
        return _one_draw(evidence)
    if evidence.no_metric:
        return _no_metric(evidence)
    if _lacks_draws(evidence):
        return _too_few_draws(evidence)
    if evidence.look is None and not evidence.policy.metric.is_mean:
        return _too_few_repeats(evidence, change)
    if change is None or not has_enough_cases(evidence.n_cases_missing, evidence.n_cases):
        return _incomplete(evidence)
    if evidence.look is None:
        return _too_few_repeats(evidence, change)
    if evidence.policy.is_guarded and evidence.noisy:
        reason = VerdictLine("noisy", gate_facts(evidence, scatter=_scatter(evidence)))
        return _open(evidence, reason, next_steps.list_noise_steps(evidence))
    if evidence.wanders:
        return _open(evidence, VerdictLine("not_in_turn", gate_facts(evidence)), next_steps.list_wandering_steps())
    verdict = _word(change.low, change.high, tolerance)
    if _hangs_on_the_missing(evidence, verdict):
        return _incomplete(evidence)
    if verdict == SHIP and evidence.uncertified:
        reason = VerdictLine("uncertified", gate_facts(evidence))
        return _open(evidence, reason, next_steps.list_uncertified_steps(evidence))
    if verdict == SHIP:
        return _ship(evidence, change)
    if verdict == NO_SHIP:
        reason = VerdictLine("regression", gate_facts(evidence))
        return Ruling(verdict=NO_SHIP, reasons=(reason,), next=next_steps.list_no_ship_steps(change.cases.n_broken))
    return _not_settled(evidence, change, evidence.look)


def _scatter(evidence: Evidence) -> float:
    """Return over how many points five repeats of a noisy side spread with nothing changed."""
    sides = {"baseline": evidence.baseline, "candidate": evidence.candidate}
    return expected_range_points(max(sides[name].noise.sd_points or 0.0 for name in evidence.noisy))


def _word(low: float, high: float, tolerance: float) -> str:
    if low > -tolerance:
        return SHIP
    return NO_SHIP if high < -tolerance else INCONCLUSIVE


def _hangs_on_the_missing(evidence: Evidence, verdict: str) -> bool:
    """Tell whether it would be another verdict if all missing responses went the other way."""
    low, high, tolerance = evidence.missing.low, evidence.missing.high, evidence.policy.tolerance_points
    if verdict == SHIP:
        return low is not None and low <= -tolerance
    return verdict == NO_SHIP and high is not None and high >= -tolerance


def _ship(evidence: Evidence, change: Change) -> Ruling:
    if change.low > 0:
        reason = VerdictLine("better", gate_facts(evidence))
    elif change.high < 0:
        reason = VerdictLine("small_real_drop", gate_facts(evidence))
    else:
        reason = VerdictLine("within_tolerance", gate_facts(evidence))
    return Ruling(verdict=SHIP, reasons=(reason,), next=next_steps.list_ship_steps(change.n_changed))


def _lacks_draws(evidence: Evidence) -> bool:
    """Tell whether answers that are no samples prevent a checkpoint, or affect over 1 % of cases."""
    left_out = evidence.left_out
    return left_out.is_look_lost or 100 * left_out.n_cases > MAX_MISSING_PERCENT * evidence.n_cases


def _too_few_draws(evidence: Evidence) -> Ruling:
    code = evidence.left_out.code
    return Ruling(
        verdict=INCONCLUSIVE,
        reasons=(VerdictLine(code, gate_facts(evidence)),),
        next=next_steps.list_few_draws_steps(code, evidence),
        outlook=_lean(evidence),
    )


def _incomplete(evidence: Evidence) -> Ruling:
    reason = VerdictLine("incomplete", gate_facts(evidence))
    return Ruling(
        verdict=INCONCLUSIVE, reasons=(reason,), next=next_steps.list_missing_steps(evidence), outlook=_lean(evidence)
    )


def _lean(evidence: Evidence, **outlook: Any) -> Outlook:
    """Return which way an open difference leans, with the outlook of more repeats."""
    change, tolerance = evidence.change, evidence.policy.tolerance_points
    leaning = settle.name_leaning(change.estimate.difference, tolerance) if change else None
    return Outlook.from_stored({"leaning": leaning, **outlook})


def _one_draw(evidence: Evidence) -> Ruling:
    change, tolerance = evidence.change, evidence.policy.tolerance_points
    lean = None if change is None else settle.estimate_leaning(change.estimate, change.alpha, tolerance)
    reason, outlook = VerdictLine("one_draw", gate_facts(evidence)), Outlook.from_stored({"leaning": lean})
    return Ruling(
        verdict=INCONCLUSIVE, reasons=(reason,), next=next_steps.list_one_draw_steps(evidence.one_draw), outlook=outlook
    )


def _no_metric(evidence: Evidence) -> Ruling:
    reason = VerdictLine("no_metric", gate_facts(evidence, why=evidence.no_metric))
    return Ruling(verdict=INCONCLUSIVE, reasons=(reason,), next=next_steps.list_no_metric_steps(evidence.no_metric))


def _too_few_repeats(evidence: Evidence, change: Change | None) -> Ruling:
    """Rule before the first look. Of no more draws than a metric is about, nothing leans."""
    policy = evidence.policy
    look = policy.looks[0]
    outlook: Json = {"repeats_needed": look - evidence.k}
    early = None
    if change is not None:
        early = settle.lean_early(change.early, change.alpha, policy.tolerance_points)
        outlook["leaning"] = settle.estimate_leaning(change.estimate, change.alpha, policy.tolerance_points)
        outlook["early_lean"] = early
        outlook["expected"] = settle.expect_interval(change.estimate.difference, change.measured, look, policy)
    return Ruling(
        verdict=INCONCLUSIVE,
        reasons=(VerdictLine("too_few_repeats", gate_facts(evidence, early_lean=early and early.to_stored())),),
        next=next_steps.list_few_repeats_steps(evidence, look - evidence.k),
        outlook=Outlook.from_stored(outlook),
    )


def _not_settled(evidence: Evidence, change: Change, look: int) -> Ruling:
    policy, estimate = evidence.policy, change.estimate
    n_cases = evidence.n_cases_judged
    shared = evidence.share_seeds
    is_targeted = evidence.is_targeted_look
    settling = settle.find_settling(estimate.difference, change.measured, look, policy, is_targeted=is_targeted)
    targeted = settle.find_targeted(estimate.difference, change.by_strata, look, policy)
    offers = {"settling": asdict(settling), "targeted_settling": targeted and targeted.to_stored()}
    if not is_targeted and settle.is_too_small(n_cases, look, policy, share_seeds=shared):
        needed = settle.count_cases_needed(policy, share_seeds=shared)
        half = settle.min_half_width(n_cases, look, policy, share_seeds=shared)
        facts = gate_facts(evidence, **offers, half_width=half, needed=next_steps.list_pairs(needed))
        reason = VerdictLine("suite_too_small", facts)
    else:
        needed = None
        reason = VerdictLine("not_settled", gate_facts(evidence, **offers))
    expected = None
    if settling.look is not None:
        expected = settle.expect_interval(estimate.difference, change.measured, settling.look, policy)
    steps = next_steps.list_open_steps(evidence, settling, expected, needed, targeted)
    return _open(
        evidence,
        reason,
        steps,
        repeats_needed=None if settling.look is None else settling.look - evidence.k,
        expected=expected,
        settling_chance=None if expected is None else settling.chance,
        targeted_settling=targeted,
    )


def _open(evidence: Evidence, reason: VerdictLine, steps: tuple[VerdictLine, ...], **outlook: Any) -> Ruling:
    return Ruling(verdict=INCONCLUSIVE, reasons=(reason,), next=steps, outlook=_lean(evidence, **outlook))


def _warnings(evidence: Evidence, ruling: Ruling) -> list[VerdictLine]:
    """List the warnings that apply to any verdict."""
    change = evidence.change
    if change is None:
        return []
    warnings = []
    codes = {reason.code for reason in ruling.reasons}
    if evidence.is_sampled and not evidence.one_draw:
        warnings.append(VerdictLine("sampled", gate_facts(evidence)))
    if evidence.missing.low is not None and "incomplete" not in codes:
        warnings.append(VerdictLine("missing", gate_facts(evidence, is_decided=ruling.verdict in (SHIP, NO_SHIP))))
    if evidence.left_out.n and evidence.left_out.code not in codes:
        warnings.append(VerdictLine(evidence.left_out.code, gate_facts(evidence)))
    if evidence.assumed:
        warnings.append(VerdictLine("nothing_caches", {"sides": list(evidence.assumed)}))
    warnings += [
        VerdictLine("first_repeat_differs", {"side": each.side, "n_repeats": each.n_repeats})
        for each in evidence.copies
        if each.does_first_differ
    ]
    if evidence.noisy and "noisy" not in codes:
        warnings.append(VerdictLine("noisy_bucket", gate_facts(evidence)))
    sides = (("baseline", evidence.baseline), ("candidate", evidence.candidate))
    if moved := [name for name, side in sides if side.noise.is_overdispersed]:
        warnings.append(VerdictLine("overdispersed", {"moved": moved}))
    if evidence.load is not None:
        facts = {"is_in_turn": evidence.is_in_turn, "is_ship": ruling.verdict == SHIP}
        warnings.append(VerdictLine("load_differs", {**asdict(evidence.load), **facts}))
    if evidence.wanders and "not_in_turn" not in codes:
        warnings.append(VerdictLine("not_in_turn", gate_facts(evidence)))
    if evidence.targeted is not None:
        warnings.append(VerdictLine("targeted", gate_facts(evidence)))
    if evidence.look is not None and max(evidence.k_baseline, evidence.k_candidate) > evidence.look:
        warnings.append(VerdictLine("repeats_kept", gate_facts(evidence)))
    return [*warnings, *_warnings_of_size(evidence, change, ruling)]


def _warnings_of_size(evidence: Evidence, change: Change, ruling: Ruling) -> list[VerdictLine]:
    """List the warnings about what so few cases, or groups of them, cannot say.

    Where too few groups changed, nothing else is said of new cases.
    """
    warnings = []
    tolerance, other = evidence.policy.tolerance_points, change.reach
    if other is not None and other.is_concentrated:
        warnings.append(VerdictLine("concentrated", {"n_groups_changed": other.n_groups_changed}))
    elif other is not None:
        if other.low < -WIDE_REACH * tolerance:
            warnings.append(VerdictLine("reach_wide", {"reach_low": other.low}))
        if other.is_uneven:
            warnings.append(VerdictLine("uneven_groups"))
    if other is None and change.n_groups is not None:
        warnings.append(VerdictLine("few_groups", {"n_groups": change.n_groups}))
    if evidence.n_cases_judged < FEW_CASES:
        warnings.append(VerdictLine("few_cases", gate_facts(evidence)))
    is_too_small = any(reason.code == "suite_too_small" for reason in ruling.reasons)
    is_open = ruling.verdict == INCONCLUSIVE and evidence.look is not None
    if is_open and change.resolution_points > tolerance and not is_too_small:
        warnings.append(VerdictLine("coarse", gate_facts(evidence)))
    return warnings


def _apply_holm(gates: Sequence[GateInput], critical: Sequence[int]) -> list[GateInput]:
    """Return the gates, reopening those whose drop Holm's rule rejects among the critical ones."""
    judged = list(gates)
    claims = [index for index in critical if gates[index].verdict.verdict == NO_SHIP]
    if len(critical) == 1:
        return judged
    ratios = [(gates[index].verdict.p_no_ship or 0.0) / (gates[index].verdict.alpha or 1.0) for index in claims]
    for index, stands in zip(claims, holm(ratios, len(critical)), strict=True):
        if not stands:
            judged[index] = replace(gates[index], verdict=_left_open(gates[index].verdict, len(critical)))
    return judged


def _left_open(gate: GateVerdict, n_gates: int) -> GateVerdict:
    reason = VerdictLine("not_settled", {"alone": asdict(gate.reasons[0]), "n_gates": n_gates})
    later = next(iter(gate.later_looks), None)
    needed = None if later is None else later - min(gate.k_baseline, gate.k_candidate)
    in_turn = [step for step in gate.next if step.code == next_steps.RUN_IN_TURN]
    steps = next_steps.with_judge(next_steps.list_several_steps(later), is_judged=gate.is_judged)
    return replace(
        gate,
        verdict=INCONCLUSIVE,
        reasons=(reason,),
        next=next_steps.with_logs((*in_turn, *steps), gate.logged, later),
        outlook=gate.outlook.model_copy(update={"leaning": "no_ship", "repeats_needed": needed}),
    )


def _worth_a_look(gates: Sequence[GateInput]) -> set[int]:
    """Return the advisory gates whose change exceeds noise; they never change the verdict."""
    known = {index: gate.verdict.p_change for index, gate in enumerate(gates) if gate.tier != "critical"}
    p_values = {index: p_value for index, p_value in known.items() if p_value is not None}
    flags = benjamini_hochberg(list(p_values.values()))
    return {index for index, is_flagged in zip(p_values, flags, strict=True) if is_flagged}


def _all_warnings(gate: GateInput, is_worth_a_look: bool) -> tuple[VerdictLine, ...]:
    if not is_worth_a_look:
        return gate.verdict.warnings
    return (VerdictLine("worth_a_look", {"difference": gate.verdict.difference or 0.0}), *gate.verdict.warnings)


def _lines(by_gate: Mapping[int, tuple[VerdictLine, ...]]) -> list[Json]:
    """Return the lines with the gate that each is of."""
    return [{**asdict(line), "gate": index} for index, lines in by_gate.items() for line in lines]
