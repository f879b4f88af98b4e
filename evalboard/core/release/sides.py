"""Read one side of a gate: which of its repeats are samples, and its score."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evalboard.contract.release import MeasuredNoise
from evalboard.core.release import settle
from evalboard.core.release.gate import MeasuredSide, Scores
from evalboard.core.scoring import MetricSpec
from evalboard.core.stats import (
    OVERDISPERSED_BELOW,
    Bools,
    SideDraws,
    average_points,
    count_unstable,
    disagreement_rate,
    estimate,
    measurement_interval,
    metric_interval,
    overdispersion,
    range5_points,
    range_points,
    run_points,
    sd_points,
    select_whole_cases,
)
from evalboard.core.suite import PolicySettings

UNKNOWN_SIDE = MeasuredSide(
    score=None,
    points=(),
    range=None,
    interval=None,
    noise=MeasuredNoise(
        sd_points=None, disagreement_rate=None, n_unstable=0, range5_points=None, is_overdispersed=False
    ),
)


def choose_common_look(policy: PolicySettings, both: Sequence[SideDraws]) -> int | None:
    """Return the latest look at which each side has as many draws among as many repeats."""
    look = settle.choose_look(policy, min(side.n_draws for side in both))
    while look is not None and any(side.first(look).n_draws < look for side in both):
        look = settle.choose_look(policy, look - 1)
    return look


def has_score(scores: Scores) -> Bools:
    """Tell of each case whether any of its repeats has a score: bool[n]."""
    return np.asarray(~np.isnan(scores).all(axis=1))


def measure_side(scores: Scores, metric: MetricSpec) -> MeasuredSide:
    """Measure one side. A metric over samples has no points by repeat."""
    if not scores.size:
        return UNKNOWN_SIDE
    complete = select_whole_cases(scores)
    points = [run_points(repeat) for repeat in complete.T]
    dispersion = overdispersion(complete)
    side = MeasuredSide(
        score=average_points(scores),
        points=tuple(each for each in points if each is not None),
        range=range_points(complete),
        interval=measurement_interval(complete),
        noise=MeasuredNoise(
            sd_points=sd_points(scores),
            disagreement_rate=disagreement_rate(scores),
            n_unstable=count_unstable(scores),
            range5_points=range5_points(complete),
            is_overdispersed=dispersion is not None and dispersion < OVERDISPERSED_BELOW,
        ),
    )
    if metric.is_mean:
        return side
    score = 100 * math.fsum(estimate(scores, metric).tolist()) / len(scores)
    return replace(side, score=score, points=(), range=None, interval=metric_interval(scores, metric))
