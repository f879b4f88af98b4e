"""Read what would change in a run if another scorer, by which it is scored as well, decided."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.base import finite
from evalboard.contract.run import Run, ScorerOfRun, ScoresUnderScorer
from evalboard.contract.suite import RescoredCase, RescoredRun
from evalboard.core.errors import NotFound
from evalboard.core.trace import unpack_reasons, unpack_scores
from evalboard.path_converters import reverse_case
from evalboard.wording import run as wording
from evalboard.wording.scorers import name_scorer
from runs.models import Case, JudgingRecord, RepeatScore, RunRecord, Scorer, ScoringRecord
from runs.run import NEWEST_FIRST, explain_judging, explain_scoring, read_answers, run_report
from runs.store import require_row
from runs.work import open_judgings, open_scorings

JUDGING = ("scorer", "judge_run__suite_version")


@dataclass(frozen=True)
class ScoreChanges:
    """The scores of a run by its suite's scorer and by another, of the repeats that have both.

    repeats: their indexes, without targeted ones. before, after: float64[n_cases, k], NaN where unscored. rows: the two
    of each.
    """

    run: RunRecord
    repeats: tuple[int, ...]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    rows: tuple[tuple[RepeatScore, RepeatScore], ...]
    is_mixed: bool

    @cached_property
    def differs(self) -> NDArray[np.bool_]:
        """Return bool[n_cases, k]."""
        is_same = (self.before == self.after) | (np.isnan(self.before) & np.isnan(self.after))
        return np.asarray(~is_same)

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """Return float64[n_cases]: by which each case moves the score; NaN where that is unknown."""
        moved = self.after - self.before
        n_known = (~np.isnan(moved)).sum(axis=1)
        means = np.nansum(moved, axis=1) / np.where(n_known > 0, n_known, np.nan)
        return np.asarray(np.full(len(means), np.nan) if self.is_mixed else 100 * means / max(self.n_shared, 1))

    @property
    def n_shared(self) -> int:
        """Count the cases that both scorers score in some repeat."""
        return int((~np.isnan(self.after - self.before)).any(axis=1).sum())

    @cached_property
    def indexes(self) -> list[int]:
        """Return the indexes of the cases that change: the furthest moved first, unscored ones last."""
        changed = np.flatnonzero(self.differs.any(axis=1))
        order = np.argsort(-np.nan_to_num(np.abs(self.points[changed])), kind="stable")
        return [int(index) for index in changed[order]]

    @property
    def n_unscored(self) -> int:
        """Count the cases with a score that the other scorer leaves without one in some repeat."""
        return int((~np.isnan(self.before) & np.isnan(self.after)).any(axis=1).sum())

    def rows_of(self, indexes: Sequence[int]) -> tuple[RescoredCase, ...]:
        """Return the rows of cases."""
        shown = Case.objects.filter(suite_version=self.run.suite_version_id, index__in=indexes)
        cases = {case.index: case for case in shown}
        places = {index: int(np.argmax(self.differs[index])) for index in indexes}
        answers = read_answers(self.run, {index: self.repeats[place] for index, place in places.items()})
        reasons = [[unpack_reasons(bytes(row.reasons)) for row in self.rows[place]] for place in range(len(self.rows))]
        return tuple(
            RescoredCase(
                case=cases[index].case_id,
                points=finite(float(self.points[index])),
                before=tuple(finite(value) for value in self.before[index].tolist()),
                after=tuple(finite(value) for value in self.after[index].tolist()),
                repeat=self.repeats[place],
                target=cases[index].content["target"],
                answer=answers.get(index),
                reason_before=reasons[place][0][index] or None,
                reason_after=reasons[place][1][index] or None,
                url=reverse_case("response", self.run.pk, self.repeats[place], cases[index].case_id),
            )
            for index, place in places.items()
        )


def run_to_rescore(slug: str) -> int | None:
    """Return a suite's newest finished run; None without one."""
    finished = RunRecord.objects.filter(suite_version__suite__slug=slug, status=RunRecord.Status.FINISHED)
    return finished.order_by(*NEWEST_FIRST).values_list("pk", flat=True).first()


def rescored_run(run_id: int, scorer_id: int) -> RescoredRun:
    """Compare a run's scores by one scorer with those by its suite's. Raises NotFound."""
    for each in rescored_runs(run_id):
        if each.scorer.id == str(scorer_id):
            return each
    raise _unscored(run_id, scorer_id)


def rescored_runs(run_id: int) -> tuple[RescoredRun, ...]:
    """Compare a run's scores by each of its scorers with those by its suite's own, which is first.

    Those that have yet to score it are among them. Raises NotFound.
    """
    report = run_report(run_id)
    run = RunRecord.objects.select_related("suite_version__suite", "suite_version__scorer", "endpoint").get(pk=run_id)
    own = run.suite_version.scorer
    awaited: dict[int, list[ScoringRecord]] = defaultdict(list)
    for each in open_scorings().filter(repeat__run=run, repeat__cases=None).select_related("scorer").order_by("pk"):
        awaited[each.scorer_id].append(each)
    lines = {int(line.scorer.id): line for line in report.scores}
    judging = {each.scorer_id: each for each in open_judgings().filter(run=run).select_related(*JUDGING)}
    stored = Scorer.objects.in_bulk({own.pk, *lines, *awaited, *judging})
    ids = [own.pk, *sorted(stored.keys() - {own.pk})]
    return tuple(_compare(report, run, stored[pk], lines, awaited[pk], judging.get(pk)) for pk in ids)


def score_changes(run_id: int, scorer_id: int) -> ScoreChanges:
    """Read a run's scores by its suite's own scorer and by another. Raises NotFound."""
    runs = RunRecord.objects.select_related("suite_version").filter(pk=run_id)
    run = require_row(runs, f"There is no run {run_id}.")
    is_awaited = open_scorings().filter(repeat__run=run, scorer=scorer_id).exists()
    is_awaited = is_awaited or open_judgings().filter(run=run, scorer=scorer_id).exists()
    if not is_awaited and not RepeatScore.objects.filter(repeat__run=run, scorer=scorer_id).exists():
        raise _unscored(run_id, scorer_id)
    return _read_changes(run, scorer_id)


def _read_changes(run: RunRecord, scorer_id: int) -> ScoreChanges:
    own_id = run.suite_version.scorer_id
    by_repeat: dict[int, dict[int, RepeatScore]] = defaultdict(dict)
    rows = RepeatScore.objects.filter(repeat__run=run, repeat__cases=None, scorer__in=(own_id, scorer_id))
    buckets: set[int] = set()
    for row in rows.select_related("repeat__columns").order_by("repeat__index"):
        by_repeat[row.repeat.index][row.scorer_id] = row
        buckets.update(row.repeat.columns.bucket_ids)
    both = {index: (of[own_id], of[scorer_id]) for index, of in by_repeat.items() if {own_id, scorer_id} <= of.keys()}
    n_cases = run.suite_version.n_cases
    before, after = (
        np.column_stack([unpack_scores(bytes(pair[side].scores)) for pair in both.values()])
        if both
        else np.empty((n_cases, 0))
        for side in (0, 1)
    )
    return ScoreChanges(run, tuple(both), before, after, tuple(both.values()), len(buckets) > 1)


def _compare(
    report: Run,
    run: RunRecord,
    scorer: Scorer,
    lines: dict[int, ScoresUnderScorer],
    awaited: Sequence[ScoringRecord],
    judging: JudgingRecord | None,
) -> RescoredRun:
    own_id = run.suite_version.scorer_id
    changes = _read_changes(run, scorer.pk)
    before, after = (_points(report, lines.get(pk)) for pk in (own_id, scorer.pk))
    is_known = changes.n_shared > 0 and not changes.is_mixed
    ranges = [line.range if (line := lines.get(pk)) is not None else None for pk in (own_id, scorer.pk)]
    return RescoredRun(
        run=report.id,
        suite=report.suite.slug,
        suite_version=report.suite.version,
        scorer=ScorerOfRun(
            id=str(scorer.pk), digest=scorer.digest, name=name_scorer(scorer.spec), is_own=scorer.pk == own_id
        ),
        spec=scorer.spec,
        waiting=bool(awaited) or judging is not None,
        waits_for=_waits_for(run, awaited, judging),
        before=before,
        after=after,
        range_before=ranges[0],
        range_after=ranges[1],
        points=float(np.nansum(changes.points)) if is_known else None,
        n_cases=len(changes.indexes),
        n_unscored=changes.n_unscored,
        points_per_case=100 / changes.n_shared if is_known else report.points_per_case,
        n_scored=len(changes.repeats),
    )


def _points(report: Run, line: ScoresUnderScorer | None) -> tuple[float | None, ...]:
    return (None,) * len(report.repeats) if line is None else line.repeats


def _waits_for(run: RunRecord, awaited: Sequence[ScoringRecord], judging: JudgingRecord | None) -> str | None:
    if judging is not None:
        return wording.waiting("judging", explain_judging(judging))
    if not awaited:
        return None
    code, facts = explain_scoring(awaited, n_cases=run.suite_version.n_cases)
    return wording.waiting(code, facts)


def _unscored(run_id: int, scorer_id: Any) -> NotFound:
    return NotFound(f"Run {run_id} has no scores by a scorer {scorer_id}; POST /runs/{run_id}/rescore/ makes them.")
