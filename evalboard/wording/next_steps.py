"""Sentences for the next steps that a verdict offers, by the codes of docs/verdict.md."""

from collections.abc import Callable, Mapping
from typing import Any

from evalboard.wording.comparability import SAY_WHO_SERVES, SCORE_AGAIN
from evalboard.wording.numbers import counted, interval, listed
from evalboard.wording.release_verdict import cases_needed, in_ten

Facts = Mapping[str, Any]

FOR_BLOCKS = {
    "mixed_fingerprint": "Run that side again, so that one bucket serves all of it.",
    "model_changed": "Run one and the same model on both sides.",
    "batch_class": "Run both sides under one profile.",
    "stack_changed": "Run both models on one stack, in one window; or judge the service, model and stack together.",
    "scorer_changed": SCORE_AGAIN,
    "unknown_stack": SAY_WHO_SERVES,
    "prompts_unknown": "Import the log together with its requests, or with --suite and the suite that was asked.",
}
RUN_BASELINE_AGAIN = "Run the baseline again with today's suite, settings and stack, then judge against that run."
RUN_PROMPT_AGAIN = (
    "Run the baseline again with its own prompt, on today's stack and settings, then judge against that run."
)


def next_step(code: str, facts: Facts) -> str:
    """Say what one step is. A step that undoes a block has the block's code as `block`."""
    if "block" in facts:
        again = RUN_PROMPT_AGAIN if facts.get("is_prompt_judged") else RUN_BASELINE_AGAIN
        return FOR_BLOCKS.get(facts["block"], again)
    step = STEPS[code]
    return step if isinstance(step, str) else step(facts)


def _sign(facts: Facts) -> str:
    if facts["is_ship"]:
        return "Read the cases that changed, if any, and what is said of other cases like these; then sign."
    n = facts["n_broken"]
    broken = "case" if n == 1 else f"{n:,} cases"
    look = f"Look at the {broken} that broke" if n else "Look at the cases that changed"
    return f"{look}; then reject the candidate, or waive with a reason and an end date."


def _rerun_missing(facts: Facts) -> str:
    n = facts["n_missing"]
    what = f"the {n:,} missing responses" if n > 1 else "the missing response" if n else "both sides"
    return f"Run {what} again{_commands('run --complete {}', facts)}."


def _commands(command: str, facts: Facts) -> str:
    """Write the command with the run of each side that the step is about; "" where the runs are not known."""
    runs = facts.get("runs", {})
    named = [f"evalboard {command.format(runs[side])}" for side in facts.get("sides", ()) if side in runs]
    return f": {listed(named)}" if named else ""


def _import_again(facts: Facts) -> str:
    """Say what helps a side of a log.

    logged: which of baseline and candidate were read from a log. repeats: what each side should have, or None.
    in_turn: the sides are to take turns.
    """
    logged, repeats = facts["logged"], facts["repeats"]
    who, it = f"The {logged[0]} was read from a log, which", "it"
    if len(logged) > 1:
        who, it = "Both sides were read from logs, which", "them"
    in_turn = " in turn" if facts["in_turn"] else ""
    times = f", {repeats} repeats on each side" if repeats else ""
    text = f"{who} cannot be run again here. Run both sides again{in_turn} with the tool that made {it}{times},"
    return f"{text} and import the new logs: evalboard import LOG."


def _settle(facts: Facts) -> str:
    if "low" not in facts:
        return f"Run both sides up to {facts['repeats']} repeats: the drop may then be clear among all suites, or gone."
    where = interval(facts["low"], facts["high"], -facts["tolerance"])
    then = f"if the change stays as it is, its interval is then {where} points"
    text = (
        f"Run both sides up to {facts['repeats']} repeats, {_price(facts)}: that settles it {in_ten(facts['chance'])}"
    )
    return f"{text}; {then}."


def _settle_targeted(facts: Facts) -> str:
    noisiest = f"the {counted(facts['n_cases'], 'case')} most likely to flip"
    text = f"Run {facts['repeats']} more repeats of {noisiest} on both sides, {_price(facts)}"
    return f"{text}: that settles it {in_ten(facts['chance'])}. The score stays that of all cases."


def _price(facts: Facts) -> str:
    return counted(facts["n_responses"], "response")


def _larger_suite(facts: Facts) -> str:
    """Say how many more cases help.

    needed: [checkpoint, cases] pairs if the suite itself is too small; else None.
    """
    if facts["needed"]:
        return f"Use a larger suite: {cases_needed(facts['needed'], facts.get('n_cases', 0))}."
    return "Use a larger suite: four times the cases halve the interval."


def _share_seeds(facts: Facts) -> str:
    """Say how both sides can use the same seeds. is_one_seed: they have one, and their repeats differ."""
    what = "Run the candidate again with the baseline's seed"
    if facts["is_one_seed"]:
        what = "Compare the same repeats: run those that one side lacks"
    return f"{what}. What both sides draw alike then cancels out."


def _second_run(facts: Facts) -> str:
    """Say how to learn whether equal repeats were each computed. sides: whose repeats are one answer."""
    if facts.get("is_logged"):
        how, command = "Import a second log of the same side, from another hour", "import LOG --second-log-of {}"
    else:
        how, command = "Run the same once more, an hour later", "run --second-run-of {}"
    whose = f"the repeats of the {listed(facts['sides'])} count"
    return f"{how}{_commands(command, facts)}. If nothing moves, {whose}."


def _certify(facts: Facts) -> str:
    """Say which probes would show that batching moves no bit. probes: [endpoint, profile] of each."""
    command = "evalboard probe {} --kind determinism --profile {}"
    commands = listed([command.format(*probe) for probe in facts["probes"]])
    return f"Have the promise measured: {commands}. The verdict is taken anew when a certificate comes."


STEPS: dict[str, str | Callable[[Facts], str]] = {
    "sign": _sign,
    "run_in_turn": "Run both sides again in turn, repeat by repeat, so that the load meets them alike.",
    "use_paired": "Choose the policy `paired`: it decides case by case, and keeps the range as a warning.",
    "pin_batch": "Run both sides under a pinned profile, one case at a time; how noisy that is shows once it has run.",
    "rerun_missing": _rerun_missing,
    "draw": "Run both sides again under a profile with a temperature above 0.",
    "use_mean": "Judge by a policy whose metric is the mean.",
    "draw_again": "Run both sides again: each repeat of a new run is drawn by seeds of its own.",
    "run_uncached": "Run the eval again with every cache off, the tool's and the gateway's, and import that log.",
    "pin_backend": "Run the eval again pinned to one backend, with no fallback, and import that log.",
    "pin_endpoint": "Have one backend answer, which the endpoint's extra body or headers can name, and run both sides "
    "again.",
    "call_uncached": "Have the gateway's cache left out, which the endpoint's extra body or headers can ask for, and "
    "run both sides again.",
    "second_run": _second_run,
    "nothing_caches": "If you know that nothing caches there, make the release again and say so (--nothing-caches); it "
    "is printed with the verdict.",
    "shuffle": "Run both sides again with --shuffle, so that each repeat is decoded in batches of its own.",
    "certify": _certify,
    "find_build": "Find what changed between the two runs: the installed code, its settings, or the machine. Then run "
    "both sides on one build.",
    "judge_stack": "Or judge what serves the model: make the release again with --treatment stack.",
    "judge_service": "Or judge model and stack together: make the release again with --treatment service.",
    "add_repeats": lambda facts: f"Run both sides up to {facts['repeats']} repeats.",
    "import_again": _import_again,
    "decide_by_hand": "Decide by hand: waive with a reason and an end date.",
    "settle": _settle,
    "settle_targeted": _settle_targeted,
    "larger_suite": _larger_suite,
    "share_seeds": _share_seeds,
}
