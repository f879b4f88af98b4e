"""Permutation tests: how often chance alone, dealing the labels anew, gives as much as was seen."""

import numpy as np
from numpy.typing import NDArray

DRAWS = 999
ROUNDING = 1e-9  # statistics are sums in another order; what differs by less is the same


def p_value(observed: float, drawn: NDArray[np.float64]) -> float:
    """The chance of at least `observed`, from its value under each redealing; the labels as they are count as one."""
    return float((1 + np.count_nonzero(drawn >= observed - ROUNDING)) / (1 + len(drawn)))


def deals(rng: np.random.Generator, n: int, n_labelled: int, draws: int = DRAWS) -> NDArray[np.float64]:
    """0/1 of shape [draws, n], each row with n_labelled ones at random places."""
    labels = np.zeros((draws, n))
    labels[:, :n_labelled] = 1
    return rng.permuted(labels, axis=1)
