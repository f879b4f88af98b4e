"""The packed case columns of repeats, as arrays."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalboard.core import columns, digest
from evalboard.core.live_answers import Marks
from runs import bulk

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
    marks: uint8[n], as core.live_answers has them.
    """

    repeat_id: int
    texts: Digests
    traces: Digests
    buckets: Indexes
    marks: Marks


def stream(repeat_ids: Sequence[int]) -> Iterator[Columns]:
    """The columns of each of these repeats, in no order of repeats."""
    for repeat_id, texts, traces, packed, ids, marked in bulk.stream_binary(COLUMNS, [list(repeat_ids)]):
        n, known = len(texts) // digest.SHORT, np.array([*ids, NO_BUCKET], np.int64)
        buckets = known[np.minimum(columns.unpack_buckets(packed, n), len(ids))]
        yield Columns(repeat_id, _digests(texts), _digests(traces), buckets, columns.unpack_marks(marked, n))


def _digests(packed: bytes) -> Digests:
    return np.frombuffer(packed, "<u8").reshape(-1, 2)
