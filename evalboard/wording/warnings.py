"""The sentences of what stays on the page beside any verdict.

What the verdict itself warns of takes the facts of `core.verdict.gate_facts`; how the runs were served, and
what was judged before, those of `runs.release.verdict_warnings`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from evalboard.wording.numbers import capital, counted, fixed, interval, listed, nats_rounded, percent, points, signed
from evalboard.wording.verdict import (
    accepted,
    count_all_missing,
    count_left_out,
    count_missing,
    expired_baseline,
    has,
    have,
    left_out_is_one,
    limit_points,
    line,
    range5,
    temperature,
)
from evalboard.wording.verdict_names import verdict_name

Facts = Mapping[str, Any]

PINS_NAMED = 3


def warning(code: str, facts: Facts) -> str:
    """Say what stays on the page beside any verdict."""
    return line(WARNINGS, code, facts)


def _sampled(facts: Facts) -> str:
    """Say why a verdict over draws may be believed, and how sharp it is."""
    text = f"Sampled at T = {temperature(facts)}: each repeat is a draw, so a wide range is no alarm."
    ours, theirs = facts["draws"]["baseline"]["seed"], facts["draws"]["candidate"]["seed"]
    if facts["share_seeds"]:
        return f"{text} Both sides were drawn by seed {ours}, and draws of the same seed are compared."
    why = "they share no seeds"
    if ours is not None and theirs is not None:
        why = f"seed {ours} against {theirs}" if ours != theirs else "their repeats are not the same ones"
    return f"{text} The draws of the two sides are independent ({why}), so the interval covers the chance of both."


def _missing(facts: Facts) -> str:
    """Say what is missing; is_decided: and could not change the verdict."""
    missing = facts["missing"]
    text = capital(count_missing(facts))
    if not facts["is_decided"] or missing["low"] is None or missing["high"] is None:
        return f"{text}."
    span = interval(missing["low"], missing["high"], -facts["tolerance"])
    turned_out = "it turns out" if count_all_missing(facts) == 1 else "they turn out"
    return f"{text}; the verdict holds however {turned_out}: the change lies in {span} points."


def _left_out(facts: Facts) -> str:
    """Say what is left out where answers are no draws, and enough others are."""
    them = "it" if left_out_is_one(facts) else "them"
    text = f"{count_left_out(facts)}; the verdict leaves {them} out"
    n = facts["left_out"]["n_cases"]
    return f"{text}, and with {them} {counted(n, 'case')} that {has(n)} no other answer." if n else f"{text}."


def _noisy_bucket(facts: Facts) -> str:
    parts = [f"the {name}'s range is {range5(facts, name)}" for name in facts["noisy"]]
    return f"Noisy bucket: {listed(parts)}, wider than the guard of {limit_points(facts['guard'])}."


def _overdispersed(facts: Facts) -> str:
    sides = " and of the ".join(facts["moved"])
    text = f"Repeats of the {sides} differ by more than flips of single cases explain"
    return f"{text}: look for routing, load, or a changed backend."


def _load_differs(facts: Facts) -> str:
    """Say by how much the batches, or our calls in flight, differ. baseline, candidate: as core.stats.SideLoad."""
    smaller, larger = sorted(("baseline", "candidate"), key=lambda name: facts[name]["mean"])
    factor = facts[larger]["mean"] / facts[smaller]["mean"]
    if facts["counted"] == "calls":
        how, remedy = "called", "let both have as many calls at once"
        text = f"{fixed(factor, 1)} times as many of our calls were under way during a call of the {larger}"
        beside = " What others asked of the servers meanwhile is not known."
    else:
        how, remedy, beside = "decoded", "decode both alone", ""
        text = f"the {larger}'s batches are {fixed(factor, 1)} times as large"
    sizes = "; ".join(_load_of(name, facts[name]) for name in ("baseline", "candidate"))
    advice = "Run both sides in turn."
    if facts["is_in_turn"]:
        advice = f"Both sides ran in turn, so it is their endpoints whose load differs: {remedy}."
    return (
        f"The sides were {how} under different load: on average {text} ({sizes}).{beside} "
        f"Part of the change may come from the load, and more repeats do not show that. {advice}"
    )


def _load_of(name: str, side: Facts) -> str:
    """Say how one side was batched or called; 80 % of its responses lie from the 10th to the 90th percentile."""
    spread = f", 80 % of responses within {side['low']}–{side['high']}" if side["low"] != side["high"] else ""
    alone = f", {percent(side['alone'], 0)} alone" if side["alone"] else ""
    return f"{name}: median {side['median']}{spread}{alone}"


def _repeats_kept(facts: Facts) -> str:
    later = facts["later_looks"]
    rest = f"the others count once each side has {later[0]}" if later else "the policy looks at no more"
    return f"{capital(have(facts))}; the first {facts['look']} of each decide, and {rest}."


def _targeted(facts: Facts) -> str:
    targeted = facts["targeted"]
    more = f"{targeted['repeats']} more repeats of the {counted(targeted['n_cases'], 'case')} most likely to flip"
    text = f"Beside {facts['look']} repeats of all cases, {more} count on each side"
    return f"{text}; each case weighs what it always does."


def _reach_wide(facts: Facts) -> str:
    return f"For other cases like these, a drop of {points(-facts['reach_low'])} points cannot be ruled out."


def _concentrated(facts: Facts) -> str:
    groups = counted(facts["n_groups_changed"], "group")
    return f"The change is concentrated in {groups} of cases, so it says nothing about other cases."


def _few_cases(facts: Facts) -> str:
    return f"One case is worth {points(100 / facts['n_judged'])} points here."


def _coarse(facts: Facts) -> str:
    change = points(facts["change"]["resolution"])
    resolved = f"{facts['look']} repeats on these cases resolve a change of {change} points"
    return f"{resolved}, more than the {accepted(facts)}: a candidate that is no worse often ends inconclusive."


def _worth_a_look(facts: Facts) -> str:
    return f"Worth a look: the score changed by {signed(facts['difference'])} points, more than its noise explains."


def _who(facts: Facts) -> str:
    return f"Run {facts['run']}, the {facts['side']},"


def _pins_broken(facts: Facts) -> str:
    pins = facts["pins"]
    more = f" and {len(pins) - PINS_NAMED} more" if len(pins) > PINS_NAMED else ""
    return f"{_who(facts)} was not decoded as its profile says; broken pins: {', '.join(pins[:PINS_NAMED])}{more}."


def _several_buckets(facts: Facts) -> str:
    """Say who served. buckets: [share, fingerprint, batch class, points or None] of each, the largest share first."""
    parts = [
        f"{100 * share:.0f} % by {fingerprint} ({batch_class}{'' if score is None else f', {points(score)} points'})"
        for share, fingerprint, batch_class, score in facts["buckets"]
    ]
    return f"{_who(facts)} was served by {len(parts)} buckets, which are never pooled: {', '.join(parts)}."


def _unvouched(facts: Facts) -> str:
    n = facts["n"]
    text = f"{_who(facts)} has {counted(n, 'response')} that {'is' if n == 1 else 'are'} not vouched for"
    return f"{text}: the engine's self-check no longer gave the same bits."


def _truncated(facts: Facts) -> str:
    n = counted(facts["n"], "response")
    which = "" if facts["is_log"] else ", which scores 0" if facts["n"] == 1 else ", which score 0"
    return f"{_who(facts)} was cut inside its thinking in {n}{which}: raise max_tokens."


def _two_computations(facts: Facts) -> str:
    n, distance = facts["n"], facts["distance"]
    text = f"{_who(facts)} was answered by two computations: {counted(n, 'response')} {'lies' if n == 1 else 'lie'}"
    return f"{text} {nats_rounded(distance)} from the others of their case; its page lists them."


def _unsteady(facts: Facts) -> str:
    cases = f"{facts['n_apart']:,} of {counted(facts['n_cases'], 'case')}"
    text = f"{_who(facts)} has repeats that are not the same to the bit in {cases}, and in batch class"
    return f"{text} `{facts['batch_class']}` they must be: something moves bits that no fingerprint shows."


def _uncertified(facts: Facts) -> str:
    return f"{_who(facts)} was decoded under `invariant` on {listed(facts['hosts'])} without a determinism certificate."


def _imported(facts: Facts) -> str:
    return f"{_who(facts)} was read from another tool's log, which does not say how it was batched."


def _reported(facts: Facts) -> str:
    return f"{_who(facts)} was served by others: who answered is what their server says, and not how it was batched."


def _rough_profile(facts: Facts) -> str:
    return f"{_who(facts)} was batched as cases came: a rough signal, as repeats may differ."


def _repeats_left_out(facts: Facts) -> str:
    if facts["n"] == 1:
        return f"{_who(facts)} has 1 repeat that was cancelled or failed; the verdict leaves it out."
    return f"{_who(facts)} has {facts['n']} repeats that were cancelled or failed; the verdict leaves them out."


def _noise_unmeasured(facts: Facts) -> str:
    return f"{_who(facts)} has a single repeat, so its own noise is not measured."


def _one_process(facts: Facts) -> str:
    text = f"{_who(facts)} has {facts['n_repeats']} repeats by one engine process"
    return f"{text}, so its noise does not show what a fresh start changes."


def _candidates_tried(facts: Facts) -> str:
    """Say how many were tried.

    n: how many runs were judged against the baseline, `run`, so far. candidates: the last of them, in order.
    """
    candidates = facts["candidates"]
    named = ", ".join(f"run {run}" for run in candidates)
    more = f"the last {len(candidates)}: " if facts["n"] > len(candidates) else ""
    text = f"{facts['n']} candidates were judged against run {facts['run']} so far ({more}{named})"
    return f"{text}. Where many are tried that are no better, one of them may look so by chance."


def _policy_changed(facts: Facts) -> str:
    """Say what was said under other thresholds. before: [release, policy, tolerance, verdict] of each, oldest first."""
    before = "; ".join(
        f"release {release} under {policy}, tolerance {limit_points(tolerance)}: {verdict_name(verdict)}"
        for release, policy, tolerance, verdict in facts["before"]
    )
    text = f"The same two runs were judged before under another policy ({before})."
    return f"{text} This release's tolerance is {limit_points(facts['tolerance'])}."


def _waived_baseline(facts: Facts) -> str:
    text = f"Run {facts['run']}, the baseline, was itself let through by a waiver of {facts['person']}"
    return f"{text} until {facts['until']} (release {facts['release']})."


WARNINGS: dict[str, Callable[[Facts], str]] = {
    "sampled": _sampled,
    "missing": _missing,
    "cached": _left_out,
    "fallback": _left_out,
    "noisy_bucket": _noisy_bucket,
    "overdispersed": _overdispersed,
    "load_differs": _load_differs,
    "repeats_kept": _repeats_kept,
    "targeted": _targeted,
    "reach_wide": _reach_wide,
    "concentrated": _concentrated,
    "few_cases": _few_cases,
    "coarse": _coarse,
    "worth_a_look": _worth_a_look,
    "baseline_expired": expired_baseline,
    "pins_broken": _pins_broken,
    "several_buckets": _several_buckets,
    "unvouched": _unvouched,
    "truncated": _truncated,
    "two_computations": _two_computations,
    "unsteady": _unsteady,
    "uncertified": _uncertified,
    "imported": _imported,
    "reported": _reported,
    "rough_profile": _rough_profile,
    "repeats_left_out": _repeats_left_out,
    "noise_unmeasured": _noise_unmeasured,
    "one_process": _one_process,
    "candidates_tried": _candidates_tried,
    "policy_changed": _policy_changed,
    "waived_baseline": _waived_baseline,
}
