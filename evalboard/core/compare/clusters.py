"""Group similar divergences, and count where in the answers they are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare.cause import CAUSE_CODES

MAX_BINS = 20


@dataclass(frozen=True, slots=True)
class Parted:
    """One pair that parted at a token: tokens as bytes, None where a side had ended."""

    case: int
    cause: str
    baseline_token: bytes | None
    candidate_token: bytes | None


@dataclass(frozen=True, slots=True)
class TokenCluster:
    """Pairs of one cause that parted on the same two tokens, the baseline's and the candidate's.

    cases: case indexes in order. n_of_cause: how many cases parted for this cause at all, as in "37 of 41".
    """

    cause: str
    tokens: tuple[bytes | None, bytes | None]
    cases: tuple[int, ...]
    n_of_cause: int

    @property
    def n_cases(self) -> int:
        return len(self.cases)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of positions: bin i covers starts[i] up to, not including, starts[i] + width.

    n_at_start: how many stand at position 0 itself; there the prefill already differed.
    """

    width: int
    starts: tuple[int, ...]
    counts: tuple[int, ...]
    n_at_start: int


def find_clusters(parted: Iterable[Parted]) -> list[TokenCluster]:
    """Group pairs by cause and tokens: the largest first, then in the order of causes and bytes."""
    groups: dict[tuple[str, tuple[bytes | None, bytes | None]], set[int]] = {}
    cases_by_cause: dict[str, set[int]] = {}
    for pair in parted:
        groups.setdefault((pair.cause, (pair.baseline_token, pair.candidate_token)), set()).add(pair.case)
        cases_by_cause.setdefault(pair.cause, set()).add(pair.case)
    clusters = [TokenCluster(*key, tuple(sorted(cases)), len(cases_by_cause[key[0]])) for key, cases in groups.items()]
    return sorted(clusters, key=_place)


def histogram(positions: Sequence[int] | NDArray[np.int64], longest: int) -> Histogram:
    """Count positions in bins of a round width (1, 2, 5, 10, …), at most MAX_BINS over `longest`.

    Two histograms with one `longest` have the same bins.
    """
    places = np.asarray(positions, np.int64)
    reach = max(longest, int(places.max(initial=-1)) + 1, 1)
    width = _round_width(reach)
    counts = np.bincount(places // width, minlength=-(-reach // width)).tolist()
    starts = tuple(range(0, len(counts) * width, width))
    return Histogram(width, starts, tuple(counts), int(np.count_nonzero(places == 0)))


def _place(cluster: TokenCluster) -> tuple[int, int, bytes, bytes]:
    one, other = cluster.tokens
    return -cluster.n_cases, CAUSE_CODES[cluster.cause], one or b"", other or b""


def _round_width(reach: int) -> int:
    decade = 1
    while True:
        for step in (1, 2, 5):
            if step * decade * MAX_BINS >= reach:
                return step * decade
        decade *= 10
