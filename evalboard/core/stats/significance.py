"""Test significance: by permutation, and where many tests are made at once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WORTH_A_LOOK = 0.10  # of the changes pointed out, at most this share is chance
N_DEALS = 999
ROUNDING_ERROR = 1e-9  # statistics are sums in another order; what differs by less is the same


def permutation_p_value(observed: float, drawn: NDArray[np.float64]) -> float:
    """Return the chance of at least `observed` among the values under permutations and itself."""
    return float((1 + np.count_nonzero(drawn >= observed - ROUNDING_ERROR)) / (1 + len(drawn)))


def deal_labels(rng: np.random.Generator, n: int, n_labelled: int, draws: int = N_DEALS) -> NDArray[np.float64]:
    """Return 0/1 of shape [draws, n], each row with n_labelled ones at random places."""
    labels = np.zeros((draws, n))
    labels[:, :n_labelled] = 1
    return rng.permuted(labels, axis=1)


def holm(ratios: Sequence[float], n_asked: int) -> list[bool]:
    """Tell which claims Holm's rule accepts, where n_asked gates could have made one.

    ratios: each claim's p-value divided by what its checkpoint may spend, so that 1 is the limit for a single gate.
    """
    stands = [False] * len(ratios)
    for rank, index in enumerate(sorted(range(len(ratios)), key=lambda each: ratios[each])):
        if ratios[index] * (n_asked - rank) > 1:
            break
        stands[index] = True
    return stands


def benjamini_hochberg(
    p_values: Sequence[float], rate: float = WORTH_A_LOOK, *, n_tests: int | None = None
) -> list[bool]:
    """Tell which p-values to point out at false discovery rate `rate` (Benjamini and Hochberg).

    n_tests: how many tests were made, where those that are left out gave 1; else they are all here.
    """
    values = np.asarray(p_values, np.float64)
    order = np.argsort(values, kind="stable")
    limits = rate * np.arange(1, len(values) + 1)
    within = np.flatnonzero(values[order] * (n_tests or len(values)) <= limits)
    is_pointed_out = np.zeros(len(values), np.bool_)
    is_pointed_out[order[: within[-1] + 1 if len(within) else 0]] = True
    flags: list[bool] = is_pointed_out.tolist()
    return flags
