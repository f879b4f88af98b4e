"""Judge whether an endpoint serves the weights of a reference, by its answers scored on the reference.

Sets of answers of known origin say what to expect, all scored on the reference like the endpoint's: the *control*, of
the reference itself; *numerics*, of the same weights in another dtype or on other kernels, one set or several; and,
where it can be had, *planted*, of weights that were changed a little. The statistic of a response is the mean over its
positions of the squared gap of the chosen token's logprob where the endpoint gives logprobs, else of the squared
deficit: other weights show in what is rare and large sooner than in what is common and small.
docs/forced.md says how well it tells.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.verification import Band, JudgedAnswers
from evalboard.core.forced.positions import ForcedPositions
from evalboard.core.forced.resampling import Resampler
from evalboard.core.stats import POWER, deal_labels, normal_quantile, permutation_p_value

Statistic = Literal["gap", "deficit"]
VerificationState = Literal["same_stack", "same_model_other_numerics", "other_model", "too_few_tokens"]
Numbers = NDArray[np.float64]

NO_STATISTIC = "control, numerics and planted each need a response with the statistic"
SIGNIFICANT = 0.01  # an honest endpoint is accused at most so often
WINSORISED, REACH = 0.999, 2.0  # values beyond twice this quantile of honest positions are cut to it
DOUBLED = 2.0  # times what numerics do: the change to tell where none was planted
BEYOND = 2.0  # times the largest honest mean square, which is √2 times its gap: nearer than that nothing is accused


@dataclass(frozen=True, eq=False)
class _Side:
    """means: float64[m], the statistic of each response that has it; n_tokens: over all of these."""

    means: Numbers
    n_tokens: int

    @property
    def mean(self) -> float:
        return float(self.means.mean())

    @property
    def variance(self) -> float:
        return float(self.means.var(ddof=1)) if len(self.means) > 1 else 0.0


def choose_statistic(endpoint: ForcedPositions) -> Statistic:
    """Choose the gap if the endpoint gave a logprob for every reference token, else the top-choice gap."""
    return "gap" if len(endpoint) and not np.isnan(endpoint.log_ratios).any() else "deficit"


def verify_endpoint(
    endpoint: ForcedPositions,
    *,
    control: ForcedPositions,
    numerics: Sequence[ForcedPositions],
    planted: ForcedPositions | None = None,
    random_seed: int = 0,
) -> JudgedAnswers:
    """Compare an endpoint's answers with those of known origin; the most distant numerics count.

    Raises ValueError where control, numerics or planted have no response with the statistic.
    """
    statistic = choose_statistic(endpoint)
    limit = REACH * max(_quantile(_values(known, statistic)) for known in (control, *numerics))
    own, same, *honest = (_measure(known, statistic, limit) for known in (endpoint, control, *numerics))
    if not all(len(each.means) for each in honest):
        raise ValueError(NO_STATISTIC)
    other = max(honest, key=lambda each: each.mean)
    changed = _double(other) if planted is None else _measure(planted, statistic, limit)
    bands = [_bound(known, random_seed) for known in (same, other, changed)]
    boundary = max(math.sqrt(other.mean * changed.mean), BEYOND * other.mean)
    p_values = _p_values(own, same, other, changed, random_seed) if len(own.means) else None
    state: VerificationState = "too_few_tokens"
    if p_values is not None:
        state = _judge(own, boundary, p_values)
    n_more, are_bands_short = _count_more(own, other, changed) if state == "too_few_tokens" else (None, False)
    above_control, above_numerics, below_change = p_values or (None, None, None)
    return JudgedAnswers(
        state=state,
        statistic=statistic,
        limit=limit,
        endpoint=_bound(own, random_seed) if len(own.means) else None,
        control=bands[0],
        numerics=bands[1],
        numerics_place=honest.index(other),
        planted=None if planted is None else bands[2],
        change=changed.mean,
        boundary=boundary,
        p_above_control=above_control,
        p_above_numerics=above_numerics,
        p_below_change=below_change,
        n_more_tokens=n_more,
        are_bands_short=are_bands_short,
    )


def _judge(own: _Side, boundary: float, p_values: tuple[float, float, float]) -> VerificationState:
    above_control, above_numerics, below_change = (p_value <= SIGNIFICANT for p_value in p_values)
    # With enough tokens any kernel differs from numerics: only what is nearer to the change is accused.
    if above_numerics and own.mean > boundary:
        return "other_model"
    if not below_change or own.mean > boundary:
        return "too_few_tokens"
    return "same_model_other_numerics" if above_control else "same_stack"


def _p_values(own: _Side, same: _Side, other: _Side, changed: _Side, random_seed: int) -> tuple[float, float, float]:
    rng = np.random.default_rng(random_seed)
    return (
        _test_above(own.means, same.means, rng),
        _test_above(own.means, other.means, rng),
        _test_above(changed.means, own.means, rng),
    )


def _test_above(one: Numbers, other: Numbers, rng: np.random.Generator) -> float:
    """Return the permutation p-value of the mean of `one` exceeding that of `other`."""
    values = np.concatenate([one, other])
    largest = values.max()
    if not largest:
        return 1.0
    values /= largest  # what moves by single bits is above rounding too
    labels = deal_labels(rng, len(values), len(one))
    dealt = labels @ values
    drawn = dealt / len(one) - (values.sum() - dealt) / len(other)
    return permutation_p_value(float((one.mean() - other.mean()) / largest), drawn)


def _count_more(own: _Side, other: _Side, changed: _Side) -> tuple[int | None, bool]:
    """Return how many more tokens would separate the change from numerics with POWER; None if none would.

    Second: whether the bands need more tokens as well.
    """
    apart = changed.mean - other.mean
    if apart <= 0:
        return None, True
    z_squared = (normal_quantile(1 - SIGNIFICANT) + normal_quantile(POWER)) ** 2
    left = apart**2 / z_squared - other.variance / len(other.means)  # of the variance, after the bands took theirs
    are_bands_short = left <= 0
    needed = changed.variance / left if left > 0 else z_squared * (changed.variance + other.variance) / apart**2
    length = (own.n_tokens + other.n_tokens) / (len(own.means) + len(other.means))  # a response's tokens
    more = max(math.ceil(needed) - len(own.means), 1)
    return math.ceil(more * length), are_bands_short


def _values(positions: ForcedPositions, statistic: Statistic) -> Numbers:
    return positions.gaps if statistic == "gap" else positions.deficits


def _quantile(values: Numbers) -> float:
    known = values[~np.isnan(values)]
    return float(np.quantile(known, WINSORISED)) if len(known) else 0.0


def _measure(positions: ForcedPositions, statistic: Statistic, limit: float) -> _Side:
    values = _values(positions, statistic)
    is_known = ~np.isnan(values)
    sums = positions.sum_by_response(np.where(is_known, np.minimum(values, limit) ** 2, 0.0))
    counts = positions.sum_by_response(is_known.astype(np.float64))
    has_any = counts > 0
    return _Side(sums[has_any] / counts[has_any], int(counts.sum()))


def _double(side: _Side) -> _Side:
    return _Side(DOUBLED**2 * side.means, side.n_tokens)


def _bound(side: _Side, random_seed: int) -> Band:
    mean = Resampler(len(side.means), random_seed).bound_mean(side.means, np.ones(len(side.means)), lowest=0.0)
    if mean is None:
        raise ValueError(NO_STATISTIC)
    return Band(mean=mean, n_responses=len(side.means), n_tokens=side.n_tokens)
