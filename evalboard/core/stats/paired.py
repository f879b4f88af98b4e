"""Pair two sides by case: the difference of their scores, and the interval that its noise leaves.

Scores are float64[n_cases, k] as in noise, each side with its own k, cases in one order; every case has a score on
both sides. Everything given out is in points. No result depends on the order of cases or repeats, to the bit.

Sampled sides may share the seeds of their draws (core.profile.draws): repeat r of one is then compared with repeat r of
the other, and the noise of the difference is that of the draws' own differences.

Some cases may have more repeats than the others: they are then a stratum of their own (`Strata`), and the score stays
that of all cases, each with the weight of one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalboard.core.stats import noise, quantiles
from evalboard.core.stats.live_answers import Bools

MOVED_AS_A_WHOLE = 1.25  # run scores that scatter this much more than flips explain are noise of their own
BORROWED = 1.25  # on the variance of a side that has only one repeat, taken from the other side's

Scores = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Strata:
    """The cases with extra repeats. is_noisy: bool[n_cases], chosen before their scores were seen.

    n_whole: of the columns, the first that are repeats of all cases, on both sides; the others have scores of noisy
    cases alone.
    """

    is_noisy: Bools
    n_whole: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedNoise:
    """The noise of a difference over n_cases, by side.

    k_*: repeats. draws_*: harmonic mean of scores per case. flips_*: Σ s² over the cases of a side, None if no case has
    two scores. runs_*: the variance of a side's run scores, as fractions, None with fewer than two repeats. unmeasured:
    Σ d² over the cases, for one repeat on both. flips_shared, runs_shared: the same two of the differences repeat by
    repeat, if both sides share the seeds. unseen: divided by k, the lower limit of Σ s² (noise.SEEN_IN_NONE). strata:
    the noise of each stratum, the noisy one last; all other fields are then of the whole repeats.
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
    unseen: float = noise.SEEN_IN_NONE
    strata: tuple["PairedNoise", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceEstimate:
    """A difference and its standard error. df: of Student's t where runs move as a whole, else None.

    method: `flips`, `seeds` for those of draws that share them, or `runs`; None where no repeat measured any noise.
    """

    difference: float
    se: float
    df: int | None
    method: str | None

    def half_width(self, alpha: float) -> float:
        level = 1 - alpha
        return self.se * (
            quantiles.normal_quantile(level) if self.df is None else quantiles.student_quantile(level, self.df)
        )

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return (low, high) at 1 − 2 alpha, within −100 and 100 points."""
        half = self.half_width(alpha)
        return max(self.difference - half, -100.0), min(self.difference + half, 100.0)

    def below(self, points: float) -> float:
        """Return the chance of a difference as low as this one, or lower, were the true one `points`."""
        score = (self.difference - points) / self.se
        return quantiles.normal_cdf(score) if self.df is None else quantiles.student_cdf(score, self.df)


def estimate_difference(
    baseline: Scores,
    candidate: Scores,
    *,
    share_seeds: bool = False,
    unseen: float = noise.SEEN_IN_NONE,
    strata: Strata | None = None,
) -> DifferenceEstimate:
    """Return the difference, candidate minus baseline, with what noise there is to judge it by."""
    measured = measure_noise(baseline, candidate, share_seeds=share_seeds, unseen=unseen, strata=strata)
    return make_estimate(difference_points(baseline, candidate), measured)


def make_estimate(difference: float, measured: PairedNoise) -> DifferenceEstimate:
    flips, runs = se_flips(measured), se_runs(measured)
    if runs is not None and move_as_a_whole(measured):
        both = measured.k_baseline + measured.k_candidate - 2
        df = both if measured.flips_shared is None else measured.k_baseline - 1
        return DifferenceEstimate(difference=difference, se=runs, df=df, method="runs")
    se = max(flips, runs or 0.0)
    if measured.strata:
        # Runs are seen in the whole repeats alone: by how much they scatter more there, the strata are taken to.
        se = flips * max(1.0, (runs or 0.0) / se_flips(_without_strata(measured)))
    return DifferenceEstimate(difference=difference, se=se, df=None, method=_method(measured))


def measure_noise(
    baseline: Scores,
    candidate: Scores,
    *,
    share_seeds: bool = False,
    unseen: float = noise.SEEN_IN_NONE,
    strata: Strata | None = None,
) -> PairedNoise:
    """Measure the noise of a difference.

    share_seeds: column r of both sides has the same seeds; both have as many columns.
    """
    if strata is not None:
        whole = slice(None), slice(strata.n_whole)
        every = measure_noise(baseline[whole], candidate[whole], unseen=unseen)
        calm = ~strata.is_noisy, slice(strata.n_whole)
        parts = [(baseline[rows], candidate[rows]) for rows in (calm, (strata.is_noisy, slice(None)))]
        return replace(every, strata=tuple(measure_noise(*part, unseen=unseen) for part in parts if len(part[0])))
    draws = candidate - baseline if share_seeds else None
    moves = noise.average_cases(candidate) - noise.average_cases(baseline)
    return PairedNoise(
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
        unseen=unseen,
    )


def scale_noise(measured: PairedNoise, k: int, n_targeted: int = 0) -> PairedNoise:
    """Return the noise to expect with k repeats a side, from the one that was measured with fewer.

    n_targeted: of a measured noise with strata, the further repeats that the noisy one then has.
    """
    if measured.strata:
        *calm, noisy = measured.strata
        strata = (*(scale_noise(part, k) for part in calm), scale_noise(noisy, k + n_targeted))
        return replace(scale_noise(_without_strata(measured), k), strata=strata)
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


def se_flips(measured: PairedNoise) -> float:
    """Return the standard error from flips within cases.

    A side without repeats borrows the other's noise. With one repeat on both, every case that differs is taken to
    have moved by chance: more noise than there can be, so that a lean is never bolder than the data.
    """
    if measured.strata:
        return _add_strata(measured, se_flips)
    if measured.flips_shared is not None:
        k = measured.k_baseline
        return 100 * math.sqrt(max(measured.flips_shared, measured.unseen / k) / k) / measured.n_cases
    ours, theirs = measured.flips_baseline, measured.flips_candidate
    if ours is None and theirs is None:
        return 100 * math.sqrt(max(measured.unmeasured, measured.unseen)) / measured.n_cases
    parts = (
        _variance(ours, measured.draws_baseline, theirs, measured.draws_candidate, measured.unseen),
        _variance(theirs, measured.draws_candidate, ours, measured.draws_baseline, measured.unseen),
    )
    return 100 * math.sqrt(parts[0] + parts[1]) / measured.n_cases


def move_as_a_whole(measured: PairedNoise) -> bool:
    """Tell whether run scores vary so much more than flips explain that whole runs are the noise."""
    runs = se_runs(measured)
    return runs is not None and runs > MOVED_AS_A_WHOLE * se_flips(_without_strata(measured))


def se_seen(measured: PairedNoise) -> float:
    """Return the standard error from the observed noise, without the floor for unseen flips.

    It says how far the difference is to move with more repeats; what an interval must allow for is more.
    """
    runs = se_runs(measured) or 0.0
    if move_as_a_whole(measured):
        return runs
    if measured.strata:
        seen = _seen_flips(measured)
        return _add_strata(measured, _seen_flips) * (max(1.0, runs / seen) if seen else 1.0)
    return max(_seen_flips(measured), runs)


def _seen_flips(measured: PairedNoise) -> float:
    flips = [(measured.flips_baseline, measured.draws_baseline), (measured.flips_candidate, measured.draws_candidate)]
    if measured.flips_shared is not None:
        flips = [(measured.flips_shared, float(measured.k_baseline))]
    return 100 * math.sqrt(math.fsum((seen or 0.0) / k for seen, k in flips)) / measured.n_cases


def find_run_sds(measured: PairedNoise) -> tuple[float, float]:
    """Return the standard deviation of a run's score on each side, from flips or whole runs like the SE."""
    if move_as_a_whole(measured):
        variances = (measured.runs_baseline, measured.runs_candidate)
        scale = 100.0
    else:
        variances = (measured.flips_baseline, measured.flips_candidate)
        scale = 100 / measured.n_cases
    ours, theirs = (scale * math.sqrt(variance or 0.0) for variance in variances)
    return ours, theirs


def se_runs(measured: PairedNoise) -> float | None:
    """Return the standard error from how whole runs scatter; None where a side has fewer than two."""
    if measured.runs_shared is not None:
        return 100 * math.sqrt(measured.runs_shared / measured.k_baseline)
    ours, theirs = measured.runs_baseline, measured.runs_candidate
    if ours is None or theirs is None:
        return None
    return 100 * math.sqrt(ours / measured.k_baseline + theirs / measured.k_candidate)


def paired_resolution_points(measured: PairedNoise, alpha: float) -> float:
    """Return the smallest change on these cases that this many repeats tell from flips, 4 times in 5."""
    return (quantiles.normal_quantile(1 - alpha) + quantiles.normal_quantile(noise.POWER)) * se_flips(measured)


def difference_points(baseline: Scores, candidate: Scores) -> float:
    """Return the mean over cases of the candidate's mean minus the baseline's.

    In integers for pass and fail, so that what cancels does so exactly.
    """
    n = len(baseline)
    if noise.is_pass_fail(baseline) and noise.is_pass_fail(candidate):
        n_ours, n_theirs = _n_scores(baseline), _n_scores(candidate)
        share = math.lcm(*np.unique(n_ours).tolist(), *np.unique(n_theirs).tolist())
        passed, passed_too = (np.nansum(side, axis=1).astype(np.int64) for side in (baseline, candidate))
        total = int((passed_too * (share // n_theirs) - passed * (share // n_ours)).sum())
        return 100 * total / (share * n)
    return 100 * math.fsum((noise.average_cases(candidate) - noise.average_cases(baseline)).tolist()) / n


def average_points(scores: Scores) -> float:
    """Return a side's score: the mean over a case's repeats, then over cases."""
    return 100 * math.fsum(noise.average_cases(scores).tolist()) / len(scores)


def select_whole_cases(scores: Scores) -> Scores:
    """Return the cases with a score in every repeat, so that run scores differ only by answers."""
    has_all = ~np.isnan(scores).any(axis=1)
    return scores if has_all.all() else scores[has_all]


def _without_strata(measured: PairedNoise) -> PairedNoise:
    return replace(measured, strata=()) if measured.strata else measured


def _add_strata(measured: PairedNoise, se: Callable[[PairedNoise], float]) -> float:
    """Return the standard error over all cases from those of the strata, weighted by their cases."""
    return math.sqrt(math.fsum((part.n_cases * se(part)) ** 2 for part in measured.strata)) / measured.n_cases


def _method(measured: PairedNoise) -> str | None:
    if measured.flips_shared is not None:
        return "seeds"
    return None if measured.flips_baseline is None and measured.flips_candidate is None else "flips"


def _either_way(variance: Callable[[Scores], float | None], draws: Scores) -> float | None:
    """Return a variance of differences that is the same to the bit whichever side is taken from the other."""
    one, other = variance(draws), variance(-draws)
    return None if one is None or other is None else (one + other) / 2


def _flips(scores: Scores) -> float | None:
    """Σ s² over all cases; those without two scores are taken to be as noisy as the others."""
    rate = noise.disagreement_rate(scores)
    return None if rate is None else len(scores) * rate / 2


def _draws(scores: Scores) -> float:
    """Return the harmonic mean over cases of their number of scores."""
    n_scores = _n_scores(scores)
    if (n_scores == scores.shape[1]).all():
        return float(scores.shape[1])
    return len(scores) / math.fsum((1 / n_scores).tolist())  # exact: the order of cases changes no bit


def _variance(own: float | None, k: float, others: float | None, k_others: float, unseen: float) -> float:
    """n² times the variance of a side's mean score; k: the draws of each case."""
    if own is None:
        return BORROWED * max(others or 0.0, unseen / k_others)
    return max(own, unseen / k) / k


def _runs(scores: Scores) -> float | None:
    complete = select_whole_cases(scores)
    if scores.shape[1] < 2 or not len(complete):
        return None
    # From each case's lowest score up: a case that never changes adds exactly nothing, whatever its score.
    return noise.run_variance(complete - complete.min(axis=1, keepdims=True))


def _n_scores(scores: Scores) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = np.count_nonzero(~np.isnan(scores), axis=1).astype(np.int64)
    return counts
