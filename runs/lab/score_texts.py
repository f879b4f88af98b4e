"""Texts scored again under any scorer; nothing is stored."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core import scoring
from runs.models import Case, Repeat, Response, Scorer, SuiteVersion

SCORED_BY = ("index", "case_id", "content__target", "content__tools")

ScoredCase = tuple[int, str, Any, Any]


def read_scored_cases(version: SuiteVersion, indexes: Iterable[int] | None = None) -> list[ScoredCase]:
    """Return what a scorer reads of a version's cases: of those with these indexes, None: of all."""
    cases = Case.objects.filter(suite_version=version)
    if indexes is not None:
        cases = cases.filter(index__in=set(indexes))
    return list(cases.order_by("index").values_list(*SCORED_BY))


def read_texts(repeat: Repeat, indexes: Iterable[int] | None = None) -> dict[int, str | None]:
    """Return the texts of a repeat by case, None where one was cut inside its thinking; those missing are left out."""
    rows = Response.objects.filter(repeat=repeat, error_code="")
    if indexes is not None:
        rows = rows.filter(case_index__in=set(indexes))
    stored = rows.values_list("case_index", "text", "is_truncated")
    return {index: None if is_truncated else text for index, text, is_truncated in stored}


def score_texts(
    scorer: Scorer, cases: Sequence[ScoredCase], texts: Mapping[int, str | None], *, n_cases: int
) -> NDArray[np.float64]:
    """Return float64[n_cases], from 0 to 1, NaN where there is no text. What was cut inside its thinking scores 0."""
    scores = np.full(n_cases, np.nan)
    for index, case_id, target, tools in cases:
        if index not in texts:
            continue
        text = texts[index]
        spec = scoring.scorer_for(scorer.spec, case_id)
        scores[index] = 0.0 if text is None else scoring.score(spec, text=text, target=target, tools=tools).value
    return scores
