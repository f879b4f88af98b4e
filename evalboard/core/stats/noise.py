"""Measure how much a score varies if nothing changes, from one bucket's repeats (docs/verdict.md).

Scores are float64[n_cases, k], one column a repeat, each in [0, 1], NaN where the response is missing. Missing is
not zero: nothing here reads it as a score. No result depends on the order of cases or repeats, to the bit.
Intervals are (low, high) in points, within 0 to 100.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.bucket import VarianceParts
from evalboard.contract.run import Draws
from evalboard.core.stats import noise
from evalboard.core.stats.quantiles import beta_quantile, chi2_tail, normal_quantile

CONFIDENCE_LEVEL = 0.9  # of the intervals of one bucket's score
POWER = 0.8  # the chance with which a change of the size of the resolution is found
ELSEWHERE_ALPHA = 0.05  # for a statement about other cases there are no looks to share it among
ASSUMED_CHURN = 0.06  # cases that change their score either way from model to model, where no other run says
OVERDISPERSED_BELOW = 0.005  # asked of every side of every comparison: one in two hundred by chance
SEEN_IN_NONE = 3.0  # rule of three: what k repeats never showed still happens up to 3/k times, 95 times in 100
# The mean range of m draws from a normal distribution, in standard deviations.
MEAN_RANGE = {2: 1.128, 3: 1.693, 5: 2.326, 10: 3.078, 20: 3.735}

Scores = NDArray[np.float64]
Interval = tuple[float, float]


def run_points(scores: Scores, is_there: NDArray[np.bool_] | None = None) -> float | None:
    """Return a repeat's score in points; None unless every case of float64[n_cases] has a score.

    is_there: whether a case has an answer. Answers that their author left without a score are left out.
    """
    if is_there is not None:
        scores = scores[~(is_there & np.isnan(scores))]
    if not len(scores) or np.isnan(scores).any():
        return None
    return 100 * _total(scores) / len(scores)


def range_points(scores: Scores) -> tuple[float, float] | None:
    """Return the lowest and the highest run score in points; None unless every repeat is complete."""
    points = [run_points(repeat) for repeat in scores.T]
    known = [score for score in points if score is not None]
    if not known or len(known) < len(points):
        return None
    return min(known), max(known)


def disagreement_rate(scores: Scores) -> float | None:
    """Return D, the chance that two repeats of a case differ: twice the mean within-case variance.

    For graded scores the same formula, a mean squared difference. Taken over the cases with at
    least two scores; None where there is no such case.
    """
    variances = within_case_variances(scores)
    known = variances[~np.isnan(variances)]
    if not len(known):
        return None
    return 2 * math.fsum(known.tolist()) / len(known)


def sd_points(scores: Scores) -> float | None:
    """Return the standard deviation of a run's score from flips within cases: 100 · sqrt(D / 2n) points.

    Cases without two scores are taken to be as noisy as the others; None where no case has two.
    """
    rate = disagreement_rate(scores)
    return None if rate is None else 100 * math.sqrt(rate / (2 * len(scores)))


def count_unstable(scores: Scores) -> int:
    """Count the cases seen with two different scores: a lower bound on those that can have them."""
    return int(np.count_nonzero(_spans(scores) > 0))


def flip_variance(scores: Scores) -> float | None:
    """Return V1, the variance of a run's score as a fraction, from flips: max(Σ s², 3/k) / n².

    Zero flips seen are not zero noise, hence the floor. Cases without two scores are taken to be as noisy as the
    others; None where no case has two.
    """
    rate = disagreement_rate(scores)
    if rate is None:
        return None
    n, k = _shape(scores)
    return max(n * rate / 2, SEEN_IN_NONE / k) / n**2


def score_points(scores: Scores) -> float | None:
    """Return the mean of the run scores in points; None unless every repeat is complete."""
    if not scores.size or np.isnan(scores).any():
        return None
    return 100 * _total(scores) / scores.size


def measurement_interval(scores: Scores, *, level: float = CONFIDENCE_LEVEL) -> Interval | None:
    """Return the interval on these cases, mean ± z · sqrt(V1 / k); None below two whole repeats."""
    score, variance = score_points(scores), flip_variance(scores)
    if score is None or variance is None:
        return None
    half = 100 * normal_quantile((1 + level) / 2) * math.sqrt(variance / scores.shape[1])
    return max(score - half, 0.0), min(score + half, 100.0)


def reach_interval(scores: Scores, groups: Sequence[str] = (), *, level: float = CONFIDENCE_LEVEL) -> Interval | None:
    """Return the interval on other cases like these; None unless every case has a score."""
    if not scores.size or np.isnan(scores).all(axis=1).any():
        return None
    return reach_of_cases(average_cases(scores), groups, level=level)


def reach_of_cases(values: Scores, groups: Sequence[str] = (), *, level: float = CONFIDENCE_LEVEL) -> Interval:
    """Return the same from one value a case, float64[n_cases] in [0, 1].

    Wilson's interval with as many cases as would scatter by themselves like the values do (n_eff). Where every
    value is 0, or every one 1, Clopper and Pearson's bound, which no other score's interval goes beyond. `groups`: the
    group of each case, "" for none; cases of a group count as one draw.
    """
    n_cases = len(values)
    score = math.fsum(values.tolist()) / n_cases
    sums = _sums_by_group(values - score, groups)
    n, tail = len(sums), (1 - level) / 2
    all_pass, all_fail = beta_quantile(tail, n, 1), beta_quantile(1 - tail, 1, n)
    if score in (0.0, 1.0):
        return (100 * all_pass, 100.0) if score else (0.0, 100 * all_fail)
    variance = math.fsum(each**2 for each in sums) / n_cases**2
    if n > 1 and variance > 0:
        variance *= n / (n - 1)
    else:
        # No scatter was seen, but other cases may differ: add one at each end.
        variance = (score**2 + (1 - score) ** 2) / ((n + 1) * (n + 2))
    # Wilson's with n_eff = spread / variance, both sides of the fraction times the variance: neither end overflows.
    spread, width = score * (1 - score), normal_quantile(1 - tail)
    whole = spread + width**2 * variance
    middle = (spread * score + width**2 * variance / 2) / whole
    half = width * math.sqrt(variance * spread**2 + (width * variance / 2) ** 2) / whole
    return 100 * max(min(middle - half, all_pass), 0.0), 100 * min(max(middle + half, all_fail), 1.0)


def range5_points(scores: Scores) -> float | None:
    """Return the expected range of 5 repeats, in points, independent of k; None unless all are whole."""
    spread = range5(scores)
    return None if spread is None else float(100 * spread)


def range5(scores: Scores) -> Fraction | None:
    """Return the same as an exact part of 1, for limits that it may equal but not exceed.

    The mean range over all choices of 5 repeats; the plain range where there are no more than 5.
    """
    if not scores.size or np.isnan(scores).any():
        return None
    n, k = _shape(scores)
    # Counts for pass and fail, so that 8 cases of 800 are 1 point and no more; a rounded sum for graded scores.
    sums = sorted(Fraction(_total(repeat)) for repeat in scores.T)
    if k <= 5:
        return (sums[-1] - sums[0]) / n
    weights = [math.comb(j, 4) - math.comb(k - 1 - j, 4) for j in range(k)]
    weighed = sum((value * weight for value, weight in zip(sums, weights, strict=True)), Fraction(0))
    return weighed / (n * math.comb(k, 5))


def is_range5_over(scores: Scores, limit_points: float) -> bool | None:
    """Tell whether the 5-run-equivalent range is wider than a limit in points, at which it is not yet."""
    spread = range5(scores)
    return None if spread is None else 100 * spread > Fraction(repr(limit_points))


def expected_range_points(sd: float, n_runs: int = 5) -> float:
    """Return the mean range of n_runs scores with this standard deviation; n_runs is a key of MEAN_RANGE."""
    return MEAN_RANGE[n_runs] * sd


def overdispersion(*sides: Scores) -> float | None:
    """Return the chance that run scores differ as much as these if only flips within cases move them.

    Below OVERDISPERSED_BELOW runs move as a whole. Each side is a bucket's scores; None unless every repeat is
    complete and each side has two.
    """
    statistic, df = 0.0, 0
    for scores in sides:
        variance, n_more = flip_variance(scores), scores.shape[1] - 1
        if variance is None or score_points(scores) is None:
            return None
        statistic += n_more * run_variance(scores) / variance
        df += n_more
    return chi2_tail(statistic, df) if df else None


def run_variance(scores: Scores) -> float:
    """Return the sample variance of the run scores, as fractions; two complete repeats at the least."""
    sums = sorted(_total(repeat) for repeat in scores.T)
    rises = [value - sums[0] for value in sums]  # equal run scores have a variance of exactly 0
    mean = math.fsum(rises) / len(rises)
    return math.fsum((rise - mean) ** 2 for rise in rises) / (len(rises) - 1) / len(scores) ** 2


def resolution_points(scores: Scores, *, repeats: int, alpha: float) -> float | None:
    """Return the smallest change on these cases that `repeats` per side can detect.

    Both sides are assumed to be equally noisy. alpha: what the checkpoint at that many repeats may spend. None if noise
    is not measured.
    """
    variance = flip_variance(scores)
    if variance is None:
        return None
    return 100 * (normal_quantile(1 - alpha) + normal_quantile(POWER)) * math.sqrt(2 * variance / repeats)


def resolution_elsewhere_points(scores: Scores, *, repeats: int, churn: float = ASSUMED_CHURN) -> float | None:
    """Return the same for new cases like these, of which a share `churn` changes its score."""
    rate = disagreement_rate(scores)
    if rate is None:
        return None
    return (
        100
        * (normal_quantile(1 - ELSEWHERE_ALPHA) + normal_quantile(POWER))
        * math.sqrt((churn + rate / repeats) / len(scores))
    )


def measure_agreement(answers: NDArray[np.generic]) -> float | None:
    """Return the share of cases whose repeats all agree: scores or text digests, [n_cases, k, …].

    Of texts, TARr@k: it may be low where scores never move. Of scores, TARa@k. Of cases with a missing response
    nothing is said, so the caller leaves them out; None where none is left.
    """
    if not answers.size or answers.shape[1] < 2:
        return None
    is_same = (answers == answers[:, :1]).reshape(len(answers), -1).all(axis=1)
    return int(np.count_nonzero(is_same)) / len(answers)


def average_cases(scores: Scores) -> Scores:
    """Return float64[n_cases]: the mean of the scores that a case has, NaN where it has none."""
    n_passed = _n_passed(scores)
    if n_passed is not None and scores.size:
        return np.asarray(n_passed / scores.shape[1])
    n_scores = np.count_nonzero(~np.isnan(scores), axis=1)
    total = np.nansum(_ranked(scores), axis=1)
    return np.where(n_scores > 0, total / np.where(n_scores > 0, n_scores, 1), np.nan)


def is_pass_fail(scores: Scores) -> bool:
    """Tell whether every score that is there is 0 or 1."""
    return bool(((scores == 0) | (scores == 1) | np.isnan(scores)).all())


def within_case_variances(scores: Scores) -> Scores:
    """Return float64[n_cases]: the sample variance (ddof 1) of each case; NaN below two scores."""
    n_passed, k = _n_passed(scores), scores.shape[1]
    if n_passed is not None and len(scores) > k + 1:
        return np.asarray(_variances_by_passes(k)[n_passed])
    n_scores = np.count_nonzero(~np.isnan(scores), axis=1)
    ranked = _ranked(scores)
    # From the smallest score up, so that equal scores have a variance of exactly 0.
    rise = ranked - ranked[:, :1]
    divisor = np.where(n_scores > 1, n_scores, 2)
    mean = np.nansum(rise, axis=1) / divisor
    squares = np.nansum((rise - mean[:, None]) ** 2, axis=1)
    return np.where(n_scores > 1, squares / (divisor - 1), np.nan)


@cache
def _variances_by_passes(k: int) -> Scores:
    """Return float64[k + 1]: the variance of a case that passed 0 … k of k times (cached)."""
    every = np.arange(k) < np.arange(k + 1)[:, None]
    variances = within_case_variances(every.astype(np.float64))
    variances.flags.writeable = False
    return variances


def _shape(scores: Scores) -> tuple[int, int]:
    """Return cases and repeats."""
    return len(scores), int(scores.shape[1])


def _total(scores: Scores) -> float:
    """Return the sum, exact for pass and fail and correctly rounded otherwise."""
    is_pass = scores == 1
    if (is_pass | (scores == 0)).all():
        return float(np.count_nonzero(is_pass))
    return math.fsum(scores.ravel().tolist())


def _n_passed(scores: Scores) -> NDArray[np.int64] | None:
    """Return int64[n_cases]: how many repeats passed; None unless each passed or failed."""
    is_pass = scores == 1
    if not (is_pass | (scores == 0)).all():
        return None
    return np.asarray(np.count_nonzero(is_pass, axis=1), dtype=np.int64)


def _ranked(scores: Scores) -> Scores:
    """Return each case's scores sorted, NaN last, so that sums do not depend on the order of repeats.

    Rows are contiguous in memory too: numpy sums columns in another order.
    """
    return np.sort(np.ascontiguousarray(scores), axis=1)


def _sums_by_group(values: Scores, groups: Sequence[str]) -> list[float]:
    """Return the sums of values by group; a case without a group is its own group."""
    alone: list[float] = values.tolist()
    if not any(groups):
        return alone
    members: dict[tuple[str, int], list[float]] = {}
    for index, (group, value) in enumerate(zip(groups, alone, strict=True)):
        members.setdefault((group, -1) if group else ("", index), []).append(value)
    return [math.fsum(each) for each in members.values()]


def _spans(scores: Scores) -> Scores:
    """Return float64[n_cases]: highest minus lowest score that a case has; 0 where it has none."""
    is_missing = np.isnan(scores)
    highest = np.where(is_missing, -np.inf, scores).max(axis=1, initial=-np.inf)
    lowest = np.where(is_missing, np.inf, scores).min(axis=1, initial=np.inf)
    has_score = np.isfinite(highest)
    return np.where(has_score, np.where(has_score, highest, 0) - np.where(has_score, lowest, 0), 0.0)


def span(points: Iterable[float | None]) -> tuple[float, float] | None:
    """Return the lowest and the highest of the points that are known; None where none is."""
    known = [value for value in points if value is not None]
    return (min(known), max(known)) if known else None


def drawn_points(points: Sequence[float | None], n_left_out: Sequence[int]) -> tuple[float | None, ...]:
    """Return the points of the repeats in which every answer is a fresh sample."""
    return tuple(value for value, n in zip(points, n_left_out, strict=True) if not n)


def split_variance(
    scores: Scores, draws: Draws, *, is_steady: bool, same_seeds: Scores | None = None
) -> VarianceParts | None:
    """Split the spread of the repeats by source; None if no case has two scores.

    An external server may draw what it was asked to decode greedily, and says nothing of its batches, so that the parts
    are not known. Neither are they where the temperature is not. On our own engine: where nothing is drawn they scatter
    by the batch alone; draws that are decoded in a class that no neighbour disturbs (is_steady) by the sampler alone;
    others by both. Then same_seeds, the scores of the same draws in the same columns under another batch class, NaN
    where there is none, tells the batch's part. Where greedy repeats scatter though no neighbour disturbs them, it is
    neither: the batch's part is not known.
    """
    own = noise.sd_points(scores)
    if own is None:
        return None
    if draws.temperature is None or (draws.is_external and not is_steady):
        return VarianceParts(total=own, sampler=None, batch=None)
    if not draws.is_sampled:
        return VarianceParts(total=own, sampler=0.0, batch=None if is_steady and own else own)
    if is_steady:
        return VarianceParts(total=own, sampler=own, batch=0.0)
    batch = None if same_seeds is None else _batch_points(scores, same_seeds)
    if batch is None:
        return VarianceParts(total=own, sampler=None, batch=None)
    batch = min(batch, own)  # more than the whole is chance
    return VarianceParts(total=own, sampler=math.sqrt(own**2 - batch**2), batch=batch)


def _batch_points(scores: Scores, same_seeds: Scores) -> float | None:
    """Return the batch part, 100 · sqrt(Σ mean d² / 2) / n, from samples with the same seeds.

    d is a sample's score in one batch class minus that in the other. Each side has half of it: batch size 1 counts as
    one more batch. None if no sample is on both sides.
    """
    squares = (scores - same_seeds) ** 2
    known = ~np.isnan(squares).all(axis=1)
    if not known.any():
        return None
    mean = math.fsum(np.nanmean(squares[known], axis=1).tolist()) / int(known.sum())
    return 100 * math.sqrt(mean / (2 * len(scores)))
