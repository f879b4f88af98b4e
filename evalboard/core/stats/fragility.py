"""Predict which cases are likely to flip from the margins of a single run, before any repeat exists.

A response flips where noise moves the two best tokens past each other at some position:

    flip chance = 1 − Π (1 − Φ(−margin / sd))        over the positions of one trace

with sd the numeric noise of a logit difference (`core.stats.numeric_noise`). It is the chance that the text comes out
another one under other batching or another stack of the same kind; the score then moves in a part of these cases. It
holds for greedy decoding, and from above where logits lie on a coarse grid: exact ties then break the same way.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evalboard.core.stats.numeric_noise import FLOORS, UNKNOWN_DTYPE
from evalboard.core.trace import TokenTrace

NOISIEST = 5  # one case in so many: in simulation this fifth holds 60 to 80 % of the noise
LIKELY_FLIP = 0.2  # above it: in simulation such cases hold 87 % of the flips at low noise
UNKNOWN_CHANCE = np.float32(np.nan)

Chances = NDArray[np.float32]


def assume_logit_sd(dtype: str | None) -> float:
    """Return the noise to reckon with where repeats have measured none: the floor of the logits' dtype, in nats."""
    return FLOORS.get(dtype or UNKNOWN_DTYPE, FLOORS[UNKNOWN_DTYPE])


def predict_flip_chances(traces: Sequence[TokenTrace], sd: float) -> Chances:
    """Return float32[n]: the flip chance of each trace, UNKNOWN_CHANCE where no position names a second token.

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
    """Return bool[n]: the cases to mark; what is unknown is not marked."""
    is_likely: NDArray[np.bool_] = np.nan_to_num(chances, nan=0.0) > LIKELY_FLIP
    return is_likely


def choose_noisiest(chances: Chances) -> NDArray[np.bool_] | None:
    """Return bool[n]: the fifth of the cases with the largest flip chances; None where no case is known to flip at all.

    Of equal chances the first cases are taken; one that is unknown comes last.
    """
    known = np.nan_to_num(chances, nan=-1.0)
    if not (known > 0).any():
        return None
    is_noisiest = np.zeros(len(chances), np.bool_)
    is_noisiest[np.argsort(-known, kind="stable")[: -(-len(chances) // NOISIEST)]] = True
    return is_noisiest
