"""Measure how far a reference is from the stack that sampled the responses (docs/forced.md).

r is the chosen token's probability on the reference divided by the sampler's. Over tokens that the sampler drew from
its own distribution, −log r and r − 1 − log r both estimate KL(sampler ‖ reference) without bias; the second is never
negative and scatters less (Schulman, 2020). Over greedy answers neither is a KL; the gap to the top choice is
reported instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.forced import AnswerFigures, ForcedFigures, GapsOfStretch, WorstToken
from evalboard.core.forced.positions import ForcedPositions, Numbers, list_worst
from evalboard.core.forced.resampling import Resampler
from evalboard.core.rollout_steps import CLIP_RANGE, MAX_EXPONENT, estimate_k3

N_STRETCHES = 100  # that a chart has room for; longer answers have several positions in each


def measure_by_position(gaps: NDArray[np.float64], places: NDArray[np.int64]) -> tuple[GapsOfStretch, ...]:
    """Return up to N_STRETCHES stretches of equal width, without those that have no known gap.

    gaps: float64[n], |log r| of each token, NaN where it is not known. places: int64[n], its position in its response.
    """
    is_known = ~np.isnan(gaps)
    gaps, places = gaps[is_known], places[is_known]
    if not len(gaps):
        return ()
    width = -(-(int(places.max()) + 1) // N_STRETCHES)
    order = np.lexsort((gaps, places // width))
    gaps, stretches = gaps[order], places[order] // width
    numbers, starts = np.unique(stretches, return_index=True)
    ends = [*starts[1:].tolist(), len(gaps)]
    return tuple(
        GapsOfStretch(
            first=number * width,
            last=(number + 1) * width - 1,
            n=end - start,
            median=float(np.median(gaps[start:end])),
            highest=float(gaps[end - 1]),
        )
        for number, start, end in zip(numbers.tolist(), starts.tolist(), ends, strict=True)
    )


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over each response, float64[m] each; of positions where a number is unknown nothing is added."""

    compared: Numbers
    ranked: Numbers
    not_top: Numbers
    deficit: Numbers
    gap: Numbers
    k1: Numbers
    k3: Numbers
    beyond: Numbers
    weight: Numbers
    weight_squares: Numbers


@np.errstate(over="ignore", invalid="ignore")  # of ratios that no float64 has; a number that is none then is not known
def measure_forced(
    positions: ForcedPositions,
    *,
    clip_range: float = CLIP_RANGE,
    random_seed: int = 0,
    places: NDArray[np.int64] | None = None,
    answers: Sequence[str] | None = None,
) -> ForcedFigures:
    """Measure all positions together, each number with a bootstrap interval over responses.

    places: int64[n], where each stands in its response; None where nothing was left out before it. answers: the id of
    each response, by which `worst` names it; its index without.
    """
    places = positions.places if places is None else places
    sums = _sum_up(positions, clip_range)
    again = Resampler(positions.n_responses, random_seed)
    n_compared, n_ranked = int(sums.compared.sum()), int(sums.ranked.sum())
    is_whole = (sums.compared == np.diff(positions.starts)) & (sums.compared > 0)  # a sequence lacks no factor
    sequence = np.where(is_whole, sums.k1, 0.0)
    weight = np.where(is_whole, np.exp(np.minimum(-sums.k1, MAX_EXPONENT / 2)), 0.0)
    return ForcedFigures(
        n_responses=positions.n_responses,
        n_positions=len(positions),
        n_compared=n_compared,
        n_ranked=n_ranked,
        n_not_top=int(sums.not_top.sum()),
        is_identical=0 < n_compared == len(positions) and not positions.log_ratios.any(),
        clip_range=clip_range,
        match_rate=again.bound_share(sums.ranked - sums.not_top, sums.ranked),
        deficit_mean=again.bound_mean(sums.deficit, sums.ranked, lowest=0.0),
        deficit_p99=again.bound_quantile(positions.deficits, positions.owners, 0.99),
        gap_mean=again.bound_mean(sums.gap, sums.compared, lowest=0.0),
        gap_median=again.bound_quantile(positions.gaps, positions.owners, 0.5),
        gap_p99=again.bound_quantile(positions.gaps, positions.owners, 0.99),
        kl_k1=again.bound_mean(sums.k1, sums.compared),
        kl_k3=again.bound_mean(sums.k3, sums.compared, lowest=0.0),
        sequence_kl=again.bound_mean(sequence, is_whole.astype(np.float64)),
        beyond_clip=again.bound_share(sums.beyond, sums.compared),
        weight_ess=again.bound_ess(sums.weight, sums.weight_squares, sums.compared),
        sequence_ess=again.bound_ess(weight, weight**2, is_whole.astype(np.float64)),
        worst=_find_worst(positions, places, answers),
        by_position=measure_by_position(positions.gaps, places),
    )


def _find_worst(
    positions: ForcedPositions, places: NDArray[np.int64], answers: Sequence[str] | None
) -> WorstToken | None:
    for worst in list_worst(positions, 1, places=places):
        answer = str(worst.response) if answers is None else answers[worst.response]
        return WorstToken(answer=answer, position=worst.position, log_ratio=worst.log_ratio)
    return None


def measure_responses(positions: ForcedPositions, *, clip_range: float = CLIP_RANGE) -> tuple[AnswerFigures, ...]:
    """Measure each response separately, in order."""
    sums = _sum_up(positions, clip_range)
    return tuple(_measure_response(positions, sums, index) for index in range(positions.n_responses))


def _measure_response(positions: ForcedPositions, sums: _Sums, index: int) -> AnswerFigures:
    own = slice(*positions.starts[index : index + 2].tolist())
    ratios, gaps = positions.log_ratios[own], positions.gaps[own]
    n_compared, n_ranked = int(sums.compared[index]), int(sums.ranked[index])
    worst = int(np.nanargmax(gaps)) if n_compared else None

    def mean(column: Numbers, n: int) -> float | None:
        return float(column[index]) / n if n else None

    return AnswerFigures(
        n_positions=len(ratios),
        n_compared=n_compared,
        n_ranked=n_ranked,
        n_not_top=int(sums.not_top[index]),
        is_identical=0 < n_compared == len(ratios) and not ratios.any(),
        deficit_mean=mean(sums.deficit, n_ranked),
        gap_mean=mean(sums.gap, n_compared),
        kl_k1=mean(sums.k1, n_compared),
        kl_k3=mean(sums.k3, n_compared),
        n_beyond_clip=int(sums.beyond[index]),
        worst_at=worst,
        worst_log_ratio=None if worst is None else float(ratios[worst]),
    )


def _sum_up(positions: ForcedPositions, clip_range: float) -> _Sums:
    is_compared, is_ranked = ~np.isnan(positions.log_ratios), ~np.isnan(positions.deficits)
    log_ratios, deficits = (np.where(mask, values, 0.0) for mask, values in _known(positions))
    excess, k3 = estimate_k3(log_ratios)
    ratios = np.where(is_compared, 1 + excess, 0.0)
    add = positions.sum_by_response
    return _Sums(
        compared=add(is_compared.astype(np.float64)),
        ranked=add(is_ranked.astype(np.float64)),
        not_top=add((deficits > 0).astype(np.float64)),
        deficit=add(deficits),
        gap=add(np.abs(log_ratios)),
        k1=add(-log_ratios),
        k3=add(k3),
        beyond=add((np.abs(excess) > clip_range).astype(np.float64)),
        weight=add(ratios),
        weight_squares=add(ratios**2),
    )


def _known(positions: ForcedPositions) -> list[tuple[NDArray[np.bool_], Numbers]]:
    return [(~np.isnan(values), values) for values in (positions.log_ratios, positions.deficits)]
