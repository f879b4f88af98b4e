"""The control's texts scored again: under each scorer that this suite version has had, and with other spacing."""

from collections.abc import Callable
from functools import partial

import numpy as np

from evalboard.core import scoring
from evalboard.core.lab import SPACINGS, ArmFigures, respace
from evalboard.core.stats import run_points
from runs.models import Case, Repeat, Response, Scorer

SCORERS_READ = 8
SCORED_BY = ("index", "case_id", "content__target", "content__tools")


def measure_parser(first: Repeat) -> ArmFigures:
    """Return one point for each other scorer and for each spacing, by name; nothing is stored or decoded."""
    version = first.run.suite_version
    rows = Response.objects.filter(repeat=first, error_code="")
    texts = {
        index: None if is_truncated else text
        for index, text, is_truncated in rows.values_list("case_index", "text", "is_truncated")
    }
    cases = list(Case.objects.filter(suite_version=version).order_by("index").values_list(*SCORED_BY))

    def score(scorer: Scorer, change: Callable[[str], str]) -> float | None:
        scores = np.full(version.n_cases, np.nan)
        for index, case_id, target, tools in cases:
            if index not in texts:
                continue
            text = texts[index]
            spec = scoring.scorer_for(scorer.spec, case_id)
            scores[index] = (
                0.0 if text is None else scoring.score(spec, text=change(text), target=target, tools=tools).value
            )
        return run_points(scores)

    others = Scorer.objects.filter(repeat_scores__repeat__run__suite_version=version).exclude(pk=version.scorer_id)
    points: dict[str, float | None] = {}
    for scorer in others.distinct().order_by("-id")[:SCORERS_READ]:
        if not scoring.is_recorded(scorer.spec):
            points[f"scorer {scorer.digest[:8]}"] = score(scorer, str)
    for name in SPACINGS:
        points[name] = score(version.scorer, partial(respace, name=name))
    return ArmFigures(points=tuple(points.values()), names=tuple(points))
