"""Stored responses scored again; nothing is decoded, and both scores stay."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Q

from evalboard.core import scoring
from evalboard.core.document import MAX_PROBLEMS, Problems
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.trace import SAYABLE, Ending, plain_word, read_ending
from runs import acts
from runs.models import (
    Case,
    DeletionRecord,
    EndpointRecord,
    JudgingRecord,
    ResponseRecord,
    RunRecord,
    Scorer,
    SuiteVersionRecord,
)
from runs.run import delete_judge_run, named_endpoint
from runs.store import changes, history, require_row, take_as_long_as_it_takes
from runs.suites.own_scorers import bind_scorer
from runs.suites.suites import store_scorer
from runs.work import rollup
from runs.work.endings import settle_endings

MAX_WORD_CHARS = 40  # as many as are stored of each


def rescore_run(
    *,
    run_id: int,
    scorer: Mapping[str, Any] | None = None,
    cases: Mapping[str, Mapping[str, Any]] | None = None,
    judge_again: bool = False,
) -> Scorer:
    """Score a run's stored responses with another scorer.

    `scorer` replaces the suite's default, `cases` (case id → scorer) the scorers of single cases;
    what is not named stays as the suite has it. The scores of a team's own scorer and of a judge come later.
    judge_again: ask a judge that has scored the run once more, as it is now; its earlier scores stay, under a scorer of
    their own. Else it is not asked again. Raises InvalidInput with fields, NotFound, or Conflict while no repeat has
    ended, or the run has not and a judge is to score it, or a judge is at it that is to be asked again.
    """
    run = require_row(
        RunRecord.objects.select_related("suite_version__scorer").filter(pk=run_id), f"There is no run {run_id}."
    )
    stored = run.suite_version.scorer.spec
    known_ids = set(
        Case.objects.filter(suite_version=run.suite_version, case_id__in=cases or {}).values_list("case_id", flat=True)
    )
    unknown = sorted(set(cases or {}) - known_ids)
    if unknown:
        raise NotFound(f"The suite has no case {unknown[0]}.")
    problems = Problems()
    default = stored["default"] if scorer is None else bind_scorer(dict(scorer), "scorer", problems)
    own = {case: bind_scorer(dict(spec), f"cases.{case}", problems) for case, spec in (cases or {}).items()}
    problems.raise_if_any("The scorer is not valid")
    plan = scoring.plan(default, {**stored["cases"], **own})
    if scoring.is_recorded(plan):
        text = "Scores of the kind recorded are read from logs and cannot be made again; name a scorer for every case."
        raise InvalidInput("The scorer is not valid.", fields={"scorer": text})
    if scoring.is_judged(plan) and not run.is_terminal:
        raise Conflict(f"Run {run.pk} is {run.status}; a judge scores runs that have ended.")
    if judge_again:
        plan = _number_next(run, plan)
    _refuse_unsuited_targets(run.suite_version, plan)
    with transaction.atomic():
        take_as_long_as_it_takes()
        # Locked: a deletion waits until the scores are stored, or has taken the repeats away before.
        locked = run.repeats.select_for_update(of=("self",), no_key=True).order_by("pk")
        ended = list(locked.exclude(finished_at=None).select_related("run__suite_version"))
        if not ended and not RunRecord.objects.filter(pk=run_id).exists():
            raise NotFound(f"There is no run {run_id} any more.")
        run.refresh_from_db(fields=["texts_deleted_at"])
        acts.require("rescore", run)
        stored_scorer = store_scorer(plan)
        _forget_failed_judging(run, stored_scorer)
        for repeat in ended:
            rollup.score_repeat(repeat, stored_scorer)
        if scoring.scores_here(plan):  # else when a worker or a judge has scored them
            history.note(run.pk, "rescored", f"Scored again with scorer {stored_scorer.digest[:8]}.")
        changes.run_changed(run_id=run.pk)
    return stored_scorer


def _number_next(run: RunRecord, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan as the next judging of a run by the same judge; one that failed is tried again."""
    if not scoring.is_judged(plan):
        text = "No judge scores these answers. Name one as the scorer, or leave judge_again out."
        raise InvalidInput("The scorer is not valid.", fields={"judge_again": text})
    if (at_work := run.judgings.filter(status=JudgingRecord.Status.RUNNING).first()) is not None:
        which = f" in run {at_work.judge_run_id}" if at_work.judge_run_id else ""
        raise Conflict(f"A judge scores run {run.pk}{which}. Ask again when it has ended.")
    first = scoring.number_judging(plan, 1)
    ended = run.judgings.exclude(status=JudgingRecord.Status.FAILED).values_list("scorer__spec", flat=True)
    numbers = [scoring.judging_number(each) for each in ended if scoring.number_judging(each, 1) == first]
    return scoring.number_judging(first, max(numbers, default=0) + 1)


def _forget_failed_judging(run: RunRecord, scorer: Scorer) -> None:
    """Delete the judge's run of a judging that failed, so that another can begin."""
    failed = run.judgings.filter(scorer=scorer, status=JudgingRecord.Status.FAILED).exclude(judge_run=None)
    for record in failed.select_related("judge_run__suite_version"):
        if record.judge_run is not None:
            delete_judge_run(record.judge_run)


def set_endings(*, endpoint: str, endings: Mapping[str, Any]) -> EndpointRecord:
    """Say what words mean at the end of an endpoint's answers, and score again what ended with them.

    Raises NotFound, or InvalidInput with fields.
    """
    wrong = {
        word: f"Must be one of: {', '.join(SAYABLE)}, for a word that is in no list."
        for word, ending in endings.items()
        if ending not in SAYABLE or not 0 < len(plain_word(word)) <= MAX_WORD_CHARS or read_ending(word) is not None
    }
    if wrong:
        raise InvalidInput("The endings are not valid.", fields=wrong)
    with transaction.atomic():
        take_as_long_as_it_takes()
        known = named_endpoint(endpoint)
        known.endings = {**known.endings, **endings}
        known.save(update_fields=["endings"])
        ended = ResponseRecord.objects.filter(Q(ending=Ending.UNKNOWN) | Q(finish_reason__in=endings))
        runs = RunRecord.objects.filter(pk__in=ended.filter(repeat__run__endpoint=known).values("repeat__run"))
        # Without their texts they cannot be scored again, and keep their scores.
        gone = DeletionRecord.objects.exclude(case_id="").values("suite_version")
        runs = runs.filter(texts_deleted_at=None).exclude(suite_version__in=gone)
        for run in runs.select_related("endpoint", "suite_version__scorer"):
            is_scored = not scoring.is_recorded(run.suite_version.scorer.spec) and not rollup.waits_for_judge(run)
            for repeat in run.repeats.filter(pk__in=settle_endings(run, is_final=True)).exclude(finished_at=None):
                if is_scored:
                    rollup.score_repeat(repeat, run.suite_version.scorer)
                rollup.score_by_adopted(repeat)
            changes.run_changed(run_id=run.pk)
    return known


def _refuse_unsuited_targets(version: SuiteVersionRecord, plan: Mapping[str, Any]) -> None:
    """A scorer that cannot use the cases' targets would call every answer wrong."""
    fields: dict[str, str] = {}
    for case in version.cases.all().iterator(chunk_size=2000):
        spec = scoring.scorer_for(plan, case.case_id)
        fields.update(scoring.target_problems(spec, case.content["target"], f"cases[{case.index}].target"))
        if len(fields) >= MAX_PROBLEMS:
            break
    if fields:
        raise InvalidInput("The scorer does not suit the stored targets.", fields=fields)
