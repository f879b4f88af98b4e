"""The packed case columns of repeats as arrays, and the digests that identify them."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evalboard.core import digest
from evalboard.core.compare import NO_BUCKET, Columns, missing
from evalboard.core.stats import SizeCounts
from evalboard.core.trace import unpack_buckets, unpack_digests, unpack_marks
from runs.models import CaseColumns, RepeatScore
from runs.store import bulk

__all__ = ["NO_BUCKET", "Columns", "batch_sizes", "find_changed", "missing", "packed_digest", "stream"]

COLUMNS = """
SELECT repeat_id, text_digests, trace_digests, buckets, bucket_ids, marks FROM runs_casecolumns
 WHERE repeat_id = ANY(%s::bigint[])
"""

Digests = NDArray[np.uint64]
Indexes = NDArray[np.int64]


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


def find_changed(repeat_ids: Sequence[int]) -> list[int]:
    """Return the repeats whose columns or scores in the database are not those of their digests."""
    changed = set()
    for row in CaseColumns.objects.filter(repeat__in=repeat_ids).iterator(chunk_size=8):
        packed = {name: bytes(getattr(row, name)) for name in ("text_digests", "trace_digests", "buckets")}
        if row.marks is not None:
            packed["marks"] = bytes(row.marks)
        if row.digest and row.digest != packed_digest(**packed, bucket_ids=row.bucket_ids):
            changed.add(row.repeat_id)
    for score in RepeatScore.objects.filter(repeat__in=repeat_ids).iterator(chunk_size=8):
        own = packed_digest(scores=bytes(score.scores), reasons=bytes(score.reasons))
        if score.digest and score.digest != own:
            changed.add(score.repeat_id)
    return sorted(changed)


def batch_sizes(repeat_ids: Sequence[int]) -> Mapping[int, SizeCounts]:
    """Return by repeat how many responses had which largest batch; {} where no batch is known."""
    rows = CaseColumns.objects.filter(repeat__in=repeat_ids).only("repeat_id", "batch_sizes")
    return {row.repeat_id: {int(size): n for size, n in row.batch_sizes.items()} for row in rows}
