"""Choose the positions to show of a trace that is too long to show whole."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def lowest_of_stretches(values: NDArray[np.floating], n_stretches: int) -> NDArray[np.intp]:
    """Return the place of the lowest value in each of so many stretches of equal length, ascending.

    values: float[n]; what is not finite is never the lowest, and a stretch of nothing else has none. Where there are
    no more values than stretches, each finite one stands for itself.
    """
    known = np.where(np.isfinite(values), values, np.inf)
    ends = np.linspace(0, len(known), min(n_stretches, len(known)) + 1).astype(np.intp).tolist()
    places = [first + int(known[first:end].argmin()) for first, end in pairwise(ends) if first < end]
    return np.array([place for place in places if known[place] < np.inf], dtype=np.intp)
