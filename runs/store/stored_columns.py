"""The packed case columns of repeats, as arrays, and their digests, by which comparisons and verdicts know them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalboard.core import digest
from evalboard.core.stats import Marks, SizeCounts
from evalboard.core.trace import unpack_buckets, unpack_digests, unpack_marks
from runs.models import CaseColumns
from runs.store import bulk

NO_BUCKET = -1
COLUMNS = """
SELECT repeat_id, text_digests, trace_digests, buckets, bucket_ids, marks FROM runs_casecolumns
 WHERE repeat_id = ANY(%s::bigint[])
"""

Digests = NDArray[np.uint64]
Indexes = NDArray[np.int64]


class Columns(NamedTuple):
    """One repeat's columns by case index.

    texts, traces: uint64[n, 2], digests, zeros where missing. buckets: int64[n] of bucket ids, NO_BUCKET where missing.
    marks: uint8[n], as core.stats.live_answers has them.
    """

    repeat_id: int
    texts: Digests
    traces: Digests
    buckets: Indexes
    marks: Marks

    def take(self, cases: Indexes | slice) -> "Columns":
        """Return the columns of these cases alone, in this order."""
        return Columns(self.repeat_id, self.texts[cases], self.traces[cases], self.buckets[cases], self.marks[cases])


def missing(n: int) -> Columns:
    """Return the columns of a repeat without any response to n cases."""
    nothing = np.zeros((n, 2), np.uint64)
    return Columns(0, nothing, nothing, np.full(n, NO_BUCKET, np.int64), np.zeros(n, np.uint8))


def stream(repeat_ids: Sequence[int]) -> Iterator[Columns]:
    """Yield the columns of each of these repeats, in no order of repeats."""
    for repeat_id, texts, traces, packed, ids, marked in bulk.stream_binary(COLUMNS, [list(repeat_ids)]):
        text_digests, known = unpack_digests(texts), np.array([*ids, NO_BUCKET], np.int64)
        n = len(text_digests)
        buckets = known[np.minimum(unpack_buckets(packed, n), len(ids))]
        yield Columns(repeat_id, text_digests, unpack_digests(traces, n), buckets, unpack_marks(marked, n))


def packed_digest(*, bucket_ids: list[int] | None = None, **packed: bytes) -> str:
    """Return one digest of packed columns by name."""
    parts = {name: digest.short_digest(data).hex() for name, data in packed.items()}
    return digest.digest_json({**parts, "bucket_ids": bucket_ids})


def batch_sizes(repeat_ids: Sequence[int]) -> Mapping[int, SizeCounts]:
    """Return by repeat how many responses had which largest batch; {} where no batch is known."""
    rows = CaseColumns.objects.filter(repeat__in=repeat_ids).only("repeat_id", "batch_sizes")
    return {row.repeat_id: {int(size): n for size, n in row.batch_sizes.items()} for row in rows}
