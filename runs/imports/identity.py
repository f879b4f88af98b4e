"""Recognise an eval that is stored already, in any log format, and handle a second log of it.

An eval is identified by the tool's own run id if there is one; else by its answers if they are unique: by the server's
id of the response, or by when the eval began and ended. Without either, two equal evals count as two.
"""

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q

from evalboard.core.digest import digest_json, text_digest
from evalboard.core.errors import Conflict
from evalboard.importers.records import LoggedResponse, LoggedRun
from evalboard.logged.suites import tool_of
from runs.imports.import_suites import lacks_prompts
from runs.models import ResponseRecord, RunRecord
from runs.run import delete_run
from runs.store import NOT_IN_LOG

Answers = Counter[tuple[int, bytes]]  # (repeat, the text's digest) of what was answered


def ids_of(logged: LoggedRun) -> list[str]:
    """Return the digests that identify an eval; empty if it cannot be identified."""
    if logged.own_ids:
        return [digest_json([tool_of(logged), logged.model, own]) for own in logged.own_ids]
    there = [each for each in logged.responses if not each.error]
    answered: list[Any] = sorted([each.request_id, each.repeat, text_digest(each.text).hex()] for each in there)
    if there and all(each.request_id for each in there):
        return [digest_json(answered)]
    if there and logged.started_at and logged.finished_at:
        return [digest_json([logged.model, logged.started_at.isoformat(), logged.finished_at.isoformat(), answered])]
    return []


def content_of(logged: LoggedRun) -> str:
    """Return the digest of an eval's answers and scores, independent of the log's format."""
    return digest_json([logged.status, sorted(map(_row, logged.responses))])


def find(logged: LoggedRun, *, suite: str | None) -> RunRecord | None:
    """Return the newest run that is of this eval; of a named suite, where one is named."""
    ids = ids_of(logged)
    if not ids:
        return None
    runs = RunRecord.objects.filter(reduce(or_, (Q(log_ids__contains=[each]) for each in ids)))
    if suite is not None:
        runs = runs.filter(suite_version__suite__slug=suite)
    return runs.select_related("source", "suite_version").order_by("-id").first()


def make_room(logged: LoggedRun, stored: RunRecord) -> str:
    """Delete the stored run of an earlier state of this eval if the log contains all of it; return a note.

    Return "" if the run contains all of the log, so that there is nothing to store. Raises Conflict if neither contains
    the other, or if other records depend on the run.
    """
    knows_prompts, is_bare = all(case.messages for case in logged.cases), lacks_prompts(stored.suite_version)
    has_prompts = knows_prompts and is_bare
    if stored.log_digest == content_of(logged) and not has_prompts:
        return ""
    before, now = _stored_answers(stored), _answers(logged)
    if _stored_samples(stored) - _samples(logged):
        if now <= before:
            return ""
        raise Conflict(
            f"Run {stored.pk} is of the same eval and has samples that this log lacks. Nothing is stored; "
            f"delete run {stored.pk} to import the log."
        )
    says_less = (not knows_prompts and not is_bare) or (not logged.scorers and not has_prompts)
    if now < before or (now == before and says_less):
        return ""
    what = f"Run {stored.pk} is of the same eval"
    if not (before <= now and (has_prompts or before != now or stored.status != RunRecord.Status.FINISHED)):
        others = "other answers" if before != now else "other scores"
        raise Conflict(
            f"{what} and has {others} than this log. Nothing is stored; delete run {stored.pk} to import the log."
        )
    counts = f"{before.total():,} of the {now.total():,} answers of this log"
    try:
        delete_run(run_id=stored.pk)
    except Conflict as error:
        text = f"{what}, imported before it had ended: it has {counts}. It would be replaced, but: {error.detail}"
        raise Conflict(f"{text} Nothing is stored.") from error
    if before == now and has_prompts:
        return f"Takes the place of run {stored.pk}, which had no prompts."
    return f"Takes the place of run {stored.pk}, which was read before this eval had ended and had {counts}."


def _row(response: LoggedResponse) -> list[Any]:
    scores = sorted([name, score.value] for name, score in response.scores.items())
    text = "" if response.error else text_digest(response.text).hex()
    return [response.case_id, response.repeat, bool(response.error), text, scores]


def _samples(logged: LoggedRun) -> set[tuple[int, str]]:
    return {(each.repeat, each.case_id) for each in logged.responses}


def _stored_samples(run: RunRecord) -> set[tuple[int, str]]:
    """Return what the run's log had, failed or not: (repeat, case id)."""
    rows = ResponseRecord.objects.filter(repeat__run=run).exclude(error_code=NOT_IN_LOG)
    names = dict(run.suite_version.cases.values_list("index", "case_id"))
    return {(repeat, names[index]) for repeat, index in rows.values_list("repeat__index", "case_index")}


def _answers(logged: LoggedRun) -> Answers:
    return Counter((each.repeat, text_digest(each.text)) for each in logged.responses if not each.error)


def _stored_answers(run: RunRecord) -> Answers:
    rows = ResponseRecord.objects.filter(repeat__run=run, error_code="").values_list("repeat__index", "text_digest")
    return Counter(_pairs(rows.iterator()))


def _pairs(rows: Any) -> Iterator[tuple[int, bytes]]:
    for repeat, digest in rows:
        yield repeat, bytes(digest)
