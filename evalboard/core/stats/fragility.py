"""Predict which cases are likely to flip from the margins of a single run, before any repeat exists.

A response flips where noise moves the two best tokens past each other at some position:

    flip chance = 1 − Π (1 − Φ(−margin / sd))        over the positions of one trace

with sd the numeric noise of a logit difference (`core.stats.numeric_noise`). It is the chance that the text comes out
another one under other batching or another stack of the same kind; the score then moves in a part of these cases. It
holds for greedy decoding, and from above where logits lie on a coarse grid: exact ties then break the same way.

How much of what margins predict comes true is known from earlier runs of a bucket. So a change can be given an interval
before its second repeat (docs/verdict.md, Noise before the second repeat).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core import special
from evalboard.core.stats import noise
from evalboard.core.stats.numeric_noise import FLOORS, UNKNOWN_DTYPE
from evalboard.core.stats.paired import BORROWED, DifferenceEstimate, PairedNoise, se_runs
from evalboard.core.trace import TokenTrace

NOISIEST = 5  # one case in so many: in simulation this fifth holds 60 to 80 % of the noise
LIKELY_FLIP = 0.2  # above it: in simulation such cases hold 87 % of the flips at low noise
UNKNOWN_CHANCE = np.float32(np.nan)
MIN_EARLIER = 10  # repeats of earlier runs, from which noise is known before a run has repeats of its own
BORROWED_REPEATS = 5  # what the noise of the other side's bucket counts for
MAX_SURPRISE = (
    2.0  # standard deviations by which own repeats may show more noise than was expected; standard errors, of runs
)

Chances = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EarlierNoise:
    """What is known of a side's noise from outside its repeats.

    n_repeats: of earlier runs of its bucket, and flips: Σ s² over the cases in these; both 0 if there are too few.
    foretold: Σ of the flip chances by the margins of the side's first repeat; None if they are not known.
    """

    n_repeats: int = 0
    flips: float = 0.0
    foretold: float | None = None


def assume_logit_sd(dtype: str | None) -> float:
    """Return the noise to assume without measured repeats: the floor of the logits' dtype, in nats."""
    return FLOORS.get(dtype or UNKNOWN_DTYPE, FLOORS[UNKNOWN_DTYPE])


def predict_flip_chances(traces: Sequence[TokenTrace], sd: float) -> Chances:
    """Return float32[n]: each trace's flip chance, UNKNOWN_CHANCE if it has no alternatives.

    sd is in nats, above 0. A position that names no second token had no other choice to fall to.
    """
    lengths = np.array([len(trace) for trace in traces], dtype=np.intp)
    chances = np.full(len(traces), UNKNOWN_CHANCE, dtype=np.float32)
    if not lengths.any():
        return chances
    margins = np.concatenate([trace.margins() for trace in traces]).astype(np.float64)
    is_known = ~np.isnan(margins)
    # log(1 − Φ(−m/sd)) = log Φ(m/sd): sums of logarithms keep what a product of numbers near 1 would lose.
    stays = np.where(is_known, special.log_ndtr(np.where(is_known, margins, 0.0) / sd), 0.0)
    trace_of = np.repeat(np.arange(len(traces)), lengths)
    log_stay = np.bincount(trace_of, weights=stays, minlength=len(traces))
    has_margin = np.bincount(trace_of, weights=is_known, minlength=len(traces)) > 0
    chances[has_margin] = np.abs(np.expm1(log_stay[has_margin]))  # and never −0.0
    return chances


def is_likely_flip(chances: Chances) -> NDArray[np.bool_]:
    """Return bool[n]: the cases likely to flip; unknown chances are False."""
    is_likely: NDArray[np.bool_] = np.nan_to_num(chances, nan=0.0) > LIKELY_FLIP
    return is_likely


def choose_noisiest(chances: Chances) -> NDArray[np.bool_] | None:
    """Return bool[n]: the fifth of the cases most likely to flip; None if no known chance is above 0.

    Ties are taken in order; unknown chances come last.
    """
    known = np.nan_to_num(chances, nan=-1.0)
    if not (known > 0).any():
        return None
    is_noisiest = np.zeros(len(chances), np.bool_)
    is_noisiest[np.argsort(-known, kind="stable")[: -(-len(chances) // NOISIEST)]] = True
    return is_noisiest


def measure_earlier(scores: noise.Scores, chances: Chances | None) -> EarlierNoise:
    """Measure the repeats of earlier runs, float64[n, m]. chances: float32[n], of the side's first repeat.

    Fewer than MIN_EARLIER show too little. Where whole runs move, the noise of single cases is not what counts.
    """
    known = None if chances is None or np.isnan(chances).all() else math.fsum(np.nan_to_num(chances).tolist())
    n = scores.shape[1]
    rate = noise.disagreement_rate(scores) if n >= MIN_EARLIER else None
    chance = noise.overdispersion(scores)
    if rate is None or (chance is not None and chance < noise.OVERDISPERSED_BELOW):
        return EarlierNoise(foretold=known)
    return EarlierNoise(n, len(scores) * rate / 2, known)


def estimate_early(
    difference: float, measured: PairedNoise, baseline: EarlierNoise, candidate: EarlierNoise
) -> DifferenceEstimate | None:
    """Return a difference with the noise that earlier runs and margins foretell; None where they do not.

    A side's own repeats count with those of earlier runs of its bucket. A side without any borrows the other's, times
    the ratio of what both sides' margins predict, at least 1. Where a side's own repeats show clearly more noise than
    that, or whole runs do, something else moves them, and nothing is foretold.
    """
    sides = (
        (baseline, candidate, measured.flips_baseline, measured.draws_baseline),
        (candidate, baseline, measured.flips_candidate, measured.draws_candidate),
    )
    variance = 0.0
    for own, other, seen, k in sides:
        if own.n_repeats:
            weight, expected = own.n_repeats, own.flips
        elif other.n_repeats and own.foretold is not None and other.foretold:
            weight = min(BORROWED_REPEATS, other.n_repeats)
            expected = BORROWED * other.flips * max(1.0, own.foretold / other.foretold)
        else:
            return None
        expected = max(expected, measured.unseen / weight)
        n_seen = 0.0 if seen is None else k
        if n_seen * ((seen or 0.0) - expected) > MAX_SURPRISE * math.sqrt(n_seen * expected):
            return None
        flips = (weight * expected + n_seen * (seen or 0.0)) / (weight + n_seen)
        variance += max(flips, measured.unseen / (weight + n_seen)) / k
    se = 100 * math.sqrt(variance) / measured.n_cases
    if (se_runs(measured) or 0.0) > MAX_SURPRISE * se:
        return None
    return DifferenceEstimate(difference=difference, se=se, df=None, method="early")
