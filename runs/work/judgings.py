"""Runs that wait for a judge to score them. `runs.judging` starts the judge's own run, and ends both."""

from django.db.models import QuerySet

from runs.models import JudgingRecord, RunRecord, Scorer


def request_judging(run: RunRecord, scorer: Scorer) -> None:
    """Note that a judge is to score a run; one that has done so, or is at it, is left as it is.

    One that failed begins again.
    """
    record, is_new = JudgingRecord.objects.get_or_create(run=run, scorer=scorer)
    if not is_new and record.status == JudgingRecord.Status.FAILED:
        again = {"status": JudgingRecord.Status.RUNNING, "error": "", "finished_at": None}
        JudgingRecord.objects.filter(pk=record.pk).update(**again)


def open_judgings() -> QuerySet[JudgingRecord]:
    """Select the judgings that wait or are under way."""
    return JudgingRecord.objects.filter(status=JudgingRecord.Status.RUNNING)


def own_open_judgings(run: RunRecord) -> QuerySet[JudgingRecord]:
    """Select that of a run by its suite's own judge, without which it has no score."""
    return open_judgings().filter(run=run, scorer=run.suite_version.scorer_id)
