"""Which cases are likely to flip, predicted from the margins of a single run before any repeat exists.

A response flips where noise moves the two best tokens past each other at some position:

    flip chance = 1 − Π (1 − Φ(−margin / sd))        over the positions of one trace

with sd the numeric noise of a logit difference (`core.numeric_noise`). It is the chance that the text comes out
another one under other batching or another stack of the same kind; the score then moves in a part of these cases. It
holds for greedy decoding, and from above where logits lie on a coarse grid: exact ties then break the same way.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evalboard.core.numeric_noise import FLOORS, UNKNOWN_DTYPE
from evalboard.core.trace import Trace

LIKELY = 0.2  # above it: in simulation such cases hold 87 % of the flips at low noise
UNKNOWN = np.float32(np.nan)

Chances = NDArray[np.float32]


def assumed_sd(dtype: str | None) -> float:
    """The noise to reckon with where repeats have measured none: the floor of the logits' dtype, in nats."""
    return FLOORS.get(dtype or UNKNOWN_DTYPE, FLOORS[UNKNOWN_DTYPE])


def flip_chances(traces: Sequence[Trace], sd: float) -> Chances:
    """float32[n]: the flip chance of each trace, UNKNOWN where no position names a second token.

    sd is in nats, above 0. A position that names no second token had no other choice to fall to.
    """
    lengths = np.array([len(trace) for trace in traces], dtype=np.intp)
    chances = np.full(len(traces), UNKNOWN, dtype=np.float32)
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


def is_likely(chances: Chances) -> NDArray[np.bool_]:
    """bool[n]: the cases to mark; what is unknown is not marked."""
    found: NDArray[np.bool_] = np.nan_to_num(chances, nan=0.0) > LIKELY
    return found
