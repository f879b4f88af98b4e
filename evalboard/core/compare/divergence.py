"""Find how two traces of one case part: drift onset, flip, and the numbers there.

Nothing after the flip is looked at: from there the two sides read different texts, and their logprobs no longer
answer the same question. Logprobs are in nats. docs/divergence.md defines every number.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from evalboard.core.compare.alignment import Shorter
from evalboard.core.compare.paired_rows import Vocabularies, lay_pairs
from evalboard.core.compare.partings import Divergence, measure_partings
from evalboard.core.trace import Trace, TraceColumns, join_traces

PART_CELLS = 1 << 17  # logprobs of both sides that are measured at once, so that they stay in the processor's cache


def find_divergence(
    baseline: Trace,
    candidate: Trace,
    *,
    vocabularies: Vocabularies | None = None,
    is_decimal: bool = False,
) -> Divergence:
    """Find how two traces part.

    vocabularies: the baseline's and the candidate's where they are not the same one; then tokens are compared by
    their bytes. is_decimal: a log gave the logprobs as decimals, so their last bits mean nothing.
    """
    sides = join_traces([baseline]), join_traces([candidate])
    return find_divergences(*sides, vocabularies=[vocabularies], is_decimal=is_decimal)[0]


def find_divergences(
    baseline: TraceColumns,
    candidate: TraceColumns,
    *,
    vocabularies: Sequence[Vocabularies | None] | None = None,
    is_decimal: bool = False,
) -> list[Divergence]:
    """Find how each pair of traces parts: trace i of the baseline and trace i of the candidate, as `find_divergence`.

    A pair's numbers are the same to the bit whatever stands beside it. vocabularies: one entry for each pair, or None
    where every pair has one vocabulary.
    """
    partings: list[Divergence] = []
    for first, last in _parts(baseline, candidate):
        own = baseline.cut(first, last), candidate.cut(first, last)
        laid = lay_pairs(*own, vocabularies and vocabularies[first:last])
        columns = measure_partings(laid, own, is_decimal=is_decimal)
        partings += [Divergence(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    return partings


def find_text_divergence(baseline: str, candidate: str) -> Divergence:
    """Find how two texts part that came without tokens: the first character that differs, and no more."""
    if baseline == candidate:
        return Divergence()
    n = min(len(baseline), len(candidate))
    position = next((place for place in range(n) if baseline[place] != candidate[place]), n)
    shorter: Shorter = "baseline" if len(baseline) < len(candidate) else "candidate"
    return Divergence(text_position=position, shorter=shorter if position == n else None)


def _parts(*sides: TraceColumns) -> Iterator[tuple[int, int]]:
    """Yield stretches of the pairs, each of at most PART_CELLS logprobs, and of one pair at the least."""
    cells = sum(side.starts * (1 + side.alternative_ids.shape[1]) for side in sides)
    first = 0
    while first < len(sides[0]):
        last = max(int(np.searchsorted(cells, cells[first] + PART_CELLS, side="right")) - 1, first + 1)
        yield first, last
        first = last
