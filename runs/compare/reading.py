"""Read what a comparison needs besides columns: responses, and answers scored on both stacks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evalboard.core.compare import AnswerKey, Bools, Indexes, ResponseFacts, ScoredAnswer
from runs.models import EngineProcess, ForcedAnswerRecord, ResponseRecord
from runs.store import bulk

# Over the binary protocol and with one parameter for all cases: the ORM takes several times as long over thousands.
RESPONSES = """
SELECT case_index, trace_block_id, trace_slot, finish_reason, ending, error_code, prompt_digest, n_prompt_tokens,
       seed_sent, process.vocabulary_id, n_reasoning_tokens, CASE WHEN %s THEN text ELSE '' END
  FROM runs_response
  LEFT JOIN runs_engineprocess AS process ON process.id = engine_process_id
 WHERE repeat_id = %s AND case_index = ANY(%s::bigint[])
"""


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """The answers of a side that both stacks scored. scorings: ids, the baseline's stack first."""

    scorings: tuple[int, int]

    def cases(self) -> Sequence[int]:
        rows = ForcedAnswerRecord.objects.filter(scoring=self.scorings[0], error_code="")
        return list(rows.values_list("case_index", flat=True))

    def read(
        self, case_indexes: Sequence[int]
    ) -> tuple[Mapping[AnswerKey, ScoredAnswer], Mapping[AnswerKey, ScoredAnswer]]:
        ours, theirs = (_read_scored(scoring, case_indexes) for scoring in self.scorings)
        return ours, theirs


@dataclass(frozen=True, slots=True, eq=False)
class StoredResponses:
    """The responses of one side.

    repeat_ids, case_indexes: by their places in its columns; bucket_id: of most of them, None if unknown.
    """

    repeat_ids: Sequence[int]
    case_indexes: Indexes
    bucket_id: int | None
    scored: StoredAnswers | None

    def read(self, cases: Indexes, repeats: Indexes, needs_text: Bools) -> list[ResponseFacts | None]:
        responses: list[ResponseFacts | None] = [None] * len(cases)
        for repeat in np.unique(repeats).tolist():
            for has_text in (False, True):
                at = np.flatnonzero((repeats == repeat) & (needs_text == has_text))
                if len(at):
                    indexes = self.case_indexes[cases[at]].tolist()
                    rows = _read(self.repeat_ids[repeat], indexes, has_text)
                    for place, index in zip(at.tolist(), indexes, strict=True):
                        responses[place] = rows.get(index)
        return responses

    def find_traced(self, is_there: Bools) -> Bools:
        has_trace = is_there.copy()
        for at, repeat_id in enumerate(self.repeat_ids):
            texts = ResponseRecord.objects.filter(repeat=repeat_id, trace_block=None)
            has_trace[np.isin(self.case_indexes, list(texts.values_list("case_index", flat=True))), at] = False
        return has_trace

    def find_vocabulary(self) -> int | None:
        if self.bucket_id is None:
            return None
        processes = EngineProcess.objects.filter(repeats__in=self.repeat_ids, bucket=self.bucket_id)
        return processes.exclude(vocabulary=None).order_by("id").values_list("vocabulary_id", flat=True).first()


def _read(repeat_id: int, indexes: list[int], has_text: bool) -> dict[int, ResponseFacts]:
    rows = bulk.stream_binary(RESPONSES, [has_text, repeat_id, indexes], at_once=100)
    return {
        index: ResponseFacts(None if block is None else (block, slot), *others) for index, block, slot, *others in rows
    }


def _read_scored(scoring: int, case_indexes: Sequence[int]) -> dict[AnswerKey, ScoredAnswer]:
    """The scored answers to these cases whose prompt is the one that was sent, and no other template's."""
    rows = ForcedAnswerRecord.objects.filter(
        scoring=scoring, case_index__in=case_indexes, error_code="", is_rendered=False, trace_block__isnull=False
    )
    fields = "case_index", "trace_digest", "trace_block_id", "trace_slot", "engine_process__vocabulary_id"
    return {
        (case, bytes(digest)): ScoredAnswer((block, slot), vocabulary)
        for case, digest, block, slot, vocabulary in rows.values_list(*fields)
    }
