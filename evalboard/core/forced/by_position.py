"""Measure how |log r| between two stacks depends on the position in the answer, for a chart."""

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.forced import GapsOfStretch

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
