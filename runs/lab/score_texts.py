"""Texts scored again under any scorer; nothing is stored."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core import scoring
from runs.models import Case, RepeatRecord, ResponseRecord, Scorer, SuiteVersionRecord
from runs.work import ReplyToScore, read_replies

SCORED_BY = ("index", "case_id", "content__target", "content__tools")

ScoredCase = tuple[int, str, Any, Any]


def read_scored_cases(version: SuiteVersionRecord, indexes: Iterable[int] | None = None) -> list[ScoredCase]:
    """Return a scorer's view of a version's cases, of all or those with these indexes."""
    cases = Case.objects.filter(suite_version=version)
    if indexes is not None:
        cases = cases.filter(index__in=set(indexes))
    return list(cases.order_by("index").values_list(*SCORED_BY))


def read_texts(repeat: RepeatRecord, scorer: Scorer, indexes: Iterable[int] | None = None) -> dict[int, ReplyToScore]:
    """Return a scorer's view of a repeat by case, without missing responses."""
    rows = ResponseRecord.objects.filter(repeat=repeat, error_code="")
    if indexes is not None:
        rows = rows.filter(case_index__in=set(indexes))
    return read_replies(rows, scorer.spec)


def score_texts(
    scorer: Scorer, cases: Sequence[ScoredCase], texts: Mapping[int, ReplyToScore], *, n_cases: int
) -> NDArray[np.float64]:
    """Return float64[n_cases], from 0 to 1, NaN where there is no text."""
    scores = np.full(n_cases, np.nan)
    for index, case_id, target, tools in cases:
        if index not in texts:
            continue
        spec = scoring.scorer_for(scorer.spec, case_id)
        scores[index] = scoring.score(spec, **texts[index]._asdict(), target=target, tools=tools).value
    return scores
