"""Score the control's texts again: by every scorer that this version has had, and with other spacing."""

from collections.abc import Callable
from functools import partial

from evalboard.core import scoring
from evalboard.core.lab import SPACINGS, ArmFigures, respace
from evalboard.core.stats import run_points
from runs.lab.score_texts import read_scored_cases, read_texts, score_texts
from runs.models import RepeatRecord, Scorer
from runs.work import ReplyToScore

SCORERS_READ = 8


def measure_parser(first: RepeatRecord) -> ArmFigures:
    """Return one point for each other scorer and for each spacing, by name; nothing is stored or decoded."""
    version = first.run.suite_version
    cases = read_scored_cases(version)

    def score(scorer: Scorer, change: Callable[[str], str]) -> float | None:
        texts = {index: _change(reply, change) for index, reply in read_texts(first, scorer).items()}
        return run_points(score_texts(scorer, cases, texts, n_cases=version.n_cases))

    others = Scorer.objects.filter(repeat_scores__repeat__run__suite_version=version).exclude(pk=version.scorer_id)
    points: dict[str, float | None] = {}
    for scorer in others.distinct().order_by("-id")[:SCORERS_READ]:
        if not scoring.is_recorded(scorer.spec):
            points[f"scorer {scorer.digest[:8]}"] = score(scorer, str)
    for name in SPACINGS:
        points[name] = score(version.scorer, partial(respace, name=name))
    return ArmFigures(points=tuple(points.values()), names=tuple(points))


def _change(reply: ReplyToScore, change: Callable[[str], str]) -> ReplyToScore:
    thinking = None if reply.thinking is None else change(reply.thinking)
    return reply._replace(text=change(reply.text), thinking=thinking)
