"""Decide whether anything but the candidate could explain a result: five questions with a state each."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalboard.contract.release import CAUSES, Gate, ReleaseWarning
from evalboard.contract.treatments import PROMPT_TREATMENT, SERVICE_TREATMENT, STACK_TREATMENT
from evalboard.core.release.gate import INCONCLUSIVE, NOT_COMPARABLE

OK, DOUBT, UNKNOWN, NO = "ok", "doubt", "unknown", "no"
STATES = (NO, DOUBT, UNKNOWN, OK)  # the worst first
SERVER, PROMPTS, NOISE, MISSING, IDENTITY = CAUSES
# What a reason of the verdict means for a question; reasons about a measured change answer the noise alone.
REASONS = {
    **dict.fromkeys(("suite_changed", "scorer_changed", "judge_changed", "params_changed"), (PROMPTS, NO)),
    "prompts_unknown": (PROMPTS, UNKNOWN),
    **dict.fromkeys(
        ("mixed_fingerprint", "model_changed", "rebaseline", "batch_class", "stack_changed", "computation_apart"),
        (SERVER, NO),
    ),
    "not_in_turn": (SERVER, DOUBT),
    "unknown_stack": (IDENTITY, UNKNOWN),
    **dict.fromkeys(("cached", "copies", "fallback", "incomplete"), (MISSING, NO)),
    **dict.fromkeys(("not_settled", "suite_too_small", "too_few_repeats", "one_draw"), (NOISE, DOUBT)),
    **dict.fromkeys(("no_metric", "uncertified"), (NOISE, DOUBT)),
    "noisy": (NOISE, NO),
}
# The question that each warning is evidence for. Those of none are about the decision itself.
WARNINGS = {
    SERVER: (
        "several_buckets", "two_computations", "computation_apart", "unsteady", "load_differs", "not_in_turn",
        "overdispersed", "pins_broken", "unvouched", "not_greedy", "baseline_expired", "first_repeat_differs",
        "uncertified", "rough_profile", "stack_judged", "stack_unchanged", "service_judged", "service_unchanged",
    ),
    PROMPTS: (
        "template_changed", "prompt_judged", "prompt_unchanged", "paired_by_id", "judge_rebuilt", "judge_unchecked",
        "judged_again", "scorer_shared",
    ),
    NOISE: (
        "noisy_bucket", "noise_unmeasured", "few_cases", "coarse", "one_process", "concentrated", "uneven_groups",
        "few_groups", "reach_wide", "candidates_tried", "worth_a_look", "sampled", "targeted", "repeats_kept",
        "repeats_left_out",
    ),
    MISSING: (
        "missing", "cached", "fallback", "copies", "truncated", "endings_differ", "prompts_filtered", "nothing_caches",
        "cases_left_out",
    ),
    IDENTITY: ("other_model", "identity_assumed", "stack_reported", "reported", "imported"),
}  # fmt: skip
CAUSE_OF = {code: cause for cause, codes in WARNINGS.items() for code in codes}
# They say what is judged, or by what, and are no doubt.
JUDGED = ("stack_judged", "service_judged", "prompt_judged", "paired_by_id", "judged_again", "scorer_shared")
SELF_REPORTED = ("reported", "imported")  # a doubt about who answered, whatever the verdict
# Of those: what a question that is answered says in place of its "nothing differs".
SAID_OF_OK = ("scorer_shared", "judged_again")
AS_JUDGED = {STACK_TREATMENT: SERVER, SERVICE_TREATMENT: SERVER, PROMPT_TREATMENT: PROMPTS}


@dataclass(frozen=True, slots=True)
class CauseState:
    """The state of a question.

    because: the codes of reasons and warnings that decide it, the gravest first. words: which words it gets.
    """

    code: str
    state: str
    because: tuple[str, ...] = ()
    words: str = ""


def find_other_causes(
    gates: Sequence[Gate], warnings: Sequence[ReleaseWarning], verdict: str | None, treatment: str
) -> tuple[CauseState, ...]:
    """Return the state of each of CAUSES, by the gates that gave the verdict and by all warnings."""
    decisive = [gate for gate in gates if gate.tier == "critical" and gate.verdict == verdict]
    signs = [(*REASONS[line.code], line.code) for gate in decisive for line in gate.reasons if line.code in REASONS]
    signs += [(CAUSE_OF[line.code], DOUBT, line.code) for line in warnings if _is_doubt(line)]
    if any(gate.tier == "critical" and "incomplete" in (gate.baseline.status, gate.candidate.status) for gate in gates):
        signs.append((MISSING, DOUBT, "missing"))
    if any(cause == IDENTITY and state == UNKNOWN for cause, state, _ in signs):
        signs.append((SERVER, UNKNOWN, "unknown_stack"))
    words = {CAUSE_OF[line.code]: line.code for line in warnings if line.code in SAID_OF_OK}
    return tuple(_cause(cause, signs, verdict, treatment, words.get(cause, "")) for cause in CAUSES)


def _is_doubt(line: ReleaseWarning) -> bool:
    if line.code in SELF_REPORTED:
        return True
    return line.severity == "warning" and line.code in CAUSE_OF and line.code not in JUDGED


def _cause(
    cause: str, signs: Sequence[tuple[str, str, str]], verdict: str | None, treatment: str, words_of_ok: str
) -> CauseState:
    if cause == NOISE and verdict == NOT_COMPARABLE:
        return CauseState(cause, UNKNOWN)
    ranked = sorted((STATES.index(state), place) for place, (of, state, _) in enumerate(signs) if of == cause)
    if ranked:
        codes = tuple(dict.fromkeys(signs[place][2] for _, place in ranked))
        return CauseState(cause, STATES[ranked[0][0]], codes, codes[0])
    if verdict is None:
        return CauseState(cause, UNKNOWN)
    if cause == NOISE:  # undecided by something else, such as missing answers, it says nothing of noise
        return CauseState(cause, UNKNOWN if verdict == INCONCLUSIVE else OK, words=verdict)
    return CauseState(cause, OK, words="as_judged" if AS_JUDGED.get(treatment) == cause else words_of_ok)
