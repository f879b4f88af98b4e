"""Warnings of a release: what each could change, who must act, and its sentence.

Each is a function under `@warns`. Its name is the code, and its docstring is its text in the table of docs/releases.md.
The facts come from `core.release.verdict`, from `core.release.serving`, or from `runs.release.verdict_history` if only
stored rows have them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evalboard.contract.release import Gate, ReleaseActor
from evalboard.core.compare import BLOCK_WARNINGS
from evalboard.wording.comparability import BLOCKS
from evalboard.wording.numbers import capital, counted, fixed, interval, listed, nats_rounded, percent, points, signed
from evalboard.wording.release_names import verdict_name
from evalboard.wording.release_verdict import (
    RAN_APART,
    accepted,
    count_all_missing,
    count_left_out,
    count_missing,
    describe_draws,
    expired_baseline,
    has,
    have,
    left_out_is_one,
    limit_points,
    range5,
)
from evalboard.wording.run_warnings import PINS_NAMED

Facts = Mapping[str, Any]
Sentence = Callable[[Facts], str]
About = Literal["answers", "noise", "luck", "how"]
# When a warning of each kind is a "warning"; else it is "info". docs/releases.md has these words.
SEVERITIES: dict[About, str] = {
    "answers": "warning",
    "noise": "warning where noise could change the verdict",
    "luck": "warning where the verdict is `ship`",
    "how": "info",
}


@dataclass(frozen=True, slots=True)
class ReleaseWarningRow:
    """about: what its cause changes.

    "answers": which answers are judged, or by what limit. "noise": how far a score moves by itself. "luck": whether a
    `ship` says what it seems to. "how": nothing; it says how the release was judged.
    """

    code: str
    about: About
    must_act: ReleaseActor | None
    sentence: Sentence
    means: str


WARNINGS: dict[str, ReleaseWarningRow] = {}
PROMISED_FROM = 50  # cases; measured in docs/verdict.md


def warns(about: About, *, must_act: ReleaseActor | None) -> Callable[[Sentence], Sentence]:
    """Make a row of the function below. must_act: as `ReleaseWarning` has it."""

    def add(sentence: Sentence) -> Sentence:
        code = sentence.__name__
        WARNINGS[code] = ReleaseWarningRow(code, about, must_act, sentence, sentence.__doc__ or "")
        return sentence

    return add


def warning(code: str, facts: Facts) -> str:
    """Return the sentence of a warning."""
    return WARNINGS[code].sentence(facts)


def weigh(code: str, gate: Gate, verdict: str | None) -> dict[str, str | None]:
    """Return `severity` and `must_act` of a gate's warning in a release with this verdict.

    A code that only an earlier version of the rules had is about the answers, and nobody can act on it.
    """
    row = WARNINGS.get(code)
    could_change = _could_change("answers" if row is None else row.about, gate, verdict)
    return {"severity": "warning" if could_change else "info", "must_act": None if row is None else row.must_act}


def _could_change(about: About, gate: Gate, verdict: str | None) -> bool:
    """Tell whether the release's verdict could be another one without the cause of a warning."""
    if about == "how" or gate.tier != "critical":
        return False
    if about == "luck":
        return verdict == "ship"
    if gate.verdict != verdict:
        return False  # another gate has decided it
    spare, noise = gate.points_to_spare, gate.points_of_noise
    return about != "noise" or spare is None or noise is None or noise >= spare


# Blocks of a comparison that only warn have their sentence there.
for _code in sorted(BLOCK_WARNINGS):
    WARNINGS[_code] = ReleaseWarningRow(_code, "answers", "signer", BLOCKS[_code], BLOCKS[_code].__doc__ or "")


@warns("answers", must_act="author")
def earlier_rules(_: Facts) -> str:
    """it was signed under earlier rules, and is [kept as signed](docs/releases.md#releases)"""
    text = "Taken and signed under an earlier version of the rules, and kept as it was signed."
    return f"{text} To have it judged by today's, ask for the release again."


@warns("how", must_act=None)
def sampled(facts: Facts) -> str:
    """repeats are samples, or may be; whether both sides share their seeds"""
    text = f"{describe_draws(facts)}, so a wide range is no alarm."
    ours, theirs = facts["draws"]["baseline"]["seed"], facts["draws"]["candidate"]["seed"]
    if facts["share_seeds"]:
        return f"{text} Both sides were drawn by seed {ours}, and draws of the same seed are compared."
    why = "they share no seeds"
    if None in (facts["draws"]["baseline"]["temperature"], facts["draws"]["candidate"]["temperature"]):
        why = "what a seed does is not known either"
    elif ours is not None and theirs is not None:
        why = f"seed {ours} against {theirs}" if ours != theirs else "their repeats are not the same ones"
    return f"{text} The draws of the two sides are independent ({why}), so the interval covers the chance of both."


@warns("answers", must_act="author")
def missing(facts: Facts) -> str:
    """responses are missing, and the verdict is the same whatever they would be"""
    # is_decided: what is missing could not change the verdict.
    missing = facts["missing"]
    text = capital(count_missing(facts))
    if not facts["is_decided"] or missing["low"] is None or missing["high"] is None:
        return f"{text}."
    span = interval(missing["low"], missing["high"], -facts["tolerance"])
    turned_out = "it turns out" if count_all_missing(facts) == 1 else "they turn out"
    return f"{text}; the verdict holds however {turned_out}: the change lies in {span} points."


@warns("answers", must_act="operator")
def cached(facts: Facts) -> str:
    """answers from a cache are left out, and enough others remain: how many, and of how many cases"""
    return _left_out(facts)


@warns("answers", must_act="operator")
def fallback(facts: Facts) -> str:
    """the same of answers that came from a fallback"""
    return _left_out(facts)


@warns("answers", must_act="operator")
def copies(facts: Facts) -> str:
    """the same for answers that repeat an earlier one, although they are not marked as cached"""
    return _left_out(facts)


@warns("answers", must_act="operator")
def first_repeat_differs(facts: Facts) -> str:
    """the later repeats are copies of each other and the first is none of them, as behind a prefix cache"""
    later = f"2 to {facts['n_repeats']} of the {facts['side']}"
    return f"Repeats {later} are copies of each other, and repeat 1 alone differs, as before a cache is warm."


@warns("answers", must_act="signer")
def nothing_caches(facts: Facts) -> str:
    """all repeats of a side are equal, and the person who made the release declared that nothing caches"""
    sides = listed([f"the {name}" for name in facts["sides"]])
    return (
        f"All repeats of {sides} are equal. It is assumed that each was computed: the release was made with the "
        "statement that nothing caches there."
    )


@warns("noise", must_act="author")
def noisy_bucket(facts: Facts) -> str:
    """under `paired`: a range is over the limit"""
    parts = [f"the {name}'s range is {range5(facts, name)}" for name in facts["noisy"]]
    return f"Noisy bucket: {listed(parts)}, wider than the guard of {limit_points(facts['guard'])}."


@warns("noise", must_act="operator")
def overdispersed(facts: Facts) -> str:
    """repeats differ by more than flips of single cases explain (χ², below 0.005).

    Look for routing, load, or a changed backend
    """
    sides = " and of the ".join(facts["moved"])
    text = f"Repeats of the {sides} differ by more than flips of single cases explain"
    return f"{text}: look for routing, load, or a changed backend."


@warns("answers", must_act="author")
def load_differs(facts: Facts) -> str:
    """both sides were decoded under different [load](docs/verdict.md#load).

    Batch sizes, or calls in flight to external servers, differ. Interleave both sides, if they were not
    """
    # baseline, candidate: as core.stats.SideLoad.
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


@warns("answers", must_act="author")
def not_in_turn(facts: Facts) -> str:
    """batching depended on load, the sides ran at different hours, and whole runs vary: [interleave
    them](docs/verdict.md#load)
    """
    return RAN_APART


@warns("how", must_act=None)
def repeats_kept(facts: Facts) -> str:
    """repeats beyond the look wait for the next"""
    later = facts["later_looks"]
    rest = f"the others count once each side has {later[0]}" if later else "the policy looks at no more"
    return f"{capital(have(facts))}; the first {facts['look']} of each decide, and {rest}."


@warns("how", must_act=None)
def targeted(facts: Facts) -> str:
    """repeats of the cases most likely to flip count in addition to those of all cases"""
    targeted = facts["targeted"]
    more = f"{targeted['repeats']} more repeats of the {counted(targeted['n_cases'], 'case')} most likely to flip"
    text = f"Beside {facts['look']} repeats of all cases, {more} count on each side"
    return f"{text}; each case weighs what it always does."


@warns("luck", must_act="author")
def reach_wide(facts: Facts) -> str:
    """on other cases a drop of more than twice the tolerance cannot be ruled out"""
    return f"For other cases like these, a drop of {points(-facts['reach_low'])} points cannot be ruled out."


@warns("luck", must_act="author")
def concentrated(facts: Facts) -> str:
    """fewer than ten groups changed: the result does not extend to new cases"""
    groups = counted(facts["n_groups_changed"], "group")
    return f"The change is concentrated in {groups} of cases, so it says nothing about other cases."


@warns("luck", must_act="author")
def uneven_groups(facts: Facts) -> str:
    """a group is over five times as large as the median group.

    How reliable the interval for new cases is then was not measured
    """
    text = "One group has more than five times as many cases as the median group"
    return f"{text}, so it is not known how often the interval for other cases like these holds."


@warns("luck", must_act="author")
def few_groups(facts: Facts) -> str:
    """the cases are from fewer than ten groups, so there is no interval for new cases"""
    groups = counted(facts["n_groups"], "group")
    return f"The cases are of {groups}; with fewer than ten there is no interval for other cases like these."


@warns("noise", must_act="author")
def few_cases(facts: Facts) -> str:
    """below 200 cases: the points of one case; below 50: that error rates are higher than promised"""
    text = f"One case is worth {points(100 / facts['n_judged'])} points here"
    if facts["n_judged"] >= PROMISED_FROM:
        return f"{text}."
    return f"{text}, and with fewer than {PROMISED_FROM} cases verdicts err more often than is promised."


@warns("noise", must_act="author")
def coarse(facts: Facts) -> str:
    """the resolution is above the tolerance, so that a candidate that is no worse often ends inconclusive"""
    change = points(facts["change"]["resolution"])
    resolved = f"{facts['look']} repeats on these cases resolve a change of {change} points"
    return f"{resolved}, more than the {accepted(facts)}: a candidate that is no worse often ends inconclusive."


@warns("how", must_act="signer")
def worth_a_look(facts: Facts) -> str:
    """an advisory suite changed by more than its noise explains"""
    return f"Worth a look: the score changed by {signed(facts['difference'])} points, more than its noise explains."


@warns("answers", must_act="signer")
def baseline_expired(facts: Facts) -> str:
    """the stack is judged, and its rotation is why the baseline expired"""
    return expired_baseline(facts)


@warns("answers", must_act="operator")
def pins_broken(facts: Facts) -> str:
    """a run was not decoded as its profile requires"""
    pins = facts["pins"]
    more = f" and {len(pins) - PINS_NAMED} more" if len(pins) > PINS_NAMED else ""
    return f"{_who(facts)} was not decoded as its profile says; broken pins: {', '.join(pins[:PINS_NAMED])}{more}."


@warns("answers", must_act="operator")
def several_buckets(facts: Facts) -> str:
    """several buckets answered a run: the share and the score of each"""
    # buckets: [share, fingerprint, batch class, points or None] of each, the largest share first.
    parts = [
        f"{100 * share:.0f} % by {fingerprint} ({batch_class}{'' if score is None else f', {points(score)} points'})"
        for share, fingerprint, batch_class, score in facts["buckets"]
    ]
    return f"{_who(facts)} was served by {len(parts)} buckets, which are never pooled: {', '.join(parts)}."


@warns("answers", must_act="operator")
def unvouched(facts: Facts) -> str:
    """responses whose engine's self-check no longer gave the same bits"""
    n = facts["n"]
    text = f"{_who(facts)} has {counted(n, 'response')} that {'is' if n == 1 else 'are'} not vouched for"
    return f"{text}: the engine's self-check no longer gave the same bits."


@warns("answers", must_act="author")
def truncated(facts: Facts) -> str:
    """responses that were cut inside their thinking, and so score 0"""
    n = counted(facts["n"], "response")
    which = "" if facts["is_log"] else ", which scores 0" if facts["n"] == 1 else ", which score 0"
    return f"{_who(facts)} was cut inside its thinking in {n}{which}: raise max_tokens."


@warns("answers", must_act="author")
def endings_differ(facts: Facts) -> str:
    """more answers of one side were [cut, filtered, refused or
    empty](docs/imports.md#tool-calls-and-endings)
    """
    n, total = facts["n"], counted(facts["total"], "answer")
    other = f"{facts['n_other']:,} of {facts['total_other']:,}"
    text = f"{_who(facts)} has {n:,} of {total} that {'was' if n == 1 else 'were'} {facts['ending']}"
    return f"{text}; the other side has {other}."


@warns("answers", must_act="author")
def prompts_filtered(facts: Facts) -> str:
    """a provider's filter refused prompts.

    Those refused on both sides are left out; those refused on one side are missing answers
    """
    n = counted(facts["n"], "prompt")
    if facts["is_both"]:
        return f"The providers of both sides refused {n}; the verdict leaves {'it' if facts['n'] == 1 else 'them'} out."
    return f"{_who(facts)} misses {n} that its provider's filter refused, and the other side has answers to."


@warns("answers", must_act="operator")
def not_greedy(facts: Facts) -> str:
    """a run should have decoded greedily, but its tokens show that it did not.

    Its repeats are judged as samples
    """
    answers = f"{facts['n']:,} of {counted(facts['total'], 'answer')} hold a token that was not the most likely one"
    return f"{_who(facts)} was not decoded greedily: at temperature 0, {answers}. Its repeats are judged as samples."


@warns("answers", must_act="operator")
def two_computations(facts: Facts) -> str:
    """some responses of a run are outliers within their case: another build answered them
    (docs/divergence.md#strays)
    """
    n, distance = facts["n"], facts["distance"]
    text = f"{_who(facts)} was answered by two computations: {counted(n, 'response')} {'lies' if n == 1 else 'lie'}"
    return f"{text} {nats_rounded(distance)} from the others of their case; its page lists them."


@warns("noise", must_act="operator")
def computation_apart(facts: Facts) -> str:
    """one bucket answered both sides, but they differ more than repeats of one side; not interleaved
    (docs/verdict.md#the-rules-in-order)
    """
    text = f"One bucket answered both sides, and their logprobs lie {nats_rounded(facts['shift'])} further apart than"
    return f"{text} repeats of one side do. They did not take turns, so another load may do that: run both in turn."


@warns("noise", must_act="operator")
def unsteady(facts: Facts) -> str:
    """repeats of a run are not the same to the bit, though its batch class gives the same bits each time
    (docs/divergence.md#strays)
    """
    cases = f"{facts['n_apart']:,} of {counted(facts['n_cases'], 'case')}"
    text = f"{_who(facts)} has repeats that are not the same to the bit in {cases}, and in batch class"
    return f"{text} `{facts['batch_class']}` they must be: something moves bits that no fingerprint shows."


@warns("noise", must_act="operator")
def uncertified(facts: Facts) -> str:
    """an `invariant` run's node has no [determinism certificate](docs/probes.md#determinism).

    Judged again once one is issued or revoked. If it is all that prevents `ship`, this is the
    [reason](docs/verdict.md#the-rules-in-order)
    """
    return f"{_who(facts)} was decoded under `invariant` on {listed(facts['hosts'])} without a determinism certificate."


@warns("how", must_act=None)
def imported(facts: Facts) -> str:
    """a run was read from another tool's log"""
    return f"{_who(facts)} was read from another tool's log, which does not say how it was batched."


@warns("how", must_act=None)
def reported(facts: Facts) -> str:
    """an external server answered a run: its identity is self-reported"""
    return f"{_who(facts)} was served by others: who answered is what their server says, and not how it was batched."


@warns("noise", must_act="author")
def rough_profile(facts: Facts) -> str:
    """a run was batched as cases came"""
    return f"{_who(facts)} was batched as cases came: a rough signal, as repeats may differ."


@warns("how", must_act=None)
def repeats_left_out(facts: Facts) -> str:
    """repeats that were cancelled or failed"""
    if facts["n"] == 1:
        return f"{_who(facts)} has 1 repeat that was cancelled or failed; the verdict leaves it out."
    return f"{_who(facts)} has {facts['n']} repeats that were cancelled or failed; the verdict leaves them out."


@warns("noise", must_act="author")
def noise_unmeasured(facts: Facts) -> str:
    """a single repeat measures no noise"""
    return f"{_who(facts)} has a single repeat, so its own noise is not measured."


@warns("noise", must_act="author")
def one_process(facts: Facts) -> str:
    """one engine process decoded all repeats: the noise does not include what a restart changes"""
    text = f"{_who(facts)} has {facts['n_repeats']} repeats by one engine process"
    return f"{text}, so its noise does not show what a fresh start changes."


@warns("luck", must_act="signer")
def candidates_tried(facts: Facts) -> str:
    """how many candidates were judged against this baseline.

    Of twenty that are no better, expect one to look better by chance
    """
    # n: how many runs were judged against the baseline, `run`, so far; candidates: the last of them, in order.
    candidates = facts["candidates"]
    named = ", ".join(f"run {run}" for run in candidates)
    more = f"the last {len(candidates)}: " if facts["n"] > len(candidates) else ""
    text = f"{facts['n']} candidates were judged against run {facts['run']} so far ({more}{named})"
    return f"{text}. Where many are tried that are no better, one of them may look so by chance."


@warns("answers", must_act="signer")
def policy_changed(facts: Facts) -> str:
    """the same two runs were judged before with other settings: both tolerances and verdicts"""
    # before: [release, policy, tolerance, verdict] of each, oldest first.
    before = "; ".join(
        f"release {release} under {policy}, tolerance {limit_points(tolerance)}: {verdict_name(verdict)}"
        for release, policy, tolerance, verdict in facts["before"]
    )
    text = f"The same two runs were judged before under another policy ({before})."
    return f"{text} This release's tolerance is {limit_points(facts['tolerance'])}."


@warns("answers", must_act="signer")
def waived_baseline(facts: Facts) -> str:
    """the baseline itself shipped under a waiver, and the waiver's end date"""
    text = f"Run {facts['run']}, the baseline, was itself let through by a waiver of {facts['person']}"
    return f"{text} until {facts['until']} (release {facts['release']})."


def _left_out(facts: Facts) -> str:
    """Say which answers are left out because they are no samples, if enough others remain."""
    them = "it" if left_out_is_one(facts) else "them"
    text = f"{count_left_out(facts)}; the verdict leaves {them} out"
    n = facts["left_out"]["n_cases"]
    return f"{text}, and with {them} {counted(n, 'case')} that {has(n)} no other answer." if n else f"{text}."


def _load_of(name: str, side: Facts) -> str:
    """Describe one side's batches or calls in flight: the median, and the 10th to 90th percentile."""
    spread = f", 80 % of responses within {side['low']}–{side['high']}" if side["low"] != side["high"] else ""
    alone = f", {percent(side['alone'], 0)} alone" if side["alone"] else ""
    return f"{name}: median {side['median']}{spread}{alone}"


def _who(facts: Facts) -> str:
    return f"Run {facts['run']}, the {facts['side']},"
