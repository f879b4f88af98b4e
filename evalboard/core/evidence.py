"""What two runs of one suite say, before any rule is asked: each side by itself, the change, what is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalboard.core import draws, live_answers, noise, paired, reach, settle
from evalboard.core.comparability import STEADY_BATCHES
from evalboard.core.draws import Draws
from evalboard.core.gate import Changed, Missing, Question, Reach, Scores, Side, Span
from evalboard.core.live_answers import Bools, Drawn, Marks
from evalboard.core.paired import Estimate, Noise
from evalboard.core.policy import PolicySettings

LEAN_ALPHA = 0.05  # of an interval before the first look, which decides nothing
MOST_LISTED = 1000  # changed cases kept by name; the counts are of all

UNKNOWN_SIDE = Side(
    score=None,
    points=(),
    range=None,
    interval=None,
    sd_points=None,
    disagreement_rate=None,
    n_unstable=0,
    range5_points=None,
    is_overdispersed=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change between the two sides over the cases judged, in points; [low, high] at 1 − 2 alpha."""

    found: Estimate
    measured: Noise
    alpha: float
    low: float
    high: float
    reach: Reach | None
    resolution_points: float
    cases: Changed

    @property
    def level(self) -> float:
        return 1 - 2 * self.alpha


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Answers that are no draws (core.live_answers): of each side, the number with each mark that makes them so.

    n_cases: cases that have no draw on one side, for that reason. is_look_lost: with these answers there would be a
    look, and without them there is none.
    """

    baseline: Mapping[str, int]
    candidate: Mapping[str, int]
    n_cases: int
    is_look_lost: bool

    @property
    def n(self) -> int:
        return sum(self.baseline.values()) + sum(self.candidate.values())

    @property
    def code(self) -> str:
        """Why most of them are none: a name of core.live_answers.NO_DRAW."""
        return max(live_answers.NO_DRAW, key=lambda name: self.baseline.get(name, 0) + self.candidate.get(name, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """look: the repeats of each side that enter, None before the first look, when all do. k_*: the draws there are.

    n_cases_missing: cases without a draw that has a score on one side. left_out: answers that are no draws.
    change: None where no case has a score on both sides.
    noisy: the sides whose range is over the policy's guard, which is not asked of sampled runs. is_steady: neither
    side's batching moves a bit. draws_*: what the repeats that enter are; of one draw the first answer of each case
    enters. share_seeds: repeat r of one side has the seeds of repeat r of the other.
    """

    policy: PolicySettings
    n_cases: int
    n_cases_missing: int
    look: int | None
    k_baseline: int
    k_candidate: int
    baseline: Side
    candidate: Side
    missing: Missing
    left_out: LeftOut
    change: Change | None
    noisy: tuple[str, ...]
    is_steady: bool
    draws_baseline: Draws
    draws_candidate: Draws
    share_seeds: bool

    @property
    def is_sampled(self) -> bool:
        return self.draws_baseline.is_sampled or self.draws_candidate.is_sampled

    @property
    def one_draw(self) -> tuple[str, ...]:
        """The sides whose repeats are one draw, by name."""
        sides = (("baseline", self.draws_baseline), ("candidate", self.draws_candidate))
        return tuple(name for name, draws in sides if draws.is_one)

    @property
    def n_cases_judged(self) -> int:
        return self.n_cases - self.n_cases_missing

    @property
    def k(self) -> int:
        return min(self.k_baseline, self.k_candidate)


def find_evidence(question: Question, policy: PolicySettings, *, is_comparable: bool) -> Evidence:
    """Read both sides. A side that several buckets served has no score, and no change is read across a block."""
    side, drawn = read_side(question.baseline, question.marks_baseline, question.draws_baseline)
    side_too, drawn_too = read_side(question.candidate, question.marks_candidate, question.draws_candidate)
    both = (side, side_too)
    is_sampled = drawn.is_sampled or drawn_too.is_sampled
    if is_sampled:
        policy = policy.of_draws()
    look = _look(policy, both)
    entering = tuple(side.first(look) for side in both)
    ours, theirs = (side.scores for side in entering)
    drawn, drawn_too = (replace(each, repeats=each.repeats[:look]) for each in (drawn, drawn_too))
    share_seeds = draws.share_seeds(drawn, drawn_too)
    has_both = _has_score(ours) & _has_score(theirs)
    n_judged = int(np.count_nonzero(has_both))
    change = None
    if is_comparable and n_judged:
        change = _change(question, has_both, ours[has_both], theirs[has_both], policy, look, share_seeds=share_seeds)
    sides = []
    for scores, asked in ((ours, question.asked_baseline), (theirs, question.asked_candidate)):
        cases = has_both if change is not None else _has_score(scores)
        sides.append(UNKNOWN_SIDE if len(asked.served) > 1 else _side(scores[cases]))
    return Evidence(
        policy=policy,
        n_cases=len(question.case_ids),
        n_cases_missing=len(question.case_ids) - n_judged,
        look=look,
        k_baseline=both[0].n_draws,
        k_candidate=both[1].n_draws,
        baseline=sides[0],
        candidate=sides[1],
        missing=_missing(entering, len(question.case_ids) - n_judged, change, share_seeds=share_seeds),
        left_out=_left_out(question, entering, policy, look),
        change=change,
        noisy=tuple(
            name
            for name, scores in (("baseline", ours), ("candidate", theirs))
            if change is not None
            and not is_sampled
            and noise.is_range5_over(paired.whole(scores[has_both]), policy.guard_points)
        ),
        is_steady=all(
            served.batch_class in STEADY_BATCHES
            for asked in (question.asked_baseline, question.asked_candidate)
            for served in asked.served
        ),
        draws_baseline=drawn,
        draws_candidate=drawn_too,
        share_seeds=share_seeds,
    )


def read_side(scores: Scores, marks: Marks | None, drawn: Draws) -> tuple[Drawn, Draws]:
    """A side's repeats of draws with what they are; where all of them are one draw, that one."""
    side = live_answers.read(scores, marks)
    drawn = replace(drawn, repeats=tuple(drawn.repeats[at] for at in side.places if at < len(drawn.repeats)))
    return (side.as_one(), replace(drawn, repeats=drawn.repeats[:1])) if drawn.is_one else (side, drawn)


def _look(policy: PolicySettings, both: Sequence[Drawn]) -> int | None:
    """The latest look at which each side has as many draws among as many repeats."""
    look = settle.look_at(policy, min(side.n_draws for side in both))
    while look is not None and any(side.first(look).n_draws < look for side in both):
        look = settle.look_at(policy, look - 1)
    return look


def _left_out(question: Question, entering: Sequence[Drawn], policy: PolicySettings, look: int | None) -> LeftOut:
    asked = ((question.baseline, question.marks_baseline), (question.candidate, question.marks_candidate))
    counts = [live_answers.left_out_counts(scores, marks) for scores, marks in asked]
    ours, theirs = (
        _has_score(scores) & ~_has_score(side.scores) for (scores, _), side in zip(asked, entering, strict=True)
    )
    with_all = [live_answers.read(scores) for scores, _ in asked]
    return LeftOut(
        baseline=counts[0],
        candidate=counts[1],
        n_cases=int(np.count_nonzero(ours | theirs)),
        is_look_lost=look is None and _look(policy, with_all) is not None,
    )


def _has_score(scores: Scores) -> Bools:
    return np.asarray(~np.isnan(scores).all(axis=1))


def _change(
    question: Question,
    has_both: Bools,
    ours: Scores,
    theirs: Scores,
    policy: PolicySettings,
    look: int | None,
    *,
    share_seeds: bool,
) -> Change:
    measured = paired.measure(ours, theirs, share_seeds=share_seeds)
    found = paired.with_noise(paired.difference_points(ours, theirs), measured)
    alpha = LEAN_ALPHA if look is None else policy.alpha(look)
    low, high = found.interval(alpha)
    judged = np.flatnonzero(has_both).tolist()
    ids, groups = [question.case_ids[case] for case in judged], [question.groups[case] for case in judged]
    moves = noise.case_means(theirs) - noise.case_means(ours)
    return Change(
        found=found,
        measured=measured,
        alpha=alpha,
        low=low,
        high=high,
        reach=reach.find_reach(moves, groups),
        resolution_points=paired.resolution_points(measured, alpha),
        cases=_changed(ids, ours, theirs),
    )


def _changed(ids: list[str], ours: Scores, theirs: Scores) -> Changed:
    found = paired.find_outcomes(ours, theirs)
    fixed, broken = (sorted(ids[case] for case in cases.tolist()) for cases in (found.fixed, found.broken))
    return Changed(
        n_fixed=len(fixed),
        n_broken=len(broken),
        n_unstable=len(found.unstable),
        fixed=tuple(fixed[:MOST_LISTED]),
        broken=tuple(broken[:MOST_LISTED]),
    )


def _side(scores: Scores) -> Side:
    if not scores.size:
        return UNKNOWN_SIDE
    complete = paired.whole(scores)
    points = [noise.run_points(repeat) for repeat in complete.T]
    dispersion = noise.overdispersion(complete)
    return Side(
        score=paired.mean_points(scores),
        points=tuple(each for each in points if each is not None),
        range=noise.range_points(complete),
        interval=noise.measurement_interval(complete),
        sd_points=noise.sd_points(scores),
        disagreement_rate=noise.disagreement_rate(scores),
        n_unstable=noise.n_unstable(scores),
        range5_points=noise.range5_points(complete),
        is_overdispersed=dispersion is not None and dispersion < noise.OVERDISPERSED,
    )


def _missing(entering: Sequence[Drawn], n_cases_missing: int, change: Change | None, *, share_seeds: bool) -> Missing:
    """What is missing, and the ends that the interval would have if the missing went all one way, then the other."""
    ours, theirs = entering
    n_ours, n_theirs = (int(np.count_nonzero(side.is_missing)) for side in entering)
    low, high = None, None
    if change is not None and (n_ours or n_theirs):
        # A case whose answers are all left out stays out: nothing of it is missing.
        is_in = ~(ours.is_left_out.all(axis=1) | theirs.is_left_out.all(axis=1))
        # Never narrower than without them: each filled response counts as one more.
        worst, best = (
            _interval(_filled(ours, of_ours)[is_in], _filled(theirs, 1 - of_ours)[is_in], change.alpha, share_seeds)
            for of_ours in (1.0, 0.0)
        )
        low, high = min(worst[0], change.low), max(best[1], change.high)
    n_cases = len(ours.scores)
    share = n_cases_missing / n_cases if n_cases else 0.0
    return Missing(n_baseline=n_ours, n_candidate=n_theirs, share=share, low=low, high=high)


def _interval(ours: Scores, theirs: Scores, alpha: float, share_seeds: bool) -> Span:
    return paired.estimate(ours, theirs, share_seeds=share_seeds).interval(alpha)


def _filled(side: Drawn, score: float) -> Scores:
    return np.where(side.is_missing, score, side.scores)
