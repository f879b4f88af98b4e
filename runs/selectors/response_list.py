"""Responses as rows of a list: text, score and provenance, no trace."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db.models import F, QuerySet, Value
from numpy.typing import NDArray

from evalboard.core import columns, fragility, live_answers
from evalboard.core.errors import NotFound
from runs.models import Case, CaseColumns, Repeat, RepeatScore, Response, Run
from runs.selectors.response import Field, finite, provenance_of


@dataclass(frozen=True, slots=True)
class ResponseRow:
    """One response. `place` orders the rows of a run: by repeat, then case. `score` is the suite's own scorer's.

    `flip_chance` is the case's, predicted from the run's first repeat; None where its margins do not say.
    """

    place: int
    repeat: int
    case_id: str
    case_index: int
    text: str
    finish_reason: str
    error_code: str
    error_detail: str
    is_vouched: bool
    marks: tuple[str, ...]
    score: float | None
    reason: str
    flip_chance: float | None
    trace_digest: str
    provenance: tuple[Field, ...]
    recorded_at: datetime


def response_rows(
    run_id: int,
    *,
    case_id: str | None = None,
    repeat: int | None = None,
    after: int | None = None,
    before: int | None = None,
    limit: int = 50,
) -> tuple[ResponseRow, ...]:
    """Responses of a run by repeat and case, beyond the place `after` or nearest before `before`.

    Raises NotFound for a run or case that is not there.
    """
    run = Run.objects.select_related("suite_version").filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    n_cases = run.suite_version.n_cases
    only_case = None if case_id is None else _case_index(run, case_id)
    repeats = Repeat.objects.filter(run=run).order_by("index").values_list("id", "index")
    branches = []
    for repeat_id, index in repeats:
        if repeat is not None and index != repeat:
            continue
        # The places of this repeat are index * n_cases to index * n_cases + n_cases - 1.
        low = max(0 if after is None else after - index * n_cases + 1, 0)
        high = min(n_cases if before is None else before - index * n_cases, n_cases)
        low, high = (low, high) if only_case is None else (max(low, only_case), min(high, only_case + 1))
        if low < high:
            found = Response.objects.filter(repeat=repeat_id, case_index__gte=low, case_index__lt=high)
            branches.append(found.order_by("case_index" if before is None else "-case_index"))
    if before is not None:
        branches.reverse()
    return _rows(run, _first(branches, limit))


def _first(branches: "list[QuerySet[Response]]", limit: int) -> list[int]:
    """The ids of the first `limit` responses of the branches, taken one after the other in one statement."""
    if not branches:
        return []
    numbered = [
        branch.annotate(branch=Value(number), rank=F("case_index")).values_list("branch", "rank", "id")[:limit]
        for number, branch in enumerate(branches)
    ]
    rows = sorted(numbered[0].union(*numbered[1:], all=True), key=lambda row: row[0])  # stable: keeps each order
    return [row[2] for row in rows[:limit]]


def _rows(run: Run, ids: list[int]) -> tuple[ResponseRow, ...]:
    responses = (
        Response.objects.filter(pk__in=ids)
        .select_related("repeat", "engine_process__worker")
        .select_related("engine_process__bucket__model", "engine_process__bucket__fingerprint")
        .order_by("repeat__index", "case_index")
    )
    found = list(responses)
    cases = Case.objects.filter(
        suite_version=run.suite_version_id, index__in={response.case_index for response in found}
    )
    case_ids = dict(cases.values_list("index", "case_id"))
    scores = RepeatScore.objects.filter(
        repeat__in={response.repeat_id for response in found}, scorer=run.suite_version.scorer_id
    )
    unpacked = {
        score.repeat_id: (columns.unpack_scores(bytes(score.scores)), columns.unpack_reasons(bytes(score.reasons)))
        for score in scores
    }
    chances = _flip_chances(run)
    return tuple(
        _row(response, chances, case_ids[response.case_index], unpacked.get(response.repeat_id)) for response in found
    )


def _flip_chances(run: Run) -> NDArray[np.float32]:
    """float32[n_cases], NaN where unknown."""
    n_cases = run.suite_version.n_cases
    stored = CaseColumns.objects.filter(repeat__run=run, flip_chances__isnull=False)
    packed = stored.values_list("flip_chances", flat=True).first()
    if packed is None:
        return np.full(n_cases, fragility.UNKNOWN, dtype=np.float32)
    return columns.unpack_chances(bytes(packed), n_cases)


def _row(
    response: Response,
    chances: NDArray[np.float32],
    case_id: str,
    scored: tuple[NDArray[np.float64], list[str | None]] | None,
) -> ResponseRow:
    index = response.case_index
    return ResponseRow(
        place=response.repeat.index * len(chances) + index,
        repeat=response.repeat.index,
        case_id=case_id,
        case_index=index,
        text=response.text,
        finish_reason=response.finish_reason,
        error_code=response.error_code,
        error_detail=response.error_detail,
        is_vouched=response.is_vouched,
        marks=live_answers.names_of(response.marks),
        score=finite(float(scored[0][index])) if scored else None,
        reason=(scored[1][index] or "") if scored else "",
        flip_chance=finite(float(chances[index])),
        trace_digest=bytes(response.trace_digest).hex() if response.trace_digest else "",
        provenance=provenance_of(response),
        recorded_at=response.recorded_at,
    )


def _case_index(run: Run, case_id: str) -> int:
    index = Case.objects.filter(suite_version=run.suite_version_id, case_id=case_id).values_list("index", flat=True)
    found = index.first()
    if found is None:
        raise NotFound(f"The suite of run {run.pk} has no case {case_id}.")
    return found
