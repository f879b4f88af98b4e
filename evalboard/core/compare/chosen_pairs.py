"""Choose the representative pair of each case, and summarise the cases of a list."""

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

SAMPLED = 4  # cases of a cluster whose reasons must be the same


class AlikeRows(NamedTuple):
    """Pairs of one case that diverge alike: number, key of the first, and fields of its Flip.

    movement: how far the logits moved at most, in nats; None if not known.
    """

    case_index: int
    consequence: int
    cause: str
    numeric: str
    flip_position: int | None
    token_baseline: int | None
    token_candidate: int | None
    n: int
    first: int
    movement: float | None


PARTED_ALIKE = AlikeRows._fields[: AlikeRows._fields.index("n")]  # fields in which pairs that part alike are equal


class ChosenPair(NamedTuple):
    """The representative pair of a case, by the key of its row.

    n_alike: how many of the case's pairs diverge alike, of n_pairs that differ. look: its numeric cause, or its cause
    if the numbers give none. tokens: those chosen at the flip, None without a flip. movement: how far the logits moved
    there, in nats; 0 if not known. reason: the candidate's scorer's, "" if it gave none.
    """

    row: int
    n_alike: int
    n_pairs: int
    cause: str
    look: str
    token_baseline: int | None
    token_candidate: int | None
    movement: float
    reason: str = ""


class ToldCluster(NamedTuple):
    """Cases whose pairs look alike and diverge at the same two tokens. reason: common, or ""."""

    token_baseline: int
    token_candidate: int
    look: str
    n_cases: int
    reason: str


def choose_gravest(alike: Iterable[AlikeRows]) -> dict[int, ChosenPair]:
    """Return by case index the pair of its gravest ones that parts as most of them do."""
    cases: dict[int, list[AlikeRows]] = {}
    for rows in alike:
        cases.setdefault(rows.case_index, []).append(rows)
    gravest = {
        case: min(every, key=lambda rows: (rows.consequence, -rows.n, rows.first)) for case, every in cases.items()
    }
    return {
        case: ChosenPair(
            row=one.first,
            n_alike=one.n,
            n_pairs=sum(rows.n for rows in cases[case]),
            cause=one.cause,
            look=one.numeric or one.cause,
            token_baseline=one.token_baseline,
            token_candidate=one.token_candidate,
            movement=one.movement or 0.0,
        )
        for case, one in gravest.items()
    }


def count_looks(pairs: Iterable[ChosenPair]) -> list[tuple[str, int]]:
    """Return how many pairs have each look, the most first; equal counts in the order of their names."""
    return sorted(Counter(pair.look for pair in pairs).items(), key=lambda each: (-each[1], each[0]))


def cluster_pairs(pairs: Iterable[ChosenPair | None]) -> list[ToldCluster]:
    """Group cases by the two tokens at which their pairs part; the largest first."""
    groups: dict[tuple[int, int, str], list[ChosenPair]] = {}
    for pair in pairs:
        if pair is not None and pair.token_baseline is not None and pair.token_candidate is not None:
            groups.setdefault((pair.token_baseline, pair.token_candidate, pair.look), []).append(pair)
    clusters = []
    for key, alike in sorted(groups.items(), key=lambda group: -len(group[1])):
        reasons = {pair.reason for pair in islice(alike, SAMPLED)}
        clusters.append(ToldCluster(*key, len(alike), reasons.pop() if len(reasons) == 1 else ""))
    return clusters
