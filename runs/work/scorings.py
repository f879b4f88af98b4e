"""Repeats that wait for a worker to score them, since their scorer is a team's own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from evalboard.core import scoring
from evalboard.core.trace import Ending
from runs.models import Case, RepeatRecord, RepeatScore, ResponseRecord, RunRecord, Scorer, ScoringRecord, WorkerRecord
from runs.work import requests
from runs.work.claims import Lease
from runs.work.requests import Requests
from runs.work.workers import living_workers

SCORINGS = Requests(ScoringRecord, serving="repeat__run__")
READ_AT_ONCE = 200  # responses with their prompts


@dataclass(frozen=True, slots=True)
class ToScore:
    """A response to be scored, with the fields of its case that a team's own scorer gets.

    messages, target, tools, tags: of the case (docs/suites.md). is_truncated: it was cut before any answer.
    """

    index: int
    case_id: str
    messages: Sequence[Mapping[str, Any]]
    target: Any
    tools: Any
    tags: Sequence[str]
    text: str
    thinking: str | None
    is_truncated: bool | None
    finish_reason: str


def request_scoring(repeat: RepeatRecord, scorer: Scorer) -> None:
    """Queue a repeat for a worker that has the scorer; a waiting or running one is left as it is."""
    needs = sorted({spec["digest"] for spec in scoring.external_specs(scorer.spec)})
    row, is_new = ScoringRecord.objects.get_or_create(repeat=repeat, scorer=scorer, defaults={"needs": needs})
    if not is_new and row.status in (ScoringRecord.Status.FINISHED, ScoringRecord.Status.FAILED):
        again = {"status": "queued", "n_crashes": 0, "n_done": 0, "error": "", "finished_at": None, "next_at": Now()}
        ScoringRecord.objects.filter(pk=row.pk).update(**again)
    able = living_workers().filter(scorers__contains=[{"digest": needs[0]}])
    for pool in set(able.values_list("pool", flat=True)):
        requests.ring_after_commit(pool)


def open_scorings() -> QuerySet[ScoringRecord]:
    """Select the scorings that wait or are under way."""
    return ScoringRecord.objects.filter(status__in=(ScoringRecord.Status.QUEUED, ScoringRecord.Status.RUNNING))


def failed_scorings() -> list[int]:
    """Return the scorings that were given up and left no scores."""
    scored = RepeatScore.objects.filter(repeat=OuterRef("repeat"), scorer=OuterRef("scorer"))
    failed = ScoringRecord.objects.filter(status=ScoringRecord.Status.FAILED).exclude(Exists(scored))
    return list(failed.values_list("pk", flat=True))


def own_open_scorings(run: RunRecord) -> QuerySet[ScoringRecord]:
    """Select those of a run by its suite's own scorer, without which it has no score."""
    return open_scorings().filter(repeat__run=run, scorer=run.suite_version.scorer_id)


def claim_scoring(*, worker: WorkerRecord, left_alone: frozenset[int]) -> Lease | None:
    """Claim the oldest repeat whose scorers this worker all has, of any pool; None without any."""
    mine = [each["digest"] for each in worker.scorers if not each["problem"]]
    if not mine:
        return None
    waiting = ScoringRecord.objects.filter(status="queued", next_at__lte=Now(), needs__contained_by=mine)
    return SCORINGS.claim_oldest(waiting.exclude(pk__in=left_alone), worker=worker)


def scoring_work(scoring_id: int) -> ScoringRecord:
    """Return a scoring with its repeat, run and scorer."""
    related = ("repeat__run__suite_version", "scorer")
    return ScoringRecord.objects.select_related(*related).get(pk=scoring_id)


def read_to_score(repeat: RepeatRecord) -> Iterator[list[ToScore]]:
    """Yield the answers of a repeat in the order of its cases, without those of an unknown ending.

    Prompts may be long: a part of READ_AT_ONCE cases is in memory at a time.
    """
    version_id, n_cases = repeat.run.suite_version_id, repeat.run.suite_version.n_cases
    fields = ("text", "reasoning", "is_truncated", "finish_reason")
    for first in range(0, n_cases, READ_AT_ONCE):
        part = (first, first + READ_AT_ONCE - 1)
        there = ResponseRecord.objects.filter(repeat=repeat, error_code="", case_index__range=part)
        known = there.exclude(ending=Ending.UNKNOWN)
        answers = {index: given for index, *given in known.values_list("case_index", *fields)}
        cases = Case.objects.filter(suite_version=version_id, index__in=list(answers)).order_by("index")
        yield [
            ToScore(index, case_id, content["messages"], content["target"], content.get("tools"), tags, *answers[index])
            for index, case_id, content, tags in cases.values_list("index", "case_id", "content", "tags")
        ]
