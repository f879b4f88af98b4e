"""Several suites asked at once: which drops stand although many were looked for, and which changes merit a look."""

from collections.abc import Sequence

WORTH_A_LOOK = 0.10  # of the changes pointed out, at most this share is chance


def holm(ratios: Sequence[float], n_asked: int) -> list[bool]:
    """Which of some claims stand, by Holm's rule over the n_asked gates that could have made one.

    ratios: each claim's p-value divided by what its look may spend, so that 1 is the limit for a gate by itself.
    """
    stands = [False] * len(ratios)
    for rank, index in enumerate(sorted(range(len(ratios)), key=lambda each: ratios[each])):
        if ratios[index] * (n_asked - rank) > 1:
            break
        stands[index] = True
    return stands


def benjamini_hochberg(p_values: Sequence[float], rate: float = WORTH_A_LOOK) -> list[bool]:
    """Which of some p-values to point out, so that at most `rate` of those pointed out are chance."""
    order = sorted(range(len(p_values)), key=lambda each: p_values[each])
    last = max((rank for rank, index in enumerate(order, 1) if p_values[index] * len(order) <= rate * rank), default=0)
    found = [False] * len(p_values)
    for index in order[:last]:
        found[index] = True
    return found
