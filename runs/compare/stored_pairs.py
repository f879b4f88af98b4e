"""Reads the pairs of a comparison back as they are stored, for its summary: of each group of alike pairs, the first."""

import functools
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare import (
    CAUSE_CODES,
    NO_POSITION,
    PAIR_KINDS,
    DifferingPairs,
    find_look,
    is_larger,
    kind_by_consequence,
)
from runs.compare.groups import Groups, Indexes
from runs.compare.inputs import Inputs
from runs.models import Comparison
from runs.store import bulk

FLIPS_KEPT = 400
AT_ONCE = 5000  # rows as Python's objects

KINDS = {code: PAIR_KINDS.index(kind) for code in range(16) if (kind := kind_by_consequence(code)) is not None}
_look = functools.cache(find_look)  # few differ

# One parameter a column for all of the pairs, in whose order the rows come. Each is looked up by itself: of rows that
# were stored just now PostgreSQL knows no numbers yet, and a join it would plan as a scan of every comparison's pairs.
OF_PAIRS = """
  FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[])
       WITH ORDINALITY AS wanted (case_index, repeat_baseline, repeat_candidate, place)
 CROSS JOIN LATERAL (
       SELECT *
         FROM runs_divergence
        WHERE (comparison_id, case_index, repeat_baseline, repeat_candidate)
            = (%s, wanted.case_index, wanted.repeat_baseline, wanted.repeat_candidate)
       OFFSET 0
       ) AS pair
 ORDER BY place
"""
PAIRS = f"""
SELECT cause, numeric, evidence ? 'also_moved', (evidence->>'ratio')::float8, (evidence->>'threshold')::float8,
       consequence, drift_onset, flip_position, token_baseline, token_candidate
{OF_PAIRS}
"""
FLIP = (
    "case_index",
    "repeat_baseline",
    "repeat_candidate",
    "cause",
    "flip_position",
    "margin_baseline",
    "gap_at_onset",
    "evidence__movement",
)
FLIPS = f"""
SELECT pair.case_index, pair.repeat_baseline, pair.repeat_candidate, cause, flip_position, margin_baseline,
       gap_at_onset, (evidence->>'movement')::float8
{OF_PAIRS}
"""

Flips = list[dict[str, Any]]


def read_pairs(row: Comparison, inputs: Inputs, groups: Groups) -> tuple[DifferingPairs, Flips, list[list[int]]]:
    """Return the stored pairs as arrays, an even sample of the flips, and the pairs of buckets that occur.

    Pairs whose score is missing are in none of them.
    """
    is_paired = groups.pair_indexes[groups.firsts(slice(None))] >= 0  # as the others of its group
    table = _read_groups(row, inputs, groups, groups.firsts(slice(None))[is_paired])
    sizes = np.diff(groups.starts)
    members = groups.members[np.repeat(is_paired, sizes)]
    in_order = np.argsort(groups.pair_indexes[members])
    members = members[in_order]
    table = np.repeat(table, sizes[is_paired], axis=0)[in_order]
    differing = DifferingPairs(
        pairs=groups.pair_indexes[members],
        causes=table[:, 0].astype(np.uint8),
        looks=table[:, 1].astype(np.uint8),
        kinds=table[:, 2].astype(np.uint8),
        shifts=table[:, 3],
        onsets=table[:, 4],
        flips=table[:, 5],
        tokens_baseline=table[:, 6],
        tokens_candidate=table[:, 7],
    )
    flipped = members[differing.flips != NO_POSITION]
    return differing, _sample(row, inputs, groups, flipped), _backends(inputs, groups, members)


def _read_groups(row: Comparison, inputs: Inputs, groups: Groups, firsts: Indexes) -> NDArray[np.int64]:
    """Return int64[g, 8], what is stored of some pairs; NO_POSITION where something is not known."""
    table = np.full((len(firsts), 8), NO_POSITION, np.int64)
    parameters = [*_places(inputs, groups, firsts), row.pk]
    rows, n_read = bulk.stream_binary(PAIRS, parameters, at_once=500), 0
    while part := [_numbers(*values) for values in islice(rows, AT_ONCE)]:
        table[n_read : n_read + len(part)] = part
        n_read += len(part)
    return table


def _places(inputs: Inputs, groups: Groups, pairs: Indexes) -> list[list[int]]:
    """Return the columns by which some pairs are stored: cases and both sides' repeats."""
    ours, theirs = (np.array(side.key.repeats, np.int64) for side in (inputs.baseline, inputs.candidate))
    repeats = ours[groups.baseline_repeats[pairs]], theirs[groups.candidate_repeats[pairs]]
    return [column.tolist() for column in (inputs.baseline.case_indexes[groups.cases[pairs]], *repeats)]


def _numbers(
    code: str, numeric: str, is_confounded: bool, ratio: float | None, limit: float | None, gravity: int, *rest: Any
) -> list[int]:
    """Return one row of the table; NO_POSITION where something is not known."""
    known = (is_larger(code, numeric, ratio, limit), *rest)
    numbers = [NO_POSITION if value is None else value for value in known]
    return [CAUSE_CODES[code], _look(code, numeric, is_confounded=is_confounded), KINDS[gravity], *numbers]


def _sample(row: Comparison, inputs: Inputs, groups: Groups, flipped: Indexes) -> Flips:
    """Return an even sample of the flips. flipped: all of them, in the order of the pairing."""
    some = flipped[:: max(-(-len(flipped) // FLIPS_KEPT), 1)]
    rows = bulk.stream_binary(FLIPS, [*_places(inputs, groups, some), row.pk], at_once=100)
    return [dict(zip(FLIP, values, strict=True)) for values in rows]


def _backends(inputs: Inputs, groups: Groups, pairs: Indexes) -> list[list[int]]:
    cases = groups.cases[pairs]
    ours = inputs.baseline.buckets[cases, groups.baseline_repeats[pairs]]
    theirs = inputs.candidate.buckets[cases, groups.candidate_repeats[pairs]]
    backends: list[list[int]] = np.unique(np.column_stack([ours, theirs]), axis=0).tolist()
    return backends
