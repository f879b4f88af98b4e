"""How much a score moves with nothing changed, measured from the repeats of one bucket.

Scores are float64[n_cases, k], one column a repeat, each in [0, 1], NaN where the response is missing. Missing is
not zero: nothing here reads it as a score. No result depends on the order of cases or repeats.
"""

import math

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


def run_points(scores: Scores) -> float | None:
    """A repeat's score in points, percent of the suite; None unless every case of float64[n_cases] has one."""
    if not len(scores) or np.isnan(scores).any():
        return None
    return 100 * math.fsum(scores) / len(scores)


def range_points(scores: Scores) -> tuple[float, float] | None:
    """The lowest and the highest run score in points; None unless every repeat is complete."""
    points = [run_points(repeat) for repeat in scores.T]
    known = [found for found in points if found is not None]
    if not known or len(known) < len(points):
        return None
    return min(known), max(known)


def disagreement_rate(scores: Scores) -> float | None:
    """D, the chance that two repeats of one case differ: twice the mean variance within a case.

    For graded scores the same formula, a mean squared difference. Taken over the cases with at
    least two scores; None where there is no such case.
    """
    variances = within_case_variances(scores)
    known = variances[~np.isnan(variances)]
    if not len(known):
        return None
    return 2 * math.fsum(known) / len(known)


def sd_points(scores: Scores) -> float | None:
    """Standard deviation of one run's score from flips within cases, in points: 100 · sqrt(D / 2n).

    Cases without two scores are taken to be as noisy as the others; None where no case has two.
    """
    rate = disagreement_rate(scores)
    return None if rate is None else 100 * math.sqrt(rate / (2 * len(scores)))


def n_unstable(scores: Scores) -> int:
    """How many cases were seen with two different scores: a lower bound on how many can have them."""
    return int(np.count_nonzero(_spans(scores) > 0))


def within_case_variances(scores: Scores) -> Scores:
    """float64[n_cases]: sample variance (ddof 1) over the scores that a case has, NaN where it has fewer than two."""
    n_scores = np.count_nonzero(~np.isnan(scores), axis=1)
    ranked = np.sort(scores, axis=1)  # NaN last; one order of summing, whatever the order of repeats
    # From the smallest score up, so that equal scores have a variance of exactly 0.
    rise = ranked - ranked[:, :1]
    divisor = np.where(n_scores > 1, n_scores, 2)
    mean = np.nansum(rise, axis=1) / divisor
    squares = np.nansum((rise - mean[:, None]) ** 2, axis=1)
    return np.where(n_scores > 1, squares / (divisor - 1), np.nan)


def _spans(scores: Scores) -> Scores:
    """float64[n_cases]: highest minus lowest score that a case has; 0 where it has none."""
    is_missing = np.isnan(scores)
    highest = np.where(is_missing, -np.inf, scores).max(axis=1, initial=-np.inf)
    lowest = np.where(is_missing, np.inf, scores).min(axis=1, initial=np.inf)
    has_score = np.isfinite(highest)
    return np.where(has_score, np.where(has_score, highest, 0) - np.where(has_score, lowest, 0), 0.0)
