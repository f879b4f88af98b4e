"""Points and ranges of repeats, out of their packed columns."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evalboard.core.stats import drawn_points, run_points, span
from evalboard.core.trace import unpack_buckets, unpack_scores

__all__ = ["Buffer", "Range", "case_buckets", "drawn_points", "points_in_bucket", "run_range", "span"]

Range = tuple[float, float]
Buffer = bytes | memoryview  # what the database driver gives for packed bytes


def run_range(*, status: str, points: Sequence[float | None], n_buckets: int) -> Range | None:
    """Return the range of a run, in points: those of its repeats of draws.

    Scores are never pooled across buckets, and a run that ended with responses missing has none. While
    a run is at work it spans the repeats finished so far.
    """
    if n_buckets > 1:
        return None
    if status in ("queued", "running"):
        return span(points)
    if status != "finished" or None in points:
        return None
    return span(points)


def case_buckets(packed: Buffer, bucket_ids: Sequence[int]) -> NDArray[np.int64]:
    """Return int64[n_cases]: the bucket that answered each case, -1 if the response is missing."""
    known = np.array([*bucket_ids, -1], dtype=np.int64)
    return known[np.minimum(unpack_buckets(bytes(packed)), len(bucket_ids))]


def points_in_bucket(scores: Buffer, served_by: NDArray[np.int64], bucket_id: int) -> float | None:
    """Return a repeat's points over one bucket's cases; None without any."""
    mine = unpack_scores(bytes(scores))[served_by == bucket_id]
    return run_points(mine, np.ones(len(mine), np.bool_)) if len(mine) else None
