"""Reads the pairs of a comparison back as they are stored, for its summary."""

import functools
from itertools import islice
from typing import Any

import numpy as np

from evalboard.core.compare import (
    CAUSE_CODES,
    NO_POSITION,
    PAIR_KINDS,
    SCORE_MISSING,
    DifferingPairs,
    find_look,
    is_larger,
    kind_by_consequence,
)
from runs.compare.groups import Groups
from runs.models import Comparison, Divergence
from runs.store import bulk

FLIPS_KEPT = 400
AT_ONCE = 5000  # rows as Python's objects

KINDS = {code: PAIR_KINDS.index(kind) for code in range(16) if (kind := kind_by_consequence(code)) is not None}
_look = functools.cache(find_look)  # few differ

# Ordered by case and repeats they come in the order of the pairing.
PAIRS = """
SELECT cause, numeric, evidence ? 'also_moved', (evidence->>'ratio')::float8, (evidence->>'threshold')::float8,
       consequence, drift_onset, flip_position, token_baseline, token_candidate, id
  FROM runs_divergence
 WHERE comparison_id = %s AND consequence <> %s
 ORDER BY case_index, repeat_baseline, repeat_candidate
"""

Flips = list[dict[str, Any]]


def read_pairs(row: Comparison, groups: Groups) -> tuple[DifferingPairs, Flips, list[list[int]]]:
    """Return the stored pairs as arrays, an even sample of the flips, and the pairs of buckets that occur."""
    pairs = np.sort(groups.pair_indexes[groups.pair_indexes >= 0])
    table = np.full((len(pairs), 9), NO_POSITION, np.int64)
    rows, n_read = bulk.stream_binary(PAIRS, [row.pk, SCORE_MISSING], at_once=500), 0
    while part := [_numbers(*values) for values in islice(rows, AT_ONCE)]:
        table[n_read : n_read + len(part)] = part
        n_read += len(part)
    differing = DifferingPairs(
        pairs=pairs,
        causes=table[:, 0].astype(np.uint8),
        looks=table[:, 1].astype(np.uint8),
        kinds=table[:, 2].astype(np.uint8),
        shifts=table[:, 3],
        onsets=table[:, 4],
        flips=table[:, 5],
        tokens_baseline=table[:, 6],
        tokens_candidate=table[:, 7],
    )
    flipped = table[table[:, 5] != NO_POSITION, 8]
    stored = Divergence.objects.filter(comparison=row).exclude(consequence=SCORE_MISSING)
    backends = stored.order_by("evidence__buckets").values_list("evidence__buckets", flat=True).distinct()
    return differing, _sample(stored, flipped), [list(pair) for pair in backends]


def _numbers(
    code: str, numeric: str, is_confounded: bool, ratio: float | None, limit: float | None, gravity: int, *rest: Any
) -> list[int]:
    """Return one row of the table; NO_POSITION where something is not known."""
    known = (is_larger(code, numeric, ratio, limit), *rest)
    numbers = [NO_POSITION if value is None else value for value in known]
    return [CAUSE_CODES[code], _look(code, numeric, is_confounded=is_confounded), KINDS[gravity], *numbers]


def _sample(stored: Any, flipped: np.ndarray[Any, np.dtype[np.int64]]) -> Flips:
    """Return an even sample of the flips. flipped: the ids of all, in the order of the pairing."""
    flips = stored.filter(pk__in=flipped[:: max(-(-len(flipped) // FLIPS_KEPT), 1)].tolist())
    return list(
        flips.order_by("case_index", "repeat_baseline", "repeat_candidate").values(
            "case_index",
            "repeat_baseline",
            "repeat_candidate",
            "cause",
            "flip_position",
            "margin_baseline",
            "gap_at_onset",
            "evidence__movement",
        )
    )
