"""Load the packed columns of a run's complete repeats as arrays; points and ranges of repeats."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalboard.core.stats import drawn_points, run_points, span
from evalboard.core.trace import (
    unpack_answers,
    unpack_buckets,
    unpack_chances,
    unpack_digests,
    unpack_marks,
    unpack_scores,
)
from runs.models import Case, RepeatScore, RunRecord
from runs.store import NO_BUCKET, Digests, bulk

_COLUMNS = """
SELECT repeat.index, columns.n_left_out, columns.text_digests, columns.trace_digests, columns.buckets,
       columns.bucket_ids, columns.marks, columns.flip_chances, score.id, score.scores, score.answers
  FROM runs_repeat repeat
  LEFT JOIN runs_casecolumns columns ON columns.repeat_id = repeat.id
  LEFT JOIN runs_repeatscore score ON score.repeat_id = repeat.id AND score.scorer_id = %s
 WHERE repeat.run_id = %s AND repeat.cases IS NULL ORDER BY repeat.index
"""

_TRACES = """
SELECT repeat.index, columns.trace_digests
  FROM runs_repeat repeat JOIN runs_casecolumns columns ON columns.repeat_id = repeat.id
 WHERE repeat.run_id = %s AND repeat.cases IS NULL
"""


@dataclass(frozen=True, slots=True)
class RepeatColumns:
    """One repeat's columns by case index; each is None while the repeat has none.

    texts, traces: uint64[n, 2], digests, zeros where missing. served_by: int64[n], bucket ids, NO_BUCKET where missing.
    marks: uint8[n], as core.stats.live_answers has them; n_left_out: responses that are no draws. flip_chances:
    float32[n], of the first repeat alone. scores: float64[n], the suite's own scorer's, in the row `score_id`; answers:
    uint64[n], as core.trace packs them.
    """

    index: int
    n_left_out: int = 0
    texts: Digests | None = None
    traces: Digests | None = None
    served_by: NDArray[np.int64] | None = None
    marks: NDArray[np.uint8] | None = None
    flip_chances: NDArray[np.float32] | None = None
    score_id: int | None = None
    scores: NDArray[np.float64] | None = None
    answers: NDArray[np.uint64] | None = None

    @property
    def has_scores(self) -> bool:
        """Tell whether it has ended and was scored."""
        return self.scores is not None and self.served_by is not None

    @property
    def is_whole(self) -> bool:
        """Tell whether every case has a score and a response."""
        return self.scores is not None and self.served_by is not None and not np.isnan(self.scores).any()


@dataclass(frozen=True, slots=True)
class RunColumns:
    """A run's columns. groups: case index → group, if it has one; empty while the run is in progress."""

    run: RunRecord
    repeats: tuple[RepeatColumns, ...]
    groups: dict[int, str]

    @property
    def n_cases(self) -> int:
        return self.run.suite_version.n_cases


def read_columns(run: RunRecord) -> RunColumns:
    """Read all columns of a run that came with its suite version, in two statements."""
    rows = bulk.stream_binary(_COLUMNS, [run.suite_version.scorer_id, run.pk])
    repeats = tuple(_unpacked(run.suite_version.n_cases, *row) for row in rows)
    return RunColumns(run, repeats, _groups(run) if run.is_terminal else {})


def read_traces(run_id: int) -> Iterator[tuple[int, Digests]]:
    """Yield (repeat index, uint64[n, 2] trace digests) of a run."""
    for row in bulk.stream_binary(_TRACES, [run_id]):
        yield row[0], unpack_digests(row[1])


def read_scores(run: RunRecord) -> dict[int, NDArray[np.float64]]:
    """Return repeat index → float64[n_cases], the scores of a run under its suite's own scorer."""
    own = RepeatScore.objects.filter(repeat__run=run, repeat__cases=None, scorer=run.suite_version.scorer_id)
    return {index: unpack_scores(bytes(packed)) for index, packed in own.values_list("repeat__index", "scores")}


def _unpacked(
    n_cases: int,
    index: int,
    n_left_out: int | None,
    texts: bytes | None,
    traces: bytes,
    buckets: bytes,
    bucket_ids: list[int],
    marks: bytes | None,
    chances: bytes | None,
    score_id: int | None,
    scores: bytes | None,
    answers: bytes | None,
) -> RepeatColumns:
    known = RepeatColumns(
        index=index,
        score_id=score_id,
        scores=None if scores is None else unpack_scores(scores, n_cases),
        answers=None if answers is None else unpack_answers(answers, n_cases),
    )
    if texts is None:
        return known
    ids = np.array([*bucket_ids, NO_BUCKET], np.int64)
    return replace(
        known,
        n_left_out=n_left_out or 0,
        texts=unpack_digests(texts, n_cases),
        traces=unpack_digests(traces, n_cases),
        served_by=ids[np.minimum(unpack_buckets(buckets, n_cases), len(bucket_ids))],
        marks=unpack_marks(marks, n_cases),
        flip_chances=None if chances is None else unpack_chances(chances, n_cases),
    )


def _groups(run: RunRecord) -> dict[int, str]:
    cases = Case.objects.filter(suite_version=run.suite_version_id).exclude(group="").order_by()
    return dict(cases.values_list("index", "group"))


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
