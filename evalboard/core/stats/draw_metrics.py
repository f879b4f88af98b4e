"""Measure metrics over several samples of a case: avg@n, pass@k, pass^k and maj@n (docs/verdict.md).

Scores are float64[n_cases, n_draws] as in noise, NaN where missing. Of n draws of a case, c of them right:

    pass@k = 1 − C(n − c, k) / C(n, k)     the chance that of k draws one is right at least
    pass^k = C(c, k) / C(n, k)             the chance that all of k draws are right
    maj@n  = the score of the answer that most of the n draws gave; among equals, the mean of theirs

The first two are without bias for any k up to n. They are ratios of whole numbers, divided once: exact for any n.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evalboard.contract import bucket as contract
from evalboard.core.scoring import PASS_ALL, PASS_AT, MetricSpec
from evalboard.core.stats import noise
from evalboard.core.stats.noise import Interval, Scores
from evalboard.core.stats.quantiles import normal_quantile

EVERY_DRAW, VOTE, DRAWS_MISSING = "every_draw", "vote", "draws_missing"  # why there is no interval
NO_ANSWER = 0  # of a draw in which no answer can be read; it has no vote
SHOWN_K = (2, 5, 10, 20)  # of those below n, and n itself

Answers = NDArray[np.uint64]


def measure_metrics(scores: Scores, answers: Answers | None, groups: Sequence[str] = ()) -> tuple[contract.Metric, ...]:
    """Return every metric over two samples or more, the mean first; graded scores have only the mean.

    If one has no interval, `no_interval_code` is why: EVERY_DRAW of a case is taken, VOTE, or DRAWS_MISSING. Its reach
    covers these cases as well: the scatter of a case's value is part of the scatter between cases.

    answers: uint64[n_cases, n_draws], equal if two samples gave one answer, NO_ANSWER if none can be read; None if
    answers cannot be compared, which leaves out maj@n. groups: as in noise.reach_interval. Empty if a case has no
    score.
    """
    n_draws = scores.shape[1]
    if n_draws < 2 or not len(scores) or np.isnan(scores).all(axis=1).any():
        return ()
    mean = noise.average_cases(scores)
    metrics = [_measured(f"avg@{n_draws}", mean, noise.measurement_interval(scores), groups, DRAWS_MISSING)]
    if not noise.is_pass_fail(scores):
        return tuple(metrics)
    n = int(np.count_nonzero(~np.isnan(scores), axis=1).min())
    ks = [k for k in (*(k for k in SHOWN_K if k < n), n) if k > 1]
    for metric in (MetricSpec(kind, k) for kind in (PASS_AT, PASS_ALL) for k in ks):
        interval, why_none = metric_interval(scores, metric), EVERY_DRAW if metric.k == n_draws else DRAWS_MISSING
        metrics.append(_measured(metric.name, estimate(scores, metric), interval, groups, why_none))
    if answers is not None:
        metrics.append(_measured(f"maj@{n_draws}", majority(scores, answers), None, groups, VOTE))
    return tuple(metrics)


def estimate(scores: Scores, metric: MetricSpec) -> Scores:
    """Return float64[n_cases]: the unbiased estimate of each case's metric; NaN with fewer samples than k.

    The scores are 0 or 1, but for a mean.
    """
    if metric.is_mean:
        return noise.average_cases(scores)
    values = np.full(len(scores), np.nan)
    for n, rows, right in _by_draws(scores, metric.k):
        values[rows] = _estimates(metric, n)[right]
    return values


def jackknife(scores: Scores, metric: MetricSpec) -> Scores:
    """Return Tukey's pseudo-values, float64[n_cases, n_draws]: n · estimate − (n − 1) · that without it.

    Their mean over the draws of a case is its estimate, and their variance over n the jackknife's variance of it. So
    what is computed of the scores of repeats can be computed of them; of a mean they are the scores. NaN where a draw
    is missing, and for cases of k draws or fewer.
    """
    if metric.is_mean:
        return scores
    values = np.full(scores.shape, np.nan)
    for n, rows, right in _by_draws(scores, metric.k + 1):
        whole, less = n * _estimates(metric, n)[right], (n - 1) * _estimates(metric, n - 1)
        without_right, without_wrong = less[np.maximum(right - 1, 0)], less[np.minimum(right, n - 1)]
        part = scores[rows]
        added = np.where(part == 1, (whole - without_right)[:, None], (whole - without_wrong)[:, None])
        values[rows] = np.where(np.isnan(part), np.nan, added)
    return values


def unseen(metric: MetricSpec) -> float:
    """Return the metric's noise.SEEN_IN_NONE, larger since one sample moves it up to k times more."""
    return noise.SEEN_IN_NONE * metric.k**2


def majority(scores: Scores, answers: Answers) -> Scores:
    """Return float64[n_cases]: the score of the most common answer; NaN without any sample.

    Where several answers have as many draws, the mean of their scores: what breaking the tie by chance comes to. 0
    where no answer can be read in any.
    """
    votes = (answers != NO_ANSWER) & ~np.isnan(scores)
    n_alike = np.zeros(scores.shape, np.int64)
    for column in range(scores.shape[1]):
        n_alike += (answers == answers[:, [column]]) & votes[:, [column]]
    n_alike = np.where(votes, n_alike, 0)
    wins = votes & (n_alike == n_alike.max(axis=1, keepdims=True, initial=0))
    # Every answer that ties has as many draws, so that the mean over draws is the mean over answers.
    n_wins = np.count_nonzero(wins, axis=1)
    total = np.where(wins, scores, 0.0).sum(axis=1)
    return np.where(np.isnan(scores).all(axis=1), np.nan, total / np.maximum(n_wins, 1))


def _measured(
    name: str, values: Scores, interval: Interval | None, groups: Sequence[str], why_none: str
) -> contract.Metric:
    return contract.Metric(
        name=name,
        points=100 * math.fsum(values.tolist()) / len(values),
        interval=interval,
        reach=noise.reach_of_cases(values, groups),
        no_interval=None,
        no_interval_code=why_none if interval is None else None,
        level=noise.CONFIDENCE_LEVEL,
    )


def metric_interval(scores: Scores, metric: MetricSpec) -> Interval | None:
    """Return the interval on these cases: points ± z · SE; None if samples are missing or too few.

    By `jackknife`, which is not too narrow on average (Efron and Stein, 1981). Of c right draws of n there are two
    pseudo-values, so that their variance is c (n − c) (n − 1) / n · (what one right draw of n − 1 adds)²; over all
    cases it is no less than what no draw showed.
    """
    n_cases, n = scores.shape
    if np.isnan(scores).any() or n <= metric.k:
        return None
    right = np.arange(1, n)
    by_right = np.zeros(n + 1)
    by_right[1:n] = right * (n - right) * (n - 1) / n * np.diff(_estimates(metric, n - 1)) ** 2
    n_right = np.count_nonzero(scores == 1, axis=1)
    variance = max(math.fsum(by_right[n_right].tolist()), unseen(metric) / n)
    points = 100 * math.fsum(_estimates(metric, n)[n_right].tolist()) / n_cases
    half = 100 * normal_quantile((1 + noise.CONFIDENCE_LEVEL) / 2) * math.sqrt(variance / n) / n_cases
    return max(points - half, 0.0), min(points + half, 100.0)


def _by_draws(scores: Scores, min_draws: int) -> list[tuple[int, NDArray[np.bool_], NDArray[np.int64]]]:
    """Group cases by number of samples, min_draws or more: (number, the cases, how many are right)."""
    n_draws, n_right = np.count_nonzero(~np.isnan(scores), axis=1), np.count_nonzero(scores == 1, axis=1)
    every = ((n, n_draws == n) for n in np.unique(n_draws).tolist() if n >= min_draws)
    return [(n, rows, n_right[rows]) for n, rows in every]


@cache
def _estimates(metric: MetricSpec, n: int) -> Scores:
    """Return float64[n + 1]: the metric where 0, 1, … or n of n draws are right."""
    ways = math.comb(n, metric.k)
    n_ways: Callable[[int], int] = {
        PASS_AT: lambda right: ways - math.comb(n - right, metric.k),
        PASS_ALL: lambda right: math.comb(right, metric.k),
    }[metric.kind]
    table = np.array([n_ways(right) / ways for right in range(n + 1)])
    table.flags.writeable = False
    return table
