"""Sentences of a verdict: numbers in points with one decimal, their spread, and what to do.

Each is made from the facts of `core.release.gate_facts`; a line of a verdict is a code with facts.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from evalboard.wording.comparability import explain_block
from evalboard.wording.numbers import (
    about,
    capital,
    change_and_interval,
    counted,
    digits_beside,
    fixed,
    interval,
    limit,
    listed,
    percent,
    points,
    signed,
)
from evalboard.wording.release_names import verdict_name

Facts = Mapping[str, Any]

CLAIMS = {
    "within_tolerance": "no worse than the {accepted}",
    "better": "better than the baseline",
    "small_real_drop": "worse than the baseline, but no worse than the {accepted}",
    "regression": "worse than the {accepted}",
    "not_settled": "worse than the {accepted}, or not",
}
FEW_CASES = 200  # below it the sentence says what is known of other cases, too
CLAIM_VERBS = {"not_settled": "may be"}  # of the others: is
# By the marks of core.stats.NO_DRAW_MARKS.
MARK_WORDS = {"cached": "out of a cache", "fallback": "after a fallback", "copies": "as copies of earlier ones"}


def reason(code: str, facts: Facts) -> str:
    """Say why a gate has its verdict."""
    return REASONS[code](facts) if code in REASONS else explain_block(code, facts)


def accepted(facts: Facts) -> str:
    """Name the tolerance: "1.0 point you accept"."""
    return f"{limit_points(facts['tolerance'])} you accept"


def limit_points(value: float) -> str:
    """Write points that people chose: "1.0 point", "1.5 points"."""
    return f"{limit(value)} {'point' if value == 1 else 'points'}"


def cases_needed(needed: Sequence[Sequence[int]], n_cases: int) -> str:
    """Say how many cases the policy needs: "93 cases at 5 repeats, 52 at 10 or 36 at 20".

    needed: [checkpoint, cases] pairs. n_cases: the present number; checkpoints that need no more are left out.
    """
    (first, n_first), *rest = [(look, n) for look, n in needed if n > n_cases]
    others = [f"{n:,} at {look}" for look, n in rest]
    return listed([f"{n_first:,} cases at {first} repeats", *others], "or")


def claim(code: str, facts: Facts) -> str:
    """Say how the candidate compares, by a reason's code; "" if the reason is not about a change.

    facts: only the tolerance is used, so that a page can set the words in bold within a sentence.
    """
    return CLAIMS[code].format(accepted=accepted(facts)) if code in CLAIMS else ""


def measured(facts: Facts) -> str:
    """Write the change, its interval and level: "−1.8 points, in [−2.3, −1.3] (94 % interval)"."""
    known = facts["change"]
    change, span = change_and_interval(known["difference"], known["low"], known["high"], -facts["tolerance"])
    return f"{change} points, in {span} ({percent(known['level'])} interval)"


def _claimed(code: str, facts: Facts) -> str:
    text = f"{_on_these(facts)} the candidate {CLAIM_VERBS.get(code, 'is')} {claim(code, facts)}: {measured(facts)}"
    return f"{text}{_elsewhere(code, facts)}."


def _elsewhere(code: str, facts: Facts) -> str:
    """Add the interval for new cases if a clear change on few cases may not extend to them."""
    other = facts["change"]["reach"]
    is_clear = code in ("better", "small_real_drop", "regression")
    if other is None or not is_clear or facts["n_judged"] >= FEW_CASES or not other["low"] <= 0 <= other["high"]:
        return ""
    return f"; for other cases like these {interval(other['low'], other['high'], -facts['tolerance'])}"


def _regression(facts: Facts) -> str:
    n, n_fixed = facts["change"]["n_broken"], facts["change"]["n_fixed"]
    fixed = f"{n_fixed:,} were" if n_fixed > 1 else "1 was" if n_fixed else "none was"
    text = _claimed("regression", facts)
    if not n:
        return text
    n_by_chance = facts["change"]["n_broken_by_chance"]
    by_chance = "" if n_by_chance is None else f"; by chance alone {about(n_by_chance)} would break"
    if facts["change"].get("is_in_every_repeat"):
        by_chance = ", in every repeat"
    return f"{text} {counted(n, 'case')} broke and {fixed} fixed{by_chance}."


def _not_settled(facts: Facts) -> str:
    if "n_gates" in facts:  # a drop among several suites: facts["alone"] is what its gate alone would say
        alone = f"Alone this would be {verdict_name('no_ship')}"
        known = reason(facts["alone"]["code"], facts["alone"]["facts"])
        others = f"with {facts['n_gates']} suites looked at it is not enough (Holm's rule)"
        return f"{alone}; {others}. By itself: {known[:1].lower()}{known[1:]}"
    return f"{_claimed('not_settled', facts)} {_what_settles(facts)}"


def _what_settles(facts: Facts) -> str:
    """Say with which chance more repeats decide; the chance was calibrated (docs/verdict.md)."""
    last, chance = facts["looks"][-1], in_ten(facts["settling"]["chance"])
    if facts["settling"]["look"] is not None:
        text = f"{facts['settling']['look']} repeats on each side would settle it {chance}."
    elif not facts["later_looks"]:
        text = f"More repeats change nothing: the policy looks at {last} on each side and no more."
    else:
        text = f"More repeats would hardly settle it: {last} on each side do so {chance}."
    targeted = facts["targeted_settling"]
    if targeted is None:
        return text
    noisiest = f"the {counted(targeted['n_cases'], 'case')} most likely to flip"
    return f"{text} {targeted['repeats']} more repeats of {noisiest} would settle it {in_ten(targeted['chance'])}."


def in_ten(chance: float) -> str:
    """Write a chance, "about 4 times in 10"; never as certain, since it is an estimate."""
    if chance < 0.1:
        return "less than once in 10"
    if chance >= 0.95:
        return "more than 9 times in 10"
    return f"about {round(10 * chance)} times in 10" if chance >= 0.15 else "about once in 10"


def _suite_too_small(facts: Facts) -> str:
    """Say that even without noise the interval is too wide. half_width: half of it."""
    n, half_width = facts["n_judged"], facts["half_width"]
    digits = digits_beside((half_width,), facts["tolerance"])
    few, leave = ("is too few", "it leaves") if n == 1 else ("are too few", "they leave")
    text = (
        f"{counted(n, 'case')} {few} for {facts['look']} repeats: even if none moved, {leave} "
        f"±{points(min(half_width, 100.0), digits)} points, more than the {accepted(facts)}. It would take "
        f"{cases_needed(facts['needed'], n)}."
    )
    return f"{text} The change is {signed(facts['change']['difference'])} points so far. {_what_settles(facts)}"


def _rebaseline(facts: Facts) -> str:
    if "expired_at" in facts:
        return f"{expired_baseline(facts)} Run the baseline again."
    return explain_block("rebaseline", facts)


def expired_baseline(facts: Facts) -> str:
    """Say since when a baseline is invalid. first_run or first_probe: the new stack's first answer."""
    first = f"run {facts['first_run']}" if "first_run" in facts else f"probe {facts['first_probe']}"
    under = f" under profile {facts['profile']}" if facts["profile"] else ""
    text = f"The baseline, run {facts['baseline']}, expired on {facts['expired_at']}: from {first} on,"
    return f"{text} another stack serves endpoint {facts['endpoint']}{under}."


def _noisy(facts: Facts) -> str:
    """Say why no regression is read from a wide range. scatter: the range of 5 repeats by flips only."""
    parts = [f"the {name}'s range of {range5(facts, name)}" for name in facts["noisy"]]
    verb, them = ("is", "it") if len(parts) == 1 else ("are", "them")
    guard = f"wider than the guard of {limit_points(facts['guard'])}"
    text = f"{listed(parts)} {verb} {guard}, so neither a drop nor a gain is read from {them}."
    return f"{capital(text)} Flips of single cases alone spread 5 repeats over about {points(facts['scatter'])} points."


RAN_APART = (
    "Whole runs move by more than flips of single cases explain, and the sides did not run in turn: what moved them "
    "may look like a change."
)


def _not_in_turn(facts: Facts) -> str:
    """Say why a change between sides that ran at other hours is not read as the candidate's."""
    return f"{RAN_APART} So far the change is {measured(facts)}."


def _too_few_repeats(facts: Facts) -> str:
    text = f"A rough signal only: a verdict takes {facts['looks'][0]} repeats on each side, and {have(facts)}."
    if facts["change"] is None:
        return text
    text = f"{text} So far the change is {measured(facts)}."
    if facts["change"]["method"] is None:
        text = (
            f"{text} Noise cannot be measured with one repeat on each side, so every case that moved counts as noise."
        )
    return f"{text}{_early_lean(facts)}"


def _early_lean(facts: Facts) -> str:
    """Say where the change is by the noise of earlier runs; "" if unknown."""
    lean = facts["early_lean"]
    if lean is None:
        return ""
    span = interval(lean["low"], lean["high"], -facts["tolerance"])
    way = "neither way" if lean["leaning"] == "none" else verdict_name(lean["leaning"])
    known = f"with the noise that earlier runs showed it is in {span} ({percent(lean['level'])} interval)"
    return f" Experimental lean, no verdict: {known}, which leans {way}."


def _one_draw(facts: Facts) -> str:
    """Say why the repeats of a side tell nothing of its noise."""
    sides = " and of the ".join(facts["one_draw"])
    text = f"All repeats of the {sides} were sent one seed at T = {temperature(facts)}, so they count as one draw"
    text = f"{text}: how far a score moves by chance is not known, and no verdict is taken."
    return f"{text} A verdict takes repeats that each have a seed of their own, or none."


def _no_metric(facts: Facts) -> str:
    """Say why the metric that the policy names cannot be taken; why: greedy or graded."""
    text = f"The policy judges by {facts['metric']}, which counts the right draws of a case"
    if facts["why"] == "greedy":
        return f"{text}, and at a temperature of 0 nothing is drawn."
    return f"{text}, and some scores of this suite lie between wrong and right."


def _too_few_draws(facts: Facts) -> str:
    """Say why nothing is decided where answers are no draws."""
    left_out = facts["left_out"]
    text = f"{count_left_out(facts)}, which tells nothing of the model's own noise. Without"
    text = f"{text} {'it' if left_out_is_one(facts) else 'them'}"
    if left_out["is_look_lost"]:
        return f"{text}, {have(facts)}, and a verdict takes {facts['looks'][0]} on each side."
    n = left_out["n_cases"]
    cases = f"{n:,} of {counted(facts['n_cases'], 'case')} {has(n)} no answer on at least one side"
    return f"{text}, {cases}, and a verdict takes 99 % of the cases."


def _copies(facts: Facts) -> str:
    """Say which repeats are an earlier answer given again, and how many draws there are without them."""
    sides = facts["copies"]
    texts = [_describe_copies(side) for side in sides]
    if len(sides) > 1 and all(side["is_one_answer"] and not side["is_checked"] for side in sides):
        texts = [f"{_describe_copies(sides[0])} So are those of the {sides[1]['side']}."]
    return f"{' '.join(texts)} A verdict takes {facts['looks'][0]} samples on each side."


def _describe_copies(side: Facts) -> str:
    whose = f"{side['n_repeats']} repeats of the {side['side']}"
    if side["is_one_answer"] and not side["is_checked"]:
        equal = f"{side['n_cases']:,} of {side['n_total']:,} cases equal"
        return f"All {whose} are one answer given again ({equal}). That is one sample."
    if side["is_one_answer"]:
        return f"All {whose} are one answer given again, and an independent run gave others. They hide its noise."
    samples = fixed(side["n_draws"], 1)
    return f"The {whose} are {samples} samples: the others agree with them as no independent repeats do."


def _incomplete(facts: Facts) -> str:
    n, missing = facts["n_unjudged"], facts["missing"]
    if not facts["n_judged"]:
        return "No case has a score on both sides, so there is nothing to compare."
    if missing["low"] is None or missing["high"] is None or 100 * n > facts["n_cases"]:
        share = f"{n:,} of {facts['n_cases']:,} cases ({percent(missing['share'], 1)})"
        text = f"{share} have no score on at least one side, and a verdict takes 99 % of the cases"
        return f"{text}: {count_missing(facts)}."
    span = interval(missing["low"], missing["high"], -facts["tolerance"])
    they_decide = "they decide: depending on what they are"
    if count_all_missing(facts) == 1:
        they_decide = "it decides: depending on what it is"
    text = f"{count_missing(facts)}, and {they_decide}, the change lies in {span} points"
    return f"{capital(text)}, so the candidate may be worse than the {accepted(facts)}, or not."


def _uncertified(facts: Facts) -> str:
    """Say which certificate is missing to rule out a drop at loads other than the measured ones."""
    sides = facts["uncertified"]
    who = " and ".join(f"the {each['side']} on {listed(each['hosts'])}" for each in sides)
    verb = "was" if len(sides) == 1 else "were"
    drop = f"a drop of {limit_points(facts['tolerance'])} is ruled out"
    text = f"At the loads that these runs had, {drop}: {measured(facts)}."
    text = f"{text} But {who} {verb} decoded under batch-invariant kernels, and no determinism certificate shows"
    return f"{text} that other loads move no bit there."


REASONS: dict[str, Callable[[Facts], str]] = {
    "within_tolerance": partial(_claimed, "within_tolerance"),
    "better": partial(_claimed, "better"),
    "small_real_drop": partial(_claimed, "small_real_drop"),
    "regression": _regression,
    "not_settled": _not_settled,
    "suite_too_small": _suite_too_small,
    "noisy": _noisy,
    "too_few_repeats": _too_few_repeats,
    "one_draw": _one_draw,
    "no_metric": _no_metric,
    "cached": _too_few_draws,
    "copies": _copies,
    "fallback": _too_few_draws,
    "incomplete": _incomplete,
    "uncertified": _uncertified,
    "not_in_turn": _not_in_turn,
    "rebaseline": _rebaseline,
}


def _on_these(facts: Facts) -> str:
    n = facts["n_judged"]
    by = "" if facts["metric"] == "mean" else f", by {facts['metric']},"
    return f"On this case{by}" if n == 1 else f"On these {n:,} cases{by}"


def have(facts: Facts) -> str:
    n_candidate, n_baseline = facts["k_candidate"], facts["k_baseline"]
    if n_candidate == n_baseline:
        return f"each side has {counted(n_candidate, 'repeat')}"
    return f"the candidate has {counted(n_candidate, 'repeat')} and the baseline {n_baseline}"


def describe_draws(facts: Facts) -> str:
    """Say why repeats count as samples, without a full stop: sampled, or temperature unknown."""
    unknown = [name for name in ("baseline", "candidate") if facts["draws"][name]["temperature"] is None]
    if not unknown:
        return f"Sampled at T = {temperature(facts)}: each repeat is a draw"
    whose = "either side" if len(unknown) == 2 else f"the {unknown[0]}"
    return (
        f"The temperature of {whose} is not known (the profile leaves it to the server, the server refused or dropped "
        "it, a log does not say it, or the answers contradict it): each repeat is judged as a draw"
    )


def temperature(facts: Facts) -> str:
    temperatures = [facts["draws"][name]["temperature"] for name in ("baseline", "candidate")]
    return listed(list(dict.fromkeys(f"{value:g}" for value in temperatures if value)))


def range5(facts: Facts, name: str) -> str:
    """Write a range as the range limit reads it."""
    width, n = facts["sides"][name]["range5"], facts["sides"][name]["n_repeats"]
    over = f"over {n} repeats" if n <= 5 else f"over 5 of {n} repeats"
    return f"{points(width, digits_beside((width,), facts['guard']))} points {over}"


def count_missing(facts: Facts) -> str:
    counts = [(name, facts["missing"][f"n_{name}"]) for name in ("candidate", "baseline")]
    parts = [f"{counted(n, 'response')} of the {name}" for name, n in counts if n]
    verb = "is" if count_all_missing(facts) == 1 else "are"
    return f"{listed(parts)} {verb} missing" if parts else "no response came"


def count_all_missing(facts: Facts) -> int:
    n_candidate: int = facts["missing"]["n_candidate"]
    n_baseline: int = facts["missing"]["n_baseline"]
    return n_candidate + n_baseline


def left_out_is_one(facts: Facts) -> bool:
    """Tell whether exactly one answer is left out, for singular wording."""
    return sum(sum(facts["left_out"][name].values()) for name in ("candidate", "baseline")) == 1


def count_left_out(facts: Facts) -> str:
    """Count by side and mark: "3,200 responses of the candidate came out of a cache"."""
    parts = []
    for name in ("candidate", "baseline"):
        marked: Sequence[tuple[int, str]] = [(n, MARK_WORDS[mark]) for mark, n in facts["left_out"][name].items()]
        first, *more = marked or [(0, "")]
        if first[0]:
            rest = [f"{n:,} {came}" for n, came in more]
            parts.append(listed([f"{counted(first[0], 'response')} of the {name} came {first[1]}", *rest]))
    return listed(parts)


def has(n: int) -> str:
    return "has" if n == 1 else "have"
