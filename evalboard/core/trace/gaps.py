"""Write logprobs as whole steps below the top one, where the engine's own arithmetic makes that exact.

An engine computes logprob = logit − largest logit − log-sum in float32, and logits lie on a coarse grid (their
dtype's resolution), so the gap to the top logprob is a small whole number of steps: 8 bits for bfloat16 logits
and about 22 for float32, in place of 32. A float32 subtraction gives the logprob back; IEEE 754 makes that the
same on every machine. Where it would not give back the very bits, the logprob is a misfit and is kept whole.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

FINEST = 24  # steps of 2**-24 nats
MISFIT = (1 << 24) - 1  # any smaller number of steps is exact in float32
SAMPLE = 64  # logprobs on which every grid is tried, before those that may do are tried on all
MAX_MISFITS = 1 / 16  # a misfit costs more than twice what it saves
_EXPONENT = np.uint32(0x7F80_0000)  # all of these bits are set in infinities and NaNs only


@dataclass(frozen=True, slots=True)
class GapSteps:
    """uint32 steps of 2**-grid nats below the top logprob; MISFIT where no number of steps is exact."""

    grid: int
    steps: Words


def find_steps(tops: Words, logprobs: Words) -> GapSteps | None:
    """Return the coarsest grid on which nearly all logprobs lie; None if there is no such grid.

    Both are float32 bits of one length; `tops` is the first alternative's logprob at the same position.
    """
    if not len(logprobs):
        return None
    # What a NaN's bits become in arithmetic differs between machines, so non-finite ones are misfits.
    is_finite = _finite(tops) & _finite(logprobs)
    gap = _values(tops, is_finite) - _values(logprobs, is_finite)
    some = slice(None, None, len(gap) // SAMPLE + 1)
    grids = np.arange(FINEST + 1)[:, None]
    tried = _steps(tops[some], logprobs[some], gap[some], is_finite[some], grids) == MISFIT
    for grid in np.flatnonzero(tried.mean(axis=1) <= 4 * MAX_MISFITS).tolist():  # on the others too many do not fit
        steps = _steps(tops, logprobs, gap, is_finite, grid)
        if np.count_nonzero(steps == MISFIT) <= MAX_MISFITS * len(logprobs):
            return GapSteps(grid, steps)
    return None


def _steps(
    tops: Words,
    logprobs: Words,
    gap: NDArray[np.float64],
    is_finite: NDArray[np.bool_],
    grid: int | NDArray[np.int64],
) -> Words:
    """Return the steps of each logprob on one or several grids; MISFIT if they do not reproduce it."""
    whole = np.rint(np.ldexp(gap, grid))
    is_in_reach = is_finite & (whole >= 0) & (whole < MISFIT)
    steps = np.where(is_in_reach, whole, MISFIT).astype(np.uint32)
    steps[is_in_reach & (take_steps(tops, steps, grid) != logprobs)] = MISFIT
    return steps


def take_steps(tops: Words, steps: Words, grid: int | NDArray[np.int64]) -> Words:
    """Return the bits of each top logprob minus its steps, by one float32 subtraction.

    Misfits give meaningless values. tops: may be a column that applies to all of a row's steps.
    """
    with np.errstate(all="ignore"):
        below = np.ldexp(steps.astype(np.float32), -grid)
        return (tops.view(np.float32) - below).view(np.uint32)


def _finite(bits: Words) -> NDArray[np.bool_]:
    is_finite: NDArray[np.bool_] = (bits & _EXPONENT) != _EXPONENT
    return is_finite


def _values(bits: Words, is_finite: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the numbers of some bit patterns, 0 if not finite."""
    return np.where(is_finite, bits, np.uint32(0)).view(np.float32).astype(np.float64)
