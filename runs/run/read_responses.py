"""Responses as rows of a list: text, score and provenance, no trace."""

from collections.abc import Sequence

import numpy as np
from django.db.models import F, QuerySet, Value
from numpy.typing import NDArray

from evalboard.contract import response as contract
from evalboard.contract.base import finite
from evalboard.core.stats import UNKNOWN_CHANCE
from evalboard.core.trace import unpack_chances
from runs.models import Case, CaseColumns, RepeatRecord, ResponseRecord, RunRecord
from runs.run.read_response import NOT_READ, SERVED_BY, response_row
from runs.store import ScoredCase, read_scored, require_row


def response_rows(
    run_id: int,
    *,
    case_id: str | None = None,
    repeat: int | None = None,
    after: int | None = None,
    before: int | None = None,
    limit: int = 50,
) -> tuple[contract.Response, ...]:
    """Read responses of a run by repeat and case, beyond the place `after` or nearest before `before`.

    Raises NotFound for a run or case that is not there.
    """
    run = require_row(RunRecord.objects.select_related("suite_version").filter(pk=run_id), f"There is no run {run_id}.")
    n_cases = run.suite_version.n_cases
    only_case = None if case_id is None else _case_index(run, case_id)
    repeats = RepeatRecord.objects.filter(run=run).order_by("index").values_list("id", "index")
    branches = []
    for repeat_id, index in repeats:
        if repeat is not None and index != repeat:
            continue
        # The places of this repeat are index * n_cases to index * n_cases + n_cases - 1.
        low = max(0 if after is None else after - index * n_cases + 1, 0)
        high = min(n_cases if before is None else before - index * n_cases, n_cases)
        low, high = (low, high) if only_case is None else (max(low, only_case), min(high, only_case + 1))
        if low < high:
            responses = ResponseRecord.objects.filter(repeat=repeat_id, case_index__gte=low, case_index__lt=high)
            branches.append(responses.order_by("case_index" if before is None else "-case_index"))
    if before is not None:
        branches.reverse()
    return _rows(run, _first(branches, limit))


def _first(branches: "list[QuerySet[ResponseRecord]]", limit: int) -> list[int]:
    """The ids of the first `limit` responses of the branches, taken one after the other in one statement."""
    if not branches:
        return []
    numbered = [
        branch.annotate(branch=Value(number), rank=F("case_index")).values_list("branch", "rank", "id")[:limit]
        for number, branch in enumerate(branches)
    ]
    rows = sorted(numbered[0].union(*numbered[1:], all=True), key=lambda row: row[0])  # stable: keeps each order
    return [row[2] for row in rows[:limit]]


def _rows(run: RunRecord, ids: list[int]) -> tuple[contract.Response, ...]:
    responses = (
        ResponseRecord.objects.filter(pk__in=ids)
        .select_related("repeat", *SERVED_BY)
        .defer(*NOT_READ)
        .order_by("repeat__index", "case_index")
    )
    cases = Case.objects.filter(
        suite_version=run.suite_version_id, index__in={response.case_index for response in responses}
    )
    case_ids = dict(cases.values_list("index", "case_id"))
    wanted = {(response.repeat_id, response.case_index) for response in responses}
    scored = read_scored(wanted, n_cases=run.suite_version.n_cases)
    chances = _flip_chances(run)
    return tuple(
        response_row(
            response,
            case_id=case_ids[response.case_index],
            scored=_own(run, scored.get((response.repeat_id, response.case_index), ())),
            flip_chance=finite(float(chances[response.case_index])),
            n_cases=len(chances),
        )
        for response in responses
    )


def _own(run: RunRecord, scored: Sequence[ScoredCase]) -> tuple[float | None, str]:
    """The score and the reason under the run's own scorer, where it has some."""
    own = next((each for each in scored if each.scorer_id == run.suite_version.scorer_id), None)
    return (None, "") if own is None else (own.score, own.reason)


def _flip_chances(run: RunRecord) -> NDArray[np.float32]:
    """float32[n_cases], NaN where unknown."""
    n_cases = run.suite_version.n_cases
    stored = CaseColumns.objects.filter(repeat__run=run, flip_chances__isnull=False)
    packed = stored.values_list("flip_chances", flat=True).first()
    if packed is None:
        return np.full(n_cases, UNKNOWN_CHANCE, dtype=np.float32)
    return unpack_chances(bytes(packed), n_cases)


def _case_index(run: RunRecord, case_id: str) -> int:
    cases = Case.objects.filter(suite_version=run.suite_version_id, case_id=case_id)
    return require_row(cases.values_list("index", flat=True), f"The suite of run {run.pk} has no case {case_id}.")
