"""Sentences for the next steps that a verdict offers, by the codes of docs/verdict.md."""

from collections.abc import Mapping
from typing import Any

from evalboard.wording.comparability import (
    SAME_STACK,
    SAY_WHO_SERVES,
    SCORE_AGAIN,
    SCORES_AWAITED,
    batch_alike,
    judge_again,
)
from evalboard.wording.messages import Messages, write
from evalboard.wording.numbers import interval, listed
from evalboard.wording.release_verdict import cases_needed, in_ten

Facts = Mapping[str, Any]

FOR_BLOCKS = Messages(
    "step_for",
    {
        ("next", "advises"): {
            "mixed_fingerprint": "Run that side again, with one backend for all of its answers.",
            "model_changed": "Run the same model on both sides.",
            "batch_class": batch_alike,
            "stack_changed": f"{SAME_STACK}, or judge model and stack together.",
            "scorer_changed": SCORE_AGAIN,
            "judge_changed": lambda facts: (
                f"{judge_again(facts)}{_commands('scorer judge-again {}', facts)}. Then make the release again."
            ),
            "unknown_stack": SAY_WHO_SERVES,
            "prompts_unknown": "Import the log with its requests, or pass its suite with --suite.",
            "run_baseline_again": "Run the baseline again with today's suite, settings and stack. Then judge against "
            "that run.",
            "run_prompt_again": "Run the baseline again with its own prompt and today's stack and settings. Then judge "
            "against that run.",
        },
    },
)


def next_step(code: str, facts: Facts) -> str:
    """Say what one step is. A step that undoes a block has the block's code as `block`."""
    if "block" in facts:
        again = "run_prompt_again" if facts.get("is_prompt_judged") else "run_baseline_again"
        return FOR_BLOCKS.write(facts["block"] if facts["block"] in FOR_BLOCKS else again, facts)
    return STEPS.write(code, facts)


def _sign(facts: Facts) -> str:
    if facts["is_ship"]:
        if not facts["n_changed"]:
            return "No case changed its score. Sign off."
        return "Look at the cases that changed (on the release's page under Evidence). Then sign."
    n = facts["n_broken"]
    which = f"{n:,} broken cases" if n > 1 else "broken case" if n else "cases that changed"
    return f"Look at the {which}. Then reject the candidate, or waive with a reason and an end date."


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
    logged = facts["logged"]
    is_one = len(logged) == 1
    return write(
        "{who}. Run both sides again{in_turn} with the tool that made {it}{times}. Then import the new logs: "
        "evalboard import LOG.",
        who=f"The {logged[0]} is from a log" if is_one else "Both sides are from logs",
        it="it" if is_one else "them",
        in_turn=", alternating," if facts["in_turn"] else "",
        times=f", {facts['repeats']} repeats on each side" if facts["repeats"] else "",
    )


def _settle(facts: Facts) -> str:
    is_whole = "low" in facts
    how = f"Add repeats until each side has {{repeats}}{' ({n_responses:more response})' if is_whole else ''}"
    if facts.get("is_judged"):
        how = "Run both sides again with {repeats} repeats each: a run that was judged takes no more"
    if not is_whole:
        return write(f"{how}. The drop may then be clear across all suites, or gone.", **facts)
    return write(
        f"{how}. That decides it {{chance}}. If the change stays the same, its interval becomes {{where}} points.",
        **{**facts, "chance": in_ten(facts["chance"])},
        where=interval(facts["low"], facts["high"], -facts["tolerance"]),
    )


def _larger_suite(facts: Facts) -> str:
    """Say how many more cases help.

    needed: [checkpoint, cases] pairs if the suite itself is too small; else None.
    """
    if facts["needed"]:
        return f"Use a larger suite: {cases_needed(facts['needed'], facts.get('n_cases', 0))}."
    return "Use a larger suite. With four times as many cases, the interval is half as wide."


def _second_run(facts: Facts) -> str:
    """Say how to learn whether equal repeats were each computed. sides: whose repeats are one answer."""
    if facts.get("is_logged"):
        how, command = "Import a second log of the same side, made an hour apart", "import LOG --second-log-of {}"
    else:
        how, command = "Run the same again, an hour later", "run --second-run-of {}"
    whose = listed(facts["sides"])
    return f"{how}{_commands(command, facts)}. If nothing changes, the repeats of the {whose} count."


def _certify(facts: Facts) -> str:
    """Say which probes would show that batching moves no bit. probes: [endpoint, profile] of each."""
    command = "evalboard probe {} --kind determinism --profile {}"
    commands = listed([command.format(*probe) for probe in facts["probes"]])
    return f"Test under load whether batching changes answers: {commands}. If it passes, the verdict is computed again."


STEPS = Messages(
    "step",
    {
        ("next", "advises"): {
            "sign": _sign,
            "run_in_turn": "Run both sides again, alternating repeat by repeat, so that both get the same load.",
            "use_paired": "Choose the paired policy. It decides case by case and reports a wide range as a warning.",
            "pin_batch": "Run both sides under a pinned profile with batch size 1, and measure its noise.",
            "rerun_missing": _rerun_missing,
            "draw": "Run both sides again under a profile with a temperature above 0.",
            "use_mean": "Judge by a policy whose metric is the mean.",
            "draw_again": "Run the {sides:list} again. A new run gives each repeat its own seeds.",
            "run_uncached": "Run the eval again with every cache off, in the tool and in the gateway. Import that log.",
            "pin_backend": "Run the eval again pinned to one backend, with no fallback. Import that log.",
            "judge_more": "Most of the noise is the judge's. Let it judge each answer 3 or 5 times (draws of the "
            "suite's judge), or use a steadier judge. Then run both sides again.",
            "pin_endpoint": "Add the endpoint again with an extra body or header that names one backend. Then run both "
            "sides there: evalboard endpoint add NAME --extra-body JSON.",
            "call_uncached": "Add the endpoint again with an extra body or header that turns off its cache. Then run "
            "both sides there: evalboard endpoint add NAME --extra-body JSON.",
            "second_run": _second_run,
            "nothing_caches": "If you know that no server or gateway caches answers, make the release again with "
            "--nothing-caches. The verdict says so.",
            "shuffle": "Run both sides again in shuffled order (evalboard rerun --shuffle). Batches then differ "
            "between repeats.",
            "certify": _certify,
            "await_scores": SCORES_AWAITED,
            "find_build": "Find what changed between the two runs: code, settings or machine. Then run both sides on "
            "one build.",
            "judge_stack": "Or judge the serving stack: make the release again with --treatment stack.",
            "judge_service": "Or judge model and stack together: make the release again with --treatment service.",
            "add_repeats": lambda facts: write(
                "Run both sides again with {repeats} repeats each."
                if facts.get("is_judged")
                else "Add repeats until each side has {repeats}.",
                **facts,
            ),
            "import_again": _import_again,
            "decide_by_hand": "Decide by hand: waive with a reason and an end date.",
            "settle": _settle,
            "settle_targeted": lambda facts: write(
                "Run {repeats} more repeats of the {n_cases:case} most likely to flip, on both sides "
                "({n_responses:response}). That decides it {chance}. Each run's score stays as it is. The verdict's "
                "change and interval use these repeats too.",
                **{**facts, "chance": in_ten(facts["chance"])},
            ),
            "larger_suite": _larger_suite,
            "share_seeds": lambda facts: (
                "Compare the same repeats: run those that one side lacks. Noise that both sides share then cancels out."
                if facts["is_one_seed"]
                else "Run the candidate again with the baseline's seed. Noise that both sides share then cancels out."
            ),
        },
    },
)
