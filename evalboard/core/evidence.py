"""What two runs of one suite say, before any rule is asked: each side by itself, the change, what is missing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core import noise, paired, reach, settle
from evalboard.core.comparability import STEADY_BATCHES
from evalboard.core.gate import Changed, Missing, Question, Reach, Scores, Side, Span
from evalboard.core.paired import Estimate, Noise
from evalboard.core.policy import PolicySettings

LEAN_ALPHA = 0.05  # of an interval before the first look, which decides nothing
MOST_LISTED = 1000  # changed cases kept by name; the counts are of all

Bools = NDArray[np.bool_]

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
class Evidence:
    """look: the repeats of each side that enter, None before the first look, when all do. k_*: those there are.

    n_cases_missing: cases without a score on one side. change: None where no case has a score on both sides.
    noisy: the sides whose range is over the policy's guard. is_steady: neither side's batching moves a bit.
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
    change: Change | None
    noisy: tuple[str, ...]
    is_steady: bool

    @property
    def n_cases_judged(self) -> int:
        return self.n_cases - self.n_cases_missing

    @property
    def k(self) -> int:
        return min(self.k_baseline, self.k_candidate)


def find_evidence(question: Question, policy: PolicySettings, *, is_comparable: bool) -> Evidence:
    """Read both sides. A side that several buckets served has no score, and no change is read across a block."""
    ours, theirs = _with_answers(question.baseline), _with_answers(question.candidate)
    k_ours, k_theirs = ours.shape[1], theirs.shape[1]
    look = settle.look_at(policy, min(k_ours, k_theirs))
    if look is not None:
        ours, theirs = ours[:, :look], theirs[:, :look]
    has_both = _has_score(ours) & _has_score(theirs)
    n_judged = int(np.count_nonzero(has_both))
    change = None
    if is_comparable and n_judged:
        change = _change(question, has_both, ours[has_both], theirs[has_both], policy, look)
    sides = []
    for scores, asked in ((ours, question.asked_baseline), (theirs, question.asked_candidate)):
        cases = has_both if change is not None else _has_score(scores)
        sides.append(UNKNOWN_SIDE if len(asked.served) > 1 else _side(scores[cases]))
    return Evidence(
        policy=policy,
        n_cases=len(question.case_ids),
        n_cases_missing=len(question.case_ids) - n_judged,
        look=look,
        k_baseline=k_ours,
        k_candidate=k_theirs,
        baseline=sides[0],
        candidate=sides[1],
        missing=_missing(ours, theirs, len(question.case_ids) - n_judged, change),
        change=change,
        noisy=tuple(
            name
            for name, scores in (("baseline", ours), ("candidate", theirs))
            if change is not None and noise.is_range5_over(paired.whole(scores[has_both]), policy.guard_points)
        ),
        is_steady=all(
            served.batch_class in STEADY_BATCHES
            for asked in (question.asked_baseline, question.asked_candidate)
            for served in asked.served
        ),
    )


def _with_answers(scores: Scores) -> Scores:
    """The repeats in which any case has a score: one that never ran is none."""
    has_answers = ~np.isnan(scores).all(axis=0)
    return scores if has_answers.all() else scores[:, has_answers]


def _has_score(scores: Scores) -> Bools:
    return np.asarray(~np.isnan(scores).all(axis=1))


def _change(
    question: Question, has_both: Bools, ours: Scores, theirs: Scores, policy: PolicySettings, look: int | None
) -> Change:
    measured = paired.measure(ours, theirs)
    found = paired.with_noise(paired.difference_points(ours, theirs), measured)
    alpha = LEAN_ALPHA if look is None else policy.alpha(look)
    half = found.half_width(alpha)
    judged = np.flatnonzero(has_both).tolist()
    ids, groups = [question.case_ids[case] for case in judged], [question.groups[case] for case in judged]
    moves = noise.case_means(theirs) - noise.case_means(ours)
    return Change(
        found=found,
        measured=measured,
        alpha=alpha,
        low=found.difference - half,
        high=found.difference + half,
        reach=reach.find_reach(moves, groups),
        resolution_points=paired.resolution_points(measured, alpha),
        cases=_changed(ids, ours, theirs),
    )


def _changed(ids: list[str], ours: Scores, theirs: Scores) -> Changed:
    fixed, broken = (sorted(ids[case] for case in cases.tolist()) for cases in paired.changed(ours, theirs))
    is_unstable = (noise.within_case_variances(ours) > 0) | (noise.within_case_variances(theirs) > 0)
    return Changed(
        n_fixed=len(fixed),
        n_broken=len(broken),
        n_unstable=int(np.count_nonzero(is_unstable)),
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


def _missing(ours: Scores, theirs: Scores, n_cases_missing: int, change: Change | None) -> Missing:
    """What is missing, and the ends that the interval would have if the missing went all one way, then the other."""
    n_ours, n_theirs = (int(np.count_nonzero(np.isnan(side))) for side in (ours, theirs))
    low, high = None, None
    if change is not None and (n_ours or n_theirs):
        low = _interval(_filled(ours, 1.0), _filled(theirs, 0.0), change.alpha)[0]
        high = _interval(_filled(ours, 0.0), _filled(theirs, 1.0), change.alpha)[1]
    share = n_cases_missing / len(ours) if len(ours) else 0.0
    return Missing(n_baseline=n_ours, n_candidate=n_theirs, share=share, low=low, high=high)


def _interval(ours: Scores, theirs: Scores, alpha: float) -> Span:
    found = paired.estimate(ours, theirs)
    half = found.half_width(alpha)
    return found.difference - half, found.difference + half


def _filled(scores: Scores, score: float) -> Scores:
    return np.where(np.isnan(scores), score, scores)
