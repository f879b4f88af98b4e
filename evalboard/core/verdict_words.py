"""The sentences of a verdict: numbers in points with one decimal, their spread, and what to do about them."""

from collections.abc import Iterable, Mapping, Sequence

from evalboard.core import noise
from evalboard.core.evidence import Change, Evidence
from evalboard.core.gate import Side
from evalboard.core.settle import Settling
from evalboard.core.verdict_names import verdict_name

MINUS = "−"
MOST_DIGITS = 3
CAME = {"cached": "out of a cache", "fallback": "after a fallback"}  # by the marks of core.live_answers.NO_DRAW


def points(value: float, digits: int = 1) -> str:
    """ "80.2"; a typographic minus, and never one before a zero."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS)


def signed(value: float, digits: int = 1) -> str:
    """ "+1.2", "−0.6", "0.0"."""
    text = points(value, digits)
    return text if text.startswith(MINUS) or float(text) == 0 else f"+{text}"


def span(low: float, high: float, line: float | None = None) -> str:
    """ "[−1.1, −0.1]"; more decimals where an end would read like a line that it is not on."""
    digits = _digits((low, high), line)
    return f"[{signed(low, digits)}, {signed(high, digits)}]"


def ranged(side: Side) -> str:
    """ "80.2 (79.8–80.6 over 5 repeats)"."""
    if side.score is None:
        return "no score"
    if side.range is None:  # no case has a score in every repeat
        return points(side.score)
    if len(side.points) == 1:
        return f"{points(side.score)} (1 repeat)"
    low, high = side.range
    if low == high:
        return f"{points(side.score)} (each of {len(side.points)} repeats)"
    return f"{points(side.score)} ({points(low)}–{points(high)} over {len(side.points)} repeats)"


def counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listed(parts: Sequence[str], last: str = "and") -> str:
    """ "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def scores(suite: str, candidate: Side, baseline: Side) -> str:
    return f"{suite} scored {ranged(candidate)} against {ranged(baseline)}."


def where(evidence: Evidence, change: Change) -> str:
    """The change, its interval and the interval's level: what a claim about it rests on, without a full stop."""
    found = span(change.low, change.high, -evidence.policy.tolerance_points)
    return f"{signed(change.found.difference)} points, in {found} ({percent(change.level)} interval)"


def within_tolerance(evidence: Evidence, change: Change) -> str:
    return f"{_on_these(evidence)} it is no worse than the {accepted(evidence)}: {where(evidence, change)}."


def better(evidence: Evidence, change: Change) -> str:
    return f"{_on_these(evidence)} it is better than the baseline: {where(evidence, change)}."


def small_real_drop(evidence: Evidence, change: Change) -> str:
    text = f"{_on_these(evidence)} it is worse than the baseline, but no worse than the {accepted(evidence)}"
    return f"{text}: {where(evidence, change)}."


def regression(evidence: Evidence, change: Change) -> str:
    n, n_fixed = change.cases.n_broken, change.cases.n_fixed
    fixed = f"{n_fixed:,} were" if n_fixed > 1 else "1 was" if n_fixed else "none was"
    text = f"{_on_these(evidence)} it is worse than the {accepted(evidence)}: {where(evidence, change)}."
    return f"{text} {counted(n, 'case')} broke and {fixed} fixed." if n else text


def not_settled(evidence: Evidence, change: Change, settling: Settling) -> str:
    text = f"{_on_these(evidence)} it may be worse than the {accepted(evidence)}, or not: {where(evidence, change)}."
    return f"{text} {what_settles(evidence, settling)}"


def what_settles(evidence: Evidence, settling: Settling) -> str:
    """What more repeats are worth, as a chance that was checked against what came of it (docs/verdict.md)."""
    last = evidence.policy.looks[-1]
    if settling.look is not None:
        return f"{settling.look} repeats a side settle it {in_ten(settling.chance)}."
    if evidence.look == last:
        return f"No more repeats are looked at: {last} a side are the last look."
    return f"More repeats will hardly settle it: up to {last} a side, {in_ten(settling.chance)}."


def in_ten(chance: float) -> str:
    """ "about 4 times in 10"; never sure, as what it rests on is an estimate."""
    if chance < 0.1:
        return "less than once in 10"
    if chance >= 0.95:
        return "more than 9 times in 10"
    return f"about {round(10 * chance)} times in 10" if chance >= 0.15 else "about once in 10"


def suite_too_small(
    evidence: Evidence, change: Change, half_width: float, needed: Mapping[int, int], settling: Settling
) -> str:
    look = evidence.look
    digits = _digits((half_width,), evidence.policy.tolerance_points)
    n = evidence.n_cases_judged
    few = f"{counted(n, 'case')} {'is' if n == 1 else 'are'} too few"
    text = (
        f"{few}: even if none moved, {look} repeats leave ±{points(min(half_width, 100.0), digits)} points, more than "
        f"the {accepted(evidence)}. {cases_needed(needed)}"
    )
    return f"{text} The change is {signed(change.found.difference)} so far. {what_settles(evidence, settling)}"


def cases_needed(needed: Mapping[int, int]) -> str:
    (first, n_first), *rest = sorted(needed.items())
    others = [f"{n:,} at {look}" for look, n in rest]
    return f"It would take {listed([f'{n_first:,} cases at {first} repeats', *others], 'or')}."


def noisy(evidence: Evidence) -> str:
    """Why no regression is read from it, and how far 5 repeats scatter here with nothing changed."""
    parts = [f"the {name}'s range of {_range5(evidence, name)}" for name in evidence.noisy]
    guard = limit(evidence.policy.guard_points)
    verb = "is" if len(parts) == 1 else "are"
    wide = [_side(evidence, name).sd_points or 0.0 for name in evidence.noisy]
    text = f"{listed(parts)} {verb} wider than the guard of {guard}, so neither a drop nor a gain is read from it."
    scatter = f"Batched like this, 5 repeats scatter over about {points(noise.expected_range_points(max(wide)))} points"
    return f"{text[0].upper()}{text[1:]} {scatter} with nothing changed."


def too_few_repeats(evidence: Evidence) -> str:
    first = evidence.policy.looks[0]
    have = f"the candidate has {evidence.k_candidate} and the baseline {evidence.k_baseline}"
    text = f"A rough signal only: a verdict takes {first} repeats on each side, and {have}."
    change = evidence.change
    if change is None:
        return text
    difference = f"So far it is {where(evidence, change)}"
    if change.found.method is None:
        return f"{text} {difference} if every case that differs had moved by chance."
    return f"{text} {difference}."


def one_draw(evidence: Evidence) -> str:
    """Why the repeats of a side say nothing of its noise."""
    names = evidence.one_draw
    text = f"The repeats of the {' and of the '.join(names)} were sent one seed at T = {_temperature(evidence)}"
    text = f"{text}, so they are one draw: how far a score moves by chance is not known, and no verdict is taken."
    return f"{text} It takes repeats that each have a seed of their own, or none."


def sampled(evidence: Evidence) -> str:
    """Why a verdict over draws may be believed, and how sharp it is."""
    text = f"Sampled at T = {_temperature(evidence)}, so that a repeat is a draw and its range no alarm"
    ours, theirs = evidence.draws_baseline.seed, evidence.draws_candidate.seed
    if evidence.share_seeds:
        return f"{text}: both sides were drawn by seed {ours}, and each draw is held against that of the same seeds."
    why = "they share no seeds"
    if ours is not None and theirs is not None:
        why = f"seed {ours} against {theirs}" if ours != theirs else "their repeats are not the same ones"
    return f"{text}: the draws of the two sides are independent ({why}), and the interval has the luck of both in it."


def _temperature(evidence: Evidence) -> str:
    found = (evidence.draws_baseline.temperature, evidence.draws_candidate.temperature)
    return listed(list(dict.fromkeys(f"{value:g}" for value in found if value)))


def too_few_draws(evidence: Evidence) -> str:
    """Why nothing is decided where answers are no draws."""
    left_out = evidence.left_out
    text = f"{_left_out_counts(evidence)}; an answer that is no fresh one shows no noise"
    if left_out.is_look_lost:
        first = evidence.policy.looks[0]
        have = f"the candidate has {evidence.k_candidate} and the baseline {evidence.k_baseline}"
        return f"{text}, and of the {first} draws on each side that a verdict takes, {have}."
    cases = f"{counted(left_out.n_cases, 'case')} of {evidence.n_cases:,} {_has(left_out.n_cases)} no other"
    return f"{text}, and {cases} on one side: a verdict takes 99 % of them."


def left_out(evidence: Evidence) -> str:
    """The warning where answers are no draws, and enough others are."""
    text = f"{_left_out_counts(evidence)}; the verdict leaves them out"
    n = evidence.left_out.n_cases
    return f"{text}, and with them {counted(n, 'case')} that {_has(n)} no other answer." if n else f"{text}."


def incomplete(evidence: Evidence) -> str:
    n, missing = evidence.n_cases_missing, evidence.missing
    if not evidence.n_cases_judged:
        return f"No case has a score on both sides, so there is nothing to compare: {_missing_counts(evidence)}."
    if missing.low is None or missing.high is None or 100 * n > evidence.n_cases:
        share = f"{n:,} of {evidence.n_cases:,} cases ({100 * missing.share:.1f} %)"
        return f"{share} have no score on one side, and a verdict takes 99 % of them: {_missing_counts(evidence)}."
    found = span(missing.low, missing.high, -evidence.policy.tolerance_points)
    text = f"{_missing_counts(evidence)}, and they decide: as they turn out, the change lies anywhere in {found}"
    return f"{text[0].upper()}{text[1:]}, so it may be worse than the {accepted(evidence)}, or not."


def held_without(evidence: Evidence, *, is_decided: bool) -> str:
    """The warning where responses are missing; is_decided: and could not change the verdict."""
    missing = evidence.missing
    text = _missing_counts(evidence)
    text = f"{text[0].upper()}{text[1:]}"
    if not is_decided or missing.low is None or missing.high is None:
        return f"{text}."
    found = span(missing.low, missing.high, -evidence.policy.tolerance_points)
    return f"{text}; the verdict holds even if all of them went one way, which leaves {found}."


def noisy_bucket(evidence: Evidence) -> str:
    parts = [f"the {name} ranges over {_range5(evidence, name)}" for name in evidence.noisy]
    return f"Noisy bucket: {listed(parts)}."


def overdispersed(names: Iterable[str]) -> str:
    text = f"Repeats of the {' and of the '.join(names)} differ by more than flips of single cases explain"
    return f"{text}: look for routing, load, or a changed backend."


def repeats_kept(evidence: Evidence) -> str:
    have = f"The candidate has {evidence.k_candidate} repeats and the baseline {evidence.k_baseline}"
    later = [look for look in evidence.policy.looks if look > (evidence.look or 0)]
    rest = f"the others enter at {later[0]}" if later else "there is no later look"
    return f"{have}; the first {evidence.look} of each decide, and {rest}."


def reach_wide(low: float) -> str:
    return f"For other cases like these, a drop of {points(-low)} points cannot be ruled out."


def concentrated(n_groups: int) -> str:
    return f"The change is concentrated in {counted(n_groups, 'group')}: it says nothing about other cases."


def one_case(evidence: Evidence) -> str:
    return f"One case is worth {points(100 / evidence.n_cases_judged)} points here."


def coarse(evidence: Evidence, change: Change) -> str:
    resolved = f"{evidence.look} repeats on these cases resolve a change of {points(change.resolution_points)} points"
    return f"{resolved}, more than the {accepted(evidence)}: a candidate that is no worse often stays open."


def one_of_several(text: str, n_gates: int) -> str:
    alone = f"Alone this would be {verdict_name('no_ship')}"
    return f"{alone}; with {n_gates} suites looked at it is not enough (Holm's rule). {text}"


def worth_a_look(difference: float) -> str:
    return f"Worth a look: it changed by {signed(difference)} points, more than its noise explains."


def headline(verdicts: Sequence[tuple[str, str]]) -> str:
    """Say what each gate that decides came to, where there is more than one: (suite, verdict)."""
    parts = [f"{suite} {verdict_name(verdict)}" for suite, verdict in verdicts]
    return f"The {len(parts)} suites that decide: {listed(parts)}."


def limit(value: float) -> str:
    """A number that people chose: one decimal, or all that they gave."""
    return points(value) if round(value, 1) == value else f"{value:g}".replace("-", MINUS)


def accepted(evidence: Evidence) -> str:
    """ "1.0 point you accept"."""
    tolerance = evidence.policy.tolerance_points
    return f"{limit(tolerance)} {'point' if tolerance == 1 else 'points'} you accept"


def percent(level: float) -> str:
    """ "94 %", "96.6 %"."""
    return f"{round(100 * level, 1):g} %"


def _on_these(evidence: Evidence) -> str:
    n = evidence.n_cases_judged
    return "On this case" if n == 1 else f"On these {n:,} cases"


def _side(evidence: Evidence, name: str) -> Side:
    return evidence.baseline if name == "baseline" else evidence.candidate


def _range5(evidence: Evidence, name: str) -> str:
    """A range as the guard reads it."""
    side = _side(evidence, name)
    width = side.range5_points or 0.0
    digits = _digits((width,), evidence.policy.guard_points)
    n = len(side.points)
    over = f"over {n} repeats" if n <= 5 else f"over 5 of {n} repeats"
    return f"{points(width, digits)} points {over}"


def _missing_counts(evidence: Evidence) -> str:
    missing = evidence.missing
    counts = [("candidate", missing.n_candidate), ("baseline", missing.n_baseline)]
    parts = [f"{counted(n, 'response')} of the {name}" for name, n in counts if n]
    verb = "is" if missing.n_candidate + missing.n_baseline == 1 else "are"
    return f"{listed(parts)} {verb} missing" if parts else "no response came"


def _left_out_counts(evidence: Evidence) -> str:
    """ "3,200 responses of the candidate came out of a cache and 4 after a fallback"."""
    parts = []
    for name, counts in (("candidate", evidence.left_out.candidate), ("baseline", evidence.left_out.baseline)):
        first, *more = [(n, CAME[mark]) for mark, n in counts.items()] or [(0, "")]
        if first[0]:
            rest = [f"{n:,} {came}" for n, came in more]
            parts.append(listed([f"{counted(first[0], 'response')} of the {name} came {first[1]}", *rest]))
    return listed(parts)


def _has(n: int) -> str:
    return "has" if n == 1 else "have"


def _digits(values: Sequence[float], line: float | None) -> int:
    """One decimal, or as many more as keep a value from reading like a line that it is not on."""
    beside = [value for value in values if line is not None and value != line]
    for digits in range(1, MOST_DIGITS):
        if all(points(value, digits) != points(line or 0.0, digits) for value in beside):
            return digits
    return MOST_DIGITS
