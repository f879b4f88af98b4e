"""Sentences of a verdict: numbers in points with one decimal, their spread, and what to do.

Each is made from the facts of `core.release.gate_facts`; a line of a verdict is a code with facts.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from evalboard.wording.comparability import explain_block
from evalboard.wording.messages import Messages, write
from evalboard.wording.numbers import (
    about,
    capital,
    change_and_interval,
    count_samples,
    counted,
    digits_beside,
    interval,
    limit,
    listed,
    percent,
    points,
)
from evalboard.wording.outcomes import OUTCOMES
from evalboard.wording.release_names import verdict_name

Facts = Mapping[str, Any]

CLAIMS = {
    "within_tolerance": "A drop larger than the {accepted} is ruled out.",
    "better": "The candidate is better than the baseline.",
    "small_real_drop": "The candidate is worse than the baseline, but the drop is smaller than the {accepted}.",
    "regression": "The drop is larger than the {accepted}.",
    "not_settled": "It is open whether there is a drop larger than the {accepted}.",
}
CLEAR = ("better", "small_real_drop", "regression")
FEW_CASES = 200  # below it the sentence says what is known of other cases, too
# By the marks of core.stats.NO_DRAW_MARKS.
MARK_WORDS = {"cached": "from a cache", "fallback": "from a fallback", "copies": "as copies of earlier ones"}


def reason(code: str, facts: Facts) -> str:
    """Say why a gate has its verdict."""
    return REASONS.write(code, facts) if code in REASONS else explain_block(code, facts)


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
    """Say what is known of the drop, by a reason's code; "" if the reason is not about a change."""
    return CLAIMS[code].format(accepted=accepted(facts)) if code in CLAIMS else ""


def measured(facts: Facts) -> str:
    """Write the change, its interval and level: "−1.8 points, in [−2.3, −1.3] (94 % interval)"."""
    known = facts["change"]
    change, span = change_and_interval(known["difference"], known["low"], known["high"], -facts["tolerance"])
    return f"{change} points, in {span} ({percent(known['level'])} interval)"


def _claimed(code: str, facts: Facts) -> str:
    return f"{_changed(facts)} {claim(code, facts)}{_elsewhere(facts) if code in CLEAR else ''}"


def _changed(facts: Facts) -> str:
    n = facts["n_judged"]
    by = "" if facts["metric"] == "mean" else f" by {facts['metric']}"
    return f"On {'this case' if n == 1 else f'these {n:,} cases'} the change{by} is {measured(facts)}."


def _elsewhere(facts: Facts) -> str:
    """Add the interval for new cases if a clear change on few cases may not extend to them."""
    other = facts["change"]["reach"]
    if other is None or facts["n_judged"] >= FEW_CASES or not other["low"] <= 0 <= other["high"]:
        return ""
    return f" For new cases the interval is {interval(other['low'], other['high'], -facts['tolerance'])}."


def _regression(facts: Facts) -> str:
    change = facts["change"]
    n, n_fixed = change["n_broken"], change["n_fixed"]
    text = _claimed("regression", facts)
    if not n:
        return text
    n_by_chance = change["n_broken_by_chance"]
    is_always = change.get("is_in_every_repeat")
    by_chance = "" if n_by_chance is None or is_always else f" Expect {about(n_by_chance)} broken by chance."
    fixed = f"{n_fixed:,} were" if n_fixed > 1 else "1 was" if n_fixed else "none was"
    parts = [
        f"{text} {counted(n, 'case')} broke{' in every repeat' if is_always else ''} ({OUTCOMES.write('broke')}) ",
        f"and {fixed} fixed.{by_chance}",
        "" if facts["metric"] == "mean" else f" {OUTCOMES.write('by_metric', metric=facts['metric'])}",
    ]
    return "".join(parts)


def _not_settled(facts: Facts) -> str:
    if "n_gates" in facts:  # a drop among several suites: facts["alone"] is what its gate alone would say
        return write(
            "{changed} Alone, this suite would be {word}. With {n_gates} suites, one can look this bad by chance. "
            "Allowing for that (Holm's correction), a drop larger than the {accepted} is not proven.",
            word=verdict_name("no_ship"),
            n_gates=facts["n_gates"],
            changed=_changed(facts["alone"]["facts"]),
            accepted=accepted(facts["alone"]["facts"]),
        )
    return f"{_claimed('not_settled', facts)} {_what_decides(facts)}"


def _what_decides(facts: Facts) -> str:
    """Say with which chance more repeats decide; the chance was calibrated (docs/verdict.md)."""
    last, chance = facts["looks"][-1], in_ten(facts["settling"]["chance"])
    if facts["settling"]["look"] is not None:
        text = f"{facts['settling']['look']} repeats per side would decide it {chance}."
    elif not facts["later_looks"]:
        text = f"More repeats do not help: the policy stops at {last} per side."
    else:
        text = f"More repeats rarely help: {last} per side would decide it {chance}."
    if facts["targeted_settling"] is None:
        return text
    targeted = {**facts["targeted_settling"], "chance": in_ten(facts["targeted_settling"]["chance"])}
    more = write(
        "{repeats} more repeats of the {n_cases:case} most likely to flip would decide it {chance}.", **targeted
    )
    return f"{text} {more}"


def in_ten(chance: float) -> str:
    """Write a chance, "about 4 times in 10"; never as certain, since it is an estimate."""
    if chance < 0.1:
        return "less than once in 10"
    if chance >= 0.95:
        return "more than 9 times in 10"
    return f"about {round(10 * chance)} times in 10" if chance >= 0.15 else "about once in 10"


def _suite_too_small(facts: Facts) -> str:
    """Say that even without noise the interval is too wide. half_width: half of it."""
    half_width = facts["half_width"]
    return write(
        "With {look} repeats, {n:case} {n:is|are} too few to decide. Even without noise the interval is ±{half} "
        "points, more than the {accepted}. You need {needed}. The change so far is {change:signed} points. {decides}",
        n=facts["n_judged"],
        look=facts["look"],
        half=points(min(half_width, 100.0), digits_beside((half_width,), facts["tolerance"])),
        accepted=accepted(facts),
        needed=cases_needed(facts["needed"], facts["n_judged"]),
        change=facts["change"]["difference"],
        decides=_what_decides(facts),
    )


def _rebaseline(facts: Facts) -> str:
    if "expired_at" in facts:
        return f"{expired_baseline(facts)} Run the baseline again."
    return explain_block("rebaseline", facts)


def expired_baseline(facts: Facts) -> str:
    """Say since when a baseline is invalid. first_run or first_probe: the new stack's first answer."""
    return write(
        "The baseline, run {baseline}, expired on {expired_at}: another serving stack began to answer at endpoint "
        "{endpoint}{under} ({first}).",
        **facts,
        first=f"run {facts['first_run']}" if "first_run" in facts else f"probe {facts['first_probe']}",
        under=f" under profile {facts['profile']}" if facts["profile"] else "",
    )


def _noisy(facts: Facts) -> str:
    """Say why no regression is read from a wide range. scatter: the range of 5 repeats by flips only."""
    widths = listed([f"the {name}'s range is {range5(facts, name)}" for name in facts["noisy"]])
    return write(
        "{widths}. The range limit is {guard}. Beyond it, runs vary too much to judge a change. By chance in single "
        "cases alone, expect about {scatter:points} points.",
        widths=capital(widths),
        guard=limit_points(facts["guard"]),
        scatter=facts["scatter"],
    )


def _too_few_repeats(facts: Facts) -> str:
    text = f"Too few repeats for a verdict: it takes {facts['looks'][0]} per side, and {have(facts)}."
    if facts["change"] is None:
        return text
    text = f"{text} So far the change is {measured(facts)}."
    if facts["change"]["method"] is None:
        text = f"{text} Noise cannot be measured from one repeat, so the interval counts every changed answer as noise."
    return f"{text}{_early_lean(facts)}"


def _early_lean(facts: Facts) -> str:
    """Say where the change is by the noise of earlier runs; "" if unknown."""
    lean = facts["early_lean"]
    if lean is None:
        return ""
    return write(
        " Experimental: with the noise of earlier runs it is in {span} ({level:share} interval). Tendency: {way}. Not "
        "a verdict.",
        span=interval(lean["low"], lean["high"], -facts["tolerance"]),
        way="none" if lean["leaning"] == "none" else verdict_name(lean["leaning"]),
        level=lean["level"],
    )


def _one_draw(facts: Facts) -> str:
    """Say why the repeats of a side tell nothing of its noise."""
    return write(
        "All repeats of the {sides} used one seed at temperature {temperature}. They count as one sample, so noise is "
        "unknown. Use a separate seed for each repeat, or none.",
        sides=" and of the ".join(facts["one_draw"]),
        temperature=temperature(facts),
    )


def _too_few_draws(facts: Facts) -> str:
    """Say why nothing is decided where answers are no samples."""
    left_out = facts["left_out"]
    them = "it" if left_out_is_one(facts) else "them"
    text = f"{count_left_out(facts)}. Such answers do not show the model's own noise. Without {them}"
    if left_out["is_look_lost"]:
        return f"{text} {have(facts)}, and a verdict takes {facts['looks'][0]}."
    n = left_out["n_cases"]
    cases = f"{n:,} of {counted(facts['n_cases'], 'case')} {has(n)} no answer on at least one side"
    return f"{text} {cases}. A verdict needs 99 % of the cases."


def _copies(facts: Facts) -> str:
    """Say which repeats are copies of an earlier answer, and how many samples there are without them."""
    sides = facts["copies"]
    texts = [_describe_copies(side) for side in sides]
    if len(sides) > 1 and all(side["is_one_answer"] and not side["is_checked"] for side in sides):
        texts = [f"{_describe_copies(sides[0])} So are those of the {sides[1]['side']}."]
    return f"{' '.join(texts)} A verdict takes {facts['looks'][0]} samples on each side."


def _describe_copies(side: Facts) -> str:
    if not side["is_one_answer"]:
        text = "The {n_repeats} repeats of the {side} count as {samples}. The others are copies."
    elif side["is_checked"]:
        text = "All {n_repeats} repeats of the {side} are copies of one answer. An independent run gave other answers."
    else:
        text = (
            "All {n_repeats} repeats of the {side} are copies of one answer ({n_cases:,} of {n_total:,} cases equal). "
            "That is one sample."
        )
    return write(text, **side, samples=count_samples(side["n_draws"]))


def _incomplete(facts: Facts) -> str:
    n, missing = facts["n_unjudged"], facts["missing"]
    if not facts["n_judged"]:
        return "No case has a score on both sides, so there is nothing to compare."
    if missing["low"] is None or missing["high"] is None or 100 * n > facts["n_cases"]:
        share = f"{n:,} of {facts['n_cases']:,} cases ({percent(missing['share'], 1)})"
        text = f"{share} have no score on at least one side. A verdict needs 99 % of the cases."
        return f"{text} {capital(count_missing(facts))}."
    return write(
        "{missing}. With {it} the change is in {span} points. {claim}",
        missing=capital(count_missing(facts)),
        it="it" if count_all_missing(facts) == 1 else "them",
        span=interval(missing["low"], missing["high"], -facts["tolerance"]),
        claim=claim("not_settled", facts),
    )


def _uncertified(facts: Facts) -> str:
    """Say which certificate is missing to rule out a drop at loads other than the measured ones."""
    return write(
        "A drop of {limit} is ruled out at the load of these runs: {measured}. Other loads were not tested: there is "
        "no determinism certificate for {who}.",
        limit=limit_points(facts["tolerance"]),
        measured=measured(facts),
        who=" and ".join(f"the {each['side']} on {listed(each['hosts'])}" for each in facts["uncertified"]),
    )


RAN_APART = "Whole repeats differ by more than chance in single cases explains. The sides ran at different times"

REASONS = Messages(
    "reason",
    {
        ("change", "denies"): {"within_tolerance": partial(_claimed, "within_tolerance")},
        ("change", "asserts"): {
            "better": partial(_claimed, "better"),
            "small_real_drop": partial(_claimed, "small_real_drop"),
            "regression": _regression,
        },
        ("change", "unknown"): {
            "not_settled": _not_settled,
            "suite_too_small": _suite_too_small,
            "too_few_repeats": _too_few_repeats,
            "no_metric": lambda facts: (
                f"The policy judges by {facts['metric']}, which needs several samples of a case, each right or wrong. "
                + (
                    "At temperature 0 answers are not random."
                    if facts["why"] == "greedy"
                    else "Some scores are partial."
                )
            ),
            "incomplete": _incomplete,
            "uncertified": _uncertified,
        },
        ("noise", "asserts"): {"noisy": _noisy},
        ("noise", "unknown"): {
            "one_draw": _one_draw,
            "cached": _too_few_draws,
            "copies": _copies,
            "fallback": _too_few_draws,
        },
        ("load", "allows"): {
            "not_in_turn": lambda facts: f"{RAN_APART}, so load may explain the change so far: {measured(facts)}."
        },
        ("stack", "asserts"): {"rebaseline": _rebaseline},
    },
)


def have(facts: Facts) -> str:
    n_candidate, n_baseline = facts["k_candidate"], facts["k_baseline"]
    if n_candidate == n_baseline:
        return f"each side has {counted(n_candidate, 'repeat')}"
    return f"the candidate has {counted(n_candidate, 'repeat')} and the baseline {n_baseline}"


def describe_draws(facts: Facts) -> str:
    """Say why repeats count as samples, without a full stop: sampled, or temperature unknown."""
    unknown = [name for name in ("baseline", "candidate") if facts["draws"][name]["temperature"] is None]
    if not unknown:
        return f"Each repeat is a sample at temperature {temperature(facts)}"
    whose = "both sides" if len(unknown) == 2 else f"the {unknown[0]}"
    return f"The temperature of {whose} is unknown, so each repeat counts as a sample"


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
    return f"{listed(parts)} {verb} missing" if parts else "there are no responses"


def count_all_missing(facts: Facts) -> int:
    n_candidate: int = facts["missing"]["n_candidate"]
    n_baseline: int = facts["missing"]["n_baseline"]
    return n_candidate + n_baseline


def left_out_is_one(facts: Facts) -> bool:
    """Tell whether exactly one answer is left out, for singular wording."""
    return sum(sum(facts["left_out"][name].values()) for name in ("candidate", "baseline")) == 1


def count_left_out(facts: Facts) -> str:
    """Count by side and mark: "3,200 responses of the candidate came from a cache"."""
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
