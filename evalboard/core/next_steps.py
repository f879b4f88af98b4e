"""What a person can do next: the steps that a verdict's page offers, as codes of docs/verdict.md with a sentence."""

from collections.abc import Mapping, Sequence

from evalboard.core import verdict_words as words
from evalboard.core.evidence import Evidence
from evalboard.core.gate import Expected, Line
from evalboard.core.settle import Settling

TO_THE_BLOCKS = {
    "mixed_fingerprint": (
        "pin_batch",
        "Run the side that several buckets served again, pinned to one backend.",
    ),
    "model_changed": ("rebaseline", "Run one and the same model on both stacks."),
    "batch_class": ("rebaseline", "Run both sides under one profile."),
    "stack_changed": ("rebaseline", "Run both models on one stack, in one window."),
    "unknown_stack": ("log_more", "Record what serves the responses, or run both sides on an endpoint that says it."),
}
# Steps that decode responses. Those of a log were decoded elsewhere, and only the tool that made it can do so again.
DECODING = frozenset({"pin_batch", "rebaseline", "rerun_missing", "add_repeats", "settle", "share_seeds", "draw_again"})
RUN_BASELINE_AGAIN = "Run the baseline again with today's suite, settings and stack, then judge against that run."
DECIDE_BY_HAND = "Or decide by hand: waive with a reason and an end date."
SHARE_SEEDS = "Run the candidate again with the baseline's seed: what both models draw alike then cancels."
MEASURE_PINNED = "Decode both sides pinned, one case at a time; how far that scatters is known once it has run."


TO_THE_LEFT_OUT = {
    "cached": (
        "run_uncached",
        "Run the eval again with every cache off, the tool's and the gateway's, and import that log.",
    ),
    "fallback": ("pin_backend", "Run the eval again pinned to one backend, with no fallback, and import that log."),
}


def of_block(code: str) -> Line:
    return Line(*TO_THE_BLOCKS.get(code, ("rebaseline", RUN_BASELINE_AGAIN)))


def of_ship() -> tuple[Line, ...]:
    return (Line("sign", "Read the changed cases and what the change says of other cases, then sign."),)


def of_no_ship(n_broken: int) -> tuple[Line, ...]:
    look = f"Look at the {words.counted(n_broken, 'case')} that broke" if n_broken else "Look at the cases that changed"
    return (Line("sign", f"{look}; then reject the candidate, or waive with a reason and an end date."),)


def of_noise(evidence: Evidence) -> tuple[Line, ...]:
    """Never more repeats: with so wide a range, two in three are as wide after twenty."""
    paired = "Or choose the policy `paired`: it decides case by case, and keeps the range as a warning."
    steps = (Line("use_paired", paired),)
    return steps if evidence.is_steady else (Line("pin_batch", MEASURE_PINNED), *steps)


def of_missing(evidence: Evidence) -> tuple[Line, ...]:
    n = evidence.missing.n_baseline + evidence.missing.n_candidate
    what = f"the {n:,} missing responses" if n > 1 else "the missing response" if n else "both sides"
    return (Line("rerun_missing", f"Run {what} again."),)


def of_one_draw() -> tuple[Line, ...]:
    """Never more repeats: those of a run of before have its one seed too."""
    return (Line("draw_again", "Run both sides again: each repeat of a new run is drawn by seeds of its own."),)


def of_too_few_draws(code: str) -> tuple[Line, ...]:
    """code: why answers are no draws."""
    return (Line(*TO_THE_LEFT_OUT[code]),)


def of_few_repeats(evidence: Evidence, needed: int) -> tuple[Line, ...]:
    return (Line("add_repeats", f"Run both sides up to {evidence.k + needed} repeats."),)


def with_logs(steps: Sequence[Line], logged: Sequence[str], repeats: int | None = None) -> tuple[Line, ...]:
    """Return the steps with one to import new logs in place of those that would decode a logged side.

    logged: which of baseline and candidate were read from a log. repeats: what each side should have, where known.
    """
    if not logged or all(step.code not in DECODING for step in steps):
        return tuple(steps)
    first = next(at for at, step in enumerate(steps) if step.code in DECODING)
    who, it = f"The {logged[0]} was read from a log", "it"
    if len(logged) > 1:
        who, it = "Both sides were read from logs", "them"
    times = f", {repeats} repeats on each side" if repeats else ""
    text = f"{who}, and nothing here can decode {it} again. Run both sides again with the tool that made {it}{times},"
    kept = [step for step in steps if step.code not in DECODING]
    again = Line("import_again", f"{text} and import the new logs: evalboard import LOG.")
    return (*kept[:first], again, *kept[first:])


def of_one_of_several(look: int | None) -> tuple[Line, ...]:
    """look: the next of the policy, None after the last."""
    if look is None:
        return (Line("decide_by_hand", DECIDE_BY_HAND),)
    return (Line("settle", f"Run both sides up to {look} repeats, so that it stands by itself or falls."),)


def of_open(
    evidence: Evidence, settling: Settling, expected: Expected | None, needed: Mapping[int, int] | None
) -> tuple[Line, ...]:
    """expected: the interval at settling.look. needed: look → cases, where the suite itself is too small."""
    larger = (
        f"Use a larger suite. {words.cases_needed(needed)}"
        if needed
        else "Use a larger suite: four times the cases halve the interval."
    )
    steps = [Line("larger_suite", larger)]
    if expected is not None:
        where = words.span(expected.low, expected.high, -evidence.policy.tolerance_points)
        text = f"Run both sides up to {expected.repeats} repeats; if the change stays, its interval is then {where}."
        steps.insert(0, Line("settle", text))
        if settling.is_likely:
            return tuple(steps) if needed else (steps[0],)
    if not evidence.share_seeds and evidence.draws_baseline.is_sampled and evidence.draws_baseline.seed is not None:
        steps.insert(0, Line("share_seeds", SHARE_SEEDS))
    elif not needed and not evidence.is_steady and not evidence.is_sampled:
        steps.insert(len(steps) - 1, Line("pin_batch", MEASURE_PINNED))
    return (*steps, Line("decide_by_hand", DECIDE_BY_HAND))
