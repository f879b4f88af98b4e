"""Two sides paired by case: the difference of their scores, and the interval that its noise leaves.

Scores are float64[n_cases, k] as in noise, each side with its own k, cases in one order; every case has a score on
both sides. Everything given out is in points. No result depends on the order of cases or repeats, to the bit.

Sampled sides may share the seeds of their draws (evalboard.core.draws): repeat r of one then stands against repeat r of
the other, and the noise of the difference is that of the draws' own differences.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalboard.core import noise, quantiles

MOVED_AS_A_WHOLE = 1.25  # run scores that scatter this much more than flips explain are noise of their own
BORROWED = 1.25  # on the variance of a side that has only one repeat, taken from the other side's
OUTCOMES = ("broken", "fixed", "unstable")
CHANGED = 0.6  # of a score; less is what a case at 3 of 5 against 2 of 5 does by chance
ROUNDING = 1e-9

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of a difference over n_cases; k_*: repeats of each side, draws_*: scores of a case, in harmonic mean.

    flips_*: Σ s² over the cases of a side, None where no case has two scores. runs_*: the variance of a side's run
    scores, as fractions, None with fewer than two repeats. unmeasured: Σ d² over the cases, for one repeat on both.
    flips_shared, runs_shared: the same two of the differences draw by draw, where both sides share the seeds.
    """

    n_cases: int
    k_baseline: int
    k_candidate: int
    draws_baseline: float
    draws_candidate: float
    flips_baseline: float | None
    flips_candidate: float | None
    runs_baseline: float | None
    runs_candidate: float | None
    unmeasured: float
    flips_shared: float | None = None
    runs_shared: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A difference and its standard error. df: of Student's t where runs move as a whole, else None.

    method: `flips`, `seeds` for those of draws that share them, or `runs`; None where no repeat measured any noise.
    """

    difference: float
    se: float
    df: int | None
    method: str | None

    def half_width(self, alpha: float) -> float:
        level = 1 - alpha
        return self.se * (quantiles.z(level) if self.df is None else quantiles.t(level, self.df))

    def interval(self, alpha: float) -> tuple[float, float]:
        """(low, high) at 1 − 2 alpha; no difference of two scores lies beyond 100 points."""
        half = self.half_width(alpha)
        return max(self.difference - half, -100.0), min(self.difference + half, 100.0)

    def below(self, points: float) -> float:
        """The chance of a difference as low as this one, or lower, were the true one `points`."""
        score = (self.difference - points) / self.se
        return quantiles.normal_below(score) if self.df is None else quantiles.t_below(score, self.df)


def estimate(baseline: Scores, candidate: Scores, *, share_seeds: bool = False) -> Estimate:
    """The difference, candidate minus baseline, with what noise there is to judge it by."""
    measured = measure(baseline, candidate, share_seeds=share_seeds)
    return with_noise(difference_points(baseline, candidate), measured)


def with_noise(difference: float, measured: Noise) -> Estimate:
    flips, runs = se_flips(measured), se_runs(measured)
    if runs is not None and move_as_a_whole(measured):
        both = measured.k_baseline + measured.k_candidate - 2
        df = both if measured.flips_shared is None else measured.k_baseline - 1
        return Estimate(difference=difference, se=runs, df=df, method="runs")
    return Estimate(difference=difference, se=max(flips, runs or 0.0), df=None, method=_method(measured))


def measure(baseline: Scores, candidate: Scores, *, share_seeds: bool = False) -> Noise:
    """share_seeds: column r of both sides was drawn by the same seeds; both then have as many columns."""
    draws = candidate - baseline if share_seeds else None
    moves = noise.case_means(candidate) - noise.case_means(baseline)
    return Noise(
        n_cases=len(baseline),
        k_baseline=baseline.shape[1],
        k_candidate=candidate.shape[1],
        draws_baseline=_draws(baseline),
        draws_candidate=_draws(candidate),
        flips_baseline=_flips(baseline),
        flips_candidate=_flips(candidate),
        runs_baseline=_runs(baseline),
        runs_candidate=_runs(candidate),
        unmeasured=math.fsum((moves**2).tolist()),
        flips_shared=None if draws is None else _either_way(_flips, draws),
        runs_shared=None if draws is None else _either_way(_runs, draws),
    )


def at_repeats(measured: Noise, k: int) -> Noise:
    """The noise to expect with k repeats a side, from the one that was measured with fewer."""
    parts = []
    for own, other in (
        (measured.flips_baseline, measured.flips_candidate),
        (measured.flips_candidate, measured.flips_baseline),
    ):
        known = own if own is not None else other
        # One repeat on both sides: half of what moved between them is each side's.
        parts.append(known if known is not None else measured.unmeasured / 2)
    return replace(
        measured,
        k_baseline=k,
        k_candidate=k,
        draws_baseline=float(k),
        draws_candidate=float(k),
        flips_baseline=parts[0],
        flips_candidate=parts[1],
    )


def se_flips(measured: Noise) -> float:
    """The standard error from flips within cases.

    A side without repeats borrows the other's noise. With one repeat on both, every case that differs is taken to
    have moved by chance: more noise than there can be, so that a lean is never bolder than the data.
    """
    if measured.flips_shared is not None:
        k = measured.k_baseline
        return 100 * math.sqrt(max(measured.flips_shared, noise.SEEN_IN_NONE / k) / k) / measured.n_cases
    ours, theirs = measured.flips_baseline, measured.flips_candidate
    if ours is None and theirs is None:
        return 100 * math.sqrt(max(measured.unmeasured, noise.SEEN_IN_NONE)) / measured.n_cases
    parts = (
        _variance(ours, measured.draws_baseline, theirs, measured.draws_candidate),
        _variance(theirs, measured.draws_candidate, ours, measured.draws_baseline),
    )
    return 100 * math.sqrt(parts[0] + parts[1]) / measured.n_cases


def move_as_a_whole(measured: Noise) -> bool:
    """Whether run scores scatter so much more than flips explain that they are noise of their own."""
    runs = se_runs(measured)
    return runs is not None and runs > MOVED_AS_A_WHOLE * se_flips(measured)


def se_seen(measured: Noise) -> float:
    """The standard error from what repeats were seen to do, without the floor for what they never showed.

    It says how far the difference is to move with more repeats; what an interval must allow for is more.
    """
    runs = se_runs(measured) or 0.0
    if move_as_a_whole(measured):
        return runs
    flips = [(measured.flips_baseline, measured.draws_baseline), (measured.flips_candidate, measured.draws_candidate)]
    if measured.flips_shared is not None:
        flips = [(measured.flips_shared, float(measured.k_baseline))]
    return max(100 * math.sqrt(math.fsum((seen or 0.0) / k for seen, k in flips)) / measured.n_cases, runs)


def sd_of_runs(measured: Noise) -> tuple[float, float]:
    """The standard deviation of a run's score, baseline and candidate, from flips or from whole runs like the SE."""
    if move_as_a_whole(measured):
        variances = (measured.runs_baseline, measured.runs_candidate)
        scale = 100.0
    else:
        variances = (measured.flips_baseline, measured.flips_candidate)
        scale = 100 / measured.n_cases
    ours, theirs = (scale * math.sqrt(variance or 0.0) for variance in variances)
    return ours, theirs


def se_runs(measured: Noise) -> float | None:
    """The standard error from how whole runs scatter; None where a side has fewer than two."""
    if measured.runs_shared is not None:
        return 100 * math.sqrt(measured.runs_shared / measured.k_baseline)
    ours, theirs = measured.runs_baseline, measured.runs_candidate
    if ours is None or theirs is None:
        return None
    return 100 * math.sqrt(ours / measured.k_baseline + theirs / measured.k_candidate)


def resolution_points(measured: Noise, alpha: float) -> float:
    """The smallest change on these cases that this many repeats tell from flips, 4 times in 5."""
    return (quantiles.z(1 - alpha) + quantiles.z(noise.POWER)) * se_flips(measured)


def difference_points(baseline: Scores, candidate: Scores) -> float:
    """The mean over cases of the candidate's mean minus the baseline's.

    In integers for pass and fail, so that what cancels does so exactly.
    """
    n = len(baseline)
    if _is_pass_fail(baseline) and _is_pass_fail(candidate):
        n_ours, n_theirs = _n_scores(baseline), _n_scores(candidate)
        share = math.lcm(*np.unique(n_ours).tolist(), *np.unique(n_theirs).tolist())
        passed, passed_too = (np.nansum(side, axis=1).astype(np.int64) for side in (baseline, candidate))
        total = int((passed_too * (share // n_theirs) - passed * (share // n_ours)).sum())
        return 100 * total / (share * n)
    return 100 * math.fsum((noise.case_means(candidate) - noise.case_means(baseline)).tolist()) / n


def mean_points(scores: Scores) -> float:
    """A side's score: the mean over a case's repeats, then over cases."""
    return 100 * math.fsum(noise.case_means(scores).tolist()) / len(scores)


def changed(baseline: Scores, candidate: Scores) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indexes of the cases that are fixed and of those that are broken: their mean moved by at least CHANGED."""
    moves = noise.case_means(candidate) - noise.case_means(baseline)
    return np.flatnonzero(moves >= CHANGED - ROUNDING), np.flatnonzero(moves <= ROUNDING - CHANGED)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Indexes of cases, int64: broken and fixed, the furthest moved first; unstable on either side, the most first.

    A case may be broken, or fixed, and unstable too. This is the one rule for how many there are.
    """

    broken: NDArray[np.int64]
    fixed: NDArray[np.int64]
    unstable: NDArray[np.int64]


def find_outcomes(baseline: Scores, candidate: Scores) -> Outcomes:
    fixed, broken = changed(baseline, candidate)
    moves = np.abs(noise.case_means(candidate) - noise.case_means(baseline))
    spread = np.fmax(noise.within_case_variances(baseline), noise.within_case_variances(candidate))
    return Outcomes(
        broken=_largest_first(broken, moves),
        fixed=_largest_first(fixed, moves),
        unstable=_largest_first(np.flatnonzero(spread > 0), spread),
    )


def _largest_first(cases: NDArray[np.int64], sizes: Scores) -> NDArray[np.int64]:
    """Cases of one size stay in their order."""
    found: NDArray[np.int64] = cases[np.argsort(-np.round(sizes[cases], 9), kind="stable")]
    return found


def whole(scores: Scores) -> Scores:
    """The cases that have a score in every repeat: on these alone run scores differ only by what was answered."""
    has_all = ~np.isnan(scores).any(axis=1)
    return scores if has_all.all() else scores[has_all]


def _method(measured: Noise) -> str | None:
    if measured.flips_shared is not None:
        return "seeds"
    return None if measured.flips_baseline is None and measured.flips_candidate is None else "flips"


def _either_way(variance: Callable[[Scores], float | None], draws: Scores) -> float | None:
    """A variance of differences that is the same to the bit whichever side is taken from the other."""
    one, other = variance(draws), variance(-draws)
    return None if one is None or other is None else (one + other) / 2


def _flips(scores: Scores) -> float | None:
    """Σ s² over all cases; those without two scores are taken to be as noisy as the others."""
    rate = noise.disagreement_rate(scores)
    return None if rate is None else len(scores) * rate / 2


def _draws(scores: Scores) -> float:
    """The harmonic mean over cases of their scores: what a side's noise is divided by where some are missing."""
    n_scores = _n_scores(scores)
    return float(scores.shape[1]) if (n_scores == scores.shape[1]).all() else float(len(scores) / (1 / n_scores).sum())


def _variance(own: float | None, k: float, others: float | None, k_others: float) -> float:
    """n² times the variance of a side's mean score; k: the draws of each case."""
    if own is None:
        return BORROWED * max(others or 0.0, noise.SEEN_IN_NONE / k_others)
    return max(own, noise.SEEN_IN_NONE / k) / k


def _runs(scores: Scores) -> float | None:
    complete = whole(scores)
    if scores.shape[1] < 2 or not len(complete):
        return None
    # From each case's lowest score up: a case that never changes adds exactly nothing, whatever its score.
    return noise.run_variance(complete - complete.min(axis=1, keepdims=True))


def _n_scores(scores: Scores) -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.count_nonzero(~np.isnan(scores), axis=1).astype(np.int64)
    return found


def _is_pass_fail(scores: Scores) -> bool:
    return bool(((scores == 0) | (scores == 1) | np.isnan(scores)).all())
