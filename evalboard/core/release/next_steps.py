"""List the next steps that a verdict offers, as codes of docs/verdict.md with their facts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalboard.contract.release import Expected, TargetedSettling
from evalboard.contract.run import Draws
from evalboard.core.profile import OBSERVED
from evalboard.core.release.evidence import GREEDY, Evidence
from evalboard.core.release.gate import VerdictLine
from evalboard.core.release.settle import SettlingLook
from evalboard.core.stats import COPIED, POWER

REBASELINE = "rebaseline"
BOTH = ["baseline", "candidate"]
BATCH_CLASS = "batch_class"
# A rerun changes none of these.
NOT_BY_RERUN = ("model_changed", "scorer_changed", "unknown_stack", "prompts_unknown")
FACTS_OF_BLOCKS = ("is_prompt_judged", "is_stack_judged", "moved")  # that a step to undo one needs
TO_THE_BLOCKS = {  # of the others: REBASELINE
    "mixed_fingerprint": "pin_batch",
    "unknown_stack": "log_more",
    "prompts_unknown": "log_more",
    "judge_changed": "judge_again",
}
TO_THE_LEFT_OUT = {"cached": "run_uncached", "fallback": "pin_backend"}
# What helps in place of these where a server of others was called: how it batches and caches is for it to choose.
FOR_OTHERS = {
    "pin_batch": "pin_endpoint",
    "pin_backend": "pin_endpoint",
    "run_uncached": "call_uncached",
}
RUN_IN_TURN = "run_in_turn"
SECOND_RUN = "second_run"
IN_TURN, PIN_BATCH = (VerdictLine(code, {"sides": BOTH}) for code in (RUN_IN_TURN, "pin_batch"))
# Before the first of these comes what lessens the noise of a judge.
AGAINST_NOISE = frozenset({"pin_batch", "use_paired", "larger_suite", "decide_by_hand"})
# Steps that decode responses. Those of a log were decoded elsewhere, and only the tool that made it can do so again.
DECODING = frozenset(
    {
        "pin_batch",
        "rebaseline",
        "rerun_missing",
        "add_repeats",
        "settle",
        "settle_targeted",
        "share_seeds",
        "draw_again",
        "draw",
        "shuffle",
        RUN_IN_TURN,
    }
)


def list_block_steps(block: VerdictLine) -> tuple[VerdictLine, ...]:
    """Return what undoes a block. An unknown build must be found, or judged with the model."""
    if block.code == "computation_apart":
        return (VerdictLine("find_build"), VerdictLine(f"judge_{block.facts['judge']}"))
    if block.facts.get("is_awaited"):
        return (VerdictLine("await_scores", {"sides": ["baseline"]}),)
    facts = {name: block.facts[name] for name in FACTS_OF_BLOCKS if name in block.facts}
    facts |= {"block": block.code, "sides": _find_sides(block)}
    return (VerdictLine(TO_THE_BLOCKS.get(block.code, REBASELINE), facts),)


def _find_sides(block: VerdictLine) -> list[str]:
    """Return the sides that undo a block when they run again."""
    if block.code == BATCH_CLASS:
        [moved] = block.facts["moved"]
        is_known = not {moved["baseline"], moved["candidate"]} & {None, OBSERVED}
        return ["candidate"] if is_known and not block.facts.get("is_stack_judged") else []
    if "side" in block.facts:  # several buckets served it, or it was judged first
        return [block.facts["side"]]
    return [] if block.code in NOT_BY_RERUN else ["baseline"]


def list_ship_steps(n_changed: int) -> tuple[VerdictLine, ...]:
    return (VerdictLine("sign", {"is_ship": True, "n_changed": n_changed}),)


def list_no_ship_steps(n_broken: int) -> tuple[VerdictLine, ...]:
    return (VerdictLine("sign", {"is_ship": False, "n_broken": n_broken}),)


def list_noise_steps(evidence: Evidence) -> tuple[VerdictLine, ...]:
    """Return what helps a noisy side; not more repeats, as the range would likely stay as wide."""
    steps = (VerdictLine("use_paired"),)
    return steps if evidence.is_steady else (PIN_BATCH, *steps)


def list_missing_steps(evidence: Evidence) -> tuple[VerdictLine, ...]:
    missing = {"baseline": evidence.missing.n_baseline, "candidate": evidence.missing.n_candidate}
    sides = [side for side, n in missing.items() if n]
    return (VerdictLine("rerun_missing", {"n_missing": sum(missing.values()), "sides": sides}),)


def list_uncertified_steps(evidence: Evidence) -> tuple[VerdictLine, ...]:
    """Return what helps if only a certificate is missing, per endpoint and profile."""
    probes = dict.fromkeys((side["endpoint"], side["profile"]) for side in evidence.uncertified)
    certify = VerdictLine("certify", {"probes": [list(each) for each in probes]})
    return (certify, PIN_BATCH, VerdictLine("decide_by_hand"))


def list_one_draw_steps(sides: Sequence[str]) -> tuple[VerdictLine, ...]:
    """Return what helps repeats of one seed; not more of them, which would have it too."""
    return (VerdictLine("draw_again", {"sides": list(sides)}),)


def list_no_metric_steps(why: str) -> tuple[VerdictLine, ...]:
    """Return what helps where draws decide and there are none, or none that is right or wrong."""
    steps = (VerdictLine("use_mean"),)
    return (VerdictLine("draw"), *steps) if why == GREEDY else steps


def list_few_draws_steps(code: str, evidence: Evidence) -> tuple[VerdictLine, ...]:
    """Return what helps where answers are no draws, with more repeats if they are too few. code: why."""
    needed = evidence.left_out.repeats_needed
    more = (VerdictLine("add_repeats", {"repeats": needed}),) if needed else ()
    if code != COPIED:
        return (VerdictLine(TO_THE_LEFT_OUT[code]), *more)
    if not evidence.are_reported:
        return (VerdictLine("shuffle"), *more)
    unchecked = [each.side for each in evidence.copies if each.is_one_answer and not each.is_checked]
    if len(unchecked) < len(evidence.copies):
        return (VerdictLine("run_uncached"), *more)
    return (VerdictLine(SECOND_RUN, {"sides": unchecked}), VerdictLine("nothing_caches"), *more)


def list_few_repeats_steps(evidence: Evidence, needed: int) -> tuple[VerdictLine, ...]:
    return (VerdictLine("add_repeats", {"repeats": evidence.k + needed}),)


def with_logs(
    steps: Sequence[VerdictLine], logged: Sequence[str], repeats: int | None = None
) -> tuple[VerdictLine, ...]:
    """Return the steps with one to import new logs in place of those that would decode a logged side.

    logged: which of baseline and candidate were read from a log. repeats: what each side should have, where known.
    """
    if not logged:
        return tuple(steps)
    steps = [
        replace(step, facts={**step.facts, "is_logged": True}) if step.code == SECOND_RUN else step for step in steps
    ]
    decoding = [step for step in steps if step.code in DECODING and step.facts.get("block") != "scorer_changed"]
    if not decoding:
        return tuple(steps)
    first = steps.index(decoding[0])
    others = [step for step in steps if step not in decoding]
    facts = {"logged": list(logged), "repeats": repeats, "in_turn": any(step.code == RUN_IN_TURN for step in steps)}
    again = VerdictLine("import_again", facts)
    return (*others[:first], again, *others[first:])


def with_judge(steps: Sequence[VerdictLine], *, is_judged: bool, is_noisy: bool = False) -> tuple[VerdictLine, ...]:
    """Return the steps, with new runs in place of repeats that a judged run does not take.

    is_noisy: most of the noise is the judge's, which no setting of the model's server lessens.
    """
    if not is_judged:
        return tuple(steps)
    able = [
        replace(step, facts={**step.facts, "is_judged": True}) if step.code in ("add_repeats", "settle") else step
        for step in steps
        if step.code != "settle_targeted"
    ]
    first = next((at for at, step in enumerate(able) if step.code in AGAINST_NOISE), None)
    if is_noisy and first is not None:
        able.insert(first, VerdictLine("judge_more"))
        able = [step for step in able if step.code != "pin_batch" or "block" in step.facts]
    return tuple(able)


def with_others(steps: Sequence[VerdictLine], *, are_called: bool) -> tuple[VerdictLine, ...]:
    """Return the steps, replaced by those for external servers if one was called, without duplicates."""
    if not are_called:
        return tuple(steps)
    renamed = [VerdictLine(FOR_OTHERS[step.code], step.facts) if step.code in FOR_OTHERS else step for step in steps]
    return tuple(step for at, step in enumerate(renamed) if step.code not in [before.code for before in renamed[:at]])


def list_several_steps(look: int | None) -> tuple[VerdictLine, ...]:
    """Return the steps if Holm's rule rejects a drop; look: the next checkpoint, or None."""
    if look is None:
        return (VerdictLine("decide_by_hand"),)
    return (VerdictLine("settle", {"repeats": look}),)


def with_load(steps: Sequence[VerdictLine], evidence: Evidence) -> tuple[VerdictLine, ...]:
    """Return the steps, interleaving first if sides differ in load or vary, and were not interleaved."""
    is_read = evidence.load is not None and evidence.change is not None and not evidence.is_in_turn
    helps = (is_read or evidence.wanders) and all(step.code != RUN_IN_TURN for step in steps)
    return (IN_TURN, *steps) if helps else tuple(steps)


def list_wandering_steps() -> tuple[VerdictLine, ...]:
    """Return what helps if whole runs vary and sides were not interleaved; not more repeats."""
    return (IN_TURN, PIN_BATCH, VerdictLine("decide_by_hand"))


def list_pairs(needed: Mapping[int, int]) -> list[list[int]]:
    """Return [look, cases] by look, as facts are: JSON has no numbers for names."""
    return [list(pair) for pair in sorted(needed.items())]


def list_open_steps(
    evidence: Evidence,
    settling: SettlingLook,
    expected: Expected | None,
    needed: Mapping[int, int] | None,
    targeted: TargetedSettling | None,
) -> tuple[VerdictLine, ...]:
    """Return the steps of an open verdict.

    expected: the interval at settling.look. needed: look → cases, where the suite itself is too small. targeted: what
    repeats of the noisiest cases would do; they cost less, and come first where they settle it as often.
    """
    larger = {"needed": list_pairs(needed) if needed else None, "n_cases": evidence.n_cases_judged}
    steps = [VerdictLine("larger_suite", larger)]
    further = _list_further(evidence, settling, expected, targeted)
    steps[:0] = further
    if settling.is_likely or (targeted is not None and targeted.chance >= POWER):
        return tuple(steps) if needed else tuple(further)
    if not evidence.share_seeds and evidence.draws_baseline.is_sampled and evidence.draws_baseline.seed is not None:
        steps.insert(0, VerdictLine("share_seeds", _find_unshared(evidence.draws_baseline, evidence.draws_candidate)))
    elif not needed and not evidence.is_steady and not evidence.is_sampled:
        steps.insert(len(steps) - 1, PIN_BATCH)
    return (*steps, VerdictLine("decide_by_hand"))


def _find_unshared(baseline: Draws, candidate: Draws) -> dict[str, Any]:
    """Return the facts of the step that gives both sides equal seeds. Of one seed, repeats differ."""
    ours, theirs = set(baseline.repeats), set(candidate.repeats)
    is_one_seed = baseline.seed == candidate.seed
    lacking = [side for side, n in zip(BOTH, (theirs - ours, ours - theirs), strict=True) if n]
    return {"is_one_seed": is_one_seed, "sides": lacking if is_one_seed else ["candidate"]}


def _list_further(
    evidence: Evidence, settling: SettlingLook, expected: Expected | None, targeted: TargetedSettling | None
) -> list[VerdictLine]:
    """Return the steps that add repeats, each with what it costs at the most, in responses of both sides."""
    steps = []
    if expected is not None and settling.look is not None:
        n_more = 2 * settling.look - evidence.k_baseline - evidence.k_candidate
        price = {"n_responses": n_more * evidence.n_cases, "chance": settling.chance}
        steps = [
            VerdictLine("settle", {**expected.to_stored(), **price, "tolerance": evidence.policy.tolerance_points})
        ]
    if targeted is not None:
        n_responses = 2 * targeted.repeats * targeted.n_cases
        step = VerdictLine("settle_targeted", {**targeted.to_stored(), "n_responses": n_responses})
        steps.insert(0 if targeted.chance >= settling.chance else len(steps), step)
    return steps
