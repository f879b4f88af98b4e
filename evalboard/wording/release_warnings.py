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
from evalboard.wording.manifest import name_batching, render_batching
from evalboard.wording.messages import Message, Messages, Strength, write
from evalboard.wording.numbers import capital, fixed, interval, listed, percent, points, signed
from evalboard.wording.release_names import verdict_name
from evalboard.wording.release_verdict import (
    RAN_APART,
    count_all_missing,
    count_left_out,
    count_missing,
    describe_draws,
    expired_baseline,
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
    message: Message
    means: str


WARNINGS: dict[str, ReleaseWarningRow] = {}
SENTENCES = Messages("warning")
PROMISED_FROM = 50  # cases; measured in docs/verdict.md


def warns(
    about: About, *, must_act: ReleaseActor | None, subject: str, strength: Strength = "asserts"
) -> Callable[[Sentence], Sentence]:
    """Make a row of the function below.

    must_act: as `ReleaseWarning` has it. subject, strength: as in `Message`.
    """

    def add(sentence: Sentence) -> Sentence:
        code = sentence.__name__
        SENTENCES[code] = message = Message(subject, strength, sentence)
        WARNINGS[code] = ReleaseWarningRow(code, about, must_act, message, sentence.__doc__ or "")
        return sentence

    return add


def warning(code: str, facts: Facts) -> str:
    """Return the sentence of a warning."""
    return SENTENCES.write(code, facts)


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
    SENTENCES[_code] = BLOCKS[_code]
    WARNINGS[_code] = ReleaseWarningRow(_code, "answers", "signer", BLOCKS[_code], BLOCKS[_code].text.__doc__ or "")


@warns("answers", must_act="author", subject="rules")
def earlier_rules(_: Facts) -> str:
    """it was signed under earlier rules, and is [kept as signed](docs/releases.md#releases)"""
    return "Signed under earlier rules, and kept as signed. Make the release again to judge it by today's rules."


@warns("how", must_act=None, subject="sampling")
def sampled(facts: Facts) -> str:
    """repeats are samples, or may be; whether both sides share their seeds"""
    text = f"{describe_draws(facts)}. A wide range is normal."
    ours, theirs = facts["draws"]["baseline"]["seed"], facts["draws"]["candidate"]["seed"]
    if facts["share_seeds"]:
        return f"{text} Both sides use seed {ours}, and samples of one seed are compared."
    why = "they share no seeds"
    if None in (facts["draws"]["baseline"]["temperature"], facts["draws"]["candidate"]["temperature"]):
        why = "the effect of a seed is unknown too"
    elif ours is not None and theirs is not None:
        why = f"seeds {ours} and {theirs}" if ours != theirs else "they have different repeats"
    return f"{text} The samples of both sides are independent ({why}). The interval allows for that."


@warns("answers", must_act="author", subject="missing")
def missing(facts: Facts) -> str:
    """responses are missing, and the verdict is the same whatever they would be"""
    # is_decided: what is missing could not change the verdict.
    missing = facts["missing"]
    text = capital(count_missing(facts))
    if not facts["is_decided"] or missing["low"] is None or missing["high"] is None:
        return f"{text}."
    span = interval(missing["low"], missing["high"], -facts["tolerance"])
    with_them = "it" if count_all_missing(facts) == 1 else "them"
    return f"{text}. The verdict is the same with {with_them}: the change is in {span} points."


@warns("answers", must_act="operator", subject="samples")
def cached(facts: Facts) -> str:
    """answers from a cache are left out, and enough others remain: how many, and of how many cases"""
    return _left_out(facts)


@warns("answers", must_act="operator", subject="samples")
def fallback(facts: Facts) -> str:
    """the same of answers that came from a fallback"""
    return _left_out(facts)


@warns("answers", must_act="operator", subject="samples")
def copies(facts: Facts) -> str:
    """the same for answers that repeat an earlier one, although they are not marked as cached"""
    return _left_out(facts)


@warns("answers", must_act="operator", subject="samples", strength="allows")
def first_repeat_differs(facts: Facts) -> str:
    """the later repeats are copies of each other and the first is none of them, as behind a prefix cache"""
    return write(
        "Repeats 2 to {n_repeats} of the {side} are copies of each other. Only repeat 1 differs, as with a cold cache.",
        **facts,
    )


@warns("answers", must_act="signer", subject="samples", strength="allows")
def nothing_caches(facts: Facts) -> str:
    """all repeats of a side are equal, and the person who made the release declared that nothing caches"""
    sides = listed([f"the {name}" for name in facts["sides"]])
    return f"All repeats of {sides} are equal. They count, because the release declares that nothing caches there."


@warns("noise", must_act="author", subject="noise")
def noisy_bucket(facts: Facts) -> str:
    """under `paired`: a range is over the limit"""
    parts = [f"the {name}'s range is {range5(facts, name)}" for name in facts["noisy"]]
    limit = limit_points(facts["guard"])
    return f"{capital(listed(parts))}. The range limit is {limit}. The verdict compares case by case, so it holds."


@warns("noise", must_act="operator", subject="noise")
def overdispersed(facts: Facts) -> str:
    """whole repeats differ by more than chance in single cases explains (χ², below 0.005).

    Look for routing, load, or a changed backend
    """
    sides = " and of the ".join(facts["moved"])
    text = f"Repeats of the {sides} differ by more than chance in single cases explains."
    return f"{text} Check routing, load and backends."


@warns("answers", must_act="author", subject="load")
def load_differs(facts: Facts) -> str:
    """both sides were decoded under different [load](docs/verdict.md#load).

    Batch sizes, or calls in flight to external servers, differ. Interleave both sides, if they were not
    """
    # baseline, candidate: as core.stats.SideLoad. is_ship: no drop is left to explain.
    smaller, larger = sorted(("baseline", "candidate"), key=lambda name: facts[name]["mean"])
    is_calls = facts["counted"] == "calls"
    advice = "Run both sides again, alternating."
    if facts["is_in_turn"]:
        remedy = "Allow both the same number of calls." if is_calls else "Decode both at batch size 1."
        advice = f"They alternated, so their endpoints' load differs. {remedy}"
    return write(
        "The {larger} had {factor} times the {smaller}'s {what} on average ({sizes}).{others} {effect} {advice}",
        larger=larger,
        smaller=smaller,
        what="calls in flight" if is_calls else "batch size",
        factor=fixed(facts[larger]["mean"] / facts[smaller]["mean"], 1),
        sizes="; ".join(_load_of(name, facts[name]) for name in ("baseline", "candidate")),
        others=" Load from other clients is unknown." if is_calls else "",
        effect="Load may hide part of a change." if facts["is_ship"] else "Load may explain part of the change.",
        advice=advice,
    )


@warns("answers", must_act="author", subject="load", strength="allows")
def not_in_turn(facts: Facts) -> str:
    """batching depended on load, the sides ran at different hours, and whole runs vary: [interleave
    them](docs/verdict.md#load)
    """
    return f"{RAN_APART}, so load may explain the change."


@warns("how", must_act=None, subject="repeats")
def repeats_kept(facts: Facts) -> str:
    """repeats beyond the look wait for the next"""
    later = facts["later_looks"]
    rest = f"The others count once each side has {later[0]}" if later else "The others do not count"
    return f"{capital(have(facts))}. The first {facts['look']} of each decide. {rest}."


@warns("how", must_act=None, subject="repeats")
def targeted(facts: Facts) -> str:
    """repeats of the cases most likely to flip count in addition to those of all cases"""
    return write(
        "Each side has {repeats} extra repeats of the {n_cases:case} likeliest to flip. All cases weigh as before.",
        **facts["targeted"],
    )


@warns("luck", must_act="author", subject="new_cases")
def reach_wide(facts: Facts) -> str:
    """on other cases a drop of more than twice the tolerance cannot be ruled out.

    Not said where `concentrated` is
    """
    return f"On cases outside this suite, a drop of {points(-facts['reach_low'])} points cannot be ruled out."


@warns("luck", must_act="author", subject="new_cases", strength="unknown")
def concentrated(facts: Facts) -> str:
    """fewer than ten groups changed: the result does not extend to new cases"""
    return write("Only {n:group} of cases changed. That is too few to estimate new cases.", n=facts["n_groups_changed"])


@warns("luck", must_act="author", subject="new_cases", strength="unknown")
def uneven_groups(facts: Facts) -> str:
    """a group is over five times as large as the median group.

    How reliable the interval for new cases is then was not measured
    """
    return (
        "One group of cases is over five times as large as the median group. The interval for new cases may be wrong "
        "then."
    )


@warns("luck", must_act="author", subject="new_cases", strength="unknown")
def few_groups(facts: Facts) -> str:
    """the cases are from fewer than ten groups, so there is no interval for new cases"""
    return write("The cases are in {n:group}. An interval for new cases takes ten.", n=facts["n_groups"])


@warns("noise", must_act="author", subject="resolution")
def few_cases(facts: Facts) -> str:
    """below 200 cases: the points of one case; below 50: that error rates are higher than promised"""
    text = f"One case is {points(100 / facts['n_judged'])} points here."
    few = f" With fewer than {PROMISED_FROM} cases, a wrong verdict is likelier than usual."
    return text if facts["n_judged"] >= PROMISED_FROM else f"{text}{few}"


@warns("noise", must_act="author", subject="resolution")
def coarse(facts: Facts) -> str:
    """the verdict is open, and the resolution is above the tolerance: then even a good candidate often is"""
    return write(
        "{look} repeats are often too few to rule out a drop of {tolerance}. Even a good candidate then ends "
        "inconclusive.",
        look=facts["look"],
        tolerance=limit_points(facts["tolerance"]),
    )


@warns("how", must_act="signer", subject="change")
def worth_a_look(facts: Facts) -> str:
    """an advisory suite changed by more than its noise explains"""
    return f"The score changed by {signed(facts['difference'])} points, more than noise explains. Look at its cases."


@warns("answers", must_act="signer", subject="stack")
def baseline_expired(facts: Facts) -> str:
    """the stack is judged, and its rotation is why the baseline expired"""
    return expired_baseline(facts)


@warns("answers", must_act="operator", subject="pins")
def pins_broken(facts: Facts) -> str:
    """a run was not decoded as its profile requires"""
    pins = facts["pins"]
    more = f" and {len(pins) - PINS_NAMED} more" if len(pins) > PINS_NAMED else ""
    broken = f"{', '.join(pins[:PINS_NAMED])}{more}"
    return f"{_who(facts)} broke pins of its profile: {broken}. So its answers may vary more than the profile promises."


@warns("answers", must_act="operator", subject="backends")
def several_buckets(facts: Facts) -> str:
    """several buckets answered a run: the share and the score of each"""
    # buckets: [share, backend, batch class, points or None] of each, the largest share first.
    parts = []
    for share, backend, batch_class, score in facts["buckets"]:
        scored = ", no score of its own" if score is None else f", {points(score)} points"
        parts.append(f"{100 * share:.0f} % by backend {backend} ({name_batching(batch_class)}{scored})")
    return f"{_who(facts)} was answered by {len(parts)} buckets, each scored separately: {', '.join(parts)}."


@warns("answers", must_act="operator", subject="identity", strength="unknown")
def unvouched(facts: Facts) -> str:
    """responses whose engine's self-check no longer gave the same bits"""
    return write(
        "{who} has {n:response} from after a failed self-check of the engine. Run {it} again.",
        who=_who(facts),
        n=facts["n"],
        it="it" if facts["n"] == 1 else "them",
    )


ENDED = {"filtered": "stopped by a content filter", "refused": "refused by the model"}


@warns("answers", must_act="author", subject="endings")
def truncated(facts: Facts) -> str:
    """responses that were cut inside their thinking, and so score 0"""
    text = "{who} has {n:response} cut inside the thinking{scored}. Raise max_tokens."
    scored = "" if facts["is_log"] else write(", which {n:scores|score} 0", **facts)
    return write(text, who=_who(facts), n=facts["n"], scored=scored)


@warns("answers", must_act="author", subject="endings")
def endings_differ(facts: Facts) -> str:
    """more answers of one side were [cut, filtered, refused or
    empty](docs/imports.md#tool-calls-and-endings)
    """
    text = "{who} has {n:,} of {total:answer} {how}. The other side has {n_other:,} of {total_other:,}."
    return write(text, **facts, who=_who(facts), how=ENDED.get(facts["ending"], facts["ending"]))


@warns("answers", must_act="author", subject="endings")
def prompts_filtered(facts: Facts) -> str:
    """a provider's filter refused prompts.

    Those refused on both sides are left out; those refused on one side are missing answers
    """
    if facts["is_both"]:
        return write("The providers of both sides refused {n:prompt}. The verdict leaves {n:it|them} out.", **facts)
    return write(
        "{who} lacks {n:prompt} that its provider refused. The other side has answers.", **facts, who=_who(facts)
    )


@warns("answers", must_act="operator", subject="sampling")
def not_greedy(facts: Facts) -> str:
    """a run should have decoded greedily, but its tokens show that it did not.

    Its repeats are judged as samples
    """
    return write(
        "{who} was not greedy. At temperature 0, {n:,} of {total:answer} {n:has|have} a less likely token. Its repeats "
        "count as samples.",
        **facts,
        who=_who(facts),
    )


@warns("answers", must_act="operator", subject="computation")
def two_computations(facts: Facts) -> str:
    """some responses of a run are outliers within their case: another build probably answered
    (docs/divergence.md#strays)
    """
    return write(
        "{who} has {n:outlier response}, {distance:nats_rounded} from the others of {n:its|their} case. Another build "
        "probably answered. See its page.",
        **facts,
        who=_who(facts),
    )


@warns("noise", must_act="operator", subject="computation", strength="allows")
def computation_apart(facts: Facts) -> str:
    """one bucket answered both sides, but they differ more than repeats of one side; not interleaved
    (docs/verdict.md#the-rules-in-order)
    """
    return write(
        "One backend answered both sides, but their logprobs differ by {shift:nats_rounded} more than repeats do. Load "
        "may explain that. Run both sides again, alternating.",
        **facts,
    )


@warns("noise", must_act="operator", subject="batching")
def unsteady(facts: Facts) -> str:
    """repeats of a run are not the same to the bit, though its batch class gives the same bits each time
    (docs/divergence.md#strays)
    """
    return write(
        "{who} has repeats with different bits in {n_apart:,} of {n_cases:case}. {batched}, repeats should give the "
        "same bits. No fingerprint shows why these differ.",
        **facts,
        who=_who(facts),
        batched=capital(render_batching(facts["batch_class"])),
    )


@warns("noise", must_act="operator", subject="batching", strength="unknown")
def uncertified(facts: Facts) -> str:
    """an `invariant` run's node has no [determinism certificate](docs/probes.md#determinism).

    Judged again once one is issued or revoked. If it is all that prevents `ship`, this is the
    [reason](docs/verdict.md#the-rules-in-order)
    """
    return f"{_who(facts)} ran under profile invariant on {listed(facts['hosts'])} without a determinism certificate."


@warns("how", must_act=None, subject="batching", strength="unknown")
def imported(facts: Facts) -> str:
    """a run was read from another tool's log"""
    return f"{_who(facts)} is from another tool's log. Its batching is unknown."


@warns("how", must_act=None, subject="identity", strength="unknown")
def reported(facts: Facts) -> str:
    """an external server answered a run: its identity is self-reported"""
    return f"{_who(facts)} is from an external server. Its identity is self-reported, its batching unknown."


@warns("noise", must_act="author", subject="batching")
def rough_profile(facts: Facts) -> str:
    """a run was batched as cases came"""
    return f"{_who(facts)} was batched as cases came. Repeats may differ."


@warns("how", must_act=None, subject="repeats")
def repeats_left_out(facts: Facts) -> str:
    """repeats that were cancelled or failed"""
    text = "{who} has {n:repeat} that {n:was|were} cancelled or failed. The verdict leaves {n:it|them} out."
    return write(text, **facts, who=_who(facts))


@warns("noise", must_act="author", subject="noise", strength="unknown")
def noise_unmeasured(facts: Facts) -> str:
    """a single repeat measures no noise"""
    return f"{_who(facts)} has one repeat, so its noise is not measured."


@warns("noise", must_act="author", subject="noise")
def one_process(facts: Facts) -> str:
    """one engine process decoded all repeats: the noise does not include what a restart changes"""
    return write(
        "{who} has {n_repeats} repeats from one engine process. Its noise does not include restarts.",
        **facts,
        who=_who(facts),
    )


@warns("luck", must_act="signer", subject="candidates", strength="allows")
def candidates_tried(facts: Facts) -> str:
    """how many candidates were judged against this baseline.

    Of twenty that are no better, expect one to look better by chance
    """
    # n: how many runs were judged against the baseline, `run`, so far; candidates: the last of them, in order.
    return write(
        "{n} candidates were judged against run {run} so far ({more}{named}). The more you try, the likelier a lucky "
        "one.",
        **facts,
        more=f"the last {len(facts['candidates'])}: " if facts["n"] > len(facts["candidates"]) else "",
        named=", ".join(f"run {run}" for run in facts["candidates"]),
    )


@warns("answers", must_act="signer", subject="policy")
def policy_changed(facts: Facts) -> str:
    """the same two runs were judged before with other settings: both tolerances and verdicts"""
    # before: [release, policy, tolerance, verdict] of each, oldest first.
    before = "; ".join(
        f"release {release} under {policy}, tolerance {limit_points(tolerance)}: {verdict_name(verdict)}"
        for release, policy, tolerance, verdict in facts["before"]
    )
    text = f"The same two runs were judged before under another policy ({before})."
    return f"{text} This release's tolerance is {limit_points(facts['tolerance'])}."


@warns("answers", must_act="signer", subject="waiver")
def waived_baseline(facts: Facts) -> str:
    """the baseline itself shipped under a waiver, and the waiver's end date"""
    return write(
        "The baseline, run {run}, shipped under a waiver by {person} until {until} (release {release}).", **facts
    )


def _left_out(facts: Facts) -> str:
    """Say which answers are left out because they are no samples, if enough others remain."""
    text = f"{count_left_out(facts)}. The verdict leaves {'it' if left_out_is_one(facts) else 'them'} out."
    n = facts["left_out"]["n_cases"]
    return f"{text} {write('{n:case} {n:has|have} no other answer.', n=n)}" if n else text


def _load_of(name: str, side: Facts) -> str:
    """Describe one side's batches or calls in flight: the median, and the 10th to 90th percentile."""
    spread = f", 80 % of responses within {side['low']}–{side['high']}" if side["low"] != side["high"] else ""
    alone = f", {percent(side['alone'], 0)} alone" if side["alone"] else ""
    return f"{name}: median {side['median']}{spread}{alone}"


def _who(facts: Facts) -> str:
    return f"The {facts['side']}, run {facts['run']},"
