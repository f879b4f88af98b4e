"""Find answers that another computation gave: repeats of one case that lie far off while the others agree.

Whoever routes a few requests to another build without a word is seen by it. Distances are mean squares of D in nats²,
as in `one_computation`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Distances = NDArray[np.float64]

FAR_FLOORS = 3.0  # noise of its dtype's floor moves an answer by no more
MIN_SEPARATION = 3.0  # by how much farther off than the others are from each other, in nats over nats
MIN_STRAYS = 3  # in as many cases: one far answer may be anything


@dataclass(frozen=True, slots=True)
class Strays:
    """The strays of one bucket's repeats.

    n_cases: that were looked at. places: (case, repeat) of each stray, as places in the tables. distance: root mean
    square, in nats, by which strays lie off; noise: by which the others of their cases do. n_agreeing: repeats that
    agree with most of their case, in all cases.
    """

    n_cases: int
    places: tuple[tuple[int, int], ...]
    distance: float
    noise: float
    n_agreeing: int


def find_strays(tables: Sequence[Distances], *, far: float) -> Strays | None:
    """Find the strays among the repeats of some cases; None where there are none to speak of.

    They are at least MIN_STRAYS, and they stand apart: less lies half as far off, and fewer cases agree on nothing.
    Noise that is larger in some answers has no such gap.

    tables: float64[k, k] of each case, NaN for a pair that shares too few positions. far: in nats, what noise does not
    do; 0 where repeats must be the same to the bit.
    """
    places, distances, noises, n_scattered, n_between, n_agreeing = [], [], [], 0, 0, 0
    for case, table in enumerate(tables):
        agreeing = _find_majority(table, far)
        if agreeing is None:
            n_scattered += 1
            continue
        n_agreeing += len(agreeing)
        within = _mean(table[np.ix_(agreeing, agreeing)])
        limit = max(far**2, MIN_SEPARATION**2 * within)
        for repeat in range(len(table)):
            off = table[repeat, agreeing[agreeing != repeat]]
            if off.min() > limit:  # NaN is never above
                places.append((case, repeat))
                distances.append(_mean(off))
                noises.append(within)
            elif off.min() > limit / 4:
                n_between += 1
    n_stray_cases = len({case for case, _ in places})
    if n_stray_cases < MIN_STRAYS or n_scattered >= n_stray_cases or n_between >= len(places):
        return None
    return Strays(len(tables), tuple(places), math.sqrt(_mean(distances)), math.sqrt(_mean(noises)), n_agreeing)


def _find_majority(table: Distances, far: float) -> NDArray[np.intp] | None:
    """Return the places of the repeats that lie near one of them, more than half of all; None without any such."""
    is_near = table <= far**2
    counts = is_near.sum(axis=1)
    centre = int(counts.argmax())
    return np.flatnonzero(is_near[centre]) if 2 * counts[centre] > len(table) else None


def _mean(values: Sequence[float] | Distances) -> float:
    known = np.asarray(values, np.float64)
    return float(known[~np.isnan(known)].mean())
