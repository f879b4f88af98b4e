"""Responses of one repeat, some cases at a time, with their scores and who served them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.base import finite
from evalboard.core.trace import unpack_reasons, unpack_scores
from runs.models import EngineProcess, RepeatRecord, RepeatScore, ResponseRecord

CHUNK = 200  # cases whose texts are in memory together

PLAIN = (  # fields of a response that say how it was decoded
    "engine_process_id",
    "attempt",
    "seed_sent",
    "request_id",
    "n_tokens",
    "n_prompt_tokens",
    "n_cached_tokens",
    "n_preemptions",
    "batch_min",
    "batch_max",
    "queued_seconds",
    "prefill_seconds",
    "decode_seconds",
    "call",
)
FIELDS = (
    *PLAIN,
    "case_index",
    "text",
    "reasoning",
    "n_reasoning_tokens",
    "is_truncated",
    "finish_reason",
    "ending",
    "error_code",
    "error_detail",
    "trace_block_id",
    "trace_slot",
    "text_digest",
    "trace_digest",
    "trace_reason",
    "unmeasured_trace",
    "prompt_digest",
    "marks",
    "is_vouched",
    "recorded_at",
)

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of one repeat by one scorer: float64[n_cases], NaN if missing, and a reason for each."""

    scorer_digest: str
    is_own: bool
    scores: NDArray[np.float64]
    reasons: Sequence[str | None]

    def at(self, index: int) -> tuple[float | None, str | None]:
        return finite(float(self.scores[index])), self.reasons[index]


def scores_of(repeat: RepeatRecord, *, own: int) -> list[Scores]:
    """Return the scores of a repeat by each scorer, that with id `own` (the suite's) first."""
    rows = RepeatScore.objects.filter(repeat=repeat).select_related("scorer").order_by("scorer_id")
    scores = [
        Scores(
            scorer_digest=row.scorer.digest,
            is_own=row.scorer_id == own,
            scores=unpack_scores(bytes(row.scores)),
            reasons=unpack_reasons(bytes(row.reasons)),
        )
        for row in rows
    ]
    return sorted(scores, key=lambda each: not each.is_own)


def processes_of(repeats: Iterable[RepeatRecord]) -> dict[int, EngineProcess]:
    """Read the engine processes that decoded some of the repeats, with all that they belong to, by id."""
    linked = RepeatRecord.engine_processes.through.objects.filter(repeat__in=list(repeats)).values("engineprocess")
    related = ("worker", "bucket__model", "bucket__fingerprint")
    processes = EngineProcess.objects.filter(pk__in=linked).select_related(*related).order_by("id")
    return {process.pk: process for process in processes}


def some_of(repeat: RepeatRecord, indexes: Sequence[int]) -> Mapping[int, Row]:
    """Return the stored responses to at most CHUNK cases, by case index."""
    rows = (
        ResponseRecord.objects.filter(repeat=repeat, case_index__in=list(indexes))
        .order_by("case_index")
        .values(*FIELDS)
    )
    return {row["case_index"]: row for row in rows}


def chunks(indexes: Sequence[int]) -> Iterable[Sequence[int]]:
    for start in range(0, len(indexes), CHUNK):
        yield indexes[start : start + CHUNK]


def hex_of(digest: bytes | memoryview | None) -> str | None:
    return None if digest is None else bytes(digest).hex()
