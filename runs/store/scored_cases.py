"""Read single responses, and their scores from a repeat's packed columns, without the other cases."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from evalboard.contract.base import finite
from evalboard.core.stats import NO_DRAW_MARKS, make_mark
from evalboard.core.trace import directory_size, find_reason, unpack_frame_of_reasons, unpack_scores
from runs.store import bulk

SCORES = """
SELECT wanted.repeat, wanted.index, score.id, score.scorer_id, scorer.digest,
       substring(score.scores FROM 8 * wanted.index + 1 FOR 8), substring(score.reasons FOR %s)
  FROM unnest(%s::bigint[], %s::integer[]) AS wanted (repeat, index)
  JOIN runs_repeatscore AS score ON score.repeat_id = wanted.repeat
  JOIN runs_scorer AS scorer ON scorer.id = score.scorer_id
 ORDER BY score.id
"""
FRAMES = """
SELECT score.id, frame.first, substring(score.reasons FROM frame.first + 1 FOR frame.size)
  FROM unnest(%s::bigint[], %s::integer[], %s::integer[]) AS frame (id, first, size)
  JOIN runs_repeatscore AS score ON score.id = frame.id
"""
RESPONSES = """
SELECT wanted.run, repeat.index, repeat.id, response.id, response.case_index, response.text_digest,
       response.error_code, response.marks, substring(score.scores FROM 8 * wanted.index + 1 FOR 8)
  FROM unnest(%s::bigint[], %s::integer[], %s::bigint[]) AS wanted (run, index, scorer)
  JOIN runs_repeat AS repeat ON repeat.run_id = wanted.run
  JOIN runs_response AS response ON response.repeat_id = repeat.id AND response.case_index = wanted.index
  LEFT JOIN runs_repeatscore AS score ON score.repeat_id = repeat.id AND score.scorer_id = wanted.scorer
 ORDER BY wanted.run, repeat.index
"""
START_BYTES = 1996  # a chunk of those in which PostgreSQL keeps large values: all reasons of a small suite

NO_SAMPLE = make_mark(NO_DRAW_MARKS)

RepeatCase = tuple[int, int]  # id of a repeat, index of a case
Frame = tuple[int, int]  # id of a repeat's score, the first byte of the frame in its reasons


class ScoredCase(NamedTuple):
    """One scorer's score of a response.

    score: from 0 to 1, None if missing. reason: "" if it gave none.
    """

    scorer_id: int
    scorer_digest: str
    score: float | None
    reason: str


class CaseResponse(NamedTuple):
    """One response to a case. text: the digest of its text; counts: it is a sample and has a score."""

    run: int
    repeat: int
    repeat_id: int
    id: int
    case_index: int
    text: bytes
    error: str
    is_sample: bool
    score: float | None

    @property
    def counts(self) -> bool:
        return self.is_sample and self.score is not None

    @property
    def passed(self) -> bool:
        return self.score == 1


def read_scored(wanted: Collection[RepeatCase], *, n_cases: int) -> Mapping[RepeatCase, list[ScoredCase]]:
    """Return each scorer's scores of these cases, oldest scorer first, in at most two statements.

    n_cases: of the largest suite among them. What has not been scored yet has no entry. Raises ColumnsDamaged.
    """
    start_bytes = max(START_BYTES, directory_size(n_cases))
    repeats, indexes = [repeat for repeat, _ in wanted], [index for _, index in wanted]
    rows = list(bulk.stream_binary(SCORES, [start_bytes, repeats, indexes], at_once=max(len(repeats), 1)))
    frames: dict[Frame, list[str | None]] = {}
    places, missing = [], {}
    for _, case, score_id, _, _, _, start in rows:
        first, size, index = find_reason(start, case)
        end = first + size
        places.append(((score_id, first), index))
        if (score_id, first) in frames:
            continue
        if end <= len(start):
            frames[score_id, first] = unpack_frame_of_reasons(start[first:end])
        else:
            missing[score_id, first] = end - first
    if missing:
        columns = [[score_id for score_id, _ in missing], [first for _, first in missing], list(missing.values())]
        for score_id, first, data in bulk.stream_binary(FRAMES, columns, at_once=len(missing)):
            frames[score_id, first] = unpack_frame_of_reasons(data)
    scored: dict[RepeatCase, list[ScoredCase]] = defaultdict(list)
    for (repeat, case, _, scorer_id, scorer, score, _), (frame, index) in zip(rows, places, strict=True):
        value = finite(float(unpack_scores(score)[0]))
        scored[repeat, case].append(ScoredCase(scorer_id, scorer, value, frames[frame][index] or ""))
    return scored


def read_case_responses(runs: Sequence[int], indexes: Sequence[int], scorers: Sequence[int]) -> Iterator[CaseResponse]:
    """Yield all responses of each run to the case of that index, scored, by run and repeat."""
    for row in bulk.stream_binary(RESPONSES, [list(runs), list(indexes), list(scorers)], at_once=500):
        run, repeat, repeat_id, key, index, text, error, marks, score = row
        value = None if score is None else finite(float(unpack_scores(score)[0]))
        fields = (bytes(text or b""), error, not marks & NO_SAMPLE, value)
        yield CaseResponse(run, repeat, repeat_id, key, index, *fields)
